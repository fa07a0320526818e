/*
 * calibration.h - subtracts the overhead of the hooks from the times of a thread. Used by the profile.
 *
 * The recorded process measured the cost of each kind of call (EVPROF_CALIBRATE=1, wire.h). Each event costs something
 * before its timestamp and something after it; that part of the interval between two events is overhead. Where hooks
 * slow every instruction, a part of the interpreter's own time is overhead, too.
 */
#ifndef EVPROF_TOOLS_TRACE_CALIBRATION_H
#define EVPROF_TOOLS_TRACE_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

enum calibration_kind {
	CALIBRATION_NOTHING, /* no known cost */
	CALIBRATION_CALL,
	CALIBRATION_ENTRY,
	CALIBRATION_CALLBACK,
	CALIBRATION_INIT,
	CALIBRATION_RESUME,
	CALIBRATION_PULL,
	CALIBRATION_GENERATOR,
	CALIBRATION_C_CALL,
	CALIBRATION_METHOD,
	CALIBRATION_UNWIND, /* in addition to the cost of the call's end */
	CALIBRATION_OTHER,  /* an unrecorded call: reported to the hook, but not recorded */
	CALIBRATION_MALLOC,
	CALIBRATION_FREE,
	CALIBRATION_KINDS
};

#define CALIBRATION_DEPTH 4096u /* a power of two */

/* In 1/256 ticks. Negative if more was subtracted already as slow-down. */
struct calibration_cost {
	int32_t before;
	int32_t after;
};

/* The extra costs are estimated from the size of the code. In 1/256 ticks. */
struct calibration_code {
	uint8_t kind; /* enum calibration_kind of calls that C does not make */
	int32_t far;  /* of an event, before it and after it */
	int32_t walk; /* of the first event after one of another code */
};

/* An open call. */
struct calibration_open {
	uint32_t kind;
	uint32_t code; /* for a C function: its caller's */
};

/* For the threads of one process. */
struct calibration {
	struct calibration_cost begin[CALIBRATION_KINDS];
	struct calibration_cost end[CALIBRATION_KINDS]; /* of memory events: in a Python function */
	uint32_t slowed;				/* share of the time of Python functions, in 1/256 */
	uint64_t slowed_max;				/* ticks of one interval that may count as slowed */
	uint32_t disturbed;		       /* share of the rest of an interval in a Python function, in 1/256 */
	int32_t disturbed_from, disturbed_max; /* 1/256 ticks: undisturbed start of an interval, most after it */
	bool has_other_calls;		       /* unrecorded calls are reported */
	struct calibration_code *codes;	       /* by id; 0 is none */
	uint8_t *functions;		       /* enum calibration_kind, by id */
	uint32_t code_count;
	uint32_t function_count;

	struct calibration_open open[CALIBRATION_DEPTH]; /* by depth; of a deeper stack only the innermost part */
	uint32_t depth;
	bool after_other_call; /* the previous event was an unrecorded call */
	uint32_t last;	       /* code of the last reported event */
	uint64_t removed;      /* ticks subtracted from the thread so far */
	int32_t carried;       /* 1/256 ticks to subtract from later intervals */
};

enum calibration_state {
	CALIBRATION_NONE,     /* no process of the trace has a measurement */
	CALIBRATION_UNSTABLE, /* the measurements are unreliable */
	CALIBRATION_GOOD
};

/* The state of the best measurement of any process. */
enum calibration_state calibration_state(const struct trace *trace);

/*
 * False: the trace has no good measurement for this process, nor for another one of the same Python; or memory ran out.
 * calibration_apply() must not be called then.
 */
bool calibration_find(struct calibration *calibration, const struct trace *trace, const struct trace_process *process);
void calibration_done(struct calibration *calibration);

void calibration_begin_thread(struct calibration *calibration);

/* Subtracts the overhead from the times in the chunk, which is the stream's own copy. */
void calibration_apply(struct calibration *calibration, struct trace_events *events);

#endif
