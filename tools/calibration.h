/*
 * calibration.h - the cost of evprof's own hooks, taken out of the times of a thread. Used by the profile.
 *
 * The costs were measured in the recorded process (EVPROF_CALIBRATE=1). Each event is taken to have cost something
 * before its time stamp and something after it; that much of the time between two events was not the program's.
 */
#ifndef EVPROF_TOOLS_CALIBRATION_H
#define EVPROF_TOOLS_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "trace_reader.h"

/* For the threads of one process. Costs in 1/256 ticks. */
struct calibration {
	uint32_t before[WIRE_KIND_SLOTS];
	uint32_t after[WIRE_KIND_SLOTS];
	unsigned last_kind;
	uint64_t removed; /* ticks, of the thread so far */
	uint32_t rest;	  /* less than a tick */
};

/* Did some process of the trace measure? */
bool calibration_known(const struct trace *trace);

/* False: the trace has no measurement for this process, nor for another one of the same Python. */
bool calibration_find(struct calibration *calibration, const struct trace *trace, const struct trace_process *process);

void calibration_begin_thread(struct calibration *calibration);

/* Makes the times in the chunk, which is the stream's own copy, those of a program without hooks. */
void calibration_apply(struct calibration *calibration, struct trace_events *events);

#endif
