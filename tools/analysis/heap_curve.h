/*
 * heap_curve.h - how many bytes of Python's heap a process holds as time goes by, from its memory events.
 *
 * Used by the exporters with a curve. Sizes are known only when all threads of the process are seen in order of time,
 * so this is a pass of its own, in memory that grows with the number of live blocks.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_HEAP_CURVE_H
#define EVPROF_TOOLS_ANALYSIS_HEAP_CURVE_H

#include <stdint.h>

#include "replay/filter.h"
#include "trace/reader.h"

/*
 * Calls sample() with a time (ns since the start of the trace) and the bytes that are live then, until the next call:
 * for each step of every_ns its lowest, its highest and its last value, if they are not the same; with 0 for each
 * event. Blocks that were made before recording began count nothing; with a stretch of time only the
 * events in it are read, and the curve starts at 0. Returns 0 or -ENOMEM.
 */
int heap_curve(struct trace *trace, const struct trace_process *process, const struct filter *filter, int64_t every_ns,
	       void (*sample)(void *owner, int64_t ns, uint64_t bytes), void *owner);

#endif
