/*
 * test_symbols.c - evprof-symbols and the resolver that starts it: whose files are read, with which rights, and what
 * becomes of others when one hangs.
 *
 * Tenants are processes that this program forks, in roots and with users of their own. The names are those of libraries
 * that are compiled here. For tests of one process, evprof-symbols is a part of this program, but for its main().
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define main symbols_main
#define send symbols_send
#include "collector/symbols/symbols.c"
#undef main
#undef send

#include "collector/base/clock.h"
#include "collector/base/loop.h"
#include "collector/symbols/resolver.h"

#define BUILD_ID "0102030405060708"
#define START UINT64_C(0x10000000)
#define PAGES 65536u
#define WAIT_S 60

static char folder[64];
static char answered[4096]; /* the functions that evprof-symbols answered */

ssize_t symbols_send(int fd, const void *message, size_t bytes, int flags)
{
	struct wire_definition record;
	const uint8_t *at = (const uint8_t *)message + sizeof(struct symbols_message);

	(void)fd, (void)flags;
	for (size_t left = bytes - sizeof(struct symbols_message); left; left -= record.size_bytes) {
		memcpy(&record, at, sizeof(record));
		snprintf(strchr(answered, 0), 512, "%.*s ", (int)record.length[1],
			 (const char *)at + sizeof(record) + record.length[0]);
		at += record.size_bytes;
	}
	return (ssize_t)bytes;
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char command[2048];
	va_list list;
	int used = snprintf(command, sizeof(command), "cd '%s' && ", folder);

	va_start(list, format);
	vsnprintf(command + used, sizeof(command) - (size_t)used, format, list);
	va_end(list);
	cr_assert_eq(system(command), 0, "%s", command);
}

/* The resolver looks for evprof-symbols next to the program that it is in. */
static void install_symbols_program(void)
{
	const char *build = getenv("BUILD");
	char self[PATH_MAX], program[PATH_MAX], place[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	cr_assert(length > 0);
	self[length] = 0;
	snprintf(place, sizeof(place), "%s/evprof-symbols", build ? build : "build");
	cr_assert_not_null(realpath(place, program));
	snprintf(place, sizeof(place), "%s/evprof-symbols", dirname(self));
	cr_assert(symlink(program, place) == 0 || errno == EEXIST);
}

static void set_up(void)
{
	strcpy(folder, "/tmp/evprof-test-XXXXXX");
	cr_assert(mkdtemp(folder));
	cr_assert_eq(chmod(folder, 0755), 0);
	elf_version(EV_CURRENT);
	install_symbols_program();
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(symbols, .init = set_up, .fini = tear_down, .timeout = 120);

/* ---- libraries --------------------------------------------------------------------------------------------------- */

/* NAME.so, whose only function has this name; where it is goes to *offset. All of them are alike but for the name. */
static void compile(const char *name, const char *function, uint64_t *offset)
{
	char path[128];
	struct {
		const char *file;
		uint64_t base;
	} * map;
	void *library;
	void *(*place)(void);

	shell("echo '__attribute__((noinline)) static int %s(int a) { return a * 3; }\n"
	      "int (*volatile kept)(int) = %s; void *place(void) { return (void *)kept; }' >%s.c && "
	      "cc -shared -fPIC -g -O1 -w -Wl,--build-id=0x" BUILD_ID " -o %s.so %s.c",
	      function, function, name, name, name);
	snprintf(path, sizeof(path), "%s/%s.so", folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_assert_not_null(library, "%s", dlerror());
	*(void **)&place = dlsym(library, "place");
	cr_assert_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	*offset = (uint64_t)(uintptr_t)place() - *(uint64_t *)map;
	dlclose(library);
}

/* ---- a process of its own ---------------------------------------------------------------------------------------- */

static void claim(uint32_t client, const char *path, const char *digits, int root)
{
	static struct answer answer;
	struct symbols_message message = {.kind = SYMBOLS_MODULE,
					  .client = client,
					  .start = START,
					  .end = START + (PAGES << 12),
					  .build_id_bytes = 8};

	for (unsigned i = 0; i < 8; i++)
		sscanf(digits + 2 * i, "%2hhx", &message.build_id[i]);
	take_message(&answer, &message, (const uint8_t *)path, strlen(path), root);
}

static const char *asked(uint32_t client, uint64_t offset)
{
	static struct answer answer;
	struct symbols_message message = {.kind = SYMBOLS_LOOK, .client = client};
	struct symbols_address address = {.address = START + offset + 1, .frame = 1};

	answered[0] = 0;
	take_message(&answer, &message, (const uint8_t *)&address, sizeof(address), -1);
	return answered;
}

Test(symbols, a_wrong_claim_is_no_answer_to_a_right_one)
{
	uint64_t offset;
	int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	compile("one", "honest", &offset);
	claim(1, "/one.so", "ffffffffffffffff", root);
	cr_expect_str_eq(asked(1, offset), "", "another build id is another library");
	claim(2, "/one.so", BUILD_ID, root);
	cr_expect_str_eq(asked(2, offset), "honest ", "the same file with its own");
	cr_expect_str_eq(asked(1, offset), "");
}

/* A kernel before 5.6. */
static void answer_no_openat2(void)
{
	struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437, 0, 1),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void expect_inside(void)
{
	static const struct {
		const char *path;
		bool found;
	} cases[] = {
	    {"/usr/lib/library", true},
	    {"usr//lib/./library", true},
	    {"/usr/lib/../../usr/lib/library", true},
	    {"/../../../usr/lib/library", true},
	    {"/relative", true},
	    {"/absolute", true},
	    {"/folder/library", true},
	    {"/../secret", false},
	    {"/usr/../../secret", false},
	    {"/up", false},
	    {"/out", false},
	    {"/ring", false},
	    {"/pipe", false},
	    {"/usr", false},
	    {"/", false},
	    {"", false},
	    {"/usr/lib/library/secret", false},
	};
	char path[128];
	struct stat status;
	int root;

	shell("mkdir -p root/usr/lib && echo library >root/usr/lib/library && echo secret >secret && cd root && "
	      "ln -s usr/lib/library relative && ln -s /usr/lib/library absolute && ln -s usr/../usr/lib folder && "
	      "ln -s ../secret up && ln -s '%s/secret' out && ln -s ring ring && mkfifo pipe",
	      folder);
	snprintf(path, sizeof(path), "%s/root", folder);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int fd = symbols_open(root, cases[i].path, &status);

		cr_expect_eq(fd >= 0, cases[i].found, "%s", cases[i].path);
		close(fd);
	}
}

Test(symbols, no_path_leads_above_the_root)
{
	expect_inside();
}

Test(symbols, no_path_leads_above_the_root_without_openat2)
{
	answer_no_openat2();
	expect_inside();
}

#ifndef EVPROF_INSTRUMENTED
/* What must not be possible inside, one bit each. */
static int tries(int file)
{
	int done = 0;

	done |= (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) << 0;
	done |= (open("/dev/null", O_WRONLY) >= 0) << 1;
	done |= (fork() >= 0) << 2;
	done |= (kill(getppid(), 0) == 0) << 3;
	done |= (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED) << 4;
	done |= (write(file, "x", 1) >= 0 || errno != EPERM) << 5;
	done |= (setresuid(0, 0, 0) == 0) << 6;
	done |= (dup(file) >= 0) << 7; /* a call that is not in the list */
	execl("/bin/true", "true", NULL);
	return done;
}

Test(symbols, the_sandbox_holds)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(sandbox_enter(getuid(), getgid()) ? 255 : tries(open("/proc/self/exe", O_RDONLY)));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status), "it is not killed: %x", status);
	cr_expect_eq(WEXITSTATUS(status), 0, "done: %x", WEXITSTATUS(status));
}

Test(symbols, a_request_has_a_processor_limit)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		volatile unsigned turns = 0;

		if (sandbox_enter(getuid(), getgid()))
			_exit(1);
		for (sandbox_begin_request();;)
			turns++;
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF, "%x", status);
}
#endif

/* ---- tenants ----------------------------------------------------------------------------------------------------- */

struct tenancy {
	pid_t pid;
	int pidfd;
	struct resolver_client *client;
	char names[4096]; /* the functions that came */
	uint32_t frames;
	struct user user;
};

static struct loop loop;
static struct resolver *resolver;

static void take_names(void *owner, const void *definitions, size_t bytes)
{
	struct tenancy *tenancy = owner;
	struct wire_definition record;
	const uint8_t *at = definitions;

	for (; bytes; at += record.size_bytes, bytes -= record.size_bytes) {
		memcpy(&record, at, sizeof(record));
		snprintf(strchr(tenancy->names, 0), 512, "%.*s ", (int)record.length[1],
			 (const char *)at + sizeof(record) + record.length[0]);
	}
}

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: tenants are other users, or have roots of their own");
}

/* A process in that root, of that user. prepare: what it does before; may be NULL. */
static void move_in(struct tenancy *tenancy, const char *root, uid_t uid, void (*prepare)(void))
{
	struct ucred who = {.uid = uid, .gid = uid};
	int ready[2];
	char byte;

	if (!resolver) {
		cr_assert_eq(loop_init(&loop), 0);
		resolver = resolver_new(&loop);
	}
	*tenancy = (struct tenancy){0};
	cr_assert_eq(pipe(ready), 0);
	tenancy->pid = fork();
	if (tenancy->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare)
			prepare();
		if ((root && chroot(root) < 0) || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 1, "the tenant is there");
	close(ready[0]);
	who.pid = tenancy->pid;
	tenancy->pidfd = (int)syscall(SYS_pidfd_open, tenancy->pid, 0);
	tenancy->user.uid = uid;
	tenancy->client = resolver_add(resolver, &who, &tenancy->user, tenancy->pidfd, true, take_names, tenancy);
}

static void note(struct tenancy *tenancy, struct wire_definition *record, const char *first, const char *second)
{
	uint8_t bytes[1024] = {0};

	record->length[0] = (uint32_t)strlen(first);
	record->length[1] = (uint32_t)strlen(second);
	record->size_bytes = wire_definition_bytes(record);
	memcpy(bytes, record, sizeof(*record));
	memcpy(bytes + sizeof(*record), first, record->length[0]);
	memcpy(bytes + sizeof(*record) + record->length[0], second, record->length[1]);
	resolver_note(tenancy->client, bytes, record->size_bytes);
}

/* The module starts `number` times PAGES behind START. */
static void has_module(struct tenancy *tenancy, unsigned number, const char *path, const char *digits)
{
	struct wire_definition record = {
	    .type = WIRE_DEFINE_MODULE, .address = START + number * ((uint64_t)PAGES << 12), .number = PAGES};

	note(tenancy, &record, path, digits);
}

static void has_frame(struct tenancy *tenancy, unsigned number, uint64_t offset)
{
	struct wire_definition record = {.type = WIRE_DEFINE_NATIVE_FRAME,
					 .id = ++tenancy->frames,
					 .address = START + number * ((uint64_t)PAGES << 12) + offset + 1};

	note(tenancy, &record, "", "");
}

/* As the collector's rounds. Returns after how many seconds nothing is left to be found for this one. */
static double wait_for_answers(const struct tenancy *tenancy)
{
	uint64_t begin = clock_now_ns(), now = begin;

	do {
		resolver_work(resolver, now);
		cr_assert_eq(loop_wait(&loop, 2000), 0);
		now = clock_now_ns();
	} while (resolver_is_busy(tenancy->client) && now - begin < WAIT_S * UINT64_C(1000000000));
	return (double)(now - begin) / 1e9;
}

static void move_out(struct tenancy *tenancy)
{
	resolver_remove(resolver, tenancy->client);
	kill(tenancy->pid, SIGKILL);
	waitpid(tenancy->pid, NULL, 0);
	close(tenancy->pidfd);
}

/* Both roots have the same file, by its inode; what the debug file says is that of the root. */
Test(symbols, debug_files_serve_their_own_root_only)
{
	struct tenancy liar, honest;
	char roots[2][128];
	uint64_t offset;

	need_root();
	compile("lies", "poisoned", &offset);
	compile("truth", "honest", &offset);
	for (int i = 0; i < 2; i++) {
		snprintf(roots[i], sizeof(roots[i]), "%s/root%d", folder, i);
		shell("mkdir -p root%d/usr/lib/debug/.build-id/01", i);
	}
	shell("strip -o root0/library.so truth.so && ln root0/library.so root1/library.so && "
	      "objcopy --only-keep-debug lies.so root0/usr/lib/debug/.build-id/01/02030405060708.debug && "
	      "objcopy --only-keep-debug truth.so root1/usr/lib/debug/.build-id/01/02030405060708.debug");
	move_in(&liar, roots[0], 0, NULL);
	move_in(&honest, roots[1], 0, NULL);
	has_module(&liar, 0, "/library.so", BUILD_ID);
	has_frame(&liar, 0, offset);
	wait_for_answers(&liar);
	has_module(&honest, 0, "/library.so", BUILD_ID);
	has_frame(&honest, 0, offset);
	wait_for_answers(&honest);
	cr_expect_str_eq(liar.names, "poisoned ", "%s", liar.names);
	cr_expect_str_eq(honest.names, "honest ", "%s", honest.names);
	move_out(&liar);
	move_out(&honest);
}

/* Distributions (Fedora) strip a library down to the names of its functions, and keep these as .gnu_debugdata. */
Test(symbols, names_that_xz_compressed)
{
	struct tenancy tenancy;
	char path[128];
	uint64_t offset;

	need_root();
	compile("whole", "compressed", &offset);
	shell("objcopy --only-keep-debug whole.so debug && objcopy -S --keep-symbol=compressed debug names && xz names "
	      "&& "
	      "strip -o library.so whole.so && objcopy --add-section .gnu_debugdata=names.xz library.so && "
	      "! grep -q compressed library.so");
	snprintf(path, sizeof(path), "%s/library.so", folder);
	move_in(&tenancy, "/", 0, NULL);
	has_module(&tenancy, 0, path, BUILD_ID);
	has_frame(&tenancy, 0, offset);
	wait_for_answers(&tenancy);
	cr_expect_str_eq(tenancy.names, "compressed ", "%s", tenancy.names);
	move_out(&tenancy);
}

Test(symbols, a_file_is_read_with_the_rights_of_its_tenant)
{
	struct tenancy stranger, owner;
	char path[128];
	uint64_t offset;

	need_root();
	compile("private", "secret", &offset);
	shell("chmod 600 private.so");
	snprintf(path, sizeof(path), "%s/private.so", folder);
	move_in(&stranger, NULL, 65534, NULL);
	move_in(&owner, NULL, 0, NULL);
	has_module(&stranger, 0, path, BUILD_ID);
	has_frame(&stranger, 0, offset);
	wait_for_answers(&stranger);
	has_module(&owner, 0, path, BUILD_ID);
	has_frame(&owner, 0, offset);
	wait_for_answers(&owner);
	cr_expect_str_eq(stranger.names, "", "%s", stranger.names);
	cr_expect_str_eq(owner.names, "secret ", "%s", owner.names);
	move_out(&stranger);
	move_out(&owner);
}

/* A line of the status of the evprof-symbols that runs below this process. */
static const char *helper_status(const char *field)
{
	static char line[256];
	char command[256];
	FILE *found;

	snprintf(command, sizeof(command),
		 "sed -n 's/^%s:[ \t]*//p' $(grep -lx 'PPid:.%d' /proc/[0-9]*/status 2>/dev/null | "
		 "xargs grep -lx 'Name:.evprof-symbols')",
		 field, (int)getpid());
	found = popen(command, "r");
	cr_assert(found && fgets(line, sizeof(line), found), "%s of evprof-symbols", field);
	pclose(found);
	line[strcspn(line, "\n")] = 0;
	return line;
}

Test(symbols, it_has_the_rights_of_its_tenant_and_no_more)
{
	struct tenancy tenancy;
	char path[128];
	uint64_t offset;

	need_root();
	compile("open", "public", &offset);
	snprintf(path, sizeof(path), "%s/open.so", folder);
	move_in(&tenancy, NULL, 65534, NULL);
	has_module(&tenancy, 0, path, BUILD_ID);
	has_frame(&tenancy, 0, offset);
	wait_for_answers(&tenancy);
	cr_expect_str_eq(tenancy.names, "public ", "%s", tenancy.names);
	cr_expect_str_eq(helper_status("Uid"), "65534\t65534\t65534\t65534");
	cr_expect_str_eq(helper_status("Gid"), "65534\t65534\t65534\t65534");
	cr_expect_str_eq(helper_status("Groups"), "");
	cr_expect_str_eq(helper_status("CapPrm"), "0000000000000000");
	cr_expect_str_eq(helper_status("CapEff"), "0000000000000000");
	cr_expect_str_eq(helper_status("CapAmb"), "0000000000000000");
	cr_expect_str_eq(helper_status("NoNewPrivs"), "1");
#ifndef EVPROF_INSTRUMENTED
	cr_expect_str_eq(helper_status("Seccomp"), "2");
#endif
	move_out(&tenancy);
}

static char fuse_folder[128];

/* A file system that never answers: nobody reads the questions. */
static void mount_fuse(void)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR);

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	if (fd < 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("evprof-test", fuse_folder, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		_exit(1);
}

Test(symbols, a_file_system_that_hangs_holds_nobody_else)
{
	struct tenancy hanging, other;
	char path[256];
	uint64_t offset;
	double seconds;

	need_root();
	if (access("/dev/fuse", R_OK | W_OK))
		cr_skip_test("needs /dev/fuse");
	compile("open", "public", &offset);
	snprintf(fuse_folder, sizeof(fuse_folder), "%s/fuse", folder);
	cr_assert_eq(mkdir(fuse_folder, 0755), 0);
	move_in(&hanging, NULL, 65534, mount_fuse);
	move_in(&other, NULL, 65533, NULL);
	snprintf(path, sizeof(path), "%s/library.so", fuse_folder);
	has_module(&hanging, 1, path, BUILD_ID);
	has_frame(&hanging, 1, offset);
	snprintf(path, sizeof(path), "%s/open.so", folder);
	has_module(&hanging, 0, path, BUILD_ID);
	has_frame(&hanging, 0, offset);
	resolver_work(resolver, clock_now_ns());
	has_module(&other, 0, path, BUILD_ID);
	has_frame(&other, 0, offset);
	seconds = wait_for_answers(&other);
	cr_expect_str_eq(other.names, "public ", "%s", other.names);
	cr_expect(seconds < 5, "the other waited %.1f s", seconds);
	cr_expect_str_eq(hanging.names, "", "%s", hanging.names);
	seconds = wait_for_answers(&hanging);
	cr_expect_str_eq(hanging.names, "public ", "the function next to it has its name: %s", hanging.names);
	cr_expect(seconds < 40, "after %.1f s", seconds);
	move_out(&hanging);
	move_out(&other);
}

static void enter_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		_exit(1);
}

/* More tenants than evprof-symbols may run, one after the other. uids: of how many users they are. */
static void expect_names_of_all(unsigned tenants, unsigned uids)
{
	static struct tenancy all[65];
	char path[128];
	uint64_t offset;

	need_root();
	compile("open", "public", &offset);
	snprintf(path, sizeof(path), "%s/open.so", folder);
	for (unsigned i = 0; i < tenants; i++) {
		double seconds;

		move_in(&all[i], NULL, 65000 + i % uids, enter_mounts);
		has_module(&all[i], 0, path, BUILD_ID);
		has_frame(&all[i], 0, offset);
		seconds = wait_for_answers(&all[i]);
		cr_expect_str_eq(all[i].names, "public ", "tenant %u after %.1f s: %s", i, seconds, all[i].names);
	}
	cr_expect(!resolver_is_busy(all[0].client), "who has no question wants none back");
	has_frame(&all[0], 0, offset + 1);
	wait_for_answers(&all[0]);
	cr_expect_str_eq(all[0].names, "public public ", "its modules are known again: %s", all[0].names);
	for (unsigned i = 0; i < tenants; i++)
		move_out(&all[i]);
}

Test(symbols, an_idle_one_makes_room_for_another_tenant_of_its_user)
{
	expect_names_of_all(9, 1);
}

Test(symbols, an_idle_one_makes_room_for_another_user)
{
	expect_names_of_all(65, 65);
}

/* Each look at its only function goes through a list of 100000 pieces 20000 times. */
static const char burning[] =
    ".text\\n.globl place\\nplace: .fill 64, 1, 0x90\\n"
    ".section .debug_abbrev,\\\"\\\",%%progbits\\n"
    ".byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0\\n"
    ".byte 2, 0x2e, 1, 0x11, 1, 0x12, 7, 0, 0\\n"
    ".byte 3, 0x1d, 0, 0x55, 0x17, 0, 0, 0\\n"
    ".section .debug_info,\\\"\\\",%%progbits\\n"
    ".4byte 2f - 1f\\n1: .2byte 4\\n.4byte .debug_abbrev\\n.byte 8\\n"
    ".byte 1\\n.8byte place, 64\\n.byte 2\\n.8byte place, 64\\n"
    ".rept 20000\\n.byte 3\\n.4byte 0\\n.endr\\n.byte 0, 0\\n2:\\n"
    ".section .debug_ranges,\\\"\\\",%%progbits\\n.rept 100000\\n.8byte 1000, 1001\\n.endr\\n.8byte 0, 0\\n";

Test(symbols, a_file_that_burns_the_processor_ends_with_its_question)
{
	struct tenancy tenancy;
	char path[256];
	uint64_t offset;
	double seconds;

	compile("open", "public", &offset);
	shell("printf \"%s\" >burn.s && cc -shared -nostdlib -Wl,--build-id=0x1111111111111111 -o burn.so burn.s",
	      burning);
	move_in(&tenancy, NULL, getuid(), NULL);
	snprintf(path, sizeof(path), "%s/burn.so", folder);
	has_module(&tenancy, 0, path, "1111111111111111");
	has_frame(&tenancy, 0, 0x1010);
	for (uint64_t at = 0; at < 60; at++)
		has_frame(&tenancy, 0, 0x1000 + at);
	resolver_work(resolver, clock_now_ns());
	snprintf(path, sizeof(path), "%s/open.so", folder);
	has_module(&tenancy, 1, path, BUILD_ID);
	has_frame(&tenancy, 1, offset);
	seconds = wait_for_answers(&tenancy);
	cr_expect(seconds > 3 && seconds < 40, "after %.1f s", seconds);
	cr_expect(strstr(tenancy.names, "public "), "the next question is answered: %s", tenancy.names);
	move_out(&tenancy);
}

static void take_no_names(void *owner, const void *definitions, size_t bytes)
{
	(void)owner, (void)definitions, (void)bytes;
}

/* Native frames without end, by processes without end: what is kept of them counts to their user, up to a limit. */
Test(symbols, memory_of_a_user_has_a_limit)
{
	enum { CLIENTS = 40, FRAMES = 1 << 18 };
	struct user user = {.uid = 65534}, other = {.uid = 65533};
	const struct ucred who = {.pid = getpid(), .uid = user.uid, .gid = user.uid};
	struct resolver_client *clients[CLIENTS];
	struct wire_definition record = {.type = WIRE_DEFINE_NATIVE_FRAME, .size_bytes = sizeof(record)};
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct resolver *noted = resolver_new(NULL);

	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = resolver_add(noted, &who, &user, pidfd, true, take_no_names, NULL);
		for (record.id = 1; record.id <= FRAMES; record.id++) {
			record.address = record.id * UINT64_C(16);
			resolver_note(clients[i], (const uint8_t *)&record, sizeof(record));
		}
	}
	cr_expect(user.memory_bytes <= USER_MEMORY_BYTES, "%llu bytes", (unsigned long long)user.memory_bytes);
	cr_expect(user.memory_bytes > USER_MEMORY_BYTES / 2, "the limit was met");
	cr_expect(user_charge_memory(&other, USER_MEMORY_BYTES), "another user has its own");
	for (int i = 0; i < CLIENTS; i++)
		resolver_remove(noted, clients[i]);
	cr_expect_eq(user.memory_bytes, 0, "all is given back");
	resolver_free(noted);
	close(pidfd);
}
