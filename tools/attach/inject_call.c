/*
 * inject_call.c - see inject.h. By ptrace(2), as debuggers call functions of a program.
 *
 * Py_AddPendingCall() may be called in any thread, with or without the GIL, but takes a lock. The stopped thread must
 * not hold it. So it is called only where the thread is between two instructions of Python, or in a system
 * call; elsewhere the thread goes on for a moment and is stopped again (preload/start/requests.c has the same rule).
 */
#include "attach/inject.h"
#include "evprof/proc.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/why.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)

const bool inject_is_possible = true;

#define XSTATE_MOST (16 * 1024)
#define RED_ZONE 128	/* below the stack pointer, used by functions that call nothing */
#define STACK_ROOM 1024 /* left free below it, too */
#define PAGE 4096
#define STOPS_MOST 400 /* until the thread is where it may call */
#define STOP_MS 1000   /* of one wait for the thread */
#define START_LOOK_MS 5

struct stopped {
	pid_t tid;
	struct user_regs_struct registers; /* when it was stopped */
	uint8_t vector[XSTATE_MOST];
	size_t vector_bytes;
	uint64_t blocked; /* its signals, when it was stopped */
	int pending;	  /* a signal that arrived meanwhile; 0: none */
};

/* The signals that end run_until(). */
#define OWN_SIGNALS (UINT64_C(1) << (SIGTRAP - 1) | UINT64_C(1) << (SIGSEGV - 1))

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Waits for the next stop, within a bound. Its signal and event; -ESRCH: the process has ended; -ETIMEDOUT. */
static int wait_stop(pid_t tid)
{
	int status;

	for (long waited = 0; waited < STOP_MS * 10; waited++) {
		pid_t found = waitpid(tid, &status, __WALL | WNOHANG);

		if (found == tid)
			return WIFSTOPPED(status) ? status >> 8 : -ESRCH;
		if (found < 0 && errno != EINTR)
			return -ESRCH;
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	return -ETIMEDOUT;
}

static int get_registers(pid_t tid, struct user_regs_struct *registers)
{
	return ptrace(PTRACE_GETREGS, tid, NULL, registers) < 0 ? -errno : 0;
}

static int set_registers(pid_t tid, const struct user_regs_struct *registers)
{
	return ptrace(PTRACE_SETREGS, tid, NULL, registers) < 0 ? -errno : 0;
}

static int save(struct stopped *thread)
{
	struct iovec vector = {.iov_base = thread->vector, .iov_len = sizeof(thread->vector)};

	if (get_registers(thread->tid, &thread->registers) < 0 ||
	    ptrace(PTRACE_GETREGSET, thread->tid, NT_X86_XSTATE, &vector) < 0)
		return -errno;
	thread->vector_bytes = vector.iov_len;
	return vector.iov_len < sizeof(thread->vector) ? 0 : -E2BIG;
}

static int set_blocked(const struct stopped *thread, uint64_t blocked)
{
	void *size = (void *)(uintptr_t)sizeof(blocked); /* NOLINT(performance-no-int-to-ptr) */

	return ptrace(PTRACE_SETSIGMASK, thread->tid, size, &blocked) < 0 ? -errno : 0;
}

/*
 * A fault whose signal is blocked, or ignored, takes the program's handler away. -ENOTSUP: one is ignored, which cannot
 * be changed from outside.
 */
static int unblock(struct stopped *thread)
{
	void *size = (void *)(uintptr_t)sizeof(thread->blocked); /* NOLINT(performance-no-int-to-ptr) */
	char text[65536];
	const char *ignored = proc_status_of(thread->tid, 0, "\nSigIgn:", text, sizeof(text));

	if (!ignored || strtoull(ignored, NULL, 16) & OWN_SIGNALS)
		return -ENOTSUP;
	if (ptrace(PTRACE_GETSIGMASK, thread->tid, size, &thread->blocked) < 0)
		return -errno;
	return set_blocked(thread, thread->blocked & ~OWN_SIGNALS);
}

static int restore(struct stopped *thread)
{
	struct iovec vector = {.iov_base = thread->vector, .iov_len = thread->vector_bytes};
	int r = ptrace(PTRACE_SETREGSET, thread->tid, NT_X86_XSTATE, &vector) < 0 ? -errno : 0;

	r = set_blocked(thread, thread->blocked) < 0 ? -errno : r;
	return set_registers(thread->tid, &thread->registers) < 0 ? -errno : r;
}

/* A system call that was interrupted is restarted by the kernel, unless its number is taken away. */
static struct user_regs_struct registers_for(const struct stopped *thread)
{
	struct user_regs_struct registers = thread->registers;

	registers.orig_rax = UINT64_MAX;
	registers.rsp = (registers.rsp - RED_ZONE - STACK_ROOM) & ~(uint64_t)15;
	return registers;
}

/*
 * Continues the thread until it stops with one of two signals. Others are kept: the last one is delivered in the end.
 * The program's handler would run on changed registers.
 */
static int run_until(struct stopped *thread, int request, int expected)
{
	int number;

	for (;;) {
		if (ptrace(request, thread->tid, NULL, NULL) < 0)
			return -errno;
		number = wait_stop(thread->tid);
		if (number == -ETIMEDOUT) { /* the call waits for a lock: it is taken back */
			ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
			wait_stop(thread->tid);
			return -ETIMEDOUT;
		}
		if (number < 0 || number == expected)
			return number;
		if (number >> 8) /* an interrupt that a signal overtook */
			continue;
		if (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE)
			return -EFAULT;
		if (number != SIGTRAP)
			thread->pending = number;
	}
}

/* Has the thread make a system call: the instruction at `at` does. Returns its result; -errno, too, where it cannot. */
static int64_t call_kernel(struct stopped *thread, uint64_t at, uint64_t number, const uint64_t arguments[6])
{
	struct user_regs_struct registers = registers_for(thread);
	int r;

	registers.rip = at;
	registers.rax = number;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	r = set_registers(thread->tid, &registers);
	if (r == 0)
		r = run_until(thread, PTRACE_SINGLESTEP, SIGTRAP);
	if (r >= 0)
		r = get_registers(thread->tid, &registers);
	return r < 0 ? r : (int64_t)registers.rax;
}

/* The thread calls a function and returns to address 0, where it faults. Returns the function's int. */
static int call_function(struct stopped *thread, uint64_t function, uint64_t a, uint64_t b, int *result)
{
	struct user_regs_struct registers = registers_for(thread);
	int r;

	registers.rsp -= 8; /* its return address */
	if (ptrace(PTRACE_POKEDATA, thread->tid, (void *)(uintptr_t)registers.rsp, NULL) < 0)
		return -errno;
	registers.rip = function;
	registers.rdi = a;
	registers.rsi = b;
	registers.rax = 0;
	registers.eflags &= ~(uint64_t)0x400; /* the direction flag, clear in a function call */
	r = set_registers(thread->tid, &registers);
	if (r == 0)
		r = run_until(thread, PTRACE_CONT, SIGSEGV);
	if (r == SIGSEGV)
		r = get_registers(thread->tid, &registers);
	if (r < 0)
		return r;
	*result = (int)registers.rax;
	return registers.rip == 0 ? 0 : -EFAULT;
}

/* ---- where the thread may call ----------------------------------------------------------------------------------- */

static bool is_behind_system_call(const struct target *target, uint64_t at)
{
	uint8_t code[2];

	return at >= 2 && target_read(target, at - 2, code, 2) == 0 && code[0] == 0x0f && code[1] == 0x05;
}

static bool may_call(const struct target *target, const struct stopped *thread)
{
	uint64_t at = thread->registers.rip;

	return at - target->evaluate < target->evaluate_bytes || is_behind_system_call(target, at);
}

/* Stops the thread where it may call. */
static int stop(const struct target *target, struct stopped *thread)
{
	for (unsigned i = 0; i < STOPS_MOST; i++) {
		int number, r;

		if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) < 0)
			return -errno;
		number = wait_stop(thread->tid);
		if (number < 0)
			return number;
		if (number >> 8 && (number & 0xff) != SIGTRAP)
			return -EBUSY;
		r = save(thread);
		if (r < 0 || (number >> 8 && may_call(target, thread)))
			return r;
		if (ptrace(PTRACE_CONT, thread->tid, NULL, (void *)(intptr_t)(number >> 8 ? 0 : number)) < 0)
			return -errno;
		pause_ms(i < 100 ? 1 : 10);
	}
	return -EAGAIN;
}

/* The address of a system call instruction: the vDSO has one. 0: none is found. */
static uint64_t find_system_call(const struct target *target)
{
	char path[64], *line = NULL;
	uint8_t code[2 * PAGE];
	uint64_t start = 0, found = 0, at;
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)target->pid);
	maps = fopen(path, "re");
	while (maps && !start && getline(&line, &size, maps) > 0)
		if (strstr(line, "[vdso]"))
			start = strtoull(line, NULL, 16);
	free(line);
	if (maps)
		fclose(maps);
	for (at = start; start && !found && at < start + sizeof(code); at += PAGE) {
		if (target_read(target, at, code, PAGE) < 0)
			break;
		for (size_t i = 0; i + 1 < PAGE && !found; i++)
			found = code[i] == 0x0f && code[i + 1] == 0x05 ? at + i : 0;
	}
	return found;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static int write_text(const struct target *target, uint64_t address, const struct inject_text *text)
{
	size_t bytes = 0;
	const char *made = text->make(text->request, address, &bytes);
	struct iovec from = {.iov_base = (void *)(uintptr_t)made, .iov_len = bytes};
	struct iovec to = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
	ssize_t n = process_vm_writev(target->pid, &from, 1, &to, 1, 0);

	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EFAULT;
}

/*
 * A pending call that runs before Python can import would fail. 3.6 is initialized before that (stack/started.h).
 * -EINPROGRESS: Python still starts, or has ended its program. The thread is stopped.
 */
static int check_started(const struct target *target, struct stopped *thread)
{
	int started = 0, r;

	if (!target->is_initialized)
		return 0;
	r = call_function(thread, target->is_initialized, 0, 0, &started);
	return r || started ? r : -EINPROGRESS;
}

/* Returns 0, -errno, or 1: Python's queue is full. The thread is stopped. */
static int queue_call(const struct target *target, struct stopped *thread, uint64_t function,
		      const struct inject_text *text)
{
	uint64_t instruction = find_system_call(target);
	int64_t page = -ENOSYS;
	int result = -1, r;

	if (instruction)
		page = call_kernel(thread, instruction, SYS_mmap,
				   (const uint64_t[6]){0, INJECT_BYTES, PROT_READ | PROT_WRITE,
						       MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0});
	if (page < 0)
		return (int)page;
	r = write_text(target, (uint64_t)page, text);
	if (r == 0)
		r = call_function(thread, target->add_call, function, (uint64_t)page, &result);
	if (r == 0 && result == 0)
		return 0;
	call_kernel(thread, instruction, SYS_munmap, (const uint64_t[6]){(uint64_t)page, INJECT_BYTES});
	return r ? r : 1;
}

static pid_t tracer_of(pid_t pid)
{
	char text[4096];
	const char *tracer = proc_status_of(pid, 0, "\nTracerPid:", text, sizeof(text));

	return tracer ? atoi(tracer) : 0;
}

static int complain_of_seize(const struct target *target, int error, char *why, size_t bytes)
{
	char scope = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &scope, 1) != 1)
			scope = '0';
		close(fd);
	}
	if (tracer_of(target->pid))
		return complain(why, bytes, "process %d is traced by process %d (a debugger, strace)", (int)target->pid,
				(int)tracer_of(target->pid));
	if (error == EPERM && scope != '0')
		return complain(why, bytes,
				"the kernel forbids ptrace here: run evprof as root, or sysctl "
				"kernel.yama.ptrace_scope=0");
	if (error == EPERM)
		return complain(why, bytes,
				"the kernel forbids ptrace here: run evprof as root; in a container give it "
				"--cap-add SYS_PTRACE");
	return complain(why, bytes, "cannot stop process %d: %s", (int)target->pid, strerror(error));
}

static int complain_of_call(const struct target *target, int r, char *why, size_t bytes)
{
	if (r == -ESRCH)
		return complain(why, bytes, "process %d has ended", (int)target->pid);
	if (r == -EINPROGRESS)
		return complain(why, bytes, "Python of process %d still starts, or has ended its program",
				(int)target->pid);
	if (r == -EBUSY)
		return complain(why, bytes, "process %d is stopped; it goes on after: kill -CONT %d", (int)target->pid,
				(int)target->pid);
	if (r == -ENOTSUP)
		return complain(why, bytes,
				"process %d ignores SIGSEGV or SIGTRAP, without which its main thread cannot be asked",
				(int)target->pid);
	if (r == -EAGAIN || r == -ETIMEDOUT)
		return complain(why, bytes,
				"the main thread of process %d is in C code that does not wait for anything; try again",
				(int)target->pid);
	if (r > 0)
		return complain(why, bytes, "the pending calls of process %d are full; try again", (int)target->pid);
	return complain(why, bytes, "cannot call a function of process %d: %s", (int)target->pid, strerror(-r));
}

/* As inject_call(). -EINPROGRESS: Python still starts. *seized: the thread could be seized. */
static int try_call(const struct target *target, struct stopped *thread, uint64_t function,
		    const struct inject_text *text, bool *seized)
{
	sigset_t all, before;
	int r;

	thread->tid = target->pid;
	sigfillset(&all); /* whoever ends this tool meanwhile would leave the thread with changed registers */
	sigprocmask(SIG_SETMASK, &all, &before);
	*seized = ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) == 0;
	if (!*seized) {
		r = -errno;
		sigprocmask(SIG_SETMASK, &before, NULL);
		return r;
	}
	r = stop(target, thread);
	if (r == 0)
		r = unblock(thread);
	if (r == 0) {
		r = check_started(target, thread);
		if (r == 0)
			r = queue_call(target, thread, function, text);
		restore(thread);
	}
	ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->pending);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int inject_call(const struct target *target, uint64_t function, const struct inject_text *text, int wait_ms, char *why,
		size_t why_bytes)
{
	int64_t end = time_ms(CLOCK_MONOTONIC) + wait_ms;
	struct stopped *thread = malloc(sizeof(*thread));
	bool seized;
	int r;

	if (!thread)
		return complain(why, why_bytes, "out of memory");
	for (;;) {
		*thread = (struct stopped){0};
		r = try_call(target, thread, function, text, &seized);
		if (r != -EINPROGRESS || cli_interrupted || time_ms(CLOCK_MONOTONIC) >= end)
			break;
		pause_ms(START_LOOK_MS);
	}
	free(thread);
	if (!seized)
		return complain_of_seize(target, -r, why, why_bytes);
	return r ? complain_of_call(target, r, why, why_bytes) : 0;
}

#else

const bool inject_is_possible;

int inject_call(const struct target *target, uint64_t function, const struct inject_text *text, int wait_ms, char *why,
		size_t why_bytes)
{
	(void)target, (void)function, (void)text, (void)wait_ms;
	return complain(why, why_bytes, "on this processor evprof attaches to Python 3.14 and later only");
}

#endif
