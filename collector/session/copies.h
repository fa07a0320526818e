/*
 * copies.h - copies of what a process did last: TRACE-PID-REASON.evp, next to the trace.
 *
 * Of a process that was killed: the trace goes on with the other processes of its session, and what the killed one did
 * would leave it. Of a process that asks for it (ring_header.snapshot), and where a trigger fires (triggers.h).
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
	unsigned asked;	   /* copies that processes have asked for, so far */
	uint64_t next_ns;  /* such a copy is not made before */
	uint64_t until_ns; /* the trace is closed: copies are made until then; 0: it is not */
};

struct copy_wish {
	int pid;		 /* as the trace has it */
	struct process *process; /* whose rings are read first; NULL: it has ended, and the trace has all of it */
	const char *reason;
	uint64_t since_ns; /* at least from then on, if the trace has it; 0: the usual stretch */
};

/*
 * Copies what the trace has of the process, once its rings were read (copies_check()). The trace keeps what it has
 * meanwhile. False: there are too many copies at a time, or no memory, or the trace has no file.
 */
bool copies_add(struct copies *copies, struct loop *loop, struct trace_output *trace, const struct copy_wish *wish);

/* The same for a process that was killed. A failure is logged. */
void copies_add_killed(struct copies *copies, struct loop *loop, struct trace_output *trace, struct process *process);

/* The same if the process asks for it by a signal. Else, or too soon: nothing. */
void copies_add_asked(struct copies *copies, struct loop *loop, struct trace_output *trace, struct process *process,
		      uint64_t now_ns);

/*
 * After the rings were read, and when a process is complete: starts what waited for that. Whether copies are still
 * being made. Gives up the hold of those that are complete.
 */
bool copies_check(struct copies *copies, struct trace_output *trace, uint64_t now_ns);

void copies_stop(struct copies *copies);

#endif
