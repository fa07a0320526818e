/*
 * copies.h - copies of a trace that keeps its last stretch, for processes that were killed.
 *
 * The trace goes on with the other processes of its session, and what the killed one did would leave it.
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
};

/*
 * Starts to copy what the trace has of the process, which has ended, to a file next to it: TRACE-PID-killed.evp. The
 * trace keeps what it has meanwhile. A failure is logged.
 */
void copies_add(struct copies *copies, struct loop *loop, struct trace_output *trace, const struct process *process,
		uint64_t now_ns);

/* Whether copies are still being made. Gives up the hold of those that are complete. */
bool copies_check(struct copies *copies, struct trace_output *trace);

void copies_stop(struct copies *copies);

#endif
