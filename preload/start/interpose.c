/*
 * interpose.c - the functions of libc (and one of Python) that evprof interposes, and nothing else.
 *
 * Each does what the real one does, with the same result and errno, and in addition notes what the program is doing.
 *
 *   dlopen               a library that contains Python may be loaded
 *   pthread_setspecific  a Python found by dlopen() starts; until 3.11: a thread gets its thread state
 *   sem_post             until 3.11: Python has created a thread state; until 3.7: requests from outside (requests.h)
 *   pthread_create       where stacks are sampled: threading may have named the thread
 *   fork, forkpty        the event, with the child's pid
 *   execv ...            the event; the new image joins by itself
 *   _exit, _Exit         os._exit() runs no destructors
 *   kill                 Python ends itself by SIGINT
 *   sigaction, signal    the program handles evprof's signal itself
 *   sigaltstack          a handler may end the process on a small stack
 *   sigwait, sigwaitinfo, sigtimedwait, signalfd
 *                        the program takes blocked signals, evprof's own among them
 *   prctl                the program gives up system calls (seccomp), or the time-stamp counter
 *   mlockall             the address space is locked in memory, with evprof's part of it
 *   setrlimit, prlimit   the address space is limited, with evprof's part of it
 *
 * Those that allocate are in interpose_malloc.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <pty.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log_line.h"
#include "base/own_stack.h"
#include "base/seccomp.h"
#include "definitions/native.h"
#include "hooks/hooks.h"
#include "hooks/sampled.h"
#include "hooks/thinned_frames.h"
#include "life/life.h"
#include "python/python.h"
#include "ring/clock.h"
#include "ring/memory.h"
#include "ring/process.h"
#include "start/bootstrap.h"
#include "start/interposed.h"
#include "start/requests.h"

/* musl has one width of limits, under one name, and no type for their numbers. */
#ifdef __GLIBC__
#define LARGE_FILE(X) X(setrlimit64) X(prlimit64)
typedef __rlimit_resource_t limit_number;
#else
#define LARGE_FILE(X)
typedef int limit_number;
#endif

#define INTERPOSED(X)                                                                                                  \
	X(dlopen)                                                                                                      \
	X(pthread_create)                                                                                              \
	X(pthread_setspecific)                                                                                         \
	X(fork)                                                                                                        \
	X(forkpty)                                                                                                     \
	X(execv)                                                                                                       \
	X(execve)                                                                                                      \
	X(execvp)                                                                                                      \
	X(execvpe)                                                                                                     \
	X(fexecve)                                                                                                     \
	X(kill)                                                                                                        \
	X(setrlimit)                                                                                                   \
	X(prlimit)                                                                                                     \
	LARGE_FILE(X)                                                                                                  \
	X(mlockall)                                                                                                    \
	X(prctl) X(sigaction) X(signal) X(sigaltstack) X(sem_post) X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(signalfd)

/* The next definitions, which would be called without evprof. */
static struct {
#define DECLARE(name) __typeof__(name) *name;
	INTERPOSED(DECLARE)
#undef DECLARE
} real;

/*
 * All at once and early: the child of a fork must not look up symbols, because another thread may have held the lock.
 */
static __attribute__((constructor)) void find_real(void)
{
#define FIND(name) *(void **)&real.name = dlsym(RTLD_NEXT, #name);
	INTERPOSED(FIND)
#undef FIND
}

/* Other libraries' constructors may call before evprof's has run. */
#define REAL(name) (*(likely(real.name != NULL) ? real.name : (find_real(), real.name)))

struct rare_event {
	unsigned kind;
	uint64_t number;
};

static void put_rare(void *argument)
{
	const struct rare_event *event = argument;

	writer_put_rare(event->kind, event->number);
}

/* Runs on its own stack: the program may be in a signal handler. */
static void put_event(unsigned kind, uint64_t number)
{
	struct rare_event event = {kind, number};

	own_stack_call(put_rare, &event);
}

static bool is_this_in(uint32_t status)
{
	return process && atomic_load(&process->status) == status && process->pid == getpid();
}

/* Whether this is the recorded image, and not the child of a vfork that runs in its memory. */
static bool is_this_process(void)
{
	return is_this_in(PROCESS_JOINED);
}

/* Recording may be stopped: the memory is there, and threads are recorded again later. */
static bool is_this_or_stopped(void)
{
	return is_this_in(PROCESS_JOINED) || is_this_in(PROCESS_STOPPED);
}

static _Atomic bool opens_libraries; /* the program has called dlopen() */

/* Finds a Python that was loaded by dlopen(), before it runs and before the program forks. */
static void look_for_python(void)
{
	if (unlikely(!python.found && atomic_load_explicit(&opens_libraries, memory_order_relaxed)))
		bootstrap_look();
}

/*
 * dlopen() searches the library, and the libraries that it needs, by its caller's $ORIGIN, RPATH and RUNPATH. So the
 * real one is jumped to, with the caller's return address, and nothing can run after it.
 */
PUBLIC JUMPS void *dlopen(const char *name, int flags)
{
	native_stacks_library_loaded();
	look_for_python();
	atomic_store_explicit(&opens_libraries, true, memory_order_relaxed);
	JUMP_TO(REAL(dlopen)(name, flags));
}

/*
 * Every thread that enters Python, whether created by Python or by C code, first stores its thread state under a
 * thread-specific key. The state does not run yet, and no other code reads it. A thread that leaves Python stores NULL,
 * and may return with another state. The thread that starts Python does the same, before anything is imported.
 */
PUBLIC int pthread_setspecific(pthread_key_t key, const void *value)
{
	int result = REAL(pthread_setspecific)(key, value);

	look_for_python();
	if (unlikely(python.found && !python.monitoring) && install_may_be_state(key) && is_this_process())
		install_new_state(key, value);
	return result;
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	int result = REAL(pthread_create)(thread, attributes, run, argument);

	if (result == 0 && is_this_process())
		sampled_names_created(*thread);
	return result;
}

/* Python releases all its locks with this function. */
PUBLIC RELEASES int sem_post(sem_t *semaphore)
{
	int result, saved_errno;

	if (unlikely(thread_self.made_state != NULL)) {
		thread_self.releases = true;
		if (is_this_process())
			install_made_state();
		thread_self.releases = false;
	}
	result = REAL(sem_post)(semaphore);
	if (unlikely(requests_wait)) {
		saved_errno = errno;
		requests_ask_look();
		errno = saved_errno;
	}
	return result;
}

/* What note_fork() finds before a fork: it is one of this process, and of os.fork() or os.forkpty(). */
struct noted_fork {
	bool here, expected;
};

static struct noted_fork note_fork(void)
{
	struct noted_fork noted = {.expected = bootstrap_forking};

	bootstrap_forking = 0;
	look_for_python();
	noted.here = is_this_process();
	if (noted.here && noted.expected)
		atomic_fetch_add(&process->header->forks, 1);
	return noted;
}

static pid_t note_forked(struct noted_fork noted, pid_t pid)
{
	if (noted.here && pid > 0)
		put_event(WIRE_FORK, (uint64_t)pid);
	if (noted.here && pid == 0 && noted.expected)
		sampling_begin();
	return pid;
}

/* Until glibc 2.33 forkpty() calls the program's fork(), this one. */
static __thread bool in_forkpty __attribute__((tls_model("initial-exec")));

PUBLIC pid_t fork(void)
{
	struct noted_fork noted;

	if (in_forkpty)
		return REAL(fork)();
	noted = note_fork();
	return note_forked(noted, REAL(fork)());
}

/* Until then it is in libutil, too, which may have been loaded after this library. */
static __typeof__(forkpty) *find_forkpty(void)
{
	void *libutil = REAL(forkpty) ? NULL : REAL(dlopen)("libutil.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (libutil)
		*(void **)&real.forkpty = dlsym(libutil, "forkpty");
	return real.forkpty;
}

PUBLIC pid_t forkpty(int *terminal, char *name, const struct termios *settings, const struct winsize *size)
{
	__typeof__(forkpty) *real_forkpty = find_forkpty();
	struct noted_fork noted;
	pid_t pid;

	if (!real_forkpty) {
		errno = ENOSYS;
		return -1;
	}
	noted = note_fork();
	in_forkpty = true;
	pid = real_forkpty(terminal, name, settings, size);
	in_forkpty = false;
	return note_forked(noted, pid);
}

static void put_exec(void)
{
	if (is_this_process())
		put_event(WIRE_EXEC, 0);
}

static int exec_failed(int result)
{
	int saved_errno = errno;

	if (is_this_process())
		put_event(WIRE_EXEC_FAILED, (uint64_t)saved_errno);
	errno = saved_errno;
	return result;
}

#define EXEC(name, parameters, ...)                                                                                    \
	PUBLIC int name parameters                                                                                     \
	{                                                                                                              \
		put_exec();                                                                                            \
		return exec_failed(REAL(name)(__VA_ARGS__));                                                           \
	}

EXEC(execv, (const char *path, char *const arguments[]), path, arguments)
EXEC(execve, (const char *path, char *const arguments[], char *const environment[]), path, arguments, environment)
EXEC(execvp, (const char *file, char *const arguments[]), file, arguments)
EXEC(execvpe, (const char *file, char *const arguments[], char *const environment[]), file, arguments, environment)
EXEC(fexecve, (int fd, char *const arguments[], char *const environment[]), fd, arguments, environment)

PUBLIC __attribute__((noreturn)) void _exit(int status)
{
	life_finish(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

PUBLIC __attribute__((noreturn)) void _Exit(int status)
{
	_exit(status);
}

/*
 * Python ends itself this way after an uncaught KeyboardInterrupt, when no code of the program runs any more. The user
 * who typed Ctrl-C gets the summary line, as at any other end. The first process of a namespace survives the signal,
 * and exits.
 */
static bool ends_by_interrupt(pid_t pid, int number)
{
	struct sigaction action;
	sigset_t blocked;

	if (number != SIGINT || pid != getpid() || pid == 1 || !python.over)
		return false;
	return sigaction(SIGINT, NULL, &action) == 0 && action.sa_handler == SIG_DFL &&
	       pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGINT);
}

PUBLIC int kill(pid_t pid, int number)
{
	if (ends_by_interrupt(pid, number))
		life_finish_by_signal(number);
	return REAL(kill)(pid, number);
}

/* Shrinks only once the limit is in force, because it may be refused. result: of setting it. */
static int note_limit(int result, pid_t pid, int resource, const void *limit)
{
	if (result == 0 && resource == RLIMIT_AS && limit && (pid == 0 || pid == getpid()) && is_this_or_stopped())
		memory_shrink(MEMORY_ROOM_LIMITED);
	return result;
}

#define SET_LIMIT(setrlimit, prlimit, rlimit)                                                                          \
	PUBLIC int setrlimit(limit_number resource, const struct rlimit *limit)                                        \
	{                                                                                                              \
		return note_limit(REAL(setrlimit)(resource, limit), 0, (int)resource, limit);                          \
	}                                                                                                              \
	PUBLIC int prlimit(pid_t pid, limit_number resource, const struct rlimit *limit, struct rlimit *old)           \
	{                                                                                                              \
		return note_limit(REAL(prlimit)(pid, resource, limit, old), pid, (int)resource, limit);                \
	}

SET_LIMIT(setrlimit, prlimit, rlimit)
#ifdef __GLIBC__
SET_LIMIT(setrlimit64, prlimit64, rlimit64)
#endif

PUBLIC int mlockall(int flags)
{
	if (is_this_or_stopped())
		memory_shrink(MEMORY_ROOM_LEAST);
	return REAL(mlockall)(flags);
}

PUBLIC int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	if (action)
		requests_handler_changes(number);
	return REAL(sigaction)(number, action, old);
}

PUBLIC __typeof__(SIG_DFL) signal(int number, __typeof__(SIG_DFL) handler)
{
	requests_handler_changes(number);
	return REAL(signal)(number, handler);
}

PUBLIC int sigaltstack(const stack_t *set, stack_t *old)
{
	int result = REAL(sigaltstack)(set, old);

	if (result == 0 && set)
		own_stack_note(set);
	return result;
}

PUBLIC int sigwait(const sigset_t *set, int *number)
{
	sigset_t without;

	return REAL(sigwait)(requests_without_own(set, &without), number);
}

PUBLIC int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t without;

	return REAL(sigwaitinfo)(requests_without_own(set, &without), info);
}

PUBLIC int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t without;

	return REAL(sigtimedwait)(requests_without_own(set, &without), info, timeout);
}

PUBLIC int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t without;

	return REAL(signalfd)(fd, requests_without_own(set, &without), flags);
}

/*
 * Whether the calling thread is about to lose the time-stamp counter, which strict mode forbids, too. The kernel then
 * ends a thread that reads it.
 */
static bool forbids_counter(int option, unsigned long mode)
{
	if (option == PR_SET_SECCOMP && mode == SECCOMP_MODE_STRICT)
		return REAL(prctl)(PR_GET_SECCOMP, 0, 0, 0, 0) == 0; /* the call would be refused */
	return option == PR_SET_TSC && mode == PR_TSC_SIGSEGV && clock_kind == CLOCK_COUNTER;
}

/* libc passes four arguments to the kernel for every option. */
PUBLIC int prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list list;
	int result;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] = va_arg(list, unsigned long);
	va_end(list);
	if (forbids_counter(option, arguments[0]) && is_this_or_stopped()) {
		log_line(LOG_WARNING,
			 "a thread may not read the time-stamp counter any more; it is not recorded further");
		writer_end_thread();
	}
	result = REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
	if (result == 0 && (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP)) {
		seccomp_note();
		process_wakes_nobody();
	}
	return result;
}

/* In the child. Who forks by fork(2) has the GIL, if it runs Python. */
static void forked(void)
{
	life_forked();
	thinned_frames_forked();
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}
