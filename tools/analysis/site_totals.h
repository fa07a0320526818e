/*
 * site_totals.h - the memory of a trace by site, as function totals: for evprof diff --memory.
 *
 * A site is that of memory.h. It has the line at which it allocates, else that where the function begins. Sites of
 * several processes are one if their names and places are; each process has its own peak, and these add up.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_SITE_TOTALS_H
#define EVPROF_TOOLS_ANALYSIS_SITE_TOTALS_H

#include "analysis/function_totals.h"
#include "analysis/memory.h"

/* Counts what the filter of the options shows. totals->memory: memory was recorded. Returns 0 or -ENOMEM. */
int site_totals_count(struct function_totals *totals, struct trace *trace, const struct memory_options *options,
		      struct progress *progress);

#endif
