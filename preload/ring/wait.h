/* wait.h - waiting for the collector, within the wait budget of the process. */
#ifndef PRELOAD_WAIT_H
#define PRELOAD_WAIT_H

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

#endif
