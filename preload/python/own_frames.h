/*
 * own_frames.h - the frames of the calling thread, read by loads alone: no GIL is needed, as no other thread changes
 * them.
 *
 * After sampled_layout_find(), which finds the fields. Code is compared as it stands in the frame: from 3.14 on its low
 * bits are a tag.
 */
#ifndef PRELOAD_OWN_FRAMES_H
#define PRELOAD_OWN_FRAMES_H

#include "python/python.h"
#include "python/sampled_layout.h"

/*
 * The calling thread's state, or NULL. Until 3.11 the current state is that of whatever thread has the GIL. While
 * Python ends, it frees the states of threads that wait for the GIL and go on running native code.
 */
static inline const void *own_frames_state(bool attached)
{
	const void *current = attached || python.monitoring ? python.current_thread_state() : NULL;
	const void *own = current ? current : python.PyGILState_GetThisThreadState();

	if (current || !own || own == python.current_thread_state() || python.Py_IsInitialized())
		return own;
	return NULL;
}

static inline const char *own_frames_top(const void *state)
{
	const char *frame = python_field(state, sampling.state_frame);

	return sampling.frame_holder && frame ? python_field(frame, sampling.frame_holder - 1) : frame;
}

static inline const char *own_frames_back(const char *frame)
{
	return python_field(frame, sampling.frame_back);
}

static inline uintptr_t own_frames_code(const char *frame)
{
	return (uintptr_t)python_field(frame, sampling.frame_code);
}

/* The bits of the field that belong to the instruction: until 3.10 an int that the line follows. */
static inline uintptr_t own_frames_instruction_mask(void)
{
	return sampling.instruction_unit ? UINT32_MAX : UINTPTR_MAX;
}

static inline uintptr_t own_frames_instruction(const char *frame, uintptr_t mask)
{
	return (uintptr_t)python_field(frame, sampling.frame_instruction) & mask;
}

/* The offset of an instruction in its code, in bytes; below 0: before the first one. */
static inline int64_t own_frames_offset(const void *code, uintptr_t instruction)
{
	if (sampling.instruction_unit)
		return (int64_t)(int32_t)instruction * sampling.instruction_unit;
	return (int64_t)(instruction - (uintptr_t)code - sampling.code_instructions);
}

/*
 * The code of a frame that Python shows in tracebacks, else NULL: C code was entered there, or the function has been
 * entered and has not begun (from 3.11 on).
 */
const void *own_frames_shown_code(const char *frame);

/* The globals of a frame, borrowed, or NULL. GIL held. Without a GIL: NULL, as a lookup in them could wait. */
struct object *own_frames_globals(const char *frame);

#endif
