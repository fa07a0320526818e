/*
 * wait.c - see wait.h.
 */
#include "ring/wait.h"

#include <errno.h>
#include <time.h>

#include "base/config.h"
#include "ring/process.h"
#include "ring/watch.h"

#define WAIT_STEP_US 100 /* between two checks while waiting */
/*
 * The least part of the bound that must be left to begin waiting: events are then lost in a few long stretches, with
 * complete stretches between them.
 */
#define WAIT_LEAST_PART 8

/* Not in the memory that a fork clears: children inherit it. */
static struct wait_budget wait_budget = WAIT_BUDGET_FULL;

/* The budget is stored as a point in time: it then grows by itself. */
int64_t wait_budget_left(const struct wait_budget *budget, int64_t now_us, int64_t bound_us)
{
	int64_t left_us = (now_us - atomic_load(&budget->empty_us)) / WAIT_BUDGET_PART;

	if (left_us > bound_us)
		return bound_us;
	return left_us > 0 ? left_us : 0;
}

/* Drops what exceeded the bound when the wait began. */
static void cut_to_bound(struct wait_budget *budget, int64_t begin_us, int64_t bound_us)
{
	int64_t empty_us = atomic_load(&budget->empty_us), full_us = begin_us - bound_us * WAIT_BUDGET_PART;

	while (empty_us < full_us && !atomic_compare_exchange_weak(&budget->empty_us, &empty_us, full_us))
		;
}

/* What a step takes longer than the bound is no wait: the program was stopped (docker pause, SIGSTOP). */
static int64_t step_us(int64_t begin_us, int64_t now_us, int64_t bound_us)
{
	return now_us - begin_us < bound_us ? now_us - begin_us : bound_us;
}

void wait_budget_charge(struct wait_budget *budget, int64_t begin_us, int64_t now_us, int64_t bound_us)
{
	int64_t charged_us = atomic_exchange(&budget->charged_us, now_us);

	begin_us = now_us - step_us(begin_us, now_us, bound_us);
	cut_to_bound(budget, begin_us, bound_us);
	if (begin_us < charged_us)
		begin_us = charged_us;
	/* One part more, because time spent waiting adds nothing. */
	if (begin_us < now_us)
		atomic_fetch_add(&budget->empty_us, (now_us - begin_us) * (WAIT_BUDGET_PART + 1));
}

bool wait_was_in_vain(void)
{
	return atomic_load(&process->stalled_heartbeat) == atomic_load(&process->header->heartbeat) + 1;
}

void wait_give_up(uint32_t heartbeat)
{
	atomic_store(&process->stalled_heartbeat, heartbeat + 1);
}

static int64_t wait_bound_us(void)
{
	return (int64_t)config.wait_ms * 1000;
}

bool wait_is_allowed(void)
{
	int64_t bound_us = wait_bound_us();

	return bound_us && !wait_was_in_vain() &&
	       wait_budget_left(&wait_budget, (int64_t)process_now_us(), bound_us) >= bound_us / WAIT_LEAST_PART;
}

/*
 * Sleeps one step and returns the time after it, which it counts. The slept time counts at least, because a library may
 * stop the clock for the program.
 */
static int64_t wait_a_step(int64_t begin_us)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_US * 1000};
	int64_t least_us = clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL) == 0 ? begin_us + WAIT_STEP_US : begin_us;
	int64_t now_us = (int64_t)process_now_us();

	if (now_us < least_us)
		now_us = least_us;
	wait_budget_charge(&wait_budget, begin_us, now_us, wait_bound_us());
	atomic_fetch_add(&process->header->waited_us, (uint64_t)step_us(begin_us, now_us, wait_bound_us()));
	return now_us;
}

int wait_unless_gone(int (*done)(const void *what), const void *what)
{
	struct ring_header *header = process->header;
	int64_t now_us = (int64_t)process_now_us();
	struct watch watch;
	bool gone = false;

	if (done(what))
		return 1;
	if (!wait_is_allowed())
		return 0;
	watch = watch_begin();
	process_poke_collector();
	for (unsigned i = 0; !done(what) && !gone && wait_budget_left(&wait_budget, now_us, wait_bound_us()); i++) {
		gone = i % 64 == 63 && watch_is_gone(&watch);
		atomic_store(&header->waiting, 1);
		process_wake_collector(); /* it may have gone to sleep before it could see the flag */
		now_us = wait_a_step(now_us);
	}
	atomic_store(&header->waiting, 0);
	atomic_fetch_add(&header->waits, 1);
	if (done(what))
		return 1;
	if (gone)
		return -ESRCH;
	wait_give_up(atomic_load(&header->heartbeat));
	return 0;
}

int wait_for(int (*done)(const void *what), const void *what)
{
	uint32_t heartbeat = atomic_load(&process->header->heartbeat);
	int waited = wait_unless_gone(done, what);

	if (waited < 0)
		wait_give_up(heartbeat);
	return waited > 0;
}
