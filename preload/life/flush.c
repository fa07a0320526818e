/*
 * flush.c - see flush.h.
 */
#include "life/flush.h"

#include <errno.h>
#include <time.h>

#include "ring/process.h"
#include "ring/watch.h"

#define FLUSH_STEP_US 200
#define FLUSH_MAX_US 5000000
#define FLUSH_WATCH_STEPS 256 /* between two looks whether the collector is gone */

static bool is_written(uint32_t flush)
{
	/* Acquire: pairs with the collector's release in answer_flushes(). */
	uint32_t flushed = atomic_load_explicit(&process->header->flushed, memory_order_acquire);

	return (int32_t)(flushed - flush) >= 0;
}

bool flush_trace(void)
{
	const struct timespec step = {.tv_nsec = FLUSH_STEP_US * 1000};
	uint32_t status = atomic_load(&process->status), flush;
	uint64_t end_us = process_now_us() + FLUSH_MAX_US;
	int saved_errno = errno;
	struct watch watch;
	bool written;

	if (status != PROCESS_JOINED && status != PROCESS_STOPPED)
		return false;
	watch = watch_begin();
	flush = atomic_fetch_add(&process->header->flush, 1) + 1;
	process_poke_collector();
	for (unsigned i = 1; !(written = is_written(flush)) && process_now_us() < end_us; i++) {
		if (i % FLUSH_WATCH_STEPS == 0 && watch_is_gone(&watch))
			break;
		process_wake_collector(); /* it may have gone to sleep before it could see the request */
		clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
	}
	errno = saved_errno;
	return written;
}
