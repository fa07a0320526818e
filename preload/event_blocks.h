/*
 * event_blocks.h - what Python allocates only because its events are heard: no part of the program's memory.
 *
 *   3.9 to 3.11   a method of a builtin type is bound for each call of it that a profile function hears of
 *   3.11          each function that a profile function hears of gets a frame object
 *   3.12, 3.13    a callback of sys.monitoring gets an integer, the offset or line, which is new if it is above 256
 *
 * Other versions keep such objects for the next use. Each is allocated just before its hook is called: that
 * allocation is the event that the thread holds then (writer_hold), and is taken back; what frees the block is not
 * recorded either. Where something else came in between (a collection of garbage, another tool), both are recorded.
 *
 * A frame object may outlive its function, for which the program has its reasons (a traceback, mostly): then it is
 * recorded when the function ends. Those that the program had made anyhow, but only for as long as the function runs,
 * are not told from the others: where it handles an exception itself. Nor is a method that super() has just bound, up
 * to 3.11. What is known of a thread's blocks is that thread's own. GIL held, where there is one.
 */
#ifndef PRELOAD_EVENT_BLOCKS_H
#define PRELOAD_EVENT_BLOCKS_H

#include <stdbool.h>

#include "hooks.h"
#include "python.h"
#include "writer.h"

/* Whether allocations of objects are to be held: this Python makes such blocks, and events and memory are recorded. */
bool event_blocks_expected(void);

/* A callback of sys.monitoring got this integer. */
static inline void event_blocks_integer(const struct object *integer)
{
	if (unlikely(writer_take_back(thread_self.writer, integer)))
		thread_self.event_block = integer;
}

/* Methods that were bound for calls that have not ended. What finds no place is recorded as any other object. */
#define EVENT_BLOCKS_BOUND 32

struct bound_methods {
	const struct object *open[EVENT_BLOCKS_BOUND];
	unsigned depth;
};

extern __thread struct bound_methods bound_methods __attribute__((tls_model("initial-exec")));

#define GC_HEAD_BYTES 16 /* PyGC_Head, which stands before the object (3.8 and later, with the GIL) */

static inline const void *event_block_of(const struct object *object)
{
	return (const char *)object - GC_HEAD_BYTES;
}

/* A C function is called, and ends. Until 3.11. */
static inline void event_blocks_call(const struct object *function)
{
	if (bound_methods.depth < EVENT_BLOCKS_BOUND && writer_take_back(thread_self.writer, event_block_of(function)))
		bound_methods.open[bound_methods.depth++] = function;
}

/* Those further in may belong to other greenlets, or have ended without a word. */
static inline void event_blocks_return(const struct object *function)
{
	for (unsigned i = bound_methods.depth; i-- > 0;) {
		if (bound_methods.open[i] != function)
			continue;
		for (bound_methods.depth--; i < bound_methods.depth; i++)
			bound_methods.open[i] = bound_methods.open[i + 1];
		thread_self.event_block = event_block_of(function);
		return;
	}
}

/*
 * A frame begins, and ends for good. 3.11. All are treated alike, so that nothing need be kept for each: where the
 * allocation cannot be taken back, the block is told to be freed.
 */
static inline void event_blocks_begin(const struct object *frame)
{
	if (unlikely(!writer_take_back(thread_self.writer, event_block_of(frame))))
		hooks_memory_record_object(WIRE_FREE, event_block_of(frame), 0);
}

static inline void event_blocks_end(const struct object *frame)
{
	if (likely(python_references(frame) == 1))
		thread_self.event_block = event_block_of(frame);
	else
		hooks_memory_record_object(WIRE_MALLOC, event_block_of(frame),
					   GC_HEAD_BYTES + python_frame_size(frame));
}

/* The profile function begins anew in this thread. */
static inline void event_blocks_forget(void)
{
	bound_methods.depth = 0;
}

/* A block of the object domain is to be freed. False: it is one of these. */
static inline bool event_blocks_is_programs(const void *block)
{
	if (likely(thread_self.event_block != block))
		return true;
	thread_self.event_block = NULL;
	return false;
}

#endif
