/*
 * seccomp.c - see seccomp.h. Called before each system call that a program seldom makes itself.
 *
 * libseccomp installs its filter by syscall(), which cannot be interposed. Before that it calls prctl() for
 * PR_SET_NO_NEW_PRIVS, without which only root may install one. /proc shows whether a filter followed: of the ways to
 * find out, opening and reading a file is the one that nearly all filters allow.
 *
 * The kernel does not say what a filter forbids to the process under it. So a child makes the calls. It has its own
 * memory: when a filter ends a process, the kernel may write a core, and ends all processes that share the memory. The
 * child therefore makes only system calls, none through stateful functions of the C library, and first disables its
 * core.
 */
#include "base/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "evprof/proc.h"

#define TURN_NS 50000
#define TURNS_MAX 20000	   /* a second in all: a supervisor may decide each call (SECCOMP_RET_USER_NOTIF) */
#define NOWHERE 0x3fffffff /* not a valid descriptor */

static void try_memory(void)
{
	int fd = (int)syscall(SYS_memfd_create, "evprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;

	syscall(SYS_ftruncate, fd, 4096);
	syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (page == MAP_FAILED)
		return;
	syscall(SYS_madvise, page, 4096, MADV_DONTDUMP);
	syscall(SYS_mremap, page, 0, 4096, MREMAP_MAYMOVE);
	syscall(SYS_munmap, page, 4096);
}

static void try_socket(void)
{
	const sa_family_t unnamed = AF_UNIX; /* the kernel gives it a name */
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct timespec at_once = {0};
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	struct ucred who;
	socklen_t length = sizeof(who);

	syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
	syscall(SYS_bind, fd, &unnamed, sizeof(unnamed));
	syscall(SYS_listen, fd, 1);
	syscall(SYS_connect, fd, NULL, 0);
	syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &who, &length);
	syscall(SYS_sendmsg, fd, NULL, MSG_NOSIGNAL | MSG_DONTWAIT);
	syscall(SYS_ppoll, &writable, 1, &at_once, NULL, 8);
}

static void try_processes(void)
{
	struct rlimit limit;
	uint32_t word = 0;
	char text[256];

	syscall(SYS_pidfd_open, syscall(SYS_getpid), 0);
	syscall(SYS_kill, syscall(SYS_getpid), 0);
	syscall(SYS_process_vm_readv, syscall(SYS_getpid), NULL, 0, NULL, 0, 0);
	syscall(SYS_process_vm_writev, syscall(SYS_getpid), NULL, 0, NULL, 0, 0);
	syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	syscall(SYS_getrandom, text, 16, 1);
	syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", text, sizeof(text));
	syscall(SYS_getcwd, text, sizeof(text));
	syscall(SYS_uname, NULL);
	syscall(SYS_futex, &word, FUTEX_WAKE, 0, NULL, NULL, 0);
}

/* The calls of the process that becomes the collector. */
static void try_spawning(void)
{
	struct timespec at_once = {0};

	syscall(SYS_faccessat, AT_FDCWD, "/", X_OK);
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &at_once, NULL);
	syscall(SYS_wait4, -1, NULL, WNOHANG, NULL);
	syscall(SYS_setsid);
	syscall(SYS_dup3, NOWHERE, NOWHERE - 1, 0);
	syscall(SYS_close_range, NOWHERE, NOWHERE, 0);
	syscall(SYS_chdir, "/");
	syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 8);
	syscall(SYS_execve, NULL, NULL, NULL);
}

static __attribute__((noreturn)) void try_all(void)
{
	syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	try_memory();
	try_socket();
	try_processes();
	try_spawning();
	for (;;)
		syscall(SYS_exit_group, 0);
}

/*
 * The child's status, as wait() returns it; 0 if unknown. A child that takes too long was stopped by another process,
 * not ended.
 */
static int end_of(pid_t child)
{
	const struct timespec turn = {.tv_nsec = TURN_NS};
	int status = 0, r = 0;

	for (unsigned i = 0; i < TURNS_MAX && r == 0; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &turn, NULL);
		r = (int)waitpid(child, &status, __WALL | WNOHANG);
	}
	if (r == 0) {
		kill(child, SIGKILL);
		waitpid(child, &status, __WALL);
		return 0;
	}
	return r < 0 ? 0 : status;
}

/*
 * A child makes each kind of call that this image would make. False: a filter ended it. True: it survived, or could not
 * be created. The program does not see the child: there is no signal, and wait() does not find it. Takes as long as a
 * fork; once for each image that starts under a filter.
 */
static bool probe_filter(void)
{
	sigset_t all, before;
	int saved_errno = errno, status = 0;
	pid_t child;

	/* No handler of the program may run in the child, which has no exit signal. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	child = (pid_t)syscall(SYS_clone, CLONE_UNTRACED, NULL, NULL, NULL, NULL);
	if (child == 0)
		try_all();
	if (child > 0)
		status = end_of(child);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved_errno;
	return !WIFSIGNALED(status);
}

static bool looks, is; /* kept by forks, as the filter is; it never goes away. One thread may have it. */

void seccomp_note(void)
{
	looks = true;
}

/* A filter is the calling thread's, unless it is put on all (SECCOMP_FILTER_FLAG_TSYNC). */
static bool has_filter(void)
{
	char status[4096];
	const char *mode;

	if (proc_read("/proc/thread-self/status", status, sizeof(status)) <= 0)
		return true;
	mode = strstr(status, "\nSeccomp:\t");
	return !mode || mode[sizeof("\nSeccomp:\t") - 1] != '0';
}

void seccomp_inherited(void)
{
	static bool probed; /* a forked child has the filters of its parent, and the result */

	if (!probed && !is && has_filter())
		looks = is = !probe_filter();
	probed = true;
}

bool seccomp_active(void)
{
	if (looks && !is)
		is = has_filter();
	return is;
}
