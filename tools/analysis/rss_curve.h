/*
 * rss_curve.h - the resident size of a process over time, from the collector's looks at it.
 *
 * Used by outputs with a curve, beside heap_curve.h. A process has samples if memory was recorded, /proc of the
 * collector shows it, and it lived for a moment: at most four a second, where its size changed.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_RSS_CURVE_H
#define EVPROF_TOOLS_ANALYSIS_RSS_CURVE_H

#include <stdint.h>

#include "replay/filter.h"
#include "trace/reader.h"

#define RSS_NAME "resident size"

struct rss_point {
	int64_t ns; /* since the start of the trace */
	uint64_t bytes;
	/* What they consist of. */
	uint64_t anonymous; /* heaps, stacks, and private copies of pages of files */
	uint64_t file;
	uint64_t shared; /* shared memory, evprof's rings among it */
};

/* Calls sample() for each in order of time; its bytes hold until the next one. A time range has those within it. */
void rss_curve(const struct trace *trace, const struct trace_process *process, const struct filter *filter,
	       void (*sample)(void *owner, const struct rss_point *point), void *owner);

#endif
