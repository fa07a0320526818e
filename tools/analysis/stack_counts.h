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
	/* At the end of each thread, with all of its stacks. Both return 0 or -errno. */
	int (*thread)(void *owner, struct call_walk *walk, struct stacks *stacks);
	bool allocations;      /* are counted, with their native stacks on top of Python's */
	enum live_moment live; /* another reading of the trace for what is alive then, with native stacks, too */
	bool only_live;	       /* calls, times and allocations are not counted */
};

/*
 * Counts the stacks of one thread after the other; their functions are numbers of functions. Returns 0, -ENOMEM, or the
 * first error of the visitor.
 */
int stacks_visit(struct trace *trace, const struct filter *filter, struct progress *progress,
		 struct stack_functions *functions, const struct stacks_visitor *visitor, void *owner);

#endif
