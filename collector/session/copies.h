/*
 * copies.h - copies of what a process did last: TRACE-PID-REASON.evp, next to the trace.
 *
 * Of a process that was killed: the trace goes on with the other processes of its session, and what the killed one did
 * would leave it. And of a process that asks for it (ring_header.snapshot).
 */
#ifndef COLLECTOR_COPIES_H
#define COLLECTOR_COPIES_H

#include <stdbool.h>
#include <stdint.h>

struct copy;
struct loop;
struct process;
struct trace_output;

#define COPIES_MAX 4u /* at a time: a crash of many processes is not written for each */

/* All zeros: none. */
struct copies {
	struct copy *first;
	unsigned count;
	unsigned asked;	  /* copies that processes have asked for, so far */
	uint64_t next_ns; /* such a copy is not made before */
};

/*
 * Starts to copy what the trace has of the process, which was killed. The trace keeps what it has meanwhile. A failure
 * is logged.
 */
void copies_add_killed(struct copies *copies, struct loop *loop, struct trace_output *trace,
		       const struct process *process, uint64_t now_ns);

/* The same if the process asks for it: what is in its rings is written first. Else, or too soon: nothing. */
void copies_add_asked(struct copies *copies, struct loop *loop, struct trace_output *trace, struct process *process,
		      uint64_t now_ns);

/* Whether copies are still being made. Gives up the hold of those that are complete. */
bool copies_check(struct copies *copies, struct trace_output *trace);

void copies_stop(struct copies *copies);

#endif
