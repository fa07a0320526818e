/*
 * budget_timer.h - the timer of the process's CPU time that asks for the next step of a budget (budget.h), by SIGURG.
 * process->budget_timer is 1 + its number, 0: there is none.
 */
#ifndef PRELOAD_HOOKS_BUDGET_TIMER_H
#define PRELOAD_HOOKS_BUDGET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* The value in the signal of the timer. */
#define BUDGET_SIGNAL_VALUE 19

/* The CPU time of the process in ns. */
uint64_t budget_clock(void);

/* A new timer will send its signal. */
void budget_timer_begin(void);

/* After so much CPU time it ends, and sends its signal if it may. Makes the timer if there is none. */
void budget_timer_set(uint64_t ns);

/*
 * The program is about to handle SIGURG itself: no signal is sent any more. The timer has ended at once, so the next
 * event of the slow path takes a step. May be in a signal handler.
 */
void budget_timer_silence(void);

/* Whether a timer has ended that sends no signal. */
bool budget_timer_has_ended_silently(void);

/* No timer is left. */
void budget_timer_end(void);

#endif
