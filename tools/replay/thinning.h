/*
 * thinning.h - what a trace says about thinned functions (EVPROF_BUDGET), and estimates of what it lacks of them.
 *
 * While a function is thinned, its calls and the calls of C functions that it makes, or only the latter, are not
 * recorded; bursts at random times have them (evprof/wire.h). A number of the missing stretches is that of the bursts,
 * scaled by the CPU time; a burst weighs as much as is missing around it. Recording makes the program slower in the
 * bursts, and in a burst of more events it does so more: each burst counts for the part of its time that its events
 * leave to the program. What an event costs there is one number of the process. The library has measured it, roughly;
 * and it shows in the calls that are always recorded, which end in a burst and in the stretches around it. That cost is
 * no part of the estimates of times.
 *
 * Intervals are of 95 %, from the differences between bursts, and from how many of them show a function. With less than
 * two bursts there is none.
 */
#ifndef EVPROF_TOOLS_REPLAY_THINNING_H
#define EVPROF_TOOLS_REPLAY_THINNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/wire.h"
#include "replay/window.h"
#include "util/u64_map.h"

enum thin_state { THIN_RECORDED = 0, THIN_MISSING = 1, THIN_SAMPLED = 2 };

/*
 * A change of what is thinned, in all threads of the process, and what was recorded until the next one. All events with
 * its CPU time say what it is.
 */
struct thin_change {
	uint64_t cpu_ns;
	uint64_t ticks;		       /* the time of the first thread that says it */
	double ns;		       /* thinning_estimate(): CPU time until the next one, inside the range */
	uint32_t head;		       /* of an event */
	uint32_t first_key, key_count; /* in thinning->change_keys */
	uint64_t ends;		       /* of calls of functions that are not thinned */
	uint64_t events;	       /* calls and ends, of all, and exceptions that are in a sample */
};

struct thin_values {
	double calls, own, total; /* times in ticks */
};

/* What the bursts have of a function: of its own, or of a C function's calls by a thinned one. */
struct thin_sample {
	uint32_t key;
	uint32_t by; /* what was thinned (thinned_key()): the key itself, or its caller */
	uint64_t burst_ns;
	struct thin_values values;
	double own_events, total_events; /* whose cost is in values.own, and in values.total */
};

/* Calls that have ended in a call which has not: those that it made itself, and all. */
struct thin_inner {
	uint64_t direct, all;
};

/*
 * What of the calls and exceptions is counted. How dense events are decides how a burst is scaled, and is a fact of the
 * process: where a filter leaves out calls or threads, all are read for that first, and then those that are shown.
 */
enum thin_count { THIN_COUNT_ALL, THIN_COUNT_EVENTS, THIN_COUNT_SAMPLES };

/* Calls of a C function by a Python function, at any time. */
struct thin_pair {
	bool sampled; /* some are in a sample */
	uint32_t key, caller;
};

struct thinning {
	uint8_t *state;	  /* by thinned_key(): enum thin_state, in the thread that is read */
	uint8_t *thinned; /* likewise: it was, at some time */
	uint32_t keys;
	enum thin_count counts;	  /* what is counted now */
	bool any;		  /* some function was thinned at some time */
	uint64_t at_ns;		  /* the thread's last change; 0: none */
	uint32_t at_key;	  /* how many of its keys the thread has named, in the order of the change */
	struct thin_inner *inner; /* by depth of the stack, since the last change */
	uint32_t inner_allocated;
	struct thin_change *changes;
	uint32_t change_count;
	size_t changes_allocated;
	uint32_t *change_keys; /* thinned_key() of the functions of each change */
	uint32_t change_key_count, change_keys_allocated;
	struct u64_map change_numbers; /* by CPU time: 1 + index */
	struct thin_sample *samples;   /* of one function in one burst there may be several */
	size_t sample_count, samples_allocated;
	struct thin_pair *pairs;
	uint32_t pair_count;
	size_t pairs_allocated;
	struct u64_map pair_numbers; /* by caller and key: 1 + index */
	bool out_of_memory;
};

/* Of what there are estimates. */
struct thin_range {
	double tick_ns;		     /* the length of a tick */
	bool calibrated;	     /* times are without what events cost (trace/calibration.h) */
	const struct window *window; /* NULL: all */
	uint64_t end_ticks;	     /* of the process's last event; 0: what follows the last change does not count */
};

struct thin_estimate {
	uint32_t key;		    /* THINNED_EXCEPTIONS: its calls are exceptions */
	struct thin_values missing; /* estimate of what was not recorded */
	struct thin_values width;   /* half of the interval */
	bool known;		    /* there were two bursts at least */
};

/*
 * Number i of a WIRE_THIN or WIRE_THIN_END: the key of a thinned function; plus 1: only of the C functions it calls;
 * THINNED_EXCEPTIONS; 0: none.
 */
#define THINNED_EXCEPTIONS 1u
static inline uint32_t thinned_key(uint32_t head, const uint64_t *extra, unsigned i)
{
	uint32_t word = wire_thinned(head, extra, i);

	return (word & WIRE_ARG_MAX) * 2 + (word & WIRE_THIN_C_CALLS ? 1 : 0);
}

/* NULL: no memory. keys: replay_keys_of(). */
struct thinning *thinning_new(uint32_t keys);
void thinning_free(struct thinning *thinning);

/* Nothing is known of the thread that is read next. */
void thinning_begin_thread(struct thinning *thinning);

/* Takes a WIRE_THIN or WIRE_THIN_END of that time. */
void thinning_change(struct thinning *thinning, uint64_t ticks, uint32_t head, const uint64_t *extra);

/* Whether calls of a Python function are missing, or those of a C function may be. */
static inline bool thinning_was(const struct thinning *thinning, uint32_t key)
{
	return key & 1 ? thinning->any : key < thinning->keys && thinning->thinned[key];
}

static inline bool thinning_samples(const struct thinning *thinning, uint32_t key)
{
	return key < thinning->keys && thinning->state[key] == THIN_SAMPLED;
}

/* Whether some exceptions are missing. */
static inline bool thinning_was_exceptions(const struct thinning *thinning)
{
	return THINNED_EXCEPTIONS < thinning->keys && thinning->thinned[THINNED_EXCEPTIONS];
}

/* Whether its calls are not recorded now. */
static inline bool thinning_misses(const struct thinning *thinning, uint32_t key)
{
	return key < thinning->keys && thinning->state[key] == THIN_MISSING;
}

/* A call that has ended. */
struct thin_call {
	uint32_t key;
	uint32_t caller; /* the key of its caller; 0: it has none, or that is not shown */
	uint32_t depth;	 /* how many calls are on the stack without it */
	struct thin_values values;
};

/* An exception that is raised. */
void thinning_count_exception(struct thinning *thinning);

/* Takes a call of that depth that is not shown: it is a part of its caller. */
void thinning_count_hidden(struct thinning *thinning, uint32_t depth);

/* True: it is in the sample of a thinned function. */
bool thinning_count(struct thinning *thinning, const struct thin_call *call);

/* The change with this CPU time, which is made if there is none. NULL: no memory. Until the next one is taken. */
struct thin_change *thinning_change_at(struct thinning *thinning, uint64_t cpu_ns);

/* The last change of the thread, until the next one; NULL: none. */
struct thin_change *thinning_last(struct thinning *thinning);

/* Forgets the samples, and with THIN_COUNT_ALL the events; the changes stay. */
void thinning_clear(struct thinning *thinning);

/*
 * Makes an estimate for each function and take()s it; one function may have several, which add up. Returns 0, -ENOMEM
 * or what take() returned.
 */
int thinning_estimate(struct thinning *thinning, const struct thin_range *range,
		      int (*take)(void *owner, const struct thin_estimate *estimate), void *owner);

#endif
