/*
 * budget_account.h - what recording has cost, against what it may within a budget (budget.h): CPU time of this
 * process, and of its collector, in ns. Counters of events, reports and definitions tell what has happened since
 * begin_ns; a post adds it. GIL held, but for account_note_audit().
 */
#ifndef PRELOAD_HOOKS_BUDGET_ACCOUNT_H
#define PRELOAD_HOOKS_BUDGET_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* What recording costs the program, in ns; calibrate.c measures it, in a loop that calls all the time. */
struct budget_costs {
	double report_ns; /* of what the interpreter reports to a hook, recorded or not */
	double event_ns;  /* of an event, with the reports between events that are not recorded */
	/* Until 3.11: */
	double pass_call_ns; /* of the evaluation of a thinned function (frame_evaluator.h), ... */
	double pass_step_ns; /* ... and of a generator's or coroutine's step */
	double slowed;	     /* instructions take 1 + slowed times as long while the profile function is set */
};
extern struct budget_costs budget_costs;

/* What is recorded: an event costs more where few come. */
enum account_phase {
	ACCOUNT_ALL,	 /* everything */
	ACCOUNT_WARMS,	 /* everything, before a burst ... */
	ACCOUNT_LISTENS, /* ... and in it */
	ACCOUNT_THINNED	 /* some functions are thinned */
};

#define ACCOUNT_SAVED_NS 2e9 /* CPU time whose budget may be saved */
#define ACCOUNT_LEAVE 0.75   /* of the budget, for what is recorded all the time, without debts or savings */

struct budget_account {
	enum account_phase phase; /* budget.c sets these two, */
	uint32_t functions;	  /* that had events in the last burst */
	uint64_t begin_ns;	  /* CPU time of the process at the last post */
	double balance_ns;	  /* sum of (share * CPU time without recording - cost); ACCOUNT_SAVED_NS bounds it */
	double cost_ns;		  /* so far, all of it */
	double program_ns;	  /* of that, the program's part */
	double cpu_ns;		  /* of the process, likewise */
	double passes_ns;	  /* what the calls of thinned functions have cost: no less is possible */
	double exceptions_ns;	  /* CPU time in which exceptions were left out */
	double longest_ns;	  /* the longest mean of what was left out; budget.c sets it */
};
extern struct budget_account budget_account;

/* The share of the CPU time without recording that the budget allows. */
double account_allowed_share(void);

/* 1 or more: what an event costs in a program of this size, relative to a loop. */
double account_size_factor(void);

/* Of what the interpreter reports to the hooks. */
double account_report_cost(void);

/* Begins in this image, with what is there. True: in another process than before, whose account is empty. */
bool account_begin(void);

/*
 * A sample of the time in which the profile function is set: whether the thread is in the interpreter's loop, and not
 * in C code that has no event. In a signal handler.
 */
void account_note_sample(bool in_interpreter);

/*
 * Reads from the rings how long instructions have been slowed since begin_ns. Before account_share_since() and
 * account_post() of that moment, else they leave that out.
 */
void account_look(void);

/* Posts what has happened since begin_ns. */
void account_post(uint64_t now_ns);

/* Charges what has happened since then in this process: measured, without events. Before account_begin(), too. */
void account_charge(uint64_t since_ns);

/* Charges the instrumentation of the code of so many functions. */
void account_charge_instrumented(uint32_t functions);

/* Python raises an audit event, for evprof's hook at least. Any thread. */
void account_note_audit(void);

/* What a ns of the program's instructions costs while these are slowed, in events. */
double account_events_slowed_ns(void);

/* The cost of the events since begin_ns, relative to the CPU time without them. */
double account_share_since(uint64_t now_ns);

/* The share of what is recorded all the time, which leaves room for bursts, and pays debts. */
double account_wanted_share(void);

/* What the calls of thinned functions have cost alone, relative to the CPU time without that. */
double account_passes_share(void);

/* Words that are events in all rings so far; and those after so much CPU time, where recording has this share. */
uint64_t account_words(void);
uint64_t account_words_within(double share, uint64_t cpu_ns);

/* Posts, and defines the account for the trace. */
void account_write(uint64_t now_ns);

#endif
