/*
 * profile.h - who was called how often and for how long, counted as cProfile counts.
 *
 * A call counts when it starts in the window; without a window, always. A resumed generator counts as a call, as it
 * does for cProfile. A call that is open when its thread, the window or what is known of the stack ends, ends there.
 * Frames that were running when a stack was taken count no call, but their time. Cumulative time is added only when the
 * outermost of recursive calls ends; recursion is that within a thread. What is not chosen (replay/filter.h) is as
 * if it was part of its caller.
 *
 * Used by the report and by exporters of tables. Memory: a few words a function, and a few more a pair of caller and
 * callee if edges are asked for.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_PROFILE_H
#define EVPROF_TOOLS_ANALYSIS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/filter.h"
#include "trace/labels.h"
#include "trace/native_stack.h"
#include "trace/reader.h"
#include "util/progress.h"

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
	const struct filter *filter; /* which part; not NULL */
	const char *mark_begin;	     /* window between two marks, in each process; NULL: that of select */
	const char *mark_end;
	bool edges;	/* fill profile.edges too */
	bool calibrate; /* take the cost of the hooks out, where it was measured */
	bool modules;	/* count modules instead of functions: see profile_module() */
};

struct profile {
	struct labels labels;
	struct profile_times *times; /* by number of label; each label has a call or some time, or is in an edge */
	uint32_t times_allocated;
	struct profile_edge *edges; /* each pair once, if it has a call or some time */
	uint32_t edge_count;
	uint32_t edges_allocated;
	uint64_t unmatched; /* ends without beginnings, and beginnings that another function's end closed */
	uint64_t open;	    /* calls that were running when their thread's events ended */
	uint64_t lost;	    /* events in gaps, as far as the gaps know */
	struct native_counts native;
};

/* Adds a trace. Returns 0 or -ENOMEM; damage is counted in the trace. */
int profile_add(struct profile *profile, struct trace *trace, const struct profile_options *options,
		struct progress *progress);
void profile_done(struct profile *profile);

/*
 * As profile_add(), but makes a profile of its own for each process, or for each thread, in the order in which they
 * joined, and gives it to take(), for which alone it lives; thread is NULL for a whole process. Not 0 from take() ends
 * it. Returns 0, -ENOMEM, or what take() said.
 */
typedef int profile_take(void *owner, const struct profile *profile, const struct trace_process *process,
			 const struct trace_thread *thread);
int profile_each(struct trace *trace, const struct profile_options *options, bool by_thread, struct progress *progress,
		 profile_take *take, void *owner);

/*
 * The module of a function as a label: its file, with line 0 and no name; for C functions the class, or else the
 * module, as the name "<builtins>" in the file "~". The texts are those of the definition, but for `room`, where the
 * name is written; NULL definition: "?".
 */
#define PROFILE_MODULE_BYTES (WIRE_STRING_MAX_BYTES + 2)
struct label profile_module(const struct wire_definition *definition, bool native, char room[PROFILE_MODULE_BYTES]);

#endif
