/*
 * cpu_time.h - times by another clock than the wall's: the time that the thread ran, or the time that it waited.
 *
 * Used by stream.c, so every reader of a stream gets the times of the trace's clock. A trace has CPU times if the
 * process recorded the kind "cpu" (wire.h, WIRE_CPU). Between two CPU times around a pause the thread ran all the time
 * outside the pause; the rest of its CPU time was inside the pause.
 */
#ifndef EVPROF_TOOLS_TRACE_CPU_TIME_H
#define EVPROF_TOOLS_TRACE_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/chunk.h"
#include "trace/trace.h"

/* The state of one thread. Zero before its first chunk. Ticks are the process's. */
struct cpu_time {
	bool known;	   /* a CPU time was recorded, and no event is missing since */
	uint64_t cpu_ns;   /* the last CPU time */
	uint64_t at_ticks; /* and its timestamp */
	uint64_t removed;  /* ticks removed so far */
};

/* "wall", "cpu" or "off-cpu"; false for anything else. */
bool cpu_clock_by_name(const char *name, enum cpu_clock *clock);

/* Whether all processes of the trace recorded CPU times. */
bool cpu_time_known(const struct trace *trace);

/* Converts the times in the chunk, which is the stream's own copy, to the clock. Not for CPU_CLOCK_WALL. */
void cpu_time_apply(struct cpu_time *time, enum cpu_clock clock, const struct trace_process *process,
		    struct trace_events *events);

#endif
