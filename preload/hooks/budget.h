/*
 * budget.h - keeps the cost of recording within EVPROF_BUDGET, by leaving out the events of functions that are called
 * often and take little time. From 3.12 on, with the GIL.
 *
 *   listen   all events are recorded for some ms. Then the rings show which functions give the most events.
 *   thin     the events of some of these are off. A burst at a random time listens again.
 *
 * A function is thinned as a whole: its calls and ends, and the calls of C functions that it makes. So each C function
 * is recorded exactly but for the calls that thinned functions make. A thinned code object has CODE_THINNED in its id;
 * its callbacks return DISABLE. The events come back by sys.monitoring.restart_events().
 *
 *   timer of the process's CPU time -> SIGURG (start/requests.c) -> pending call in Python's main thread, or the next
 *   event of any thread -> budget_turn()
 */
#ifndef PRELOAD_HOOKS_BUDGET_H
#define PRELOAD_HOOKS_BUDGET_H

#include <stdbool.h>

/* The value in the signal of the timer. */
#define BUDGET_SIGNAL_VALUE 19

/* What an event costs the program, in ns. */
extern double budget_event_ns;

/* Whether there is a budget, and this Python can keep it; one line if it cannot. Once Python runs. */
bool budget_begin(void);

/* Before an event of the slow path: takes a step that is due; begins anew in a child, or with other ids. GIL held. */
void budget_look(void);

/* A pending call: the next step. data: NULL. GIL held. */
int budget_turn(void *data);

/* In the signal handler of the timer: the next event of any thread, or the pending call, takes the next step. */
void budget_due(void);

/* Likewise: budget_turn() cannot be called now. The signal comes again soon. */
void budget_again(void);

/* Recording stops, or the image ends: all functions count as recorded. With or without the GIL. */
void budget_pause(void);

/* Python ends: everything is recorded from here on. GIL held. */
void budget_finish(void);

/* No timer is left. */
void budget_end(void);

#endif
