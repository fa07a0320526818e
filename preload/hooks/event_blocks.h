/*
 * event_blocks.h - hides the blocks that Python allocates only because its events are recorded.
 *
 *   3.9 to 3.11   a bound method for each call of a builtin type's method that is reported to a profile function
 *   3.11          a frame object for each function that is reported to a profile function
 *   3.12, 3.13    an integer for each callback of sys.monitoring, the offset or line; a new object if it is above 256
 *
 * Other versions cache such objects. Each is allocated just before its hook is called. That allocation is the event
 * that the thread holds at that moment (writer_hold()), and is retracted; the free of the block is not recorded either.
 * If another event came in between (a garbage collection, another tool), both are recorded.
 *
 * A frame object may outlive its function, because the program keeps it (mostly in a traceback). It is then recorded
 * when the function ends. Two kinds of the program's own objects are hidden as well, because they look the same: a
 * frame object that lives no longer than its function (where the program handles an exception), and, up to 3.11, a
 * method that super() has just bound. All state here is per thread. GIL held, where there is one.
 */
#ifndef PRELOAD_EVENT_BLOCKS_H
#define PRELOAD_EVENT_BLOCKS_H

#include <stdbool.h>

#include "hooks/hooks.h"
#include "python/python.h"
#include "ring/writer.h"

/*
 * Whether allocations of objects are held: this Python allocates such blocks, and both events and memory are recorded.
 */
bool event_blocks_expected(void);

/* A callback of sys.monitoring got this integer. */
static inline void event_blocks_integer(const struct object *integer)
{
	if (unlikely(writer_retract(thread_self.writer, integer)))
		thread_self.event_block = integer;
}

/* Methods bound for calls that have not ended. A method beyond that number is recorded like any other object. */
#define EVENT_BLOCKS_BOUND 32

struct bound_methods {
	const struct object *open[EVENT_BLOCKS_BOUND];
	unsigned depth;
};

extern __thread struct bound_methods bound_methods __attribute__((tls_model("initial-exec")));

#define GC_HEAD_BYTES 16 /* PyGC_Head, which precedes the object (3.8 and later, with the GIL) */

static inline const void *event_block_of(const struct object *object)
{
	return (const char *)object - GC_HEAD_BYTES;
}

/* A C function is called. Until 3.11. */
static inline void event_blocks_call(const struct object *function)
{
	if (bound_methods.depth < EVENT_BLOCKS_BOUND && writer_retract(thread_self.writer, event_block_of(function)))
		bound_methods.open[bound_methods.depth++] = function;
}

/* A C function ends. Methods further in may belong to other greenlets, or have ended without an event. */
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
 * A frame starts. 3.11. All frames are treated alike, so that no state is kept for each: where the allocation cannot be
 * retracted, a free of the block is recorded.
 */
static inline void event_blocks_begin(const struct object *frame)
{
	if (unlikely(!writer_retract(thread_self.writer, event_block_of(frame))))
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

/* The profile function is set anew in this thread. */
static inline void event_blocks_forget(void)
{
	bound_methods.depth = 0;
}

/* A block of the object domain is about to be freed. False: it is a hidden one. */
static inline bool event_blocks_is_programs(const void *block)
{
	if (likely(thread_self.event_block != block))
		return true;
	thread_self.event_block = NULL;
	return false;
}

#endif
