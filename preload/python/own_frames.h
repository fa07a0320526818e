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

/* The state of the calling thread, where it may not be the current one. */
const void *own_frames_waiting_state(void);

/*
 * The calling thread's state, or NULL. Until 3.11 the current state is that of whatever thread has the GIL. While
 * Python ends, it frees the states of threads that wait for the GIL and go on running native code.
 */
static inline const void *own_frames_state(bool attached)
{
	const void *current = attached || python.monitoring ? python.current_thread_state() : NULL;

	return __builtin_expect(current != NULL, 1) ? current : own_frames_waiting_state();
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
 * From 3.11 on: whether the function of a frame has begun: the first RESUME is behind it (python_unwinds_at_resume()).
 * A frame of Python code only.
 */
static inline bool own_frames_has_begun(const char *frame)
{
	const char *code, *instructions;

	if (!python_has(PYTHON_OWN_FRAMES))
		return true;
	code = (const char *)(own_frames_code(frame) & ~(uintptr_t)7);
	instructions = code + sampling.code_instructions;
	return own_frames_offset(code, own_frames_instruction(frame, UINTPTR_MAX)) >=
		   2 * (int64_t) * (const int *)(instructions - 16) ||
	       frame[python.layout.frame_owner] == PYTHON_FRAME_OWNED_BY_GENERATOR;
}

/*
 * The code of a frame that Python shows in tracebacks, else NULL: C code was entered there, or the function has been
 * entered and has not begun (from 3.11 on).
 */
const void *own_frames_shown_code(const char *frame);

/* Whether own_frames_result() knows any. Until 3.10 the depth of a stack is stored where a frame is suspended alone. */
static inline bool own_frames_have_results(void)
{
	return python_has(PYTHON_OWN_FRAMES) && !python.free_threaded && python.code_line;
}

/*
 * From 3.11 on: where the interpreter will put what a function returns, the first free word of its caller's stack. It
 * stays free until then, and no one reads it: whatever is written there is overwritten by the result, or by the next
 * function that is called from there, as the function stands below its arguments. NULL: it is not known (C code called
 * the function), or another call from there may leave the word as it is (the caller resumed a generator, or got what it
 * calls from a property: PYTHON_CALLS_ABOVE_NULL). Only if own_frames_have_results(): without a GIL other threads read
 * whole stacks.
 */
uint64_t *own_frames_result(const char *caller, const char *called);

/* The globals of a frame, borrowed, or NULL. GIL held. Without a GIL: NULL, as a lookup in them could wait. */
struct object *own_frames_globals(const char *frame);

#endif
