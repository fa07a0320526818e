/*
 * wait_budget.h - how long a process may wait for its collector: a token bucket of time.
 *
 * It is full at first. A tenth of the time in which nobody waits is added, up to the bound of EVPROF_ON_FULL; the time
 * in which somebody waits is taken away. The bound and a tenth of its own time is thus the most by which a program
 * becomes slower, however often it waits.
 *
 * What counts is the time of the process. Threads that wait at once delay it once, and pay once: with a budget for
 * each, threads that wait in turn, as they do with the GIL, would add up. Children of a fork have budgets of their own
 * and inherit what is left: they run beside each other, and one fork after another is no way around the bound.
 *
 * Times are passed in, in microseconds of a clock that only goes forward. Any thread, without a lock.
 */
#ifndef PRELOAD_WAIT_BUDGET_H
#define PRELOAD_WAIT_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

#define WAIT_BUDGET_PART 10 /* as long a time without waiting adds one */

/* invariant: what is left is a tenth of the time since empty_us, and no more than the bound. */
struct wait_budget {
	_Atomic int64_t empty_us;   /* when there was nothing left, or would have been; later than now: there is debt */
	_Atomic int64_t charged_us; /* until then waiting was charged */
};

/* Full, whatever the clock says. */
#define WAIT_BUDGET_FULL                                                                                               \
	{                                                                                                              \
		.empty_us = INT64_MIN / 2, .charged_us = INT64_MIN / 2                                                 \
	}

/* At most this bound. 0: nobody may wait. */
int64_t wait_budget_left(const struct wait_budget *budget, int64_t now_us, int64_t bound_us);

/* A thread has waited from then to now. */
void wait_budget_charge(struct wait_budget *budget, int64_t begin_us, int64_t now_us, int64_t bound_us);

#endif
