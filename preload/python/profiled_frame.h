/*
 * profiled_frame.h - the frames that a profile function gets, and the instructions at which they stand, until 3.11.
 *
 * Inline, with the kind of frame a compile-time constant: the hook reads them at each event.
 */
#ifndef PRELOAD_PROFILED_FRAME_H
#define PRELOAD_PROFILED_FRAME_H

#include "python/python.h"

/* opcode.h; the same values in all versions until 3.11. */
enum {
	PYTHON_OPCODE_SUBSCRIPT_FIRST = 17,    /* 3.11: BINARY_SUBSCR in code that ran often, five forms: ... */
	PYTHON_OPCODE_SUBSCRIPT_ADAPTIVE = 17, /* ... one that becomes any of the others ... */
	PYTHON_OPCODE_SUBSCRIPT_GETITEM = 19,  /* ... and one that calls a __getitem__() that is written in Python */
	PYTHON_OPCODE_SUBSCRIPT_LAST = 21,
	PYTHON_OPCODE_SUBSCRIPT = 25, /* BINARY_SUBSCR */
	PYTHON_OPCODE_RETURN_GENERATOR = 75,
	PYTHON_OPCODE_RETURN_VALUE = 83,
	PYTHON_OPCODE_YIELD_VALUE = 86,
	PYTHON_OPCODE_CALL_FUNCTION_KW = 141,
	PYTHON_OPCODE_CALL_FUNCTION_EX = 142,
	PYTHON_OPCODE_RESUME_QUICK = 150, /* 3.11: in code that ran often */
	PYTHON_OPCODE_RESUME = 151,
};

#define PYTHON_BYTES_DATA 32 /* PyBytesObject.ob_sval */

/* inner: the interpreter's own frame has the code (3.11); else the frame object. */
static inline __attribute__((always_inline)) struct object *python_profiled_code_of(const struct object *frame,
										    bool inner)
{
	return inner ? python_field(python_field(frame, PYTHON_FRAME_INNER), PYTHON_INNER_CODE)
		     : python_field(frame, PYTHON_FRAME_CODE);
}

static inline struct object *python_profiled_code(const struct object *frame)
{
	return python_profiled_code_of(frame, python.inner_frames);
}

/* The frame's last instruction: opcode and argument. Until 3.10 f_lasti is below zero before the first one. */
static inline __attribute__((always_inline)) const uint8_t *python_last_instruction(struct object *frame,
										    struct object *code, bool inner)
{
	int last;

	if (inner)
		return python_field(python_field(frame, PYTHON_FRAME_INNER), python.layout.inner_previous);
	last = *(int *)((char *)frame + python.layout.frame_last);
	return last < 0 ? NULL
			: (const uint8_t *)python_field(code, python.layout.code_bytes) + PYTHON_BYTES_DATA +
			      last * python.layout.last_unit;
}

/* A generator or coroutine that stands there is suspended. */
static inline bool python_suspends(const uint8_t *instruction)
{
	return *instruction == PYTHON_OPCODE_YIELD_VALUE || *instruction == PYTHON_OPCODE_RETURN_GENERATOR;
}

static inline bool python_returns(const uint8_t *instruction)
{
	return *instruction == PYTHON_OPCODE_RETURN_VALUE;
}

/* 3.11: a function starts there, or a generator resumes. */
static inline bool python_resumes(const uint8_t *instruction)
{
	return *instruction == PYTHON_OPCODE_RESUME || *instruction == PYTHON_OPCODE_RESUME_QUICK;
}

/* A call whose callee the program itself may have bound, just before. */
static inline bool python_calls_unbound(const uint8_t *instruction)
{
	return *instruction == PYTHON_OPCODE_CALL_FUNCTION_KW || *instruction == PYTHON_OPCODE_CALL_FUNCTION_EX;
}

#endif
