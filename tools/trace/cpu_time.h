/*
 * cpu_time.h - the times of a thread by another clock than the wall's: while it ran, or while it waited.
 *
 * Used by stream.c, so whatever reads events through a stream gets the chosen clock. A trace has CPU times where
 * the process recorded the kind "cpu": wire.h, WIRE_TIME. Between two of them that lie around a pause, the thread ran
 * for all of the time outside of the pause, and what is left of its CPU time was in the pause.
 */
#ifndef EVPROF_TOOLS_TRACE_CPU_TIME_H
#define EVPROF_TOOLS_TRACE_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/events.h"
#include "trace/trace.h"

/* Of one thread. Zero before its first chunk. Ticks are the process's. */
struct cpu_time {
	bool known;	   /* a CPU time was told, and no event is missing since */
	uint64_t cpu_ns;   /* the last that was told, */
	uint64_t at_ticks; /* and when */
	uint64_t removed;  /* ticks, so far */
};

/* "wall", "cpu" or "off-cpu"; false for anything else. */
bool cpu_clock_by_name(const char *name, enum cpu_clock *clock);

/* Whether all processes of the trace recorded CPU times. */
bool cpu_time_known(const struct trace *trace);

/* Makes the times in the chunk, which is the stream's own copy, those of the clock. Not for CPU_CLOCK_WALL. */
void cpu_time_apply(struct cpu_time *time, enum cpu_clock clock, const struct trace_process *process,
		    struct trace_events *events);

#endif
