/*
 * interpose.c - the functions of libc (and one of Python) that evprof stands in front of, and nothing else.
 *
 * Each does what the real one does, with the same result and errno; in between it notes what the program is doing.
 *
 *   dlopen               a library with Python in it may have come
 *   pthread_setspecific  until 3.11: a thread gets its thread state
 *   fork                 the event, with the child's pid
 *   execv ...            the event; the new image joins by itself
 *   _exit, _Exit         os._exit() runs no destructors
 *   kill                 Python ends itself by SIGINT
 *   prctl                the program takes system calls from itself
 *   mlockall             the address space is to be in memory, of which evprof's takes a part
 *   setrlimit, prlimit   the address space is limited, of which evprof's memory takes a part
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bootstrap.h"
#include "confined.h"
#include "definitions.h"
#include "native.h"
#include "process.h"
#include "python.h"
#include "sampling.h"

#define PUBLIC __attribute__((visibility("default")))

#define INTERPOSED(X)                                                                                                  \
	X(dlopen)                                                                                                      \
	X(pthread_setspecific)                                                                                         \
	X(fork)                                                                                                        \
	X(execv)                                                                                                       \
	X(execve)                                                                                                      \
	X(execvp) X(execvpe) X(fexecve) X(kill) X(setrlimit) X(setrlimit64) X(prlimit) X(prlimit64) X(mlockall) X(prctl)

/* The next definitions: what would have been called without us. */
static struct {
#define DECLARE(name) __typeof__(name) *name;
	INTERPOSED(DECLARE)
#undef DECLARE
} real;

/* All at once and early: the child of a fork may not look symbols up, because another thread may have held the lock. */
static __attribute__((constructor)) void find_real(void)
{
#define FIND(name) *(void **)&real.name = dlsym(RTLD_NEXT, #name);
	INTERPOSED(FIND)
#undef FIND
}

/* Other libraries' constructors may call before ours. */
#define REAL(name) (*(likely(real.name != NULL) ? real.name : (find_real(), real.name)))

static void put_event(unsigned kind, uint32_t argument)
{
	struct writer *writer = writer_reserve(kind);

	if (writer)
		writer_put(writer, wire_head(kind, argument));
}

/* This image, and not the child of a vfork that runs in its memory. */
static bool is_this_process(void)
{
	return process && atomic_load(&process->status) == PROCESS_JOINED && process->pid == getpid();
}

/*
 * The loader searches a bare name in the RUNPATH of the library that calls. Called from here that would be ours: where
 * the caller has a RUNPATH, the call is passed on with its own return address, and Python is looked for at the next
 * occasion instead.
 */
static bool searches_by_caller(const char *name, const void *caller)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!name || strchr(name, '/'))
		return false;
	if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return true;
	for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH)
			return true;
	return false;
}

PUBLIC void *dlopen(const char *name, int flags)
{
	void *handle;

	native_library_comes();
	if (python.found)
		return REAL(dlopen)(name, flags);
	bootstrap_look(NULL);
	if (searches_by_caller(name, __builtin_return_address(0)))
		return REAL(dlopen)(name, flags);
	handle = REAL(dlopen)(name, flags);
	if (handle) {
		int saved_errno = errno;

		bootstrap_look(NULL);
		bootstrap_look(handle);
		errno = saved_errno;
	}
	return handle;
}

/*
 * Every thread that enters Python, made by Python or by C code, first stores its thread state in a thread-specific key.
 * It does not run yet: nothing else looks at it. One that leaves Python stores NULL, and may come back with another
 * state.
 */
PUBLIC int pthread_setspecific(pthread_key_t key, const void *value)
{
	int result = REAL(pthread_setspecific)(key, value);

	if (unlikely(python.found && !python.monitoring) && bootstrap_may_be_state(key) && is_this_process())
		bootstrap_new_state(key, value);
	return result;
}

PUBLIC pid_t fork(void)
{
	int expected = bootstrap_forking;
	pid_t pid;

	bootstrap_forking = 0;
	if (!is_this_process())
		return REAL(fork)();
	if (expected)
		atomic_fetch_add(&process->header->forks, 1);
	pid = REAL(fork)();
	if (pid > 0)
		put_event(WIRE_FORK, (uint32_t)pid);
	if (pid == 0 && expected)
		sampling_begin();
	return pid;
}

static void before_exec(void)
{
	if (is_this_process())
		put_event(WIRE_EXEC, 0);
}

static int exec_failed(int result)
{
	int saved_errno = errno;

	if (is_this_process())
		put_event(WIRE_EXEC_FAILED, (uint32_t)saved_errno);
	errno = saved_errno;
	return result;
}

PUBLIC int execv(const char *path, char *const arguments[])
{
	before_exec();
	return exec_failed(REAL(execv)(path, arguments));
}

PUBLIC int execve(const char *path, char *const arguments[], char *const environment[])
{
	before_exec();
	return exec_failed(REAL(execve)(path, arguments, environment));
}

PUBLIC int execvp(const char *file, char *const arguments[])
{
	before_exec();
	return exec_failed(REAL(execvp)(file, arguments));
}

PUBLIC int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	before_exec();
	return exec_failed(REAL(execvpe)(file, arguments, environment));
}

PUBLIC int fexecve(int fd, char *const arguments[], char *const environment[])
{
	before_exec();
	return exec_failed(REAL(fexecve)(fd, arguments, environment));
}

PUBLIC __attribute__((noreturn)) void _exit(int status)
{
	process_finish(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

PUBLIC __attribute__((noreturn)) void _Exit(int status)
{
	_exit(status);
}

/*
 * After a KeyboardInterrupt that nothing caught Python ends itself so, when nothing of the program's runs any more: the
 * user who has typed Ctrl-C is told where the trace is, as at any other end. The first process of a namespace survives
 * it, and exits.
 */
static bool ends_by_interrupt(pid_t pid, int number)
{
	struct sigaction action;
	sigset_t blocked;

	if (number != SIGINT || pid != getpid() || pid == 1 || !bootstrap_python_is_over())
		return false;
	return sigaction(SIGINT, NULL, &action) == 0 && action.sa_handler == SIG_DFL &&
	       pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGINT);
}

PUBLIC int kill(pid_t pid, int number)
{
	if (ends_by_interrupt(pid, number))
		process_finish_by_signal(number);
	return REAL(kill)(pid, number);
}

/* Passes a result on. Once the limit is in force, because it may be refused. */
static int limited(int result, int resource)
{
	if (result == 0 && resource == RLIMIT_AS && is_this_process())
		process_shrink(PROCESS_ROOM_LIMITED);
	return result;
}

PUBLIC int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return limited(REAL(setrlimit)(resource, limit), (int)resource);
}

PUBLIC int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	return limited(REAL(setrlimit64)(resource, limit), (int)resource);
}

static bool is_own(pid_t pid)
{
	return pid == 0 || pid == getpid();
}

PUBLIC int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit, struct rlimit *old)
{
	int result = REAL(prlimit)(pid, resource, limit, old);

	return limit && is_own(pid) ? limited(result, (int)resource) : result;
}

PUBLIC int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *limit, struct rlimit64 *old)
{
	int result = REAL(prlimit64)(pid, resource, limit, old);

	return limit && is_own(pid) ? limited(result, (int)resource) : result;
}

PUBLIC int mlockall(int flags)
{
	if (is_this_process())
		process_shrink(PROCESS_ROOM_LEAST);
	return REAL(mlockall)(flags);
}

/* All have four arguments for the kernel, as libc passes them. */
PUBLIC int prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list list;
	int result;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] = va_arg(list, unsigned long);
	va_end(list);
	result = REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
	if (result == 0 && (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP))
		confined_look();
	return result;
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(NULL, NULL, process_forked);
}
