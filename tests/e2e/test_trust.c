/*
 * test_trust.c - strangers on the host and hostile collectors (docs/security.md): who is sent nothing, who learns
 * nothing, and whose word does no harm.
 *
 * A stranger is another user, so these tests are root's. They have a network namespace of their own, as far as abstract
 * sockets go: no other process is met.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/ring.h"
#include "compile.h"
#include "harness.h"
#include "process.h"
#include "strike.h"

#define STRANGER 65534
#define LEAVES 100 /* of trusting.py and nameless.py, each of their processes */

/* Skips the test where it may not. */
static void alone(void)
{
	if (geteuid() != 0)
		cr_skip_test("only root can be two users");
	cr_assert(unshare(CLONE_NEWNET) == 0, "no network namespace");
}

static socklen_t make_address(const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, strlen(name));
	if (name[0] == '@')
		address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* As soon as nobody else does. */
static int listen_at(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = make_address(name, &address);
	int fd = new_socket();

	while (bind(fd, (struct sockaddr *)&address, length) < 0)
		usleep(1000);
	listen(fd, 64);
	return fd;
}

static void become_stranger(void)
{
	if (setgid(STRANGER) || setuid(STRANGER))
		_exit(1);
}

static int listen_as_stranger(const char *name)
{
	become_stranger();
	return listen_at(name);
}

/* One connection's message: how many bytes, and the first descriptor that came with it (-1: none). */
static ssize_t receive(int connection, int *fd)
{
	static char bytes[1 << 17];
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	ssize_t n = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);

	*fd = -1;
	header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return n;
}

/* ---- a stranger who waits for visitors ------------------------------------------------------------------------- */

struct caught {
	int connections, messages, descriptors;
};

struct stranger {
	int end, result; /* pipes: closed to end it; struct caught */
};

/* Until the end, those included that came before it. */
static void catch_all(int listener, int end, struct caught *caught)
{
	struct pollfd polls[2] = {{.fd = listener, .events = POLLIN}, {.fd = end, .events = POLLIN}};

	while (poll(polls, 2, -1) > 0 && polls[0].revents) {
		int connection = accept(listener, NULL, NULL), fd;

		caught->connections++;
		caught->messages += receive(connection, &fd) > 0;
		caught->descriptors += fd >= 0;
		close(connection);
	}
}

/* The socket of EVPROF_SESSION, once the program has written that down. Its collector is killed. */
static const char *take_place(const char *directory)
{
	char *session, *name;
	pid_t collector;

	while (!(session = file_read(text("%s/session", directory), NULL)))
		usleep(1000);
	name = strchr(session, '@');
	collector = strike_collector();
	if (!name || collector <= 0)
		_exit(1);
	kill(collector, SIGKILL);
	return name;
}

/* Who waits there goes on, whether he is there yet or not; the gate stays open for it. */
static void open_gate(int gate)
{
	cr_assert(write(gate, "\n", 1) == 1);
}

/* name: where it waits; NULL: where the program's collector does. Then the program is let through its gate. */
static struct stranger begin_stranger(const char *directory, const char *name)
{
	struct stranger stranger;
	int end[2], result[2];
	char listens;
	pid_t pid;

	cr_assert(pipe2(end, O_CLOEXEC) == 0 && pipe2(result, O_CLOEXEC) == 0);
	cr_assert(mkfifo(text("%s/gate", directory), 0666) == 0);
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		int gate = open(text("%s/gate", directory), O_RDWR | O_CLOEXEC);
		struct caught caught = {0};

		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		close(end[1]);
		/* The program may begin when somebody waits, or else is about to. */
		if (!name && write(result[1], "", 1) == 1)
			pid = listen_as_stranger(take_place(directory));
		else
			pid = listen_as_stranger(name);
		open_gate(gate);
		if (!name || write(result[1], "", 1) == 1)
			catch_all(pid, end[0], &caught);
		_exit(write(result[1], &caught, sizeof(caught)) != sizeof(caught));
	}
	close(end[0]);
	close(result[1]);
	cr_assert(read(result[0], &listens, 1) == 1);
	stranger = (struct stranger){.end = end[1], .result = result[0]};
	return stranger;
}

static struct caught end_stranger(struct stranger stranger)
{
	struct caught caught = {0};

	close(stranger.end);
	cr_assert(read(stranger.result, &caught, sizeof(caught)) == sizeof(caught), "the stranger was there");
	close(stranger.result);
	return caught;
}

/* Of all traces of a directory together. */
static long calls_of(const char *directory, const char *function)
{
	DIR *folder = opendir(directory);
	struct dirent *entry;
	long calls = 0;

	while ((entry = readdir(folder))) {
		size_t length = strlen(entry->d_name);

		if (length > 4 && !strcmp(entry->d_name + length - 4, ".evp")) {
			json_t *report = trace_report(text("%s/%s", directory, entry->d_name), NULL);

			calls += report_calls(report, "", function);
			json_decref(report);
		}
	}
	closedir(folder);
	return calls;
}

static struct outcome *run_bare(const struct python *python)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;

	file_write(text("%s/gate", directory), "\n", 1);
	return run(.python = python, .how = JOB_BARE, .args = {"@trusting.py"}, .directory = directory);
}

/* The program's own children have nothing to do with who waits at the name, and go on with a collector of theirs. */
static void expect_nothing_sent(const struct python *python, const char *name, const char *variable)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct stranger stranger = begin_stranger(directory, name);
	struct outcome *outcome =
	    run(.python = python, .args = {"@trusting.py"}, .directory = directory,
		.env = {variable ? variable : "EVPROF_SOCKET", "EVPROF_FALLBACK=1"}, .lingers = true);
	struct caught caught = end_stranger(stranger);

	outcome_settle(outcome);
	expect_same(run_bare(python), outcome);
	expect(outcome, caught.connections > 0, "somebody came by");
	expect(outcome, caught.messages == 0 && caught.descriptors == 0, "%d messages and %d descriptors were sent",
	       caught.messages, caught.descriptors);
	expect(outcome, strstr(outcome->err, "evprof: user 65534 listens "), "it is said who listens");
	expect(outcome, calls_of(directory, "leaf") == 3 * LEAVES, "%ld calls of leaf, not %d",
	       calls_of(directory, "leaf"), 3 * LEAVES);
}

SCENARIO(trust, stranger_in_the_collectors_place, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	alone();
	expect_nothing_sent(python, NULL, NULL);
}

SCENARIO(trust, stranger_at_the_hosts_name, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	alone();
	expect_nothing_sent(python, "@evprof-of-the-host", "EVPROF_SOCKET=@@evprof-of-the-host");
}

/* evprof run opens the session itself: it neither sends its secret nor goes on, with a fallback either. */
SCENARIO(trust, stranger_before_evprof_run, SUPPORTED)
{
	static const char *const fallback[] = {NULL, "EVPROF_FALLBACK=1"};

	if (!runs_by_default(python))
		return;
	alone();
	for (int i = 0; i < 2; i++) {
		const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
		struct stranger stranger = begin_stranger(directory, "@evprof-of-the-host");
		struct outcome *outcome =
		    run(.python = python, .how = JOB_RUN, .args = {"@trusting.py"}, .directory = directory,
			.env = {"EVPROF_SOCKET=@@evprof-of-the-host", fallback[i]}, .lingers = true);
		struct caught caught = end_stranger(stranger);

		expect(outcome, caught.connections == 1 + i && caught.messages == 0, "%d messages were sent",
		       caught.messages);
		expect(outcome, strstr(outcome->err, "user 65534 listens at @evprof-of-the-host"),
		       "it is said who listens");
		expect(outcome, outcome->status != 0 && outcome->traces == 0, "the status is %d", outcome->status);
	}
}

/* A listener with the name of a private collector is asked nothing by another user than its own, or root. */
SCENARIO(trust, stranger_among_the_collectors, SCENARIO_ONCE)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct stranger stranger;
	struct outcome *outcome;
	struct caught caught;

	(void)python;
	alone();
	stranger = begin_stranger(directory, "@evprof-7-0011223344556677.1");
	outcome =
	    run(.how = JOB_BARE,
		.args = {"setpriv", "--reuid", "64124", "--regid", "64124", "--clear-groups", "%B/evprof", "status"},
		.lingers = true);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "no collector of this user"), "it is not shown");
	outcome = run(.how = JOB_BARE,
		      .args = {"setpriv", "--reuid", "64124", "--regid", "64124", "--clear-groups", "%B/evprof",
			       "status", "--socket", "@@evprof-7-0011223344556677.1"},
		      .lingers = true);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "user 65534 listens at "), "it is said who it is");
	caught = end_stranger(stranger);
	expect(outcome, caught.connections == 2 && caught.messages == 0, "%d connections, %d messages",
	       caught.connections, caught.messages);
}

/* A socket that only its own user and root can have put where it is, is that of who is meant. */
SCENARIO(trust, a_path_says_who_is_meant, SUPPORTED)
{
	static const struct {
		const char *folder;
		mode_t mode;
		uid_t owner;
		bool meant;
	} folders[] = {{"/run/theirs", 0755, STRANGER, true},
		       {"/run/shared", 01777, 0, false},
		       {"/run/other", 0777, STRANGER, false}};

	if (!runs_by_default(python) || python->chrooted)
		return;
	alone();
	cr_assert(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		  mount("none", "/run", "tmpfs", 0, "mode=755") == 0);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
		char *name = text("%s/sock", folders[i].folder);
		struct stranger stranger;
		struct outcome *outcome;
		struct caught caught;

		cr_assert(mkdir(folders[i].folder, 0700) == 0 && chown(folders[i].folder, folders[i].owner, 0) == 0 &&
			  chmod(folders[i].folder, folders[i].mode) == 0);
		stranger = begin_stranger(directory, name);
		outcome = run(.python = python, .args = {"@trusting.py"}, .directory = directory,
			      .env = {text("EVPROF_SOCKET=%s", name)}, .lingers = true);
		caught = end_stranger(stranger);
		expect_same(run_bare(python), outcome);
		expect(outcome, caught.messages == (folders[i].meant ? 3 : 0) && caught.connections > 0,
		       "%s: %d messages were sent", folders[i].folder, caught.messages);
		expect(outcome, !strstr(outcome->err, "user 65534 listens") == folders[i].meant, "it is said");
	}
}

/* Everybody is shown as one user there. That the collector is ours is known by other means. */
SCENARIO(trust, nameless_in_a_user_namespace, SUPPORTED)
{
	static const char *const users[] = {NULL, "1000"};

	if (!runs_by_default(python))
		return;
	python_needs(python, "ctypes");
	alone();
	for (int i = 0; i < 2; i++) {
		struct job job = {.python = python, .how = JOB_BARE, .args = {"@nameless.py", users[i]}};
		struct outcome *bare = job_run(&job), *outcome;

		if (strstr(bare->err, "no user namespace"))
			cr_skip_test("no user namespace can be made here");
		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect_same(bare, outcome);
		json_decref(expect_trace(outcome, 2));
		expect(outcome, calls_of(outcome->directory, "leaf") == 3 * LEAVES, "%ld calls of leaf",
		       calls_of(outcome->directory, "leaf"));
	}
}

/* ---- a collector of our own user that writes whatever it likes ------------------------------------------------- */

#define FIRE_MAPS 64
#define FIRE_SLOTS 6

struct hit {
	uint8_t *base;
	uint64_t bytes, slots_offset;
};

static struct hit map_memory(int fd)
{
	struct ring_layout layout;
	struct hit hit = {0};

	if (fd < 0 || pread(fd, &layout, sizeof(layout), 0) != sizeof(layout))
		return hit;
	hit = (struct hit){.bytes = layout.size_bytes, .slots_offset = layout.slots_offset};
	hit.base = mmap(NULL, hit.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	return hit;
}

static void write_text(struct ring_header *header)
{
	for (size_t i = 0; i < RING_TEXT_BYTES; i++)
		header->text[i] = "\x1b]0;owned\a\x9b\xc2\x9b\r\n%s"[i % 17];
}

/* One word after the other has values that lead nowhere; now and then it looks like a collector, which has an end. */
static void fire_at(const struct hit *hit, uint64_t number)
{
	static const uint64_t lies[] = {UINT64_MAX, 1, UINT64_C(1) << 46, 0, RING_COLLECTOR_FAILED, UINT64_C(1) << 63};
	const uint64_t words = sizeof(struct ring_header) / 8, all = words + FIRE_SLOTS * sizeof(struct ring_slot) / 8;
	struct ring_header *header = (struct ring_header *)(void *)hit->base;
	uint64_t *at = (uint64_t *)(void *)(hit->base + hit->slots_offset), place = number % all;
	uint64_t lie = lies[number / all % 6];

	if (place < words)
		((volatile uint64_t *)(void *)hit->base)[place] = lie;
	else
		((volatile uint64_t *)at)[place - words] = lie;
	if (number % 64 == 0)
		write_text(header);
	if (number % 256 == 0)
		atomic_store(&header->collector_state, number / 256 % (RING_COLLECTOR_FINISHED + 1));
}

static void fire_without_end(int listener)
{
	struct pollfd poller = {.fd = listener, .events = POLLIN};
	static struct hit hits[FIRE_MAPS];
	uint64_t number = 0;

	for (unsigned count = 0;; number++) {
		if (poll(&poller, 1, 0) > 0) {
			int connection = accept(listener, NULL, NULL), fd = -1;
			struct hit *hit = &hits[count % FIRE_MAPS];

			if (receive(connection, &fd) > 0) {
				if (hit->base)
					munmap(hit->base, hit->bytes);
				*hit = map_memory(fd);
				count++;
			}
			close(fd);
			close(connection);
		}
		for (unsigned i = 0; i < FIRE_MAPS && i < count; i++)
			if (hits[i].base)
				fire_at(&hits[i], number);
		if (number % 16 == 0)
			usleep(100);
	}
}

static void begin_fire(const char *name)
{
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	fire_without_end(listen_at(name));
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\n') || *text == 0x7f)
			return false;
	return true;
}

SCENARIO(trust, a_collector_that_writes_anything, SUPPORTED)
{
	struct job job = {
	    .python = python, .how = JOB_BARE, .args = {"@under_fire.py", test_at_length(python) ? "20" : "3"}};
	struct outcome *bare, *outcome;
	char *name;

	if (!runs_by_default(python))
		return;
	bare = job_run(&job);
	name = text("@evprof-hostile-%d", getpid());
	begin_fire(name);
	job.how = JOB_PRELOAD;
	job.lingers = true;
	job.env[0] = text("EVPROF_SOCKET=@%s", name);
	job.env[1] = "EVPROF_ON_FULL=wait:1";
	for (int i = 0; i < 3; i++) {
		outcome = job_run(&job);
		expect_same(bare, outcome);
		expect(outcome, is_plain(outcome->err), "no control character is printed");
	}
}

/* ---- the secret of a session ----------------------------------------------------------------------------------- */

#define SECRET_DIGITS 32
#define PART_DIGITS 8 /* of a secret that would help to guess it */

/* What any user can read of a process, and the names of all sockets. */
static void read_public(pid_t pid, char *all, size_t size)
{
	static const char *const names[] = {"cmdline", "comm", "status", "stat", "environ", "maps", "mountinfo"};
	size_t used = strlen(all);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && used < size - 1; i++) {
		char path[64];
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && (n = read(fd, all + used, size - 1 - used)) > 0)
			used += (size_t)n;
		close(fd);
	}
	for (size_t i = 0; i < used; i++)
		all[i] = all[i] ? all[i] : ' ';
	all[used] = 0;
}

static void read_socket_names(char *all, size_t size)
{
	char *names = file_read("/proc/net/unix", NULL);

	snprintf(all + strlen(all), size - strlen(all), "%s", names ? names : "");
	free(names);
}

/* In a child that is another user; what it finds comes back in shared memory. */
static char *read_as_stranger(const pid_t *pids, size_t count)
{
	const size_t size = 1 << 20;
	char *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		become_stranger();
		for (size_t i = 0; i < count; i++)
			read_public(pids[i], all, size);
		read_socket_names(all, size);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return all;
}

static const char *const intruder = "def stranger():\n    pass\nfor _ in range(10): stranger()\n";

/* Joins as a program does whose environment has this. */
static void join_as_stranger(const struct python *python, const char *secret, const char *name)
{
	struct job job = {
	    .how = JOB_PRELOAD,
	    .args = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"},
	    .env = {text("EVPROF_SESSION=%.32s:1:1:%s", secret, name), "EVPROF_NATIVE=1", "PYTHONDONTWRITEBYTECODE=1"},
	    .lingers = true};
	int n = 4;

	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "-c";
	job.args[n] = intruder;
	job_run(&job);
}

/* Whether somebody keeps the line. */
static bool hold_as_stranger(const char *secret, const char *name)
{
	char *message =
	    text("{\"evprof\":1,\"type\":\"hold\",\"session\":\"%.32s\",\"output\":\"/tmp/x.evp\"}", secret);
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct sockaddr_un address;
		struct pollfd poller = {.fd = new_socket(), .events = POLLIN};
		socklen_t length = make_address(name, &address);

		become_stranger();
		if (connect(poller.fd, (struct sockaddr *)&address, length) < 0)
			_exit(0);
		send(poller.fd, message, strlen(message), MSG_NOSIGNAL);
		_exit(poll(&poller, 1, 2000) == 0);
	}
	waitpid(pid, &status, 0);
	return status != 0;
}

static bool is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Every string of 32 digits, and those of 16 with what may be the rest. */
static size_t find_secrets(const char *all, char found[][SECRET_DIGITS + 1], size_t most)
{
	size_t count = 0;

	for (const char *at = all; *at && count + 2 < most; at++) {
		size_t length = 0;

		while (is_digit(at[length]))
			length++;
		if (length >= 16)
			snprintf(found[count++], SECRET_DIGITS + 1, "%.16s0000000000000000", at);
		if (length >= SECRET_DIGITS)
			snprintf(found[count++], SECRET_DIGITS + 1, "%.32s", at);
		if (length)
			at += length - 1;
	}
	return count;
}

static void expect_secret_kept(const struct python *python, struct job job)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	char *gate = text("%s/gate", directory), *session, *name, *public;
	static char secrets[32][SECRET_DIGITS + 1];
	struct background *background;
	struct outcome *outcome;
	size_t count;
	pid_t pids[2];
	int fd;

	cr_assert(mkfifo(gate, 0666) == 0);
	fd = open(gate, O_RDWR | O_CLOEXEC);
	job.directory = directory;
	background = background_start(&job);
	while (!(session = file_read(text("%s/session", directory), NULL)))
		usleep(1000);
	name = strchr(session, '@');
	pids[0] = background->pid;
	pids[1] = process_child_named("evprof-collecto");
	cr_assert(name && pids[1] > 0, "there is a collector: %s", session);
	public = read_as_stranger(pids, 2);
	cr_assert(strstr(public, name), "the name is public");
	for (int i = 0; i + PART_DIGITS <= SECRET_DIGITS; i++)
		cr_assert(!strstr(public, text("%.*s", PART_DIGITS, session + i)), "a part of the secret is public");
	count = find_secrets(public, secrets, 32);
	for (size_t i = 0; i < count; i++) {
		join_as_stranger(python, secrets[i], name);
		cr_assert(!hold_as_stranger(secrets[i], name), "the collector keeps the line");
	}
	/* Nor may a stranger hold who knows it. */
	cr_assert(!hold_as_stranger(session, name), "the collector keeps the line");
	cr_assert(process_child_named("evprof-symbols") == 0, "nobody had names looked up");
	open_gate(fd);
	background_wait(background);
	close(fd);
	outcome = run(.how = JOB_BARE, .args = {"true"}, .directory = directory);
	outcome_settle(outcome);
	expect(outcome, calls_of(directory, "leaf") == 3 * LEAVES, "%ld calls of leaf", calls_of(directory, "leaf"));
	expect(outcome, calls_of(directory, "stranger") == 0, "the stranger is in the trace");
}

/* The kernel says who listens. Who this process runs as may be shown by a library (fakeroot). */
SCENARIO(trust, users_that_a_library_shows, SUPPORTED)
{
	const char *trace = text("/tmp/evprof-shown-%d.evp", (int)getpid());
	struct job job = {.how = JOB_BARE,
			  .args = {"setpriv", "--reuid=64124", "--clear-groups", "--inh-caps=+dac_override",
				   "--ambient-caps=+dac_override", "env",
				   text("LD_PRELOAD=%s", compile("shown_as_root.c", "shown_as_root.so", COMPILE_PLAIN)),
				   "%B/evprof", "run", "-q", "-o", trace}};
	struct outcome *outcome;
	json_t *info;
	int n = 12;

	if (!runs_by_default(python) || python->chrooted || built_with_asan())
		return;
	alone();
	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n] = "@known.py";
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0, "the program runs");
	info = trace_info(trace);
	expect(outcome, info_pids(info) == 1, "it is recorded");
	json_decref(info);
	unlink(trace);
}

SCENARIO(trust, secret_of_the_library, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	alone();
	expect_secret_kept(python, (struct job){.python = python, .args = {"@trusting.py"}});
}

SCENARIO(trust, secret_of_evprof_run, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	alone();
	expect_secret_kept(python, (struct job){.python = python, .how = JOB_RUN, .args = {"@trusting.py"}});
}
