/*
 * function_totals.h - calls, times and allocations by function over a whole trace, with qualified names. Used by
 * evprof diff and evprof check.
 *
 * Calls and times are those of profile.h. An allocation belongs to the function that was running, that is, to the
 * innermost shown call of the thread; memory is that of the functions, whatever the number of calls.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FUNCTION_TOTALS_H
#define EVPROF_TOOLS_ANALYSIS_FUNCTION_TOTALS_H

#include <stdint.h>

#include "analysis/stacks.h"
#include "replay/filter.h"
#include "trace/reader.h"
#include "util/progress.h"

struct function_total {
	uint64_t calls;
	uint64_t own_ns;
	uint64_t total_ns;	  /* with what was called, recursion counted once */
	uint64_t allocations;	  /* malloc, calloc and realloc that gave memory */
	uint64_t allocated_bytes; /* that they asked for; all of the new size for a realloc */
};

struct function_totals {
	struct stack_functions functions;
	struct function_total *counts; /* by number of function */
	uint32_t allocated;
	uint32_t *open;		   /* by key of the process: how often it is on the stack of the thread */
	struct function_total sum; /* of all, and of allocations outside of any function; total_ns is own_ns */
	bool memory;		   /* there are memory events */
	bool qualified;		   /* some Python function has a qualified name: Python 3.11 and later */
};

/* Counts what is chosen; filter->min_duration_ns must be 0. Returns 0 or -ENOMEM. */
int function_totals_count(struct function_totals *totals, struct trace *trace, const struct filter *filter,
			  struct progress *progress);
void function_totals_done(struct function_totals *totals);

#endif
