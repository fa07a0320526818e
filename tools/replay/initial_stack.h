/*
 * initial_stack.h - what a thread is running when a stretch of time begins, so that who shows the stretch need not
 * read all that was before.
 *
 * The one rule for call_walk.h and event_stream.h. The stack is followed from where it was last told (WIRE_OPEN, a
 * taken stack, a gap, or the thread's beginning), if that is not too far back; beneath what is known that way is
 * what ends in the stretch without having begun in it. So Python functions are known, and C functions that began
 * after the stack was told or that end in the stretch.
 */
#ifndef EVPROF_TOOLS_REPLAY_INITIAL_STACK_H
#define EVPROF_TOOLS_REPLAY_INITIAL_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/replay.h"
#include "trace/reader.h"

/* Events that may be read before a stretch, of all threads together. */
#define INITIAL_STACK_LOOK_BACK_EVENTS (UINT64_C(1) << 25)

struct initial_stack {
	/* To be set; the rest zero. */
	struct trace *trace;
	const struct trace_thread *thread;
	struct replay *replay; /* as replay_begin_thread() leaves it, with what is hidden */
	uint64_t from;	       /* ticks; not 0 */
	uint64_t to;
	uint64_t *look_back; /* so many events may yet be read before stretches: one number for all threads */
	/* The result: outermost first, without those that are hidden. */
	struct replay_place *stack;
	uint32_t count;
	/* The machinery. */
	uint32_t stack_allocated;
	uint32_t *keys; /* of what is known, outermost first; calls of the stretch come and go at the end */
	uint32_t depth;
	uint32_t allocated;
	uint32_t *ended; /* of what ended without having begun, innermost first */
	uint32_t ended_count;
	uint32_t ended_allocated;
	bool opening; /* WIRE_OPEN events tell the stack, from event number open_at of the first chunk on */
	uint32_t open_at;
	bool past; /* the beginning of the stretch */
	bool over; /* nothing more can be known */
};

/*
 * The first of the thread's places in which an event may be at that time or later; its number of places if there is
 * none.
 */
size_t initial_stack_place(const struct trace_thread *thread, uint64_t from);

/*
 * Returns 0 or -ENOMEM. The replay is left with an empty stack at `from`, and knows which greenlets were put aside and
 * whether there may be more beneath.
 */
int initial_stack_find(struct initial_stack *initial);
void initial_stack_done(struct initial_stack *initial);

#endif
