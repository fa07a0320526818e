/*
 * profile.h - the profile: calls and times of each function, counted as cProfile counts.
 *
 * A call counts if it starts in the window; without a window, always. A resumed generator counts as a call, as in
 * cProfile. An open call ends with its thread, with the window, or where the stack becomes unknown. A frame of a stack
 * snapshot counts its time, but not as a call. Cumulative time is added when the outermost of recursive calls ends;
 * recursion is of one code object, within a thread. Functions with one label add up. A hidden function
 * (replay/filter.h) counts as part of its caller. An allocation belongs to the running function, as in
 * function_totals.h.
 *
 * Used by the report and by exporters of tables. Memory: a few words a function, and with edges a few more for each
 * caller and callee.
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
#include "util/u64_map.h"

struct profile_times {
	uint64_t calls;
	uint64_t recursive; /* of them, those inside another call of the same function */
	uint64_t own_ns;
	uint64_t total_ns;
	/* With options->memory, of the function itself; 0 in edges. */
	uint64_t allocations;
	uint64_t allocated_bytes;
	/*
	 * Thinned (EVPROF_BUDGET): not all calls were recorded. Those of a function and its times are estimates, with
	 * half of their intervals, squared so that they add up. Those of an edge are what was recorded, and there are
	 * more.
	 */
	bool thinned;
	bool unknown;				       /* there is no interval */
	uint64_t missing_calls;			       /* part of calls that is an estimate */
	uint64_t missing_own_ns;		       /* likewise of own_ns; it is in the own time of callers, too */
	double calls_width2, own_width2, total_width2; /* times in ns */
};

/* Thinned, and nothing is estimated: calls and times are the least. */
static inline bool profile_is_least(const struct profile_times *times)
{
	return times->thinned && times->calls_width2 <= 0 && (!times->unknown || !times->missing_calls);
}

/* Thinned, and some of it is estimated. */
static inline bool profile_is_estimate(const struct profile_times *times)
{
	return times->thinned && !profile_is_least(times);
}

/* The exceptions of processes that left some out (EVPROF_BUDGET). */
struct profile_exceptions {
	bool left_out; /* there are such processes */
	uint64_t recorded;
	uint64_t raised; /* with an estimate of those that were not recorded */
	double width2;	 /* half of its interval, squared */
	bool unknown;	 /* there is no interval */
};

/* A caller and its callee. */
struct profile_edge {
	uint32_t caller; /* label numbers */
	uint32_t callee;
	struct profile_times times;
};

struct profile_options {
	const struct filter *filter; /* not NULL */
	const char *mark_begin;	     /* window between two marks (replay/window.h); NULL: the filter's time range */
	const char *mark_end;
	bool edges;	/* fill profile.edges too */
	bool calibrate; /* subtract the overhead, where it was measured */
	bool modules;	/* count modules instead of functions: see label_module() */
	bool memory;	/* count allocations; filter->min_duration_ns must be 0 */
};

struct profile {
	struct labels labels;
	struct profile_times *times; /* by label number; each label has a call or some time, or is in an edge */
	uint32_t times_allocated;
	struct profile_edge *edges; /* each at most once, if it has a call or some time */
	uint32_t edge_count;
	size_t edges_allocated;
	struct u64_map edge_numbers; /* caller + 1 << 32 | callee: number + 1 */
	uint64_t unmatched;	     /* ends without a call, and calls that the end of another function closed */
	uint64_t open;		     /* calls still open when the events of their thread ended */
	uint64_t lost;		     /* in gaps, as far as they count events, and of threads not in the trace */
	struct profile_exceptions exceptions;
	struct native_stack_counts native_stacks;
};

/* Adds a trace. Returns 0 or -ENOMEM; damage is counted in the trace. */
int profile_add(struct profile *profile, struct trace *trace, const struct profile_options *options,
		struct progress *progress);
void profile_done(struct profile *profile);

/*
 * Like profile_add(), but makes one profile for each process or thread, in the order in which they joined, and passes
 * it to take(). The profile is valid during that call only. thread is NULL for a whole process. A result other than 0
 * from take() ends it. Returns 0, -ENOMEM, or the result of take().
 */
typedef int profile_take(void *owner, const struct profile *profile, const struct trace_process *process,
			 const struct trace_thread *thread);
int profile_each(struct trace *trace, const struct profile_options *options, bool by_thread, struct progress *progress,
		 profile_take *take, void *owner);

#endif
