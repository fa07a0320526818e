/*
 * function_totals.h - the function totals: calls, times and allocations of each function over a whole trace, with
 * qualified names. Used by evprof diff and evprof check.
 *
 * Calls and times are those of profile.h. An allocation belongs to the running function, which is the innermost shown
 * call of the thread. Memory grows with the number of functions, not of calls.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FUNCTION_TOTALS_H
#define EVPROF_TOOLS_ANALYSIS_FUNCTION_TOTALS_H

#include <stdint.h>

#include "analysis/live.h"
#include "analysis/memory.h"
#include "analysis/stacks.h"
#include "replay/filter.h"
#include "trace/reader.h"
#include "util/progress.h"

struct function_total {
	uint64_t calls;
	uint64_t own_ns;
	uint64_t total_ns; /* with callees, recursion counted once */
	/* malloc, calloc and realloc that succeeded; estimates where they are sampled (memory_estimate.h) */
	uint64_t allocations;
	uint64_t allocated_bytes; /* requested bytes; a realloc counts its whole new size */
	/* Of sites only. */
	uint64_t peak_bytes;
	uint64_t end_bytes;
	uint64_t temporary; /* allocations */
};

struct function_totals {
	struct stack_functions functions;
	struct function_total *counts; /* by function number */
	uint32_t allocated;
	uint64_t interval;	   /* trace_process_memory_interval() of the process */
	uint32_t *open;		   /* by key of the process: number of its calls on the stack of the thread */
	struct function_total sum; /* of all functions, and of allocations outside any function; total_ns is own_ns */
	bool memory;		   /* the trace has memory events */
	bool qualified;		   /* a Python function has a qualified name (Python 3.11 and later) */
};

/* Counts what the filter shows. filter->min_duration_ns must be 0. Returns 0 or -ENOMEM. */
int function_totals_count(struct function_totals *totals, struct trace *trace, const struct filter *filter,
			  struct progress *progress);
/*
 * What each function, by number, held at the peak of its process and at the end (live.h), and its temporary
 * allocations: blocks that it allocated itself, or native frames on top of it. To be called after
 * function_totals_count(), with the same filter. The caller frees *weights, which has an element for each of
 * totals->functions. Returns 0 or -ENOMEM.
 */
int function_totals_live(struct function_totals *totals, struct trace *trace, const struct filter *filter,
			 struct progress *progress, struct live_weights **weights);
void function_totals_done(struct function_totals *totals);

/*
 * The memory of a trace by site (memory.h), for evprof diff --memory. A site has the line at which it allocates, else
 * that where the function begins. Sites of several processes are one if their names and places are; each process has
 * its own peak, and these add up. Counts what the filter of the options shows. totals->memory: memory was recorded.
 * Returns 0 or -ENOMEM.
 */
int site_totals_count(struct function_totals *totals, struct trace *trace, const struct memory_options *options,
		      struct progress *progress);

#endif
