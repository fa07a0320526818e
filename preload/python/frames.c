/*
 * frames.c - the frames of the interpreter, and the instructions at which they stand.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/log_line.h"
#include "python/own_frames.h"
#include "python/profiled_frame.h"
#include "python/python.h"

#define STATE_SEARCH_BYTES 160 /* PyThreadState is longer in all versions that need the search */

struct object *python_frame_caller(struct object *frame)
{
	struct object *caller =
	    python.PyFrame_GetBack ? python.PyFrame_GetBack(frame) : python_attribute(frame, "f_back");

	if (caller == python.none) {
		python.Py_DecRef(caller);
		caller = NULL;
	}
	return caller;
}

struct object *python_code_of_frame(struct object *frame)
{
	return python.PyFrame_GetCode ? python.PyFrame_GetCode(frame) : python_attribute(frame, "f_code");
}

const void *python_inner_frame(const struct object *frame)
{
	return !python_has(PYTHON_OWN_FRAMES) ? frame : python_object_field(frame, PYTHON_FRAME_INNER);
}

const void *python_frame_back(const void *frame)
{
	return python_field(frame, python.layout.chain_back);
}

/* From 3.14 on the low bits are a tag. */
const void *python_frame_code(const void *frame)
{
	const void *code = (const void *)((uintptr_t)python_field(frame, python.layout.chain_code) & ~(uintptr_t)7);

	if (!code || python_type(code) != python.code_type)
		return NULL;
	return python.layout.frame_owner && ((const char *)frame)[python.layout.frame_owner] == PYTHON_FRAME_OWNED_BY_C
		   ? NULL
		   : code;
}

/* From 3.11 on these are adjacent in a code object: the size of its stack, its first line, the number of its locals. */
static int stack_slots(const void *code)
{
	return python_int(code, python.code_line - sizeof(int));
}

static int local_slots(const void *code)
{
	return python_int(code, python.code_line + sizeof(int));
}

/* 3.11: the size that _PyFrame_New_NoTrack() computes. */
size_t python_frame_size(const struct object *frame)
{
	const void *code = python_field(python_inner_frame(frame), PYTHON_INNER_CODE);
	size_t slots = (size_t)stack_slots(code) + (size_t)local_slots(code);

	return python_basic_size(python_type(frame)) + slots * sizeof(void *);
}

const void *python_running_frame(void)
{
	const void *state = python.current_thread_state(), *frame;

	if (!python.monitoring)
		return python.inner_frames
			   ? python_field(python_field(state, python.layout.state_cframe), PYTHON_CFRAME_FRAME)
			   : python_field(state, PYTHON_STATE_FRAME);
	frame = python_field(state, python.state_frame);
	return python_has(PYTHON_FRAME_BEHIND_CFRAME) ? python_field(frame, 0) : frame;
}

/* The offset of the running frame in the thread state; 0: not found. */
static size_t find_state_frame(const void *running)
{
	const void *state = python.current_thread_state(), *word;

	for (size_t offset = 16; offset < STATE_SEARCH_BYTES; offset += 8) {
		word = python_field(state, offset);
		if (python_has(PYTHON_FRAME_BEHIND_CFRAME) && !python_peek(word, &word, sizeof(word)))
			continue;
		if (word == running)
			return offset;
	}
	return 0;
}

/* Whether the frame's chain leads to the frame of f_back. C code may have been entered in between. */
static bool leads_back(struct object *frame)
{
	struct object *back = python.PyObject_GetAttrString(frame, "f_back");
	const void *at = python_inner_frame(frame),
		   *wanted = back && back != python.none ? python_inner_frame(back) : NULL;
	bool found = false;

	for (int i = 0; back && i < 8 && !found; i++)
		found = (python_peek((const char *)at + python.layout.chain_back, &at, sizeof(at)) && at == wanted) ||
			!wanted;
	python.Py_DecRef(back);
	return found;
}

static bool flags_are_there(struct object *frame)
{
	struct object *code = python.PyObject_GetAttrString(frame, "f_code");
	struct object *flags = code ? python.PyObject_GetAttrString(code, "co_flags") : NULL;
	bool there = flags && python_frame_code(python_inner_frame(frame)) == code &&
		     python.PyLong_AsLong(flags) == python_int(code, python.code_flags);

	python.Py_DecRef(flags);
	python.Py_DecRef(code);
	return there;
}

bool python_knows_frames(void)
{
	enum { UNKNOWN, KNOWN, OTHERWISE };
	static _Atomic int known; /* threads that check at the same time get the same result */
	struct object *frame;
	int state = atomic_load_explicit(&known, memory_order_acquire);

	if (state != UNKNOWN)
		return state == KNOWN;
	frame = python.layout.chain_back && python.code_flags ? python.PyEval_GetFrame() : NULL;
	if (!frame)
		return false;
	if (python.monitoring)
		python.state_frame = find_state_frame(python_inner_frame(frame));
	state = (!python.monitoring || python.state_frame) && flags_are_there(frame) && leads_back(frame) ? KNOWN
													  : OTHERWISE;
	/* Release: a thread that sees the result sees state_frame. */
	atomic_store_explicit(&known, state, memory_order_release);
	if (state == OTHERWISE)
		log_line(LOG_INFO, "frames of Python %s are not where they are expected; tasks are not distinguished",
			 python_version());
	python.PyErr_Clear();
	return state == KNOWN;
}

struct object *python_argument(int place, const char *name)
{
	struct object *frame = python.PyEval_GetFrame(), *key, *value;

	if (!frame)
		return NULL;
	if (!python.monitoring) {
		const char *at = (const char *)frame;

		if (python.inner_frames)
			at = python_field(frame, PYTHON_FRAME_INNER);
		value = *(struct object *const *)(at + python.layout.locals + 8 * (size_t)place);
		if (value)
			python.Py_IncRef(value);
		return value;
	}
	key = python.PyFrame_GetVar ? python.PyUnicode_FromString(name) : NULL;
	if (!key)
		return NULL;
	value = python.PyFrame_GetVar(frame, key);
	python.Py_DecRef(key);
	if (!value)
		python.PyErr_Clear();
	return value;
}

bool python_inlines_subscripts(void)
{
	int micro;

	return sscanf(python_version(), "3.11.%d", &micro) == 1 && micro < PYTHON_SUBSCRIPTS_MENDED_IN_11;
}

bool python_is_specialized_subscript(const uint8_t *instruction)
{
	return *instruction >= PYTHON_OPCODE_SUBSCRIPT_FIRST && *instruction <= PYTHON_OPCODE_SUBSCRIPT_LAST;
}

bool python_has_subscripts(const struct object *code)
{
	const uint8_t *instructions = (const uint8_t *)code + python_basic_size(python.code_type);
	uint64_t bytes = python_code_size(code);

	for (uint64_t i = 0; i < bytes; i += 2)
		if (instructions[i] == PYTHON_OPCODE_SUBSCRIPT || python_is_specialized_subscript(instructions + i))
			return true;
	return false;
}

/* original: the instructions as they were compiled, with zeros in the places of inline caches. */
static bool despecialize(uint8_t *instructions, const uint8_t *original, uint64_t bytes, bool all)
{
	uint64_t start = 0;

	while (start < bytes && original[start] != PYTHON_OPCODE_RESUME)
		start += 2;
	if (start >= bytes || instructions[start] == PYTHON_OPCODE_RESUME)
		return false;
	for (uint64_t i = 0; i < bytes; i += 2)
		if (original[i] == PYTHON_OPCODE_SUBSCRIPT &&
		    (all || instructions[i] == PYTHON_OPCODE_SUBSCRIPT_ADAPTIVE ||
		     instructions[i] == PYTHON_OPCODE_SUBSCRIPT_GETITEM))
			instructions[i] = PYTHON_OPCODE_SUBSCRIPT;
	return true;
}

bool python_despecialize_subscripts(struct object *code, bool all)
{
	struct object *type, *value, *traceback, *text;
	char *original;
	ssize_t bytes;
	bool done;

	if (!python_has_subscripts(code))
		return true;
	python.PyErr_Fetch(&type, &value, &traceback);
	text = python.PyObject_GetAttrString(code, "co_code");
	done = text && !python.PyBytes_AsStringAndSize(text, &original, &bytes) &&
	       (uint64_t)bytes == python_code_size(code) &&
	       despecialize((uint8_t *)code + python_basic_size(python.code_type), (const uint8_t *)original,
			    (uint64_t)bytes, all);
	python.Py_DecRef(text);
	python.PyErr_Restore(type, value, traceback);
	return done;
}

static bool is_yield(char instruction)
{
	return !python.layout.yields[0] || (uint8_t)instruction == python.layout.yields[0] ||
	       (uint8_t)instruction == python.layout.yields[1];
}

/* _co_firsttraceable, an index, is stored two words before the instructions. */
int64_t python_first_resume(const struct object *code)
{
	int64_t first;

	if (!python.code_instructions)
		return -1;
	first = 2 * (int64_t)python_int(code, python.code_instructions - 16);
	return first < (int64_t)python_code_size(code) ? first : -1;
}

/*
 * Each RESUME but the first follows a yield; inline cache entries do not. After a callback of a JUMP or a BRANCH that
 * raises, the offset is no place in the code in 3.12 and 3.13: the interpreter has no instruction then.
 */
bool python_unwinds_at_resume(const struct object *code, struct object *offset)
{
	const char *instructions = (const char *)code + python.code_instructions;
	long at = python.PyLong_AsLong(offset) - (python_has(PYTHON_UNWINDS_PAST) ? 2 : 0);
	int64_t first;

	if (!python.code_instructions || python_type(code) != python.code_type || at < 0 ||
	    (uint64_t)at >= python_code_size(code))
		return false;
	first = python_first_resume(code);
	return at == first ||
	       (first >= 0 && instructions[at] == instructions[first] && at > 2 && is_yield(instructions[at - 2]));
}

void python_mark_traced(struct thread_state *state)
{
	char *fields = (char *)state;

	if (!python.layout.state_cframe)
		*(int *)(fields + python.layout.state_tracing) = 1;
	else if (!python.inner_frames)
		**(int **)(fields + python.layout.state_cframe) = 1;
	else
		**(uint8_t **)(fields + python.layout.state_cframe) = 255; /* a mask over opcodes */
}

bool python_is_traced(const struct thread_state *state)
{
	const char *fields = (const char *)state;

	if (!python.layout.state_cframe)
		return *(const int *)(fields + python.layout.state_tracing);
	if (!python.inner_frames)
		return **(int *const *)(fields + python.layout.state_cframe);
	return **(uint8_t *const *)(fields + python.layout.state_cframe);
}

void python_unmark_traced(struct thread_state *state)
{
	const void *const *functions = (const void *const *)((char *)state + python.layout.state_profile);
	char *fields = (char *)state;

	if (functions[0] || functions[1]) /* c_profilefunc, c_tracefunc */
		return;
	if (!python.layout.state_cframe)
		*(int *)(fields + python.layout.state_tracing) = 0;
	else if (!python.inner_frames)
		**(int **)(fields + python.layout.state_cframe) = 0;
	else
		**(uint8_t **)(fields + python.layout.state_cframe) = 0;
}

const void *own_frames_waiting_state(void)
{
	const void *own = python.PyGILState_GetThisThreadState();

	/* From 3.12 on the caller has found that it is not the current one. */
	if (!own || (!python.monitoring && own == python.current_thread_state()))
		return own;
	return python.Py_IsInitialized() ? own : NULL;
}

static bool stores_depth(const char *caller, const char *called)
{
	size_t owner = python.layout.frame_owner, entry = python.layout.frame_entry;

	return called[owner] == PYTHON_FRAME_OWNED_BY_THREAD && !(entry && called[entry]) &&
	       (caller[owner] == PYTHON_FRAME_OWNED_BY_THREAD || caller[owner] == PYTHON_FRAME_OWNED_BY_GENERATOR);
}

uint64_t *own_frames_result(const char *caller, const char *called)
{
	const void *code = (const void *)(own_frames_code(caller) & ~(uintptr_t)7);
	uint64_t *stack = (uint64_t *)(caller + python.layout.locals);
	int64_t depth, locals;

	if (!stores_depth(caller, called))
		return NULL;
	depth = python_has(PYTHON_STACK_ADDRESS) ? (uint64_t *)python_field(caller, python.layout.frame_stack) - stack
						 : python_int(caller, python.layout.frame_stack);
	locals = local_slots(code);
	if (depth < locals || depth >= locals + stack_slots(code))
		return NULL;
	/* There the property's object stood one word below, and nothing is written to this one by such a call. */
	return python_has(PYTHON_CALLS_ABOVE_NULL) && depth > locals && !stack[depth - 1] ? NULL : stack + depth;
}

const void *own_frames_shown_code(const char *frame)
{
	const void *code = python_frame_code(frame);

	return code && own_frames_has_begun(frame) ? code : NULL;
}

struct object *own_frames_globals(const char *frame)
{
	static const void *dict_type;
	struct object *globals;

	if (python.free_threaded)
		return NULL;
	dict_type = dict_type ? dict_type : python_symbol("PyDict_Type");
	globals = python_field(frame, python.layout.chain_globals);
	return globals && python_type(globals) == dict_type ? globals : NULL;
}
