/*
 * clock.h - the timestamps of events.
 *
 * A timestamp is the time-stamp counter if the kernel uses it as its clock source (it is then invariant and the same on
 * all cores), else clock_gettime(). It is shifted right: the last bits of a counter of some GHz have no meaning, 32
 * bits of difference then last for seconds, and traces are smaller.
 */
#ifndef PRELOAD_CLOCK_H
#define PRELOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "evprof/ring.h"

extern uint32_t clock_kind;	/* enum ring_clock */
extern uint64_t clock_ahead_ns; /* CLOCK_MONOTONIC of this process, minus that outside of its time namespace */

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

/* A pause this long makes a thread a quiet one: about a quarter of a second. */
#define CLOCK_QUIET_TICKS (UINT64_C(10000) * CLOCK_WAIT_TICKS)

/*
 * CLOCK_WAIT_TICKS: a thread without events for this long may have waited. 25 us with a counter of 2.6 GHz; the exact
 * time does not matter. It is much longer than a system call, which then finds out how long the thread ran, and much
 * shorter than any time of interest.
 */

/* A clock of the kernel's, in ns; 0: there is none. CLOCK_MONOTONIC is no system call. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The CPU time of the calling thread, in ns. A system call. */
static inline uint64_t clock_thread_cpu(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t clock_now(void)
{
	struct timespec t;

	if (__builtin_expect(clock_kind != RING_CLOCK_MONOTONIC, 1))
		return clock_counter() >> CLOCK_SHIFT;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - clock_ahead_ns) >> CLOCK_SHIFT;
}

/* Selects the clock. Once, before the first clock_now(). */
void clock_init(void);

/*
 * Reads the offset of this process's time namespace, which may differ from its parent's. Before its first clock_now().
 */
void clock_enter_namespace(void);

#endif
