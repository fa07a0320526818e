/*
 * wait.h - waiting for the collector, within the wait budget of the process.
 *
 * The budget says how long a process may wait for its collector. It is a token bucket of time.
 *
 * The bucket starts full. A tenth of the time without waiting is added, up to the bound of EVPROF_ON_FULL; time spent
 * waiting is subtracted. So a program is slowed by at most the bound and a tenth of its own time, however often it
 * waits.
 *
 * The unit is time of the process. Threads that wait at the same time delay it once, and pay once. With a budget for
 * each thread, the waits of threads that take turns, as with the GIL, would add up. Forked children have their own
 * budgets, which begin with what is left: children run in parallel, and a chain of forks does not evade the bound.
 *
 * Times are parameters, in microseconds of a monotonic clock. Any thread, without a lock.
 */
#ifndef PRELOAD_WAIT_H
#define PRELOAD_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether a thread that needs room may wait for it now. This depends on EVPROF_ON_FULL, on what is left of the wait
 * budget, and on whether the collector was given up.
 */
bool wait_is_allowed(void);

/*
 * Waits for the collector until done() is true, within the wait budget: 1 done, 0 not. A collector that one thread
 * waited for in vain is not waited for again until its heartbeat moves: a dead one costs the bound once, however many
 * threads there are.
 */
int wait_for(int (*done)(const void *what), const void *what);

/*
 * As wait_for(), but -ESRCH if the collector is gone. A caller that finds no successor calls wait_give_up().
 */
int wait_unless_gone(int (*done)(const void *what), const void *what);

/* Forbids waiting until the heartbeat differs from this value, which was read before waiting. */
void wait_give_up(uint32_t heartbeat);

/* Whether a thread has waited in vain, and the heartbeat has not moved since. */
bool wait_was_in_vain(void);

#define WAIT_BUDGET_PART 10 /* time without waiting that adds one unit */

/* invariant: the budget is a tenth of the time since empty_us, and at most the bound. */
struct wait_budget {
	_Atomic int64_t empty_us;   /* when the budget was or would have been empty; in the future: debt */
	_Atomic int64_t charged_us; /* the end of the time already charged */
};

/* Full at any time. */
#define WAIT_BUDGET_FULL                                                                                               \
	{                                                                                                              \
		.empty_us = INT64_MIN / 2, .charged_us = INT64_MIN / 2                                                 \
	}

/* At most this bound. 0: no thread may wait. */
int64_t wait_budget_left(const struct wait_budget *budget, int64_t now_us, int64_t bound_us);

/* A thread has waited from begin_us to now_us, and for the bound at most: else the program was stopped meanwhile. */
void wait_budget_charge(struct wait_budget *budget, int64_t begin_us, int64_t now_us, int64_t bound_us);

#endif
