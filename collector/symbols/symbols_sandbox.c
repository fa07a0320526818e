/*
 * symbols_sandbox.c - see symbols_sandbox.h. Part of evprof-symbols.
 *
 * A system call that is not in the list fails with EPERM instead of ending the process. So a library of another version
 * that tries one continues without it, and an attacker gains nothing either way. A call of another architecture ends
 * the process.
 *
 * Files are opened below the root of the program that names them. The path is walked here, name by name. The kernel
 * never gets ".." and never follows a link, so no path leads above the root, even if files are renamed meanwhile.
 * openat2() does the same from Linux 5.6 on, but its flags are invisible to a seccomp filter.
 */
#include "symbols/symbols_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/rights.h"

#ifdef EVPROF_INSTRUMENTED
#define INSTRUMENTED true /* sanitizers reserve terabytes of addresses, and write reports */
#else
#define INSTRUMENTED false
#endif

#define MEMORY_MAX_BYTES (UINT64_C(4) << 30)
#define REQUEST_CPU_SECONDS 5
#define FILES_MAX 65536
#define NICENESS 5 /* the program and the collector have priority */

#ifndef SYS_close_range
#define SYS_close_range 436 /* since 5.9 */
#endif

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system calls of this machine are not known: see allowed[]"
#endif

/* ---- system calls ------------------------------------------------------------------------------------------------ */

static const struct {
	int number;
	unsigned forbidden; /* forbidden bits of the third argument */
} allowed[] = {
    /* requests and answers */
    {SYS_recvmsg, 0},
    {SYS_sendto, 0},
    {SYS_setitimer, 0},
    /* files, for reading */
    {SYS_openat, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC},
    {SYS_readlinkat, 0},
    {SYS_fstat, 0},
    {SYS_newfstatat, 0},
    {SYS_statx, 0},
    {SYS_read, 0},
    {SYS_pread64, 0},
    {SYS_lseek, 0},
    {SYS_fcntl, 0},
    {SYS_close, 0},
    /* memory, not executable */
    {SYS_mmap, PROT_EXEC},
    {SYS_mprotect, PROT_EXEC},
    {SYS_munmap, 0},
    {SYS_mremap, 0},
    {SYS_madvise, 0},
    {SYS_brk, 0},
    /* the C library */
    {SYS_futex, 0},
    {SYS_getrandom, 0},
    {SYS_sysinfo, 0},
    {SYS_clock_gettime, 0},
    {SYS_rt_sigprocmask, 0},
    {SYS_rt_sigreturn, 0},
    {SYS_restart_syscall, 0},
    {SYS_exit, 0},
    {SYS_exit_group, 0},
};

#define ALLOWED_COUNT (sizeof(allowed) / sizeof(*allowed))
#define STEPS_EACH 5
#define STEPS_AROUND 8

static struct sock_filter *put_instruction(struct sock_filter *at, uint16_t code, uint32_t k, uint8_t if_true,
					   uint8_t if_false)
{
	*at = (struct sock_filter)BPF_JUMP(code, k, if_true, if_false);
	return at + 1;
}

static struct sock_filter *put_load(struct sock_filter *at, size_t offset)
{
	return put_instruction(at, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static struct sock_filter *put_return(struct sock_filter *at, uint32_t value)
{
	return put_instruction(at, BPF_RET | BPF_K, value, 0, 0);
}

static struct sock_filter *put_allowed(struct sock_filter *at, uint32_t number, uint32_t forbidden)
{
	at = put_instruction(at, BPF_JMP | BPF_JEQ | BPF_K, number, 0, forbidden ? 4 : 1);
	if (forbidden) {
		at = put_load(at, offsetof(struct seccomp_data, args[2])); /* its lower half: first on both machines */
		at = put_instruction(at, BPF_JMP | BPF_JSET | BPF_K, forbidden, 0, 1);
		at = put_return(at, SECCOMP_RET_ERRNO | EPERM);
	}
	return put_return(at, SECCOMP_RET_ALLOW);
}

static int filter_calls(void)
{
	struct sock_filter filter[STEPS_AROUND + ALLOWED_COUNT * STEPS_EACH], *at = filter;
	struct sock_fprog program = {.filter = filter};

	at = put_load(at, offsetof(struct seccomp_data, arch));
	at = put_instruction(at, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	at = put_return(at, SECCOMP_RET_KILL_PROCESS);
	at = put_load(at, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ALLOWED_COUNT; i++)
		at = put_allowed(at, (uint32_t)allowed[i].number, allowed[i].forbidden);
	at = put_return(at, SECCOMP_RET_ERRNO | EPERM);
	program.len = (unsigned short)(at - filter);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

/* If the groups cannot be given up, they are those that the user has anyway. */
static int become_user(uid_t uid, gid_t gid)
{
	bool other = uid != geteuid() || uid != getuid();

	if (uid == (uid_t)-1 || gid == (gid_t)-1)
		return -EINVAL;
	if ((setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0) && other)
		return -errno;
	return setresuid(uid, uid, uid) < 0 ? -errno : 0;
}

static void close_others(void)
{
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) == 0)
		return;
	for (int fd = STDERR_FILENO + 1; fd < FILES_MAX; fd++)
		close(fd);
}

static void set_limit(int resource, rlim_t most)
{
	struct rlimit limits;

	if (getrlimit((__rlimit_resource_t)resource, &limits) < 0)
		return;
	if (most < limits.rlim_max)
		limits.rlim_max = most;
	if (most < limits.rlim_cur)
		limits.rlim_cur = most;
	setrlimit((__rlimit_resource_t)resource, &limits);
}

/* When memory runs out, the reader of untrusted files is killed before the collector. */
static void prefer_oom_victim(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "500", 3) < 0)
		errno = 0;
	close(fd);
}

int sandbox_enter(uid_t uid, gid_t gid)
{
	int error;

	prefer_oom_victim();
	set_limit(RLIMIT_NOFILE, FILES_MAX);
	set_limit(RLIMIT_CORE, 0);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	error = become_user(uid, gid);
	if (!error)
		error = rights_drop(0);
	if (error)
		return error;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* set here, as a change of user clears it */
	if (INSTRUMENTED)
		return 0;
	set_limit(RLIMIT_AS, MEMORY_MAX_BYTES);
	close_others();
	error = filter_calls();
	if (!error) {
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
	}
	return error;
}

void sandbox_begin_request(void)
{
	const struct itimerval most = {.it_value = {.tv_sec = REQUEST_CPU_SECONDS}};

	setitimer(ITIMER_PROF, &most, NULL);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

#define DEPTH_MAX 128
#define LINKS_MAX 40 /* as in the kernel */

struct walk {
	int steps[1 + DEPTH_MAX]; /* the root, and the folders from it to the current one */
	unsigned depth;
	unsigned links;
	char path[PATH_MAX]; /* the rest of the path; the whole path until the first link */
};

static void step_back(struct walk *walk)
{
	if (walk->depth)
		close(walk->steps[walk->depth--]);
}

/* Puts the target of a link in front of the rest of the path. */
static bool follow_link(struct walk *walk, int link, const char *rest)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(link, "", text, sizeof(text));

	if (length <= 0 || ++walk->links > LINKS_MAX || (size_t)length + 1 + strlen(rest) >= sizeof(walk->path))
		return false;
	memmove(walk->path + length + 1, rest, strlen(rest) + 1);
	memcpy(walk->path, text, (size_t)length);
	walk->path[length] = '/';
	while (text[0] == '/' && walk->depth)
		step_back(walk);
	return true;
}

/* Walks one name further. rest: the path after the name; set anew after a link. */
static bool enter_component(struct walk *walk, const char *name, const char **rest)
{
	int fd = openat(walk->steps[walk->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	bool done;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISLNK(status.st_mode)) {
		done = follow_link(walk, fd, *rest);
		close(fd);
		*rest = walk->path;
		return done;
	}
	if (walk->depth == DEPTH_MAX) {
		close(fd);
		return false;
	}
	walk->steps[++walk->depth] = fd;
	return true;
}

static bool walk_path(struct walk *walk)
{
	const char *rest = walk->path;
	char name[NAME_MAX + 1];

	while (*(rest += strspn(rest, "/"))) {
		size_t length = strcspn(rest, "/");

		if (length >= sizeof(name))
			return false;
		memcpy(name, rest, length);
		name[length] = '\0';
		rest += length;
		if (!strcmp(name, ".."))
			step_back(walk);
		else if (strcmp(name, ".") != 0 && !enter_component(walk, name, &rest))
			return false;
	}
	return true;
}

/* Checks the type before opening the file: opening a device may have effects. */
static int open_found(int found, struct stat *status)
{
	char name[64];

	if (fstat(found, status) < 0 || !S_ISREG(status->st_mode))
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int symbols_open(int root, const char *path, struct stat *status)
{
	struct walk walk = {.steps = {root}};
	int fd = -1;

	if (strlen(path) < sizeof(walk.path)) {
		strcpy(walk.path, path);
		if (walk_path(&walk) && walk.depth)
			fd = open_found(walk.steps[walk.depth], status);
	}
	while (walk.depth)
		step_back(&walk);
	return fd;
}
