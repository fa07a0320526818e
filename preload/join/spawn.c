/*
 * spawn.c - starts the private collector, and samplers.
 *
 * The program must not notice: it gets no SIGCHLD, and its wait() finds no extra child. A reaped child counts for
 * RUSAGE_CHILDREN, with all its memory, which is the program's. So a process without other threads and children ignores
 * SIGCHLD for that moment, and the kernel removes the middle process. In other processes the middle process has no exit
 * signal, and is reaped here with __WCLONE, which wait() does not use.
 *
 * Both processes are created with CLONE_VM|CLONE_VFORK: no page table is copied, which for a large program would take
 * longer than everything else. Between clone and exec they run on stacks in evprof's scratch memory, inside the
 * program's memory, so they make system calls only. A debugger that follows the program's children does not see them
 * (CLONE_UNTRACED); they call no functions of the C library, in which it may have set breakpoints.
 */
#include "join/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/environment.h"

#define SPAWN_FDS 2
#define STACK_BYTES (64 * 1024)
#define ENVIRONMENT_MAX 4096

char library_path[4096];

/*
 * For functions that end with their process: the address sanitizer's notes on their frames would stay in the program's
 * memory, and be found by the next user of the scratch memory's addresses.
 */
#define NEVER_RETURNS __attribute__((no_sanitize_address))

#define NOT_SEEN (CLONE_VM | CLONE_VFORK | CLONE_UNTRACED)

struct spawn {
	const char *program;
	char *const *argv;
	char **environment;
	int fds[SPAWN_FDS]; /* become the first descriptors after the standard ones; -1: none */
	char *stack;	    /* of the inner process */
	int error;
};

/* Searches next to the library (build tree), and in the bin of PREFIX/lib/evprof or PREFIX/lib. */
static int find_collector(char *out, size_t size)
{
	static const char *const places[] = {"", "/../../bin", "/../bin"};
	const char *slash = strrchr(library_path, '/');

	if (!slash)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(out, size, "%.*s%s/evprof-collector", (int)(slash - library_path), library_path,
				 places[i]);

		if (n > 0 && (size_t)n < size && !access(out, X_OK))
			return 0;
	}
	return -ENOENT;
}

/* Raises this process's own limit: it shares only memory with the program. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
	}
}

/*
 * A descriptor that replaces the standard ones. Without /dev it is one that cannot be read or written. It keeps no pipe
 * of the program open.
 */
static int open_nothing(void)
{
	int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);

	return null < 0 ? (int)syscall(SYS_openat, AT_FDCWD, "/", O_PATH) : null;
}

/*
 * Moves the descriptors to their numbers and closes all others. The copies made first collide neither with each other
 * nor with the standard ones, whose numbers the descriptors have if the program has closed these.
 */
static int place_fds(const int fds[SPAWN_FDS])
{
	int copies[SPAWN_FDS], end = 3, null;

	for (int i = 0; i < SPAWN_FDS; i++) {
		copies[i] = fds[i] >= 0 ? (int)syscall(SYS_fcntl, fds[i], F_DUPFD, 3 + SPAWN_FDS) : -1;
		if (fds[i] >= 0 && copies[i] < 0)
			return -errno;
	}
	null = open_nothing();
	for (int fd = 0; fd < 3; fd++)
		syscall(SYS_dup3, null, fd, 0);
	for (; end < 3 + SPAWN_FDS && copies[end - 3] >= 0; end++)
		if (syscall(SYS_dup3, copies[end - 3], end, 0) < 0)
			return -errno;
	if (syscall(SYS_close_range, end, ~0u, 0) < 0)
		for (int fd = end; fd < 65536; fd++)
			syscall(SYS_close, fd);
	return 0;
}

/* In the innermost process: becomes the collector. */
NEVER_RETURNS static int exec_collector(void *argument)
{
	struct spawn *spawn = argument;
	struct sigaction action = {.sa_handler = SIG_DFL};
	const uint64_t none = 0;

	raise_file_limit(); /* the new numbers may be above the program's limit */
	spawn->error = place_fds(spawn->fds);
	if (spawn->error < 0)
		syscall(SYS_exit, 127);
	if (syscall(SYS_chdir, "/") < 0)
		goto failed;
	for (int number = 1; number < 65; number++)
		syscall(SYS_rt_sigaction, number, &action, NULL, 8);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	syscall(SYS_execve, spawn->program, spawn->argv, spawn->environment);
failed:
	spawn->error = -errno;
	syscall(SYS_exit, 127);
	return 0;
}

/* In the middle process: leaves the program's session and starts the collector. */
NEVER_RETURNS static int leave_session(void *argument)
{
	struct spawn *spawn = argument;

	syscall(SYS_setsid);
	if (clone(exec_collector, spawn->stack, NOT_SEEN, spawn) < 0)
		spawn->error = -errno;
	syscall(SYS_exit, 0);
	return 0;
}

/*
 * Whether this process has no other thread, which could start a child meanwhile, no child, whose end would be lost, and
 * no pending SIGCHLD of an earlier one. All signals are blocked.
 */
static bool is_alone(void)
{
	struct stat threads;
	sigset_t pending;

	return stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 2 + 1 && sigpending(&pending) == 0 &&
	       !sigismember(&pending, SIGCHLD) &&
	       waitid(P_ALL, 0, NULL, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT | __WALL) < 0 &&
	       errno == ECHILD;
}

/* Returns when the middle process has ended. */
static void make_middle(struct spawn *spawn, char *stack)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	bool alone = is_alone() && sigaction(SIGCHLD, &ignore, &before) == 0;
	pid_t middle = clone(leave_session, stack, NOT_SEEN | (alone ? SIGCHLD : 0), spawn);

	if (middle < 0)
		spawn->error = -errno;
	else
		while (waitpid(middle, NULL, alone ? 0 : __WCLONE) < 0 && errno == EINTR)
			;
	if (alone)
		sigaction(SIGCHLD, &before, NULL);
}

static int start_collector(char *const argv[], const int fds[SPAWN_FDS], void *scratch)
{
	char *memory = scratch, *program = memory, **environment = (char **)(memory + 8192);
	char *stack = memory + SPAWN_SCRATCH_BYTES;
	struct spawn spawn = {.program = program,
			      .argv = argv,
			      .environment = environment,
			      .fds = {fds[0], fds[1]},
			      .stack = stack - STACK_BYTES};
	sigset_t all, before;
	int r;

	r = find_collector(program, 8192);
	if (r < 0)
		return r;
	environment_copy(environ, environment, ENVIRONMENT_MAX);
	/* No handler of the program may run in a process that shares its memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	make_middle(&spawn, stack);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return spawn.error;
}

int spawn_collector(int listen_fd, pid_t resumes, void *scratch)
{
	char number[16];
	char *argv[] = {(char *)"evprof-collector", (char *)"--private", (char *)"--resume", number, NULL};
	const int fds[SPAWN_FDS] = {listen_fd, -1};

	snprintf(number, sizeof(number), "%d", (int)resumes);
	if (!resumes)
		argv[2] = NULL;
	return start_collector(argv, fds, scratch);
}

int spawn_sampler(int memfd, int memory, const struct sampling *sampling, void *scratch)
{
	char what[64];
	char *argv[] = {(char *)"evprof-collector", (char *)"--sample", what, NULL};
	const int fds[SPAWN_FDS] = {memfd, memory};

	snprintf(what, sizeof(what), "%d:%llx", (int)getpid(), (unsigned long long)(uintptr_t)sampling);
	return start_collector(argv, fds, scratch);
}
