/*
 * calibration.h - the cost of evprof's own hooks, taken out of the times of a thread. Used by the profile.
 *
 * The costs were measured in the recorded process (EVPROF_CALIBRATE=1), for each kind of call (wire.h). Each event is
 * taken to have cost something before its time stamp and something after it; that much of the time between two events
 * was not the program's, and of the interpreter's own time a part was not, where hooks slow every instruction.
 */
#ifndef EVPROF_TOOLS_TRACE_CALIBRATION_H
#define EVPROF_TOOLS_TRACE_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

enum calibration_kind {
	CALIBRATION_NOTHING, /* what is not known to cost anything */
	CALIBRATION_CALL,
	CALIBRATION_ENTRY,
	CALIBRATION_CALLBACK,
	CALIBRATION_INIT,
	CALIBRATION_RESUME,
	CALIBRATION_PULL,
	CALIBRATION_GENERATOR,
	CALIBRATION_C_CALL,
	CALIBRATION_METHOD,
	CALIBRATION_UNWIND, /* beyond what the call's end costs */
	CALIBRATION_OTHER,  /* a call that is no event */
	CALIBRATION_MALLOC,
	CALIBRATION_FREE,
	CALIBRATION_KINDS
};

#define CALIBRATION_DEPTH 4096u /* a power of two */

/* In 1/256 ticks. Less than nothing where more was taken already, as a part of the interpreter's time. */
struct calibration_cost {
	int32_t before;
	int32_t after;
};

/* Of a code, by its size, as nobody knows at which of its instructions an event was. In 1/256 ticks. */
struct calibration_code {
	uint8_t kind; /* enum calibration_kind, for calls that C does not make */
	int32_t far;  /* what an event costs more */
	uint32_t met; /* the turn in which it was met last */
	int32_t walk; /* what the first one after one of another code costs more */
};

struct calibration_function {
	uint8_t kind;
	uint32_t met;
};

/*
 * How many different functions take turns: an event costs more where they are many, as the processor does not find what
 * it had at hand for the one before. Beginnings are counted in turns of some; what one turn had holds for the next.
 */
struct calibration_mix {
	int32_t most;  /* what an event costs more where functions are many, as a part, in 1/256 */
	int32_t more;  /* likewise, as many as there are */
	uint32_t turn; /* never 0 */
	uint32_t begun, different;
};

/* What runs. */
struct calibration_open {
	uint32_t kind;
	uint32_t code;	/* of a function of C: its caller's */
	uint32_t place; /* of the event before in this run of a Python function */
	bool marked;	/* its end is where its beginning was, which was marked */
};

/* For the threads of one process. */
struct calibration {
	struct calibration_cost begin[CALIBRATION_KINDS];
	struct calibration_cost end[CALIBRATION_KINDS]; /* of memory events: in a Python function */
	uint32_t slowed;				/* of the time of Python functions, in 1/256 */
	uint64_t slowed_most;				/* ticks of one interval that can have been slowed */
	uint32_t disturbed; /* of what is left of an interval in which a Python function runs, in 1/256 */
	int32_t disturbed_from, disturbed_most; /* 1/256 ticks of one interval that are not, and that can have been */
	bool tells_calls;			/* of calls that are no event */
	struct calibration_code *codes;		/* by id; 0 is none */
	struct calibration_function *functions; /* by id */
	uint32_t code_count;
	uint32_t function_count;
	struct calibration_mix mix;

	struct calibration_open open[CALIBRATION_DEPTH]; /* by depth; of deeper stacks the inner part */
	uint32_t depth;
	int32_t far;	  /* what a marked event costs more, before it and after it alike, in 1/256 ticks */
	bool marked;	  /* the event that comes is */
	double walk;	  /* 1/256 ticks for each byte from the event before in the frame */
	uint32_t place;	  /* of the event that comes, where that is told */
	bool told;	  /* the event before was a call that is no event */
	uint32_t last;	  /* the code that the interpreter told of last */
	uint64_t removed; /* ticks, of the thread so far */
	int32_t owed;	  /* 1/256 ticks that are to be taken from what follows */
};

enum calibration_state {
	CALIBRATION_NONE,     /* no process of the trace measured */
	CALIBRATION_UNSTABLE, /* what was measured is not to be relied on */
	CALIBRATION_GOOD
};

/* Of the best measurement of any process. */
enum calibration_state calibration_state(const struct trace *trace);

/*
 * False: the trace has no good measurement for this process, nor for another one of the same Python; or there is no
 * memory. Nothing is to be done then.
 */
bool calibration_find(struct calibration *calibration, const struct trace *trace, const struct trace_process *process);
void calibration_done(struct calibration *calibration);

void calibration_begin_thread(struct calibration *calibration);

/* Makes the times in the chunk, which is the stream's own copy, those of a program without hooks. */
void calibration_apply(struct calibration *calibration, struct trace_events *events);

#endif
