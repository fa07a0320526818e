/* least_counter.h - the counter that the least recorders of the bench read: least_hook.c and least_memory.c. */
#ifndef BENCH_LEAST_COUNTER_H
#define BENCH_LEAST_COUNTER_H

#include <stdint.h>

static inline uint64_t counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc() >> 3;
#else
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

#endif
