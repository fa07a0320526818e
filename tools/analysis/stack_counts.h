/*
 * stack_counts.h - calls, times and memory by stack, thread after thread, for the exporters that weigh stacks.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_STACK_COUNTS_H
#define EVPROF_TOOLS_ANALYSIS_STACK_COUNTS_H

#include <stdbool.h>

#include "analysis/live.h"
#include "analysis/stacks.h"
#include "replay/call_walk.h"
#include "replay/filter.h"
#include "util/progress.h"

struct stacks_visitor {
	int (*process)(void *owner, struct call_walk *walk); /* may be NULL */
	/* At the end of each thread, with all its stacks. Both return 0 or -errno. */
	int (*thread)(void *owner, struct call_walk *walk, struct stacks *stacks);
	bool allocations; /* count allocations, with their native stacks on top of Python's */
	/*
	 * Also read the trace for live blocks at that moment, with native stacks; the innermost Python function is one
	 * at its line where that is recorded.
	 */
	enum live_moment live;
	bool only_live; /* do not count calls, times and allocations */
	bool quiet;	/* no notes on stderr about what is missing */
};

/*
 * Counts the stacks of one thread after the other. Functions in the tree are numbers of stack_functions. Returns 0,
 * -ENOMEM, or the visitor's first error.
 */
int stacks_visit(struct trace *trace, const struct filter *filter, struct progress *progress,
		 struct stack_functions *functions, const struct stacks_visitor *visitor, void *owner);

#endif
