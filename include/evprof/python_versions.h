/*
 * python_versions.h - what differs between the versions of Python: the one table of it. A new version is a new row.
 *
 * The library reads the Python in its process by it, and evprof stack that of another process (tools/stack/).
 *
 * The layouts are those of each release's headers (Include/cpython/code.h, frameobject.h, methodobject.h,
 * descrobject.h, Include/internal/pycore_frame.h), 64-bit, without Py_TRACE_REFS. Nobody relies on them unchecked:
 * python_verify() of the library compares them with what the interpreter's functions return, and a reader from outside
 * follows the pointers. Free-threaded builds have the layouts of their version, except for the longer head of objects.
 */
#ifndef EVPROF_PYTHON_VERSIONS_H
#define EVPROF_PYTHON_VERSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "evprof/sampling.h"

/* What some versions do. */
enum python_trait {
	PYTHON_CLEARS_PENDING_CALLS = 1 << 0, /* when the runtime is first initialized (3.7) */
	PYTHON_NAMES_TASKS = 1 << 1,	      /* tasks of asyncio have names (from 3.8 on) */
	PYTHON_NATIVE_IDS = 1 << 2,	      /* a Thread has its kernel id, once it runs (from 3.8 on) */
	PYTHON_EVENT_BLOCKS = 1 << 3,	      /* objects are allocated for events (3.9 to 3.13, see event_blocks.h) */
	PYTHON_WALKS_LINES = 1 << 4,	      /* the line is searched at each event of a profile function (3.10) */
	/*
	 * From 3.11 on a frame is the interpreter's own, and that of a coroutine part of it; code has its instructions
	 * and a qualified name.
	 */
	PYTHON_OWN_FRAMES = 1 << 5,
	PYTHON_FRAME_BEHIND_CFRAME = 1 << 6, /* the thread state leads to the running frame by its cframe (3.12) */
	/* Interpreters share the code objects of frozen modules, which survive the end of Python (3.12). */
	PYTHON_SHARES_FROZEN_CODE = 1 << 7,
	PYTHON_KNOWN_WITHOUT_GIL = 1 << 8, /* its free-threaded build can be recorded (3.13) */
	PYTHON_UNWINDS_PAST = 1 << 9,	   /* the offset of an unwound instruction is that of its end (from 3.15 on) */
	PYTHON_PACKED_KEYS = 1 << 10,	   /* the sizes of a dict's keys are bytes, their logarithms (from 3.11 on) */
	/* Where the attributes of an object are that share the keys of their class. Until 3.10: in its dict. */
	PYTHON_VALUES_BEFORE = 1 << 11, /* behind a pointer four words before the object (3.11) */
	PYTHON_VALUES_TAGGED = 1 << 12, /* behind the pointer to its dict, if the lowest bit of that is set (3.12) */
	PYTHON_VALUES_INLINE = 1 << 13, /* behind the object, after four bytes of sizes (from 3.13 on) */
	/* The state of a generator is a byte, until 3.12 -2 or -1 while it does not run; later -3 to -1, or 0 to 3. */
	PYTHON_STATES_FROM_MINUS_3 = 1 << 14, /* 3.13, 3.14 */
	PYTHON_STATES_FROM_0 = 1 << 16,	      /* 3.15 */
	PYTHON_AWAITED_BELOW = 1 << 17,	      /* what it awaits is the last but one of its stack (from 3.15 on) */
	PYTHON_CALLS_ABOVE_NULL = 1 << 19,    /* a property's function may be called above a NULL on the stack (3.12) */
	PYTHON_SPLITS_SUPERINSTRUCTIONS = 1 << 20, /* when it instruments code (3.12, see superinstructions.h) */
	PYTHON_HASHED_TUPLES = 1 << 18,		   /* a tuple has its hash before its objects (from 3.14 on) */
	PYTHON_STACK_ADDRESS = 1 << 15,		   /* a frame has the address of the end of its stack, and no depth */
};

/* Offsets of the table in versions.c, in bytes; 0 where the field is not read in this version. */
struct python_layout {
	uint8_t yields[2];	    /* YIELD_VALUE, plain and instrumented (from 3.12 on); 0: not known */
	size_t code_bytes;	    /* PyCodeObject.co_code (until 3.10) */
	size_t frame_last;	    /* PyFrameObject.f_lasti (until 3.10) */
	unsigned last_unit;	    /* bytes of one unit of f_lasti */
	size_t inner_previous;	    /* _PyInterpreterFrame.prev_instr (3.11) */
	size_t locals;		    /* f_localsplus of the frame, or of the inner frame */
	size_t chain_code;	    /* the code of an interpreter frame, which is a PyFrameObject until 3.10 ... */
	size_t chain_back;	    /* ... and the frame of its caller */
	size_t chain_globals;	    /* ... and its globals */
	size_t frame_owner;	    /* _PyInterpreterFrame.owner, a byte (from 3.11 on) */
	size_t frame_entry;	    /* _PyInterpreterFrame.is_entry, a byte: C code called the function (3.11) */
	size_t frame_stack;	    /* the end of a suspended frame's stack: its depth, or PYTHON_STACK_ADDRESS */
	size_t frame_values;	    /* PyFrameObject.f_valuestack, from which the depth counts; 0: from the locals on */
	size_t generator_frame;	    /* of a generator: its frame (until 3.10 a pointer) */
	size_t state_profile;	    /* PyThreadState.c_profilefunc */
	size_t state_tracing;	    /* PyThreadState.use_tracing (until 3.9) */
	size_t state_cframe;	    /* PyThreadState.cframe, which begins with use_tracing (3.10, 3.11) */
	size_t state_bytes;	    /* PyThreadState (until 3.11) */
	size_t interpreter_threads; /* PyInterpreterState: its newest thread state (until 3.12) */
	size_t interpreter_evaluator; /* PyInterpreterState.eval_frame (3.9 to 3.11) */
	size_t runtime_ceval;	      /* _PyRuntime.ceval, see python_takes_pending_calls() (3.8) */
};

/*
 * Offsets that are the same in all versions that have the field. They are constants, because hooks use them at each
 * event. Offsets of objects are for builds with the GIL; without it the head of objects is longer by
 * PYTHON_OBJECT_SHIFT.
 */
#define PYTHON_OBJECT_BYTES 16 /* PyObject */
#define PYTHON_OBJECT_SHIFT 16
enum {
	PYTHON_REFERENCES = 0,	       /* PyObject.ob_refcnt (with the GIL) */
	PYTHON_TYPE = 8,	       /* PyObject.ob_type */
	PYTHON_TYPE_NAME = 24,	       /* PyTypeObject.tp_name */
	PYTHON_TYPE_BASIC_SIZE = 32,   /* PyTypeObject.tp_basicsize */
	PYTHON_TYPE_DEALLOC = 48,      /* PyTypeObject.tp_dealloc */
	PYTHON_TYPE_VECTORCALL = 56,   /* PyTypeObject.tp_vectorcall_offset (from 3.8 on) */
	PYTHON_TYPE_FLAGS = 168,       /* PyTypeObject.tp_flags */
	PYTHON_TYPE_MEMBERS = 240,     /* PyTypeObject.tp_members */
	PYTHON_TYPE_BASE = 256,	       /* PyTypeObject.tp_base */
	PYTHON_TYPE_DICT_OFFSET = 288, /* PyTypeObject.tp_dictoffset */
	PYTHON_C_FUNCTION_METHOD = 16, /* PyCFunctionObject.m_ml */
	PYTHON_C_FUNCTION_SELF = 24,   /* PyCFunctionObject.m_self */
	PYTHON_C_FUNCTION_MODULE = 32, /* PyCFunctionObject.m_module */
	PYTHON_DESCRIPTOR_CLASS = 16,  /* PyDescrObject.d_type */
	PYTHON_DESCRIPTOR_METHOD = 40, /* PyMethodDescrObject.d_method */
	PYTHON_TRACEBACK_NEXT = 16,    /* PyTracebackObject.tb_next */
	PYTHON_FRAME_CODE = 32,	       /* PyFrameObject.f_code (until 3.10) */
	PYTHON_FRAME_INNER = 24,       /* PyFrameObject.f_frame (from 3.11 on) */
	PYTHON_INNER_CODE = 32,	       /* _PyInterpreterFrame.f_code (3.11) */
	PYTHON_SIZE = 16,	       /* PyVarObject.ob_size, PyASCIIObject.length */
	PYTHON_TEXT_STATE = 32,	       /* PyASCIIObject.state */
	PYTHON_INT_DIGIT = 24,	       /* PyLongObject: the first digit */
	PYTHON_BYTES_DATA = 32,	       /* PyBytesObject.ob_sval */
	PYTHON_STATE_PREVIOUS = 0,     /* PyThreadState.prev */
	PYTHON_STATE_NEXT = 8,	       /* PyThreadState.next */
	PYTHON_STATE_INTERPRETER = 16, /* PyThreadState.interp */
	PYTHON_STATE_FRAME = 24,       /* PyThreadState.frame (until 3.10) */
	PYTHON_STATE_DEPTH = 32,       /* PyThreadState.recursion_depth: int (3.9, 3.10) */
	PYTHON_STATE_DEPTH_LEFT = 32,  /* PyThreadState.recursion_remaining: int (3.11) */
	PYTHON_STATE_LIMIT = 36,       /* PyThreadState.recursion_limit: int (3.11) */
	PYTHON_INTERPRETER_LIMIT = 64, /* PyInterpreterState.ceval.recursion_limit: int (3.9, 3.10) */
	PYTHON_CFRAME_FRAME = 8,       /* CFrame.current_frame (3.11) */
	PYTHON_INSTRUCTION_FIRST = 40, /* where _PyInterpreterFrame has its instruction (from 3.11 on) */
	PYTHON_INSTRUCTION_END = 112,
	PYTHON_TEXT_WITH_WCHAR_BYTES = 80, /* PyUnicodeObject until 3.11 */
	PYTHON_TEXT_BYTES = 64,		   /* and from 3.12 on */
};

/*
 * FRAME_OWNED_BY_THREAD, FRAME_OWNED_BY_GENERATOR; FRAME_OWNED_BY_CSTACK (3.12, 3.13), FRAME_OWNED_BY_INTERPRETER
 * (from 3.14 on)
 */
#define PYTHON_FRAME_OWNED_BY_THREAD 0
#define PYTHON_FRAME_OWNED_BY_GENERATOR 1
#define PYTHON_FRAME_OWNED_BY_C 3

/* Until 3.11.3, BINARY_SUBSCR_GETITEM takes no notice of a frame evaluator (GH-104405). */
#define PYTHON_SUBSCRIPTS_MENDED_IN_11 4

#define PYTHON_SINCE_8 (PYTHON_NAMES_TASKS | PYTHON_NATIVE_IDS)
#define PYTHON_SINCE_11 (PYTHON_SINCE_8 | PYTHON_OWN_FRAMES | PYTHON_PACKED_KEYS)
#define PYTHON_SINCE_13 (PYTHON_SINCE_11 | PYTHON_VALUES_INLINE)
#define PYTHON_SINCE_14 (PYTHON_SINCE_13 | PYTHON_STACK_ADDRESS | PYTHON_HASHED_TUPLES)
#define PYTHON_ONLY_11 (PYTHON_EVENT_BLOCKS | PYTHON_VALUES_BEFORE)
#define PYTHON_ONLY_9 (PYTHON_EVENT_BLOCKS | PYTHON_STACK_ADDRESS)
#define PYTHON_ONLY_10 (PYTHON_EVENT_BLOCKS | PYTHON_WALKS_LINES)
#define PYTHON_ONLY_12                                                                                                 \
	(PYTHON_EVENT_BLOCKS | PYTHON_FRAME_BEHIND_CFRAME | PYTHON_SHARES_FROZEN_CODE | PYTHON_VALUES_TAGGED |         \
	 PYTHON_CALLS_ABOVE_NULL | PYTHON_SPLITS_SUPERINSTRUCTIONS)
/* Other free-threaded builds could not be tested: from 3.14 on code is copied for each thread. */
#define PYTHON_ONLY_13 (PYTHON_STATES_FROM_MINUS_3 | PYTHON_EVENT_BLOCKS | PYTHON_KNOWN_WITHOUT_GIL)
#define PYTHON_ONLY_14 PYTHON_STATES_FROM_MINUS_3
#define PYTHON_ONLY_15 (PYTHON_UNWINDS_PAST | PYTHON_STATES_FROM_0 | PYTHON_AWAITED_BELOW)

struct python_version {
	unsigned traits; /* enum python_trait */
	uint32_t lines;
	struct python_layout layout; /* 0: the version has no such field, or hooks do not read it */
};

#define PYTHON_FIRST_MINOR 6
#define PYTHON_NEWEST_MINOR 15

/* The row of the version 3.minor, at least PYTHON_FIRST_MINOR; NULL: it is newer than the table. */
static inline const struct python_version *python_version_row(int minor)
{
	/* clang-format off */
	static const struct python_version rows[PYTHON_NEWEST_MINOR - PYTHON_FIRST_MINOR + 1] = {
		[6 - PYTHON_FIRST_MINOR] = {
			.lines = SAMPLING_LINES_LNOTAB,
			.layout = {.code_bytes = 40, .frame_last = 120, .last_unit = 1, .locals = 376,
			.chain_code = 32, .chain_back = 24, .chain_globals = 48, .generator_frame = 16,
			.state_profile = 48, .state_tracing = 44, .state_bytes = 2272,
			.interpreter_threads = 8}},
		[7 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_CLEARS_PENDING_CALLS, .lines = SAMPLING_LINES_LNOTAB,
			.layout = {.code_bytes = 40, .frame_last = 104, .last_unit = 1, .locals = 360,
			.chain_code = 32, .chain_back = 24, .chain_globals = 48, .generator_frame = 16,
			.state_profile = 56, .state_tracing = 48, .state_bytes = 280,
			.interpreter_threads = 8}},
		[8 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_8 | PYTHON_STACK_ADDRESS, .lines = SAMPLING_LINES_LNOTAB,
			.layout = {.code_bytes = 48, .frame_last = 104, .last_unit = 1, .locals = 360,
			.chain_code = 32, .chain_back = 24, .chain_globals = 48, .frame_stack = 72,
			.generator_frame = 16, .state_profile = 56, .state_tracing = 48, .state_bytes = 264,
			.runtime_ceval = 584, .interpreter_threads = 8}},
		[9 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_8 | PYTHON_ONLY_9, .lines = SAMPLING_LINES_LNOTAB,
			.layout = {.code_bytes = 48, .frame_last = 104, .last_unit = 1, .locals = 360,
			.chain_code = 32, .chain_back = 24, .chain_globals = 48, .frame_stack = 72,
			.generator_frame = 16, .state_profile = 56, .state_tracing = 48, .state_bytes = 264,
			.interpreter_threads = 8, .interpreter_evaluator = 1400}},
		[10 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_8 | PYTHON_ONLY_10, .lines = SAMPLING_LINES_RANGES,
			.layout = {.code_bytes = 48, .frame_last = 96, .last_unit = 2, .locals = 352,
			.chain_code = 32, .chain_back = 24, .chain_globals = 48, .frame_stack = 80,
			.frame_values = 64, .generator_frame = 16, .state_profile = 56, .state_cframe = 48,
			.state_bytes = 280, .interpreter_threads = 8,
			.interpreter_evaluator = 1368}},
		[11 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_11 | PYTHON_ONLY_11, .lines = SAMPLING_LINES_PLACES,
			.layout = {.inner_previous = 56, .locals = 72, .chain_code = 32, .chain_back = 48,
			.chain_globals = 8, .frame_owner = 69, .frame_entry = 68, .frame_stack = 64,
			.generator_frame = 80, .state_profile = 64, .state_cframe = 56, .state_bytes = 360,
			.interpreter_threads = 16, .interpreter_evaluator = 1424}},
		[12 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_11 | PYTHON_ONLY_12, .lines = SAMPLING_LINES_PLACES,
			.layout = {.yields = {150, 243}, .locals = 72, .chain_back = 8, .chain_globals = 24,
			.frame_owner = 70, .frame_stack = 64, .generator_frame = 72, .state_profile = 64,
			.interpreter_threads = 72}},
		[13 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_13 | PYTHON_ONLY_13, .lines = SAMPLING_LINES_PLACES,
			.layout = {.yields = {118, 241}, .locals = 72, .chain_back = 8, .chain_globals = 24,
			.frame_owner = 70, .frame_stack = 64, .generator_frame = 72, .state_profile = 80}},
		[14 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_14 | PYTHON_ONLY_14, .lines = SAMPLING_LINES_PLACES,
			.layout = {.yields = {120, 247}, .locals = 80, .chain_back = 8, .chain_globals = 24,
			.frame_owner = 74, .frame_stack = 64, .generator_frame = 72, .state_profile = 80}},
		[15 - PYTHON_FIRST_MINOR] = {
			.traits = PYTHON_SINCE_14 | PYTHON_ONLY_15, .lines = SAMPLING_LINES_PLACES,
			.layout = {.yields = {119, 246}, .locals = 80, .chain_back = 8, .chain_globals = 24,
			.frame_owner = 74, .frame_stack = 64, .generator_frame = 72, .state_profile = 104}},
	};
	/* clang-format on */

	return minor <= PYTHON_NEWEST_MINOR ? &rows[minor - PYTHON_FIRST_MINOR] : NULL;
}

#endif
