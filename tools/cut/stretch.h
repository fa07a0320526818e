/*
 * stretch.h - a stretch of a trace: its two edges.
 */
#ifndef EVPROF_TOOLS_CUT_STRETCH_H
#define EVPROF_TOOLS_CUT_STRETCH_H

#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

/* A time, or an event. */
struct cut_edge {
	int64_t ns; /* CLOCK_MONOTONIC; INT64_MIN, INT64_MAX: there is no edge */
	/* Of the file: chunks that begin there or later are behind the edge, whatever their times; 0: none. */
	uint64_t byte;
	const struct trace_thread *thread; /* whose event it is; NULL: it is a time */
	uint64_t ticks;			   /* of the event */
	size_t place;			   /* index in thread->places of the event's chunk */
	uint32_t at;			   /* index of the event in its chunk */
};

/* Events at the edges are part of it. A time at its end is not. */
struct cut_stretch {
	struct cut_edge from, to;
};

/* The time of an edge in the clock of a process. An edge that is not there: 0, UINT64_MAX. */
static inline uint64_t cut_ticks(const struct cut_edge *edge, const struct trace_process *process)
{
	if (edge->ns == INT64_MAX)
		return UINT64_MAX;
	return edge->ns == INT64_MIN ? 0 : trace_ticks(process, edge->ns);
}

#endif
