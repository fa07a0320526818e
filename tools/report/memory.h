/*
 * memory.h - the output of evprof memory: text, JSON, CSV.
 *
 *   text   for each process what it allocated in all, and its largest sites; or its sizes
 *   json   {"processes": [{"pid": ..., "peak_bytes": ..., "sites": [{"function": ..., "peak_bytes": ...}]}]}
 *   csv    a row for each site, with a line of titles; of the summary see memory_summary.h
 */
#ifndef EVPROF_TOOLS_REPORT_MEMORY_H
#define EVPROF_TOOLS_REPORT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/memory.h"
#include "util/output.h"
#include "util/terminal.h"

enum memory_format { MEMORY_TEXT, MEMORY_JSON, MEMORY_CSV };

/* By which sites are sorted, the largest first; a site that has none of it is not in the text. */
enum memory_order { MEMORY_BY_PEAK, MEMORY_BY_END, MEMORY_BY_ALLOCATED, MEMORY_BY_ALLOCATIONS, MEMORY_BY_TEMPORARY };

struct report_memory {
	struct output *output;
	struct terminal terminal; /* columns 0: lines are not cut */
	enum memory_format format;
	enum memory_order order;
	bool leaks;	  /* only what is alive at the end, and whose it is */
	bool sizes;	  /* the sizes of allocations instead of sites */
	bool summary;	  /* what the process has in all, without its sites */
	bool any_native;  /* a process records malloc() */
	int64_t limit;	  /* number of rows for each process; -1: all */
	const char *at;	  /* what the end is: "at the end", "at 1.5s"; of the text */
	size_t processes; /* written so far */
};

void report_memory_begin(struct report_memory *report, const struct memory_options *options);
/* Sorts the sites and writes the process. Returns 0 or -ENOMEM. */
int report_memory_process(struct report_memory *report, struct memory *memory);
void report_memory_end(struct report_memory *report);

#endif
