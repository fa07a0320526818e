/*
 * memory_place.h - where the innermost Python function stands at an allocation, where calls are recorded
 * (WIRE_AT_INSTRUCTION).
 *
 * Calls show which function allocates, and nothing of where it stands. An event before the allocation has the
 * instruction, where that is not the one of the thread's allocation before. It counts for whichever function is
 * innermost then, so the frame need not be the same: only its code and its instruction are compared. A call that ends
 * leaves nothing behind that would have to be forgotten.
 *
 * Reads nothing but frames of the calling thread, calls nothing of Python's that could allocate, and keeps errno.
 */
#ifndef PRELOAD_MEMORY_PLACE_H
#define PRELOAD_MEMORY_PLACE_H

#include <stdbool.h>

#include "python/own_frames.h"
#include "ring/writer.h"

extern bool memory_place_known; /* places are written: everything that is read has been found */

/* Whether the settings ask for places. Line events have the lines anyway. */
bool memory_place_wanted(void);

/* The innermost frame stands elsewhere. Only with room. Nothing is published. */
void memory_place_put(struct writer *writer, const char *frame) __attribute__((noinline));

/*
 * Writes the place of the calling thread, if it has changed. Only if memory_place_known, with room, and under
 * thread_self.nesting or thread_self.writing. The caller publishes it with its allocation.
 *
 * attached: the thread has the GIL, or is attached where there is none.
 */
static inline __attribute__((always_inline)) void memory_place_write(struct writer *writer, bool attached)
{
	const void *state = own_frames_state(attached);
	const char *frame = state ? own_frames_top(state) : NULL;

	if (frame && (own_frames_code(frame) != writer->place_code ||
		      own_frames_instruction(frame, own_frames_instruction_mask()) != writer->place_instruction ||
		      unlikely(!writer->knows_stack)))
		memory_place_put(writer, frame);
}

#endif
