/*
 * jitter.c - see jitter.h.
 */
#include "util/jitter.h"

#include <unistd.h>

#include "evprof/system_calls.h"
#include "util/clock.h"

uint64_t jitter_seed(void)
{
	uint64_t seed;

	if (system_getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
		return seed;
	return (uint64_t)time_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
}

/* splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

int64_t jitter_below(uint64_t *state, int64_t bound)
{
	uint64_t random = next_random(state);

	return bound > 0 ? (int64_t)(random % (uint64_t)bound) : 0;
}

int64_t jitter_around(uint64_t *state, int64_t ms)
{
	return ms / 2 + jitter_below(state, ms);
}
