/*
 * program.c - see program.h.
 */
#include "hooks/program.h"

#include <string.h>

#include "definitions/define.h"

void program_begin(void)
{
	thread_self.outside = config.program_only;
	thread_self.program = NULL;
}

void program_is_not_seen(void)
{
	thread_self.outside = false;
}

static bool is_text(struct object *text, const char *expected)
{
	return text && python.PyUnicode_CompareWithASCIIString &&
	       !python.PyUnicode_CompareWithASCIIString(text, expected);
}

static bool attribute_is(struct object *object, const char *name, const char *expected)
{
	struct object *value = python_attribute(object, name);
	bool is = is_text(value, expected);

	python.Py_DecRef(value);
	return is;
}

static bool runs_as_main(void)
{
	struct object *globals = python.PyEval_GetGlobals();
	struct object *name = globals ? python_item(globals, "__name__") : NULL;
	bool is = is_text(name, "__main__");

	python.Py_DecRef(name);
	return is;
}

enum place { PLACE_RUNPY, PLACE_IMPORT, PLACE_ELSEWHERE };

/* Modules of the import system are frozen; from 3.11 on runpy is, too. */
static enum place place_of(struct object *code)
{
	struct string file = string_of_new(python_attribute(code, "co_filename"));
	static const char end[] = "/runpy.py", frozen[] = "<frozen ";
	size_t length = sizeof(end) - 1;
	enum place place = PLACE_ELSEWHERE;

	if ((file.length >= length && !memcmp(file.bytes + file.length - length, end, length)) ||
	    !strcmp(file.bytes, "<frozen runpy>"))
		place = PLACE_RUNPY;
	else if (!strncmp(file.bytes, frozen, sizeof(frozen) - 1))
		place = PLACE_IMPORT;
	python.Py_DecRef(file.holder);
	return place;
}

/* Whether runpy runs a module as the program, or imports a package above it. caller: of the module's code. */
static bool is_run_by_runpy(struct object *caller)
{
	const char *function = "_run_code";
	bool is = false;

	python.Py_IncRef(caller);
	while (caller) {
		struct object *code = python_code_of_frame(caller), *next = NULL;
		enum place place = code ? place_of(code) : PLACE_ELSEWHERE;

		if (place == PLACE_RUNPY)
			is = attribute_is(code, "co_name", function);
		else if (place == PLACE_IMPORT)
			next = python_frame_caller(caller);
		function = "_get_module_details";
		python.Py_DecRef(code);
		python.Py_DecRef(caller);
		caller = next;
	}
	return is;
}

/* Whether the code, whose call begins, is one that Python runs as the program. */
static bool is_program(struct object *code)
{
	struct object *frame, *caller;
	struct definitions_guard guard;
	bool is = false;

	if (python.code_name && !is_text(python_field(code, python.code_name), "<module>"))
		return false;
	definitions_enter(&guard);
	frame = python.PyEval_GetFrame();
	if (frame && attribute_is(code, "co_name", "<module>")) {
		caller = python_frame_caller(frame);
		is = caller ? is_run_by_runpy(caller) : runs_as_main();
		python.Py_DecRef(caller);
	}
	python.PyErr_Clear();
	definitions_leave(&guard);
	return is;
}

bool program_reaches(struct object *code, bool starts)
{
	if (thread_self.outside) {
		if (!starts || !is_program(code))
			return false;
		thread_self.outside = false;
		thread_self.program = code;
		thread_self.program_depth = 0;
	}
	thread_self.program_depth += starts && code == thread_self.program;
	return true;
}

void program_ends(void)
{
	if (--thread_self.program_depth)
		return;
	thread_self.program = NULL;
	thread_self.outside = true;
	writer_expect_stack();
}
