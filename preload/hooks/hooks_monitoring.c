/*
 * hooks_monitoring.c - calls, returns and exceptions from Python 3.12, by sys.monitoring (PEP 669).
 *
 * The callbacks are instances of evprof's own type, which has only the vectorcall protocol. The interpreter calls the C
 * function below directly. That is cheaper than a builtin function, and cheaper than the profile hook, for which 3.12
 * creates a frame object at each event. Each interpreter has one such type and one set of callbacks.
 *
 * Free-threaded builds call the callbacks in several threads at once. The only shared state that they read and that
 * changes is the table of ids, whose readers need no lock. Taking or freeing a tool id requires python_lock().
 */
#include <errno.h>

#include "base/config.h"
#include "base/filter.h"
#include "base/log_line.h"
#include "definitions/definitions.h"
#include "definitions/names.h"
#include "definitions/tasks.h"
#include "hooks/event_blocks.h"
#include "hooks/hook_compat.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "ring/process.h"
#include "ring/writer.h"

/* typeslots.h, structmember.h, object.h: the stable ABI. */
enum { SLOT_CALL = 50, SLOT_DEALLOC = 52, SLOT_MEMBERS = 72 };
enum { MEMBER_SSIZE = 19, MEMBER_READONLY = 1 };
#define TYPE_FLAGS (1u << 18 | 1u << 11 | 1u << 7) /* DEFAULT, HAVE_VECTORCALL, DISALLOW_INSTANTIATION */

/*
 * PEP 669: 0 debugger, 1 coverage, 2 profiler (cProfile), 5 optimizer; 3 and 4 are unassigned. evprof uses any free id,
 * because it yields an id that the program asks for (hook_compat.c).
 */
static const int tool_ids[] = {3, 4, 5, 2, 1, 0};
#define TOOL_NAME "evprof"

typedef struct object *(*vectorcall)(struct object *self, struct object *const *arguments, size_t count,
				     struct object *names);

/* The part of evprof's objects after the common object head. */
struct callback {
	vectorcall call;
};

static size_t head_bytes(void)
{
	return PYTHON_OBJECT_BYTES + python.object_shift;
}

static void *body_of(struct object *object)
{
	return (char *)object + head_bytes();
}

static const void *missing;    /* sys.monitoring.MISSING */
static struct object *disable; /* sys.monitoring.DISABLE: switches this event off at this location */

/*
 * From 3.13 on, C code may fire events for objects of its own types (PyMonitoring_FirePyStartEvent). They have no name.
 */
static inline bool is_code(const struct object *code)
{
	return likely(python_type(code) == python.code_type);
}

/* As python_object_field(), with a shift that is a compile-time constant. */
static inline __attribute__((always_inline)) void *field(const void *object, size_t offset, size_t shift)
{
	return python_field(object, offset + shift);
}

/* Writes an event of code. The start or resume of a coroutine that no other coroutine awaits is a step of a task. */
static void put_code(struct writer *writer, uint32_t head, uint32_t value)
{
	const void *frame;

	if (value & CODE_IS_COROUTINE && wire_head_kind(head) <= WIRE_THROW) {
		frame = python_running_frame();
		if (frame && !python_has_awaiter(frame)) {
			writer_put_step(writer, head, definitions_task(wire_head_kind(head), frame));
			return;
		}
	}
	writer_put(writer, head);
}

/* Returns the callback's result: DISABLE for a function that is not recorded. */
static __attribute__((noinline)) struct object *record_code(unsigned kind, struct object *code)
{
	struct writer *writer;
	uint32_t value;

	if (is_code(code) && definitions_hides_code(code))
		return disable;
	writer = writer_reserve(kind);
	if (!writer || !is_code(code))
		return python.none;
	value = definitions_code(code);
	if (value & DEFINITION_HIDDEN)
		return disable;
	if (value)
		put_code(writer, wire_head(kind, DEFINITION_ID(value)), value);
	else
		writer_lose(writer, kind);
	return python.none;
}

/* Without room: counts an event of a plain function as lost if the event before was; else takes the slow path. */
static __attribute__((noinline)) struct object *record_code_without_room(struct writer *writer, struct object *code,
									 unsigned kind)
{
	uint32_t id;

	if (!writer_goes_on_losing(writer) || !definitions_code_fast(writer, code, &id))
		return record_code(kind, code);
	writer_count_lost(writer, kind);
	return python.none;
}

/* Records an event of code that is not a plain function: a coroutine, or code that is new. */
static __attribute__((noinline)) struct object *record_coroutine(unsigned kind, struct object *code)
{
	struct writer *writer = thread_self.writer;
	uint32_t value = is_code(code) ? definitions_code_allowing(writer, code, CODE_SLOW_GENERATOR) : 0;

	if (!value)
		return record_code(kind, code);
	if (kind <= WIRE_THROW || !writer_put_fast(writer, wire_head(kind, DEFINITION_ID(value))))
		put_code(writer, wire_head(kind, DEFINITION_ID(value)), value);
	return python.none;
}

static inline __attribute__((always_inline)) struct object *record_code_fast(unsigned kind, struct object *code)
{
	struct writer *writer = thread_self.writer;
	uint32_t id;

	if (!writer_has_room(writer))
		return record_code_without_room(writer, code, kind);
	if (definitions_code_fast(writer, code, &id) && likely(writer_put_fast(writer, wire_head(kind, id))))
		return python.none;
	return record_coroutine(kind, code);
}

/* Returns the callback's result, so that the callback can end in a tail call and saves no registers. */
static __attribute__((noinline)) struct object *record_function(unsigned kind, const struct python_method *method,
								struct object *callable)
{
	struct writer *writer = thread_self.writer;
	uint32_t value;

	if (writer_goes_on_losing(writer) && definitions_function_fast(writer, method, &value)) {
		writer_count_lost(writer, kind);
		return python.none;
	}
	if (definitions_hides_function(method, callable))
		return python.none;
	writer = writer_reserve(kind);
	if (!writer)
		return python.none;
	value = definitions_function(method, callable);
	if (value & DEFINITION_HIDDEN)
		return python.none;
	if (value)
		writer_put(writer, wire_head(kind, DEFINITION_ID(value)));
	else
		writer_lose(writer, kind);
	return python.none;
}

/*
 * Finds the method of a C call as cProfile counts them: a builtin function, or a method of a builtin type on an object.
 * False for everything else: CALL fires for every callee, C_RETURN for all callees that are not Python functions, such
 * as classes.
 */
static inline __attribute__((always_inline)) bool find_method(struct object *const *arguments, size_t shift,
							      const struct python_method **method)
{
	struct object *callable = arguments[2];
	const void *type = field(callable, PYTHON_TYPE, shift);

	if (type == python.c_function_type || type == python.c_method_type)
		*method = field(callable, PYTHON_C_FUNCTION_METHOD, shift);
	else if (type == python.method_descriptor_type && arguments[3] != missing)
		*method = field(callable, PYTHON_DESCRIPTOR_METHOD, shift);
	else
		return false;
	return true;
}

static inline __attribute__((always_inline)) struct object *record_function_fast(unsigned kind,
										 struct object *const *arguments,
										 size_t shift)
{
	struct object *callable = arguments[2];
	struct writer *writer = thread_self.writer;
	const struct python_method *method;
	uint32_t id;

	if (!find_method(arguments, shift, &method))
		return python.none;
	if (writer_has_room(writer) && definitions_function_fast(writer, method, &id) &&
	    likely(writer_put_fast(writer, wire_head(kind, id))))
		return python.none;
	return record_function(kind, method, callable);
}

/*
 * The call hooks with calibration (EVPROF_CALIBRATE). In addition they mark calls that are reported but not recorded,
 * and flag the definition of a function that starts without a reported call.
 */
static struct object *record_call_calibrated(struct object *const *arguments, size_t shift)
{
	const void *type = field(arguments[2], PYTHON_TYPE, shift);
	const struct python_method *method;

	thread_self.called = !find_method(arguments, shift, &method);
	if (!thread_self.called)
		return record_function_fast(WIRE_C_CALL, arguments, shift);
	if (type != python.function_type && type != python.method_type && writer_finds_room(thread_self.writer))
		writer_put_reported_call(thread_self.writer);
	return python.none;
}

static struct object *record_start_calibrated(struct object *code)
{
	struct object *result;

	thread_self.unreported = !thread_self.called;
	result = record_code_fast(WIRE_CALL, code);
	thread_self.called = thread_self.unreported = false;
	return result;
}

static struct object *record_end_calibrated(unsigned kind, struct object *const *arguments, size_t shift)
{
	thread_self.called = false;
	return record_function_fast(kind, arguments, shift);
}

static bool is_none(struct object *owned)
{
	if (owned)
		python.Py_DecRef(owned);
	return !owned || owned == python.none;
}

/*
 * Whether the exception has unwound another frame before: it then has that frame in its traceback. An equal address
 * does not suffice: the exception that unwound the frame may have been caught in C and its memory reused for a new one.
 */
static bool has_passed_a_frame(struct object *exception)
{
	struct object *traceback, *next = NULL;
	bool passed;

	thread_self.nesting++;
	/* Not by name: a class of the program may run its own code for that. */
	traceback = python.PyException_GetTraceback(exception);
	if (traceback && traceback != python.none)
		next = python_attribute(traceback, "tb_next");
	passed = !is_none(next);
	is_none(traceback);
	thread_self.nesting--;
	return passed;
}

/*
 * RAISE fires in each frame that an exception passes. It is recorded once, where the exception starts: not if the same
 * exception has just unwound the frame below.
 */
static void record_exception(struct object *exception)
{
	struct writer *writer = thread_self.writer;
	uint32_t id;

	/* Before reserving: a repeated RAISE does not count as lost either. */
	if (writer->unwinding == exception && has_passed_a_frame(exception))
		return;
	writer = writer_reserve(WIRE_EXCEPTION);
	if (!writer)
		return;
	writer->unwinding = NULL;
	id = definitions_type(python_type(exception));
	if (id)
		writer_put(writer, wire_head(WIRE_EXCEPTION, id));
	else
		writer_lose(writer, WIRE_EXCEPTION);
}

/*
 * What raised at RESUME may have run before this callback (another tool's PY_START; from 3.13 on, a signal handler), so
 * that the start was not reported, or after it, so that it was. The stack is therefore written again.
 */
static void record_unwind(struct object *const *arguments)
{
	if (unlikely(python_unwinds_at_resume(arguments[0], arguments[1])))
		writer_expect_stack();
	record_code_fast(WIRE_UNWIND, arguments[0]);
	thread_self.writer->unwinding = arguments[2];
}

/* The thrown exception fires RAISE next. The generator may be at RESUME then. */
static void record_throw(struct object *code)
{
	record_code_fast(WIRE_THROW, code);
	thread_self.writer->throwing = 1;
}

/* As record_unwind(): a generator may catch what raised at RESUME; its whole body has an exception handler. */
static void record_raise(struct object *const *arguments)
{
	struct writer *writer = thread_self.writer;

	if (!writer->throwing && python_unwinds_at_resume(arguments[0], arguments[1]))
		writer_expect_stack();
	writer->throwing = 0;
	if (config.events & EVENT_EXCEPTION)
		record_exception(arguments[2]);
}

/*
 * A line event does not name its function. A line of a function that is not recorded would be attributed to its caller.
 */
static void record_line(struct object *const *arguments)
{
	if (!filter_any || !(definitions_code(arguments[0]) & DEFINITION_HIDDEN))
		hooks_line_record(python.PyLong_AsLong(arguments[1]));
}

/*
 * LINE does not fire where an instruction jumps back to its own line, as in the loop of `for i in r: s += i`;
 * sys.settrace() reports a line there. A jump to another line always fires LINE, so JUMP is disabled there.
 */
static struct object *record_jump(struct object *const *arguments)
{
	struct object *code = arguments[0];
	int from = (int)python.PyLong_AsLong(arguments[1]), to = (int)python.PyLong_AsLong(arguments[2]), line;

	if (to > from || !is_code(code) || !python.PyCode_Addr2Line)
		return disable;
	line = python.PyCode_Addr2Line(code, to);
	if (line <= 0 || line != python.PyCode_Addr2Line(code, from) || definitions_code(code) & DEFINITION_HIDDEN)
		return disable;
	hooks_line_record(line);
	return python.none;
}

/* Used where lines are recorded: until its next line event a generator is at the line of its yield. */
static struct object *record_resume_with_line(unsigned kind, struct object *const *arguments)
{
	uint64_t before = thread_self.writer->head;
	struct object *result;

	if (kind == WIRE_THROW)
		record_throw(arguments[0]);
	result = kind == WIRE_THROW ? python.none : record_code_fast(kind, arguments[0]);
	if (result == python.none && thread_self.writer->head != before && is_code(arguments[0]) &&
	    python.PyCode_Addr2Line)
		hooks_line_put_current(python.PyCode_Addr2Line(arguments[0], (int)python.PyLong_AsLong(arguments[1])));
	return result;
}

/*
 * The arguments of all callbacks begin with the code object and an integer, the offset of the instruction or the line.
 * The callbacks that read other objects are compiled twice, for builds with the GIL and without: they are too short to
 * look up where the fields are. All callbacks have a second form for use with memory events, in which the allocation of
 * that integer is hidden.
 */
#define ONE_CALLBACK(name, begin, statement)                                                                           \
	static struct object *name(struct object *self, struct object *const *arguments, size_t count,                 \
				   struct object *names)                                                               \
	{                                                                                                              \
		(void)self, (void)count, (void)names;                                                                  \
		begin;                                                                                                 \
		statement;                                                                                             \
		return python.none; /* immortal since 3.12 */                                                          \
	}
#define CALLBACK(name, statement)                                                                                      \
	ONE_CALLBACK(name, , statement)                                                                                \
	ONE_CALLBACK(name##_with_memory, event_blocks_integer(arguments[1]), statement)
#define CALLBACK_OF_FUNCTION(name, function, ...)                                                                      \
	CALLBACK(name, return function(__VA_ARGS__, 0))                                                                \
	CALLBACK(name##_without_gil, return function(__VA_ARGS__, PYTHON_OBJECT_SHIFT))

CALLBACK(on_start, return record_code_fast(WIRE_CALL, arguments[0]))
CALLBACK(on_resume, return record_code_fast(WIRE_RESUME, arguments[0]))
CALLBACK(on_throw, record_throw(arguments[0]))
CALLBACK(on_return, return record_code_fast(WIRE_RETURN, arguments[0]))
CALLBACK(on_yield, return record_code_fast(WIRE_YIELD, arguments[0]))
CALLBACK(on_unwind, record_unwind(arguments))
CALLBACK_OF_FUNCTION(on_call, record_function_fast, WIRE_C_CALL, arguments)
CALLBACK_OF_FUNCTION(on_c_return, record_function_fast, WIRE_C_RETURN, arguments)
CALLBACK_OF_FUNCTION(on_c_raise, record_function_fast, WIRE_C_EXCEPTION, arguments)
CALLBACK(on_start_calibrated, return record_start_calibrated(arguments[0]))
CALLBACK_OF_FUNCTION(on_call_calibrated, record_call_calibrated, arguments)
CALLBACK_OF_FUNCTION(on_c_return_calibrated, record_end_calibrated, WIRE_C_RETURN, arguments)
CALLBACK_OF_FUNCTION(on_c_raise_calibrated, record_end_calibrated, WIRE_C_EXCEPTION, arguments)
CALLBACK(on_raise, record_raise(arguments))
CALLBACK(on_line, record_line(arguments))
CALLBACK(on_jump, return record_jump(arguments))
CALLBACK(on_resume_with_line, return record_resume_with_line(WIRE_RESUME, arguments))
CALLBACK(on_throw_with_line, return record_resume_with_line(WIRE_THROW, arguments))

/* With the GIL, without it; then the two forms for use with memory events. */
#define EACH(with_gil, without)                                                                                        \
	{                                                                                                              \
		{with_gil, without},                                                                                   \
		{                                                                                                      \
			with_gil##_with_memory, without##_with_memory                                                  \
		}                                                                                                      \
	}
#define ONE(name) EACH(name, name)
#define BOTH(name) EACH(name, name##_without_gil)

static const struct {
	const char *event;
	vectorcall call[2][2];
	vectorcall call_calibrated[2][2]; /* EVPROF_CALIBRATE */
	unsigned wanted;		  /* for any of these: enum setting_event */
	bool set;			  /* false: comes with CALL */
} callbacks[] = {
    {"PY_START", ONE(on_start), ONE(on_start_calibrated), EVENT_CALL, true},
    {"PY_RESUME", ONE(on_resume), ONE(on_resume), EVENT_CALL, true},
    {"PY_THROW", ONE(on_throw), ONE(on_throw), EVENT_CALL, true},
    {"PY_RETURN", ONE(on_return), ONE(on_return), EVENT_CALL, true},
    {"PY_YIELD", ONE(on_yield), ONE(on_yield), EVENT_CALL, true},
    {"PY_UNWIND", ONE(on_unwind), ONE(on_unwind), EVENT_CALL, true},
    {"CALL", BOTH(on_call), BOTH(on_call_calibrated), EVENT_C_CALL, true},
    {"C_RETURN", BOTH(on_c_return), BOTH(on_c_return_calibrated), EVENT_C_CALL, false},
    {"C_RAISE", BOTH(on_c_raise), BOTH(on_c_raise_calibrated), EVENT_C_CALL, false},
    {"RAISE", ONE(on_raise), ONE(on_raise), EVENT_CALL | EVENT_EXCEPTION, true},
    {"LINE", ONE(on_line), ONE(on_line), EVENT_LINE, true},
    {"JUMP", ONE(on_jump), ONE(on_jump), EVENT_LINE, true},
    /* These replace the callbacks above. */
    {"PY_RESUME", ONE(on_resume_with_line), ONE(on_resume_with_line), EVENT_LINE, true},
    {"PY_THROW", ONE(on_throw_with_line), ONE(on_throw_with_line), EVENT_LINE, true},
};

/* size: of the instance data after the head; it begins with a struct callback. dealloc: NULL for Python's. */
static struct object *make_type(const char *name, size_t size, void (*dealloc)(struct object *))
{
	static struct python_member members[] = {
	    {"__vectorcalloffset__", MEMBER_SSIZE, 0, MEMBER_READONLY, NULL},
	    {0},
	};
	struct python_slot slots[4] = {{SLOT_CALL, (void *)python.PyVectorcall_Call}, {SLOT_MEMBERS, members}};
	struct python_spec spec = {name, (int)(head_bytes() + size), 0, TYPE_FLAGS, slots};

	members[0].offset = (ssize_t)(head_bytes() + offsetof(struct callback, call));
	if (dealloc)
		slots[2] = (struct python_slot){SLOT_DEALLOC, (void *)dealloc};
	return python.PyVectorcall_Call ? python.PyType_FromSpec(&spec) : NULL;
}

static void free_tool_id(struct object *monitoring, int tool)
{
	struct object *result = python.PyObject_CallMethod(monitoring, "free_tool_id", "i", tool);

	if (result)
		python.Py_DecRef(result);
	python.PyErr_Clear();
}

/* Up to 3.13 the events of a tool stay on after its id is freed. Such an id counts as taken. */
static bool take_tool_id(struct object *monitoring, int tool)
{
	struct object *result = python.PyObject_CallMethod(monitoring, "use_tool_id", "is", tool, TOOL_NAME), *events;
	bool idle;

	if (!result) {
		python.PyErr_Clear();
		return false;
	}
	python.Py_DecRef(result);
	events = python.PyObject_CallMethod(monitoring, "get_events", "i", tool);
	idle = events && python.PyLong_AsLong(events) == 0;
	if (events)
		python.Py_DecRef(events);
	if (!idle)
		free_tool_id(monitoring, tool);
	return idle;
}

static int use_tool_id(struct object *monitoring, int not_this)
{
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(tool_ids[0]); i++)
		if (tool_ids[i] != not_this && take_tool_id(monitoring, tool_ids[i]))
			return tool_ids[i];
	return -EBUSY;
}

static long event_bit(struct object *events, const char *name)
{
	struct object *value = python.PyObject_GetAttrString(events, name);
	long bit = value ? python.PyLong_AsLong(value) : 0;

	if (value)
		python.Py_DecRef(value);
	else
		python.PyErr_Clear();
	return bit;
}

static int register_callback(struct object *monitoring, struct object *type, int tool, long bit, vectorcall call)
{
	struct object *callback = python.PyType_GenericAlloc(type, 0), *result;

	if (!callback)
		return -ENOMEM;
	((struct callback *)body_of(callback))->call = call;
	result = python.PyObject_CallMethod(monitoring, "register_callback", "ilO", tool, bit, callback);
	python.Py_DecRef(callback);
	if (!result)
		return -EINVAL;
	python.Py_DecRef(result); /* the previous callback: None */
	return 0;
}

static int set_events(struct object *monitoring, int tool, long set)
{
	struct object *result = python.PyObject_CallMethod(monitoring, "set_events", "il", tool, set);

	if (!result)
		return -EINVAL;
	python.Py_DecRef(result);
	return 0;
}

static long wanted_events(struct object *events)
{
	long wanted = 0;

	for (size_t i = 0; i < sizeof(callbacks) / sizeof(callbacks[0]); i++)
		if (callbacks[i].set && config.events & callbacks[i].wanted)
			wanted |= event_bit(events, callbacks[i].event);
	return wanted;
}

static unsigned times_begun_again;

void hooks_monitoring_begin_again(void)
{
	times_begun_again++;
}

/*
 * The frozen code objects of 3.12 survive the end of Python. They keep the version number of their last
 * instrumentation, but not the instrumentation. Version numbers restart with Python, so the numbers of earlier runs are
 * skipped.
 */
static int set_first_events(struct object *monitoring, int tool, long set)
{
	unsigned passed = python_has(PYTHON_SHARES_FROZEN_CODE) ? times_begun_again : 0;
	int r = set_events(monitoring, tool, set);

	for (unsigned i = 0; i < passed && !r; i++) {
		r = set_events(monitoring, tool, 0);
		if (!r)
			r = set_events(monitoring, tool, set);
	}
	return r;
}

static int set_callbacks(struct object *monitoring, struct object *type, struct object *events, int not_this)
{
	int tool = use_tool_id(monitoring, not_this), r = 0;

	if (tool < 0)
		return tool;
	for (size_t i = 0; i < sizeof(callbacks) / sizeof(callbacks[0]) && !r; i++) {
		long bit = event_bit(events, callbacks[i].event);

		if (!bit || !(config.events & callbacks[i].wanted))
			continue;
		r = register_callback(monitoring, type, tool, bit,
				      (config.calibrate
					   ? callbacks[i].call_calibrated
					   : callbacks[i].call)[event_blocks_expected()][python.free_threaded]);
	}
	return r ? r : set_first_events(monitoring, tool, wanted_events(events));
}

static int set_in_interpreter(struct object *monitoring, int not_this)
{
	struct object *events = python.PyObject_GetAttrString(monitoring, "events");
	struct object *type = make_type("evprof.callback", sizeof(struct callback), NULL);
	int r = -EINVAL;

	if (!missing)
		missing = python.PyObject_GetAttrString(monitoring, "MISSING"); /* shared by all interpreters */
	if (!disable)
		disable = python.PyObject_GetAttrString(monitoring, "DISABLE"); /* likewise */
	if (missing && disable && events && type)
		r = set_callbacks(monitoring, type, events, not_this);
	if (events)
		python.Py_DecRef(events);
	if (type)
		python.Py_DecRef(type); /* its instances keep it */
	python.PyErr_Clear();
	return r;
}

static int held_tool(struct object *monitoring)
{
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(tool_ids[0]); i++) {
		struct object *name = python.PyObject_CallMethod(monitoring, "get_tool", "i", tool_ids[i]);
		bool ours = name && name != python.none && !python.PyUnicode_CompareWithASCIIString(name, TOOL_NAME);

		if (name)
			python.Py_DecRef(name);
		else
			python.PyErr_Clear();
		if (ours)
			return tool_ids[i];
	}
	return -1;
}

/* Removes the callbacks, too: up to 3.13 they stay when a tool id is freed. */
static void release_tool(struct object *monitoring, int tool)
{
	struct object *events = python.PyObject_GetAttrString(monitoring, "events"), *result;

	set_events(monitoring, tool, 0);
	for (size_t i = 0; events && i < sizeof(callbacks) / sizeof(callbacks[0]); i++) {
		result = python.PyObject_CallMethod(monitoring, "register_callback", "ilO", tool,
						    event_bit(events, callbacks[i].event), python.none);
		if (result)
			python.Py_DecRef(result);
		python.PyErr_Clear();
	}
	if (events)
		python.Py_DecRef(events);
	free_tool_id(monitoring, tool);
}

static struct object *monitoring_of_interpreter(void)
{
	struct object *monitoring = python.PySys_GetObject("monitoring");

	return monitoring && monitoring != python.none ? monitoring : NULL;
}

/* python_lock() is held. */
static int set_hook(struct object *monitoring)
{
	static bool said;
	int r;

	if (held_tool(monitoring) >= 0)
		return 0;
	hook_compat_wrap_monitoring(monitoring);
	r = set_in_interpreter(monitoring, -1);
	if (r && said)
		return r; /* another thread or interpreter has printed the line */
	said = r != 0;
	if (r == -EBUSY)
		log_line(LOG_WARNING, "other tools hold all ids of sys.monitoring; calls are not recorded");
	else if (r)
		log_line(LOG_ERROR, "sys.monitoring of Python %s refuses evprof's callbacks; calls are not recorded",
			 python_version());
	return r;
}

int hooks_monitoring_set(void)
{
	struct object *monitoring = monitoring_of_interpreter();
	int r = -EAGAIN;

	python_lock();
	if (monitoring)
		r = set_hook(monitoring);
	python_unlock();
	return r;
}

/*
 * Moves evprof to another tool id. python_lock() is held. In free-threaded builds other threads run meanwhile; events
 * are switched off for that moment, so that no event is recorded twice, through the old id and the new one. Here and
 * below the stacks are requested before events are switched on again, so that no thread continues with a stale stack.
 */
static void move_to_other_tool(struct object *monitoring, int tool)
{
	int r;

	if (python.free_threaded) {
		set_events(monitoring, tool, 0);
		process_expect_stacks();
	}
	r = set_in_interpreter(monitoring, tool);
	if (r == -EBUSY)
		log_line(LOG_WARNING, "the program takes all ids of sys.monitoring; calls are not recorded until it "
				      "frees one");
	if (r == -EBUSY)
		process_expect_stacks();
	release_tool(monitoring, tool);
}

void hooks_monitoring_release_tool(int tool)
{
	struct object *monitoring = monitoring_of_interpreter();

	python_lock();
	if (monitoring && held_tool(monitoring) == tool)
		move_to_other_tool(monitoring, tool);
	python_unlock();
}

void hooks_monitoring_acquire_tool(void)
{
	struct object *monitoring = monitoring_of_interpreter();

	python_lock();
	if (monitoring && held_tool(monitoring) < 0) {
		process_expect_stacks();
		set_in_interpreter(monitoring, -1);
	}
	python_unlock();
}

void hooks_monitoring_enable(bool on)
{
	struct object *monitoring = monitoring_of_interpreter();
	struct object *events = monitoring ? python.PyObject_GetAttrString(monitoring, "events") : NULL;
	int tool;

	python_lock();
	tool = events ? held_tool(monitoring) : -1;
	if (tool >= 0 && on && python.free_threaded)
		process_expect_stacks();
	if (tool >= 0)
		set_events(monitoring, tool, on ? wanted_events(events) : 0);
	python_unlock();
	if (events)
		python.Py_DecRef(events);
	python.PyErr_Clear();
}

static bool tool_has_calls(struct object *monitoring, int tool)
{
	struct object *events, *set = NULL;
	long calls = 0, bits = 0;

	thread_self.nesting++;
	events = python.PyObject_GetAttrString(monitoring, "events");
	if (events) {
		calls = event_bit(events, "CALL");
		python.Py_DecRef(events);
		set = python.PyObject_CallMethod(monitoring, "get_events", "i", tool);
	}
	if (set) {
		bits = python.PyLong_AsLong(set);
		python.Py_DecRef(set);
	}
	python.PyErr_Clear();
	thread_self.nesting--;
	return bits & calls;
}

bool hooks_monitoring_has_calls(struct object *tool)
{
	struct object *monitoring = monitoring_of_interpreter();
	long id;

	if (!monitoring || python_type(tool) != python.int_type)
		return false;
	id = python.PyLong_AsLong(tool);
	python.PyErr_Clear();
	return tool_has_calls(monitoring, (int)id);
}

bool hooks_monitoring_others_have_calls(void)
{
	struct object *monitoring = monitoring_of_interpreter();
	int ours;

	if (!monitoring)
		return false;
	thread_self.nesting++;
	python_lock();
	ours = held_tool(monitoring);
	python_unlock();
	thread_self.nesting--;
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(tool_ids[0]); i++)
		if (tool_ids[i] != ours && tool_has_calls(monitoring, tool_ids[i]))
			return true;
	return false;
}

/* Stands in for a tool's C_RETURN callback until the next C_RETURN of the thread that set the events. */
struct muted {
	struct callback callback;
	struct object *original; /* the tool's own callback; owned */
	const void *thread;	 /* &thread_self */
	int tool;
	long bit;
	const struct python_method *returning;
};

static void restore_callback(const struct muted *muted)
{
	struct object *monitoring = monitoring_of_interpreter(), *result;

	thread_self.nesting++;
	result = monitoring ? python.PyObject_CallMethod(monitoring, "register_callback", "ilO", muted->tool,
							 muted->bit, muted->original)
			    : NULL;
	thread_self.nesting--;
	if (result)
		python.Py_DecRef(result);
	else
		python.PyErr_Clear();
}

/*
 * Suppresses one C_RETURN, or passes it on. The interpreter does not use the callback after the call, so it may be
 * freed during it. A reference to the tool's callback is taken before anything can stop this thread: another thread may
 * then free the stand-in.
 */
static struct object *on_muted(struct object *self, struct object *const *arguments, size_t count, struct object *names)
{
	struct muted muted = *(struct muted *)body_of(self);
	struct object *callable = arguments[2], *result;
	bool same = muted.thread == &thread_self && python_type(callable) == python.c_function_type &&
		    python_object_field(callable, PYTHON_C_FUNCTION_METHOD) == muted.returning;

	python.Py_IncRef(muted.original);
	if (muted.thread == &thread_self) {
		restore_callback(&muted);
		python.Py_DecRef(muted.original); /* the callback's */
	}
	result = same ? python.none : python.PyObject_Vectorcall(muted.original, arguments, count, names);
	python.Py_DecRef(muted.original);
	return result;
}

/* Registers a callback. Returns the previous one, or NULL if there was none. */
static struct object *exchange_callback(struct object *monitoring, int tool, long bit, struct object *callback)
{
	struct object *before = python.PyObject_CallMethod(monitoring, "register_callback", "ilO", tool, bit, callback);

	if (!before)
		python.PyErr_Clear();
	else if (before == python.none)
		before = NULL; /* immortal */
	return before;
}

/* python_lock() is held. */
static void mute_callback(struct object *monitoring, struct object *type, const struct muted *muted)
{
	struct object *callback = python.PyType_GenericAlloc(type, 0);
	struct muted *body = callback ? body_of(callback) : NULL;

	if (!callback)
		return;
	*body = *muted;
	body->original = exchange_callback(monitoring, muted->tool, muted->bit, callback);
	if (!body->original)
		exchange_callback(monitoring, muted->tool, muted->bit, python.none);
	python.Py_DecRef(callback);
}

void hooks_monitoring_mute(int tool, const struct python_method *returning)
{
	struct object *monitoring = monitoring_of_interpreter(), *events, *type;
	struct muted muted = {.callback.call = on_muted, .thread = &thread_self, .tool = tool, .returning = returning};

	if (!monitoring || !python.PyObject_Vectorcall)
		return;
	events = python.PyObject_GetAttrString(monitoring, "events");
	muted.bit = events ? event_bit(events, "C_RETURN") : 0;
	type = muted.bit ? make_type("evprof.muted", sizeof(struct muted), NULL) : NULL;
	python_lock();
	if (type && held_tool(monitoring) >= 0)
		mute_callback(monitoring, type, &muted);
	python_unlock();
	if (type)
		python.Py_DecRef(type);
	if (events)
		python.Py_DecRef(events);
	python.PyErr_Clear();
}

/* Stands in for a callback of the program, to detect that it raises. */
struct guard {
	struct callback callback;
	struct object *original; /* the program's own callback; owned */
};

/*
 * The interpreter calls tools one after the other until one raises. evprof may have recorded an event that then does
 * not happen, or missed one that does. The function continues with the exception.
 */
static struct object *on_guarded(struct object *self, struct object *const *arguments, size_t count,
				 struct object *names)
{
	struct object *original = ((struct guard *)body_of(self))->original, *result;

	python.Py_IncRef(original); /* another thread, or the callback itself, may register another one */
	result = python.PyObject_Vectorcall(original, arguments, count, names);
	if (!result)
		writer_expect_stack();
	python.Py_DecRef(original);
	return result;
}

static void free_guard(struct object *self)
{
	struct object *type = (struct object *)python_type(self), *original = ((struct guard *)body_of(self))->original;

	python.PyObject_Free(self);
	python.Py_DecRef(type);
	if (original)
		python.Py_DecRef(original);
}

struct object *hooks_monitoring_guarded(struct object *callback)
{
	struct object *type, *guarded = NULL;
	struct guard *guard;

	if (!python.PyObject_Vectorcall || !python.PyObject_Free)
		return NULL;
	thread_self.nesting++;
	type = make_type("evprof.guard", sizeof(struct guard), free_guard);
	if (type)
		guarded = python.PyType_GenericAlloc(type, 0);
	if (type)
		python.Py_DecRef(type); /* its instance keeps it */
	if (guarded) {
		guard = body_of(guarded);
		guard->callback.call = on_guarded;
		guard->original = callback;
		python.Py_IncRef(callback);
	}
	python.PyErr_Clear();
	thread_self.nesting--;
	return guarded;
}

struct object *hooks_monitoring_unguarded(struct object *callback)
{
	struct object *original = callback;

	if (python_dealloc(callback) == (void *)free_guard) {
		original = ((struct guard *)body_of(callback))->original;
		python.Py_IncRef(original);
		python.Py_DecRef(callback);
	}
	return original;
}
