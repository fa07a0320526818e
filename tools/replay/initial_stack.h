/*
 * initial_stack.h - the initial stack: what a thread runs when a time range begins, found without reading everything
 * before it.
 *
 * Shared by call_walk.h and event_stream.h. The replay starts at the last recorded stack (WIRE_OPEN, a stack snapshot,
 * a gap, or the beginning of the thread), if that is not too far back. Below the frames known that way are the
 * functions that end in the range without having begun in it. So all Python functions are known; of C functions, those
 * that began after the recorded stack or that end in the range.
 */
#ifndef EVPROF_TOOLS_REPLAY_INITIAL_STACK_H
#define EVPROF_TOOLS_REPLAY_INITIAL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/replay.h"
#include "trace/reader.h"

/* The number of events that may be read before time ranges, for all threads together. */
#define INITIAL_STACK_LOOK_BACK_EVENTS (UINT64_C(1) << 25)

struct initial_stack {
	/* Set by the caller; the rest is zero. */
	struct trace *trace;
	const struct trace_thread *thread;
	struct replay *replay; /* as replay_begin_thread() leaves it, with `hidden` set */
	uint64_t from;	       /* ticks; not 0 */
	uint64_t to;
	uint64_t *look_back; /* number of events that may still be read before time ranges; shared by all threads */
	/* Internal. */
	uint32_t *keys; /* the known frames, outermost first; calls in the range are pushed and popped at its end */
	uint32_t depth;
	size_t allocated;
	uint32_t *ended; /* functions that ended without having begun, innermost first */
	uint32_t ended_count;
	size_t ended_allocated;
	bool opening; /* WIRE_OPEN events record the stack, from event open_at of the first chunk on */
	uint32_t open_at;
	bool past; /* the range has begun */
	bool over; /* the search is complete */
};

/*
 * Pushes the stack, outermost first, without hidden functions, with `start` as its time. The replay keeps the number
 * of those, the saved stacks of greenlets, and whether there may be more frames below. Returns 0 or -ENOMEM.
 */
int initial_stack_push(struct initial_stack *initial, uint64_t start, const struct replay_sink *sink, void *owner);

/*
 * Begins the replay of a thread that is followed from that time on (ticks), with the stack that it has then; 0: at its
 * beginning. Returns 0 or -ENOMEM; replay_done() frees it in both cases.
 */
int initial_stack_follow(struct replay *replay, struct trace *trace, const struct trace_process *process,
			 const struct trace_thread *thread, uint64_t from, const struct replay_sink *sink, void *owner);

#endif
