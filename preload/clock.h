/*
 * clock.h - the time stamp of events.
 *
 * The time-stamp counter where the kernel itself trusts it as its clock source (then it is invariant and the same on
 * all cores), clock_gettime elsewhere. Shifted right: a counter of some GHz says less than its last bits pretend, 32
 * bits of difference then last for seconds, and traces get smaller.
 */
#ifndef PRELOAD_CLOCK_H
#define PRELOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "evprof/ring.h"

extern uint32_t clock_kind;	/* enum ring_clock */
extern uint64_t clock_ahead_ns; /* CLOCK_MONOTONIC of this process, of that outside of its time namespace */

#if defined(__x86_64__)
#define CLOCK_COUNTER RING_CLOCK_TSC
#define CLOCK_SHIFT 3
#define CLOCK_WAIT_TICKS 8192
static inline uint64_t clock_counter(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define CLOCK_COUNTER RING_CLOCK_CNTVCT
#define CLOCK_SHIFT 0
#define CLOCK_WAIT_TICKS 1024
static inline uint64_t clock_counter(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#else
#error "evprof knows the clocks of x86-64 and aarch64"
#endif

/* A thread that is silent for so long is a quiet one: about a quarter of a second. */
#define CLOCK_QUIET_TICKS (UINT64_C(10000) * CLOCK_WAIT_TICKS)

/*
 * CLOCK_WAIT_TICKS: a thread from which nothing was heard for so long may have waited. 25 us with a counter of 2.6 GHz;
 * the exact time does not matter: much longer than a call of the system, which then tells what the thread did
 * meanwhile, and much shorter than what anybody wants to know.
 */

/* How long the calling thread has run, in ns. A system call. */
static inline uint64_t clock_thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_now(void)
{
	struct timespec t;

	if (__builtin_expect(clock_kind != RING_CLOCK_MONOTONIC, 1))
		return clock_counter() >> CLOCK_SHIFT;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - clock_ahead_ns) >> CLOCK_SHIFT;
}

/* Chooses the clock; once, before the first clock_now(). */
void clock_init(void);

/* A process that begins may have another time namespace than its parent. Before its first clock_now(). */
void clock_enter_namespace(void);

#endif
