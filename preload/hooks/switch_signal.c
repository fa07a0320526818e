/* switch_signal.c - see switch_signal.h. */
#include "hooks/switch_signal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/config.h"
#include "base/elf_symbols.h"
#include "base/log_line.h"
#include "hooks/switch.h"
#include "python/python.h"
#include "ring/process.h"

#define AGAIN_NS 2000000

enum { WANTED_NOTHING = 0, WANTED_STOP = 1, WANTED_START = 2 };

static uintptr_t instructions, instructions_end; /* of the function that runs Python's instructions */

static int follow(void *data)
{
	int wanted = process ? (int)atomic_exchange(&process->switch_wanted, WANTED_NOTHING) : WANTED_NOTHING;

	(void)data;
	if (wanted == WANTED_STOP)
		switch_stop();
	else if (wanted == WANTED_START)
		switch_start();
	return 0;
}

/* The kernel goes on behind the instruction that made a system call. The page before may not be readable. */
static bool is_behind_system_call(uintptr_t at)
{
	if (at % 4096 < 4)
		return false;
#if defined(__x86_64__)
	return !memcmp((const void *)(at - 2), "\x0f\x05", 2); /* NOLINT(performance-no-int-to-ptr): syscall */
#elif defined(__aarch64__)
	return *(const uint32_t *)(at - 4) == 0xd4000001; /* NOLINT(performance-no-int-to-ptr): svc #0 */
#else
	return false;
#endif
}

static uintptr_t interrupted_at(const void *context)
{
	const ucontext_t *user = context;

#if defined(__x86_64__)
	return (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)user->uc_mcontext.pc;
#else
	(void)user;
	return 0;
#endif
}

/* Whether the interrupted thread holds no lock of Python's pending calls. */
static bool may_call(const void *context)
{
	uintptr_t at = interrupted_at(context);
	bool between = at - instructions < instructions_end - instructions;

	return (between || is_behind_system_call(at)) &&
	       (!python_has(PYTHON_PENDS_WITH_STATE) || python.current_thread_state());
}

/* Has the kernel send the signal again. The timer is the image's: a fork does not inherit it. */
static void ask_again(int number)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
	struct itimerspec soon = {.it_value.tv_nsec = AGAIN_NS};
	int timer;

	/* The C library's functions allocate, or may not be called here. */
	if (!process->switch_timer && !syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer))
		process->switch_timer = timer + 1;
	if (process->switch_timer)
		syscall(SYS_timer_settime, process->switch_timer - 1, 0, &soon, NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	uint32_t status = process ? atomic_load(&process->status) : PROCESS_OFF;

	if (status != PROCESS_JOINED && status != PROCESS_STOPPED)
		return;
	if (info->si_code != SI_TIMER)
		atomic_store(&process->switch_wanted, status == PROCESS_JOINED ? WANTED_STOP : WANTED_START);
	if (atomic_load(&process->switch_wanted) != WANTED_NOTHING &&
	    (!may_call(context) || python.Py_AddPendingCall(follow, NULL)))
		ask_again(number);
	errno = saved_errno;
}

void switch_signal_begin(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, before;
	size_t bytes = 0;

	if (!config.signal)
		return;
	instructions = (uintptr_t)elf_symbol_sized("_PyEval_EvalFrameDefault", &bytes);
	instructions_end = instructions + bytes;
	sigemptyset(&action.sa_mask);
	if (!sigaction(config.signal, NULL, &before) && before.sa_handler == SIG_DFL)
		sigaction(config.signal, &action, NULL);
	else
		log_line(LOG_WARNING, "signal %u has a handler, or is ignored; %s does nothing", config.signal,
			 ENV_SIGNAL);
}
