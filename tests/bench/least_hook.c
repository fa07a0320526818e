/*
 * least_hook.c - the second yardstick of the bench: the least that any recorder of events with a time must do.
 *
 * Owns build/bench/libleasthook.so. It uses the hook that evprof uses (until 3.11 PyEval_SetProfile, from 3.12 on
 * callbacks of a vectorcall type for sys.monitoring), reads the time-stamp counter and stores one word in private
 * memory that nobody reads. It does not know what was called, reports nothing and would lose everything but the last 4
 * MiB: what evprof adds to it is the price of ids, of shared memory, and of its collector.
 *
 * It starts as least_start.h says.
 */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "least_counter.h"
#include "least_start.h"

#define WORDS ((uint64_t)1 << 19)

static uint64_t words[WORDS];
static uint64_t count, last;
static _Atomic uint64_t published;

static inline void put(uint64_t word)
{
	uint64_t now = counter();

	words[count & (WORDS - 1)] = (now - last) << 32 | word;
	last = now;
	atomic_store_explicit(&published, ++count, memory_order_release);
}

static int least_profile(void *self, void *frame, int what, void *arg)
{
	(void)self;
	(void)frame;
	(void)arg;
	put((uint64_t)what);
	return 0;
}

static void *least_callback(void *self, void *const *arguments, size_t number, void *names)
{
	(void)self;
	(void)arguments;
	(void)number;
	(void)names;
	put(1);
	return none;
}

static profile_function profile_for(int minor)
{
	(void)minor;
	return least_profile;
}

static vectorcall callback_for(int event)
{
	(void)event;
	return least_callback;
}

static void prepare(void)
{
}
