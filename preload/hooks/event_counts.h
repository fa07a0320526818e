/*
 * event_counts.h - which functions give the events that the rings have from a moment on, for budget.c.
 *
 * The words that threads have written stay in their rings until the next lap, so the hooks count nothing themselves.
 * What the interpreter reports and nobody records leaves no word, but costs as much as an event: sys.monitoring reports
 * the calls of classes and of Python functions together with those of C functions. The hooks note who makes them.
 */
#ifndef PRELOAD_HOOKS_EVENT_COUNTS_H
#define PRELOAD_HOOKS_EVENT_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct object;

#define UNRECORDED_CALLERS 4096

/* Two interpreters with a GIL each may write at once: then one note is lost. */
struct unrecorded {
	_Atomic uint64_t count;
	_Atomic uint64_t left_out;				    /* reports of code that is left out */
	_Atomic uint64_t raised;				    /* of an exception, in each frame that it passes */
	_Atomic(const struct object *) callers[UNRECORDED_CALLERS]; /* code objects, of the last ones; may have died */
};
extern struct unrecorded unrecorded;

/* A report that is not recorded, in this code. GIL held. */
static inline void note_unrecorded(const struct object *code)
{
	uint64_t count = atomic_load_explicit(&unrecorded.count, memory_order_relaxed);

	atomic_store_explicit(&unrecorded.callers[count % UNRECORDED_CALLERS], code, memory_order_relaxed);
	atomic_store_explicit(&unrecorded.count, count + 1, memory_order_relaxed);
}

/* So far. */
static inline uint64_t count_unrecorded(void)
{
	return atomic_load_explicit(&unrecorded.count, memory_order_relaxed);
}

/* GIL held. */
static inline void count_one(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/*
 * A report that costs although its code is left out: the last one of each place, before it is switched off; and, as
 * sys.monitoring reports exceptions in all code, each frame that one passes. GIL held.
 */
static inline void note_left_out(void)
{
	count_one(&unrecorded.left_out);
}

/* So far. */
static inline uint64_t count_left_out(void)
{
	return atomic_load_explicit(&unrecorded.left_out, memory_order_relaxed);
}

/* A report of an exception, recorded or not. GIL held. */
static inline void note_raised(void)
{
	count_one(&unrecorded.raised);
}

/* So far. */
static inline uint64_t count_raised(void)
{
	return atomic_load_explicit(&unrecorded.raised, memory_order_relaxed);
}

/* Calls that a function's mean leaves out, if it has many: the thread lost its processor. */
#define EVENT_COUNTS_LONGEST 4

struct call_times {
	uint32_t events; /* with reports that are not recorded */
	uint32_t calls;	 /* that have ended, with such reports */
	uint64_t ticks;	 /* of these, with callees */
	uint64_t longest[EVENT_COUNTS_LONGEST];
	double mean_ns; /* of these, without the longest */
	bool chosen;	/* to be left out */
};

struct function_events {
	uint32_t id;
	bool plain;	    /* it may be left out */
	bool steps;	    /* some of its events are the steps of tasks */
	bool c_apart;	    /* the C functions that it calls may be left out alone */
	uint32_t slowed;    /* until 3.11: of its events, those that stand for what its instructions have taken more */
	uint32_t switches;  /* until 3.11: calls that it makes of functions that are chosen */
	uint64_t own_ticks; /* in which it ran itself, without callees */
	uint64_t below_ticks;  /* likewise: in which functions that are chosen ran that it called */
	uint32_t unrecorded;   /* of its calls, among the last UNRECORDED_CALLERS */
	struct call_times own; /* events: with those of the C functions that it calls */
	struct call_times c;   /* of the C functions that it calls, taken together */
};

struct event_counts {
	struct function_events *at; /* those with events, most events first */
	uint32_t count;
	uint64_t events; /* 0: they are in the rings no more */
	bool exceptions; /* chosen to be left out */
};

/* The moment from which events count. Without the GIL, what the thread has called before is not known. */
void event_counts_begin(void);

/*
 * ns since that moment in which instructions of functions ran that are not thinned: while these run, the profile
 * function is set. GIL held.
 */
double event_counts_slowed_ns(void);

/*
 * Counts, and chooses the functions, and those whose calls of C functions, are to be left out so that the share `left`
 * of the events remains: what takes the least time a call first, and nothing that takes EVENT_COUNTS_LONG_NS or more.
 * If these do not suffice, functions with a share of `least` of the events, then any, and then coroutines that are
 * tasks: what these call belongs to no task meanwhile. If more than the share `left_exceptions` remains then,
 * exceptions, and if more than `left_long`, functions that take less than EVENT_COUNTS_MOST_NS, until that share
 * remains; 1: none. Neither if that is in vain.
 *
 * slowed: what a ns of a function's instructions costs while the profile function is set for its C functions, in
 * events; these count as events of its C functions. 0: nothing. Until 3.11 the C functions of those that call what is
 * left out are left out, too, if the share `least` is what switching the profile function off and on for these calls
 * costs.
 * GIL held. Valid until the next call.
 */
#define EVENT_COUNTS_LONG_NS 10000
#define EVENT_COUNTS_MOST_NS 100000
const struct event_counts *event_counts_choose(double left, double left_exceptions, double left_long, double least,
					       double slowed);

#endif
