/* clock.c - reads the clocks of targets' timestamps, and makes clock records. Called throughout collector/. */
#include "base/clock.h"

#include <time.h>

#include "evprof/ring.h"
#include "evprof/proc.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define CALIBRATE_TRIES 5

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Without the offset of our time namespace. */
uint64_t clock_now_ns(void)
{
	static bool known;
	static uint64_t ahead_ns;

	if (!known)
		ahead_ns = (uint64_t)time_namespace_offset("monotonic");
	known = true;
	return read_clock(CLOCK_MONOTONIC) - ahead_ns;
}

uint64_t clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

bool clock_known(uint32_t kind)
{
#if defined(__x86_64__)
	return kind == RING_CLOCK_MONOTONIC || kind == RING_CLOCK_TSC;
#elif defined(__aarch64__)
	return kind == RING_CLOCK_MONOTONIC || kind == RING_CLOCK_CNTVCT;
#else
	return kind == RING_CLOCK_MONOTONIC;
#endif
}

uint64_t clock_ticks(uint32_t kind)
{
#if defined(__x86_64__)
	if (kind == RING_CLOCK_TSC)
		return __rdtsc();
#elif defined(__aarch64__)
	if (kind == RING_CLOCK_CNTVCT) {
		uint64_t value;

		__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value));
		return value;
	}
#endif
	(void)kind;
	return clock_now_ns();
}

void clock_calibrate(uint32_t kind, uint32_t shift, struct trace_clock *record)
{
	uint64_t best = UINT64_MAX;

	*record = (struct trace_clock){.clock_kind = kind, .clock_shift = shift};
	for (int i = 0; i < CALIBRATE_TRIES; i++) {
		uint64_t before = clock_ticks(kind);
		uint64_t monotonic_ns = clock_now_ns();
		uint64_t realtime_ns = clock_realtime_ns();
		uint64_t after = clock_ticks(kind);

		if (after - before >= best)
			continue;
		best = after - before;
		/* MONOTONIC was read in the first half of the interval; a quarter in is nearer than either end. */
		record->ticks = kind == RING_CLOCK_MONOTONIC ? monotonic_ns >> shift : (before + best / 4) >> shift;
		record->monotonic_ns = monotonic_ns;
		record->realtime_ns = realtime_ns;
	}
}
