/*
 * profile.h - who was called how often and for how long, counted as cProfile counts.
 *
 * A call counts when it starts in the window; without a window, always. A resumed generator counts as a call, as it
 * does for cProfile. A call that is open when its thread, the window or what is known of the stack ends, ends there.
 * Frames that were running when a stack was taken count no call, but their time. Cumulative time is added only when the
 * outermost of recursive calls ends; recursion is that within a thread. What is not chosen (select.h) is as if it was part of its
 * caller.
 */
#ifndef EVPROF_TOOLS_PROFILE_H
#define EVPROF_TOOLS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "labels.h"
#include "progress.h"
#include "select.h"
#include "trace_reader.h"

struct profile_times {
	uint64_t calls;
	uint64_t recursive; /* of them, those inside of another call of the same function */
	uint64_t own_ns;
	uint64_t total_ns;
};

/* A function that called another. */
struct profile_edge {
	uint32_t caller; /* numbers of labels */
	uint32_t callee;
	struct profile_times times;
};

struct profile_options {
	const struct select *select; /* which part; not NULL */
	const char *mark_begin;	     /* window between two marks, in each process; NULL: that of select */
	const char *mark_end;
	bool edges; /* fill profile.edges too */
};

struct profile {
	struct labels labels;
	struct profile_times *times; /* by number of label */
	uint32_t times_allocated;
	struct profile_edge *edges; /* each pair once */
	uint32_t edge_count;
	uint32_t edges_allocated;
	uint64_t unmatched; /* ends without beginnings, and beginnings that another function's end closed */
	uint64_t open;	    /* calls that were running when their thread's events ended */
	uint64_t lost;	    /* events in gaps, as far as the gaps know */
	bool mark_seen;
};

/* Adds a trace. Returns 0 or -ENOMEM; damage is counted in the trace. */
int profile_add(struct profile *profile, struct trace *trace, const struct profile_options *options,
		struct progress *progress);
void profile_done(struct profile *profile);

#endif
