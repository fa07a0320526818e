/*
 * budget.h - keeps the cost of recording within EVPROF_BUDGET, by leaving out the events of functions that are called
 * often and take little time. From 3.9 on, with the GIL.
 *
 *   account  what recording has cost, against what it may (budget_account.h): events by what each costs, the start, the
 *            steps of budget.c, and the collector's CPU time. A debt is paid by recording less, a saving may be spent.
 *   thin     with a debt: the rings show which functions gave the most events (event_counts.h); the events of some of
 *            these are off (thinned_set.h). If others give more than was expected, they are thinned, too, as soon as
 *            the rings have so many events.
 *   burst    at a random time all events are recorded for some 1.2 ms, of which the last 0.8 are a sample; then
 *            functions are chosen anew. What was thinned before stays so for two seconds of CPU time since it was
 *            called too often: a burst shows one phase of the program.
 *   long     a debt that cannot be paid so: from 3.12 on exceptions are left out, too, for two seconds, then functions
 *            of 10 to 100 us, for eight.
 *
 * A function is thinned as a whole: its calls and ends, and the calls of C functions that it makes. So each C function
 * is recorded exactly but for the calls that thinned functions make. A thinned code object has CODE_THINNED in its id.
 * From 3.12 on its callbacks return DISABLE, and the events come back by sys.monitoring.restart_events(). Until 3.11
 * the profile function is off while it runs (thinned_frames.h).
 *
 *   timer of the process's CPU time (budget_timer.h) -> SIGURG (start/requests.c) -> pending call in Python's main
 *   thread, or the next event of any thread -> budget_turn()
 */
#ifndef PRELOAD_HOOKS_BUDGET_H
#define PRELOAD_HOOKS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* The charge for what has happened since this budget_clock(): measured, without events. */
void budget_charge(uint64_t since_ns);

/* Python raises an audit event, for evprof's hook at least. GIL held. */
void budget_note_audit(void);

/* Before the process joins: without a Python that can keep a budget there is none, with one line. */
void budget_verify(void);

/* Whether there is a budget; begins to keep it. Once Python runs. */
bool budget_begin(void);

/* Before an event of the slow path: takes a step that is due; begins anew in a child, or with other ids. GIL held. */
void budget_look(void);

/* A pending call: the next step. data: NULL. GIL held. */
int budget_turn(void *data);

/* In the signal handler of the timer: the next event of any thread, or the pending call, takes the next step. */
void budget_due(void);

/* Likewise, before: whether the interrupted thread was in the interpreter's loop. */
void budget_sample(bool in_interpreter);

/* Likewise: budget_turn() cannot be called now. The signal comes again soon. */
void budget_again(void);

/* In that handler: budget_turn() is called at Python's next instruction, which may be behind a C function. */
void budget_queued(void);

/*
 * Another interpreter is about to have events, from 3.12 on. What its places switch off comes back only by a call
 * there, and it may have a GIL of its own; so from the main one's next event on there is no budget, with one line.
 */
void budget_note_interpreter(void);

/* Recording stops, or the image ends: all functions count as recorded. With or without the GIL. */
void budget_pause(void);

/* Recording has begun again: what was thinned before it stopped is reported. GIL held. */
void budget_resume(void);

/* Python ends: everything is recorded from here on. GIL held. */
void budget_finish(void);

/* No timer is left. */
void budget_end(void);

#endif
