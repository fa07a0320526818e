/* budget_timer.c - see budget_timer.h. */
#include "hooks/budget_timer.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ring/clock.h"
#include "ring/process.h"

/*
 * While a timer of the process's CPU time is armed, the kernel advances that clock at its ticks alone, each 4 ms or so;
 * and when a thread reads its own clock.
 */
uint64_t budget_clock(void)
{
	clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static _Atomic bool silent; /* the timer sends no signal: the program has its own handler of SIGURG */

/* 1 + its number; 0: there are too many. The C library's functions allocate. */
static int make_timer(void)
{
	struct sigevent event = {.sigev_notify = atomic_load(&silent) ? SIGEV_NONE : SIGEV_SIGNAL,
				 .sigev_signo = SIGURG,
				 .sigev_value.sival_int = BUDGET_SIGNAL_VALUE};
	int timer;

	return syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &timer) ? 0 : timer + 1;
}

/* The child of a fork has no timer. */
void budget_timer_set(uint64_t ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}};

	if (!process->budget_timer)
		process->budget_timer = make_timer();
	if (process->budget_timer)
		syscall(SYS_timer_settime, process->budget_timer - 1, 0, &at, NULL);
}

void budget_timer_begin(void)
{
	atomic_store(&silent, false);
}

bool budget_timer_has_ended_silently(void)
{
	struct itimerspec left;

	return atomic_load_explicit(&silent, memory_order_relaxed) &&
	       !syscall(SYS_timer_gettime, process->budget_timer - 1, &left) && !left.it_value.tv_sec &&
	       !left.it_value.tv_nsec;
}

void budget_timer_silence(void)
{
	int before = process->budget_timer;

	if (atomic_exchange(&silent, true) || !before)
		return;
	process->budget_timer = make_timer();
	syscall(SYS_timer_delete, before - 1);
}

void budget_timer_end(void)
{
	if (process && process->budget_timer)
		syscall(SYS_timer_delete, process->budget_timer - 1);
	if (process)
		process->budget_timer = 0;
}
