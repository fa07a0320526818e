/*
 * stack.c - see stack.h.
 */
#include "definitions/stack.h"

#include "definitions/define.h"
#include "definitions/definitions.h"
#include "python/python.h"
#include "ring/process.h"

/* Whether it is the outermost code of the program: what called it is not recorded (hooks/program.h). */
static bool is_outermost(const void *code)
{
	return code && code == thread_self.program;
}

/*
 * last: the outermost code on the stack. The program's code has ended where it is not that one, which is seen only if
 * recording was stopped meanwhile. Greenlets have stacks of their own.
 */
static void note_outermost(const void *last)
{
	if (likely(!thread_self.program) || thread_self.greenlets || last == thread_self.program)
		return;
	thread_self.program = NULL;
	thread_self.outside = true;
}

/* As definitions_code(). Reads the names only of code that has no id yet. */
static uint32_t frame_value(struct object *frame)
{
	struct object *code = python_code_of_frame(frame);
	struct object *globals = NULL;
	uint32_t value = 0;

	if (code && !ids_find(&process->ids, code))
		globals = python_attribute(frame, "f_globals");
	if (code) {
		value = definitions_code_of_frame(code, globals);
		python.Py_DecRef(code);
	}
	python.Py_DecRef(globals);
	return value;
}

/* Takes the reference. *last: the code of the frame, borrowed from it, where that is of interest. */
static struct object *next_frame(struct object *frame, const void **last)
{
	struct object *code = thread_self.program ? python_code_of_frame(frame) : NULL;
	struct object *caller = is_outermost(code) ? NULL : python_frame_caller(frame);

	*last = code;
	python.Py_DecRef(code);
	python.Py_DecRef(frame);
	return caller;
}

static struct object *top_frame(bool skip_top, const void **last)
{
	struct object *frame = python.PyEval_GetFrame();

	python.Py_IncRef(frame);
	return frame && skip_top ? next_frame(frame, last) : frame;
}

/* The interpreter's frame below, NULL at the end of what is recorded. */
static const void *inner_frame_below(const void *frame)
{
	return is_outermost(python_frame_code(frame)) ? NULL : python_frame_back(frame);
}

static int frame_line(struct object *frame)
{
	return python.PyFrame_GetLineNumber ? python.PyFrame_GetLineNumber(frame) : 0;
}

/*
 * Reads the stack from the interpreter's own frames, from 3.12 on: a frame object would be created on request and freed
 * as the program's memory. Returns false if a function has no id yet; its frame object is needed to define it.
 */
static bool find_stack(bool skip_top, uint32_t *ids, uint32_t most, uint32_t *count, bool *more)
{
	const void *last = NULL;

	*count = 0;
	*more = false;
	if (!python.monitoring || !python_knows_frames())
		return false;
	for (const void *frame = python_running_frame(); frame; frame = inner_frame_below(frame)) {
		const void *code = python_frame_code(frame);
		uint64_t value = code ? ids_find(&process->ids, code) : 0;

		last = code ? code : last;
		if (!code || skip_top) {
			skip_top &= !code;
			continue;
		}
		if (!value || value >> 32 & CODE_SLOW_C_FUNCTION)
			return false;
		if (value & (DEFINITION_HIDDEN | CODE_THINNED))
			continue;
		if (*count == most) {
			*more = true;
			return true;
		}
		ids[(*count)++] = DEFINITION_ID((uint32_t)value);
	}
	note_outermost(last);
	return true;
}

/*
 * The code of the frame that ends with an event of a frame evaluator (PEP 523), which the running frame has called; or
 * NULL. *value: as definitions_code().
 */
static const void *ended_code(unsigned kind, uint32_t *value)
{
	const void *frame = kind < WIRE_RETURN ? NULL : thread_self.evaluated, *code;

	code = frame ? python_frame_code(frame) : NULL;
	*value =
	    code ? definitions_code_of_frame((struct object *)code, python_field(frame, python.layout.chain_globals))
		 : DEFINITION_HIDDEN;
	return code;
}

uint32_t definitions_stack(unsigned kind, uint32_t *ids, int *lines, uint32_t most, bool *more)
{
	bool skip_top = (kind == WIRE_CALL || kind == WIRE_RESUME || kind == WIRE_THROW) && !thread_self.evaluated;
	const void *last = NULL;
	struct object *frame;
	struct definitions_guard guard;
	uint32_t count = 0, value;
	/* A name did not fit into the ring: the stack is written again soon, as if it had been cut. */
	bool nameless = false;

	definitions_enter(&guard);
	if (!lines && find_stack(skip_top, ids, most, &count, more)) {
		definitions_leave(&guard);
		return count;
	}
	last = ended_code(kind, &value);
	nameless = !value;
	count = 0;
	if (value && !(value & (DEFINITION_HIDDEN | CODE_THINNED)) && most)
		ids[count++] = DEFINITION_ID(value);
	frame = is_outermost(last) ? NULL : top_frame(skip_top, &last);
	for (; frame; frame = next_frame(frame, &last)) {
		value = frame_value(frame);
		nameless |= !value;
		if (!value || value & (DEFINITION_HIDDEN | CODE_THINNED))
			continue;
		if (count == most)
			break;
		if (lines)
			lines[count] = frame_line(frame);
		ids[count++] = DEFINITION_ID(value);
	}
	*more = frame || nameless;
	if (!frame)
		note_outermost(last);
	python.Py_DecRef(frame);
	definitions_leave(&guard);
	return count;
}
