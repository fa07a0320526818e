/* clock.c - selects the clock. */
#include "ring/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string.h>

#include "evprof/proc.h"

uint32_t clock_kind = RING_CLOCK_MONOTONIC;
uint64_t clock_ahead_ns;

#if defined(__x86_64__)
/* CPUID 80000007H, EDX bit 8: the counter runs at one rate in all states. */
static int counter_is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
}

/*
 * Whether the kernel serves its clock in user space, which it does from this counter. A slow clock source is a system
 * call.
 */
static int clock_is_fast(void)
{
	struct timespec before, after;
	long best_ns = 1000000000;

	for (int i = 0; i < 16; i++) {
		long ns;

		clock_gettime(CLOCK_MONOTONIC, &before);
		clock_gettime(CLOCK_MONOTONIC, &after);
		ns = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
		best_ns = ns < best_ns ? ns : best_ns;
	}
	return best_ns < 150;
}
#endif

void clock_enter_namespace(void)
{
	if (clock_kind == RING_CLOCK_MONOTONIC)
		clock_ahead_ns = (uint64_t)time_namespace_offset("monotonic");
}

void clock_init(void)
{
#if defined(__aarch64__)
	clock_kind = CLOCK_COUNTER; /* the architecture guarantees one counter for all cores */
#else
	char source[32];

	/* Containers may have no /sys. */
	if (proc_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source)) > 0
		? !strncmp(source, "tsc", 3)
		: counter_is_invariant() && clock_is_fast())
		clock_kind = CLOCK_COUNTER;
#endif
}
