/*
 * hooks_monitoring.c - calls, returns and exceptions from Python 3.12, by sys.monitoring (PEP 669).
 *
 * The callbacks are instances of evprof's own type, which has only the vectorcall protocol. The interpreter calls the C
 * function below directly. That is cheaper than a builtin function, and cheaper than the profile hook, for which 3.12
 * creates a frame object at each event. Each interpreter has one such type and one set of callbacks.
 *
 * Free-threaded builds call the callbacks in several threads at once. The only shared state that they read and that
 * changes is the table of ids, whose readers need no lock.
 */
#include "base/config.h"
#include "base/filter.h"
#include "definitions/definitions.h"
#include "definitions/names.h"
#include "definitions/tasks.h"
#include "hooks/budget.h"
#include "hooks/event_blocks.h"
#include "hooks/event_counts.h"
#include "hooks/hooks.h"
#include "hooks/monitoring.h"
#include "hooks/program.h"
#include "life/life.h"
#include "python/superinstructions.h"
#include "ring/process.h"
#include "ring/writer.h"

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

/*
 * Writes an event of code. The start or resume of a coroutine that no other recorded coroutine awaits is a step of a
 * task.
 */
static void put_code(struct writer *writer, uint32_t head, uint32_t value)
{
	const void *frame;

	if (value & CODE_IS_COROUTINE && wire_head_plain_kind(head) <= WIRE_THROW) {
		frame = python_running_frame();
		frame = frame ? definitions_task_frame(frame, python_frame_back(frame)) : NULL;
		if (frame) {
			writer_put_step(writer, head, definitions_task(wire_head_plain_kind(head), frame));
			return;
		}
	}
	writer_put(writer, head);
}

/* Nothing is recorded: switches the events of this interpreter off. After a start its next audit event sets them. */
static void take_off(void)
{
	if (!process_records_nothing())
		return;
	hooks_monitoring_enable(false);
	thread_self.hooked_state = NULL;
	if (!process_records_nothing()) /* another thread has started it meanwhile */
		hooks_monitoring_enable(true);
}

/* At the first event since Python has instrumented the code. */
static inline void join(struct object *code)
{
	if (superinstructions_are_split() && is_code(code))
		definitions_join(code);
}

/* Returns the callback's result: DISABLE for a function that is not recorded. */
static struct object *record_in_program(unsigned kind, struct object *code)
{
	struct writer *writer;
	uint32_t value;

	join(code);
	if (unlikely(config.budget))
		budget_look();
	if (is_code(code) && definitions_hides_code(code)) {
		note_left_out();
		writer_look(kind); /* an exception unwinds thinned frames any number of times */
		return disable;
	}
	writer = writer_reserve(kind);
	if (!writer)
		take_off();
	if (!writer || !is_code(code))
		return python.none;
	value = definitions_code(code);
	if (value & (DEFINITION_HIDDEN | CODE_THINNED))
		return disable;
	if (value)
		put_code(writer, wire_head(kind, DEFINITION_ID(value)), value);
	else
		writer_lose(writer, kind);
	return python.none;
}

static __attribute__((noinline)) struct object *record_code(unsigned kind, struct object *code)
{
	struct object *result = python.none;

	if (is_code(code) && program_records(code, kind == WIRE_CALL))
		result = record_in_program(kind, code);
	/* A filter may hide the program's code; its end is wanted all the same. */
	if (code == thread_self.program)
		result = python.none;
	if (kind == WIRE_RETURN || kind == WIRE_UNWIND)
		program_returns(code);
	return result;
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

/* Records an event of code that is not a plain function: a coroutine, code that is thinned, or new. */
static __attribute__((noinline)) struct object *record_coroutine(unsigned kind, struct object *code)
{
	struct writer *writer = thread_self.writer;
	uint32_t value = is_code(code) ? definitions_code_allowing(writer, code, CODE_SLOW_GENERATOR) : 0;

	if (!value && config.budget && definitions_thinned(writer, code) == THINNED) {
		join(code);
		note_left_out();
		return disable;
	}
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
	if (!writer) {
		take_off();
		return python.none;
	}
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

static inline __attribute__((always_inline)) struct object *record_method_fast(unsigned kind,
									       const struct python_method *method,
									       struct object *callable)
{
	struct writer *writer = thread_self.writer;
	uint32_t id;

	if (writer_has_room(writer) && definitions_function_fast(writer, method, &id) &&
	    likely(writer_put_fast(writer, wire_head(kind, id))))
		return python.none;
	return record_function(kind, method, callable);
}

static inline __attribute__((always_inline)) struct object *record_function_fast(unsigned kind,
										 struct object *const *arguments,
										 size_t shift)
{
	const struct python_method *method;

	if (!find_method(arguments, shift, &method))
		return python.none;
	return record_method_fast(kind, method, arguments[2]);
}

/* A call that is not recorded, of a Python function whose own events are off, costs as much as one that is. */
static bool calls_thinned(struct object *callable)
{
	if (python_type(callable) == python.method_type && python.PyMethod_Function)
		callable = python.PyMethod_Function(callable);
	return python_type(callable) == python.function_type && python.PyFunction_GetCode &&
	       definitions_thinned(thread_self.writer, python.PyFunction_GetCode(callable)) == THINNED;
}

/* The call hooks with EVPROF_BUDGET: calls that a thinned function makes are left out with it. */
static inline __attribute__((always_inline)) struct object *record_budgeted(unsigned kind,
									    struct object *const *arguments)
{
	const struct python_method *method;

	/* First, as it may thin the caller. */
	if (unlikely(!writer_has_room(thread_self.writer)))
		budget_look();
	if (unlikely(definitions_thinned(thread_self.writer, arguments[0]))) {
		note_unrecorded(arguments[0]);
		return kind == WIRE_C_CALL ? disable : python.none;
	}
	if (likely(find_method(arguments, 0, &method)))
		return record_method_fast(kind, method, arguments[2]);
	note_unrecorded(arguments[0]);
	return kind == WIRE_C_CALL && filter_hides && calls_thinned(arguments[2]) ? disable : python.none;
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
		writer_put_plain(thread_self.writer, wire_head(WIRE_OTHER_CALL, 0));
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

/*
 * Whether the exception has unwound another frame before: it then has that frame in its traceback. An equal address
 * does not suffice: the exception that unwound the frame may have been caught in C and its memory reused for a new one.
 */
static bool has_passed_a_frame(struct object *exception)
{
	struct object *traceback;
	bool passed;

	thread_self.nesting++;
	/* Not by name: a class of the program may run its own code for that. */
	traceback = python.PyException_GetTraceback(exception);
	passed = traceback && traceback != python.none && python_object_field(traceback, PYTHON_TRACEBACK_NEXT);
	if (traceback)
		python.Py_DecRef(traceback);
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
	if (writer->unwinding == exception && has_passed_a_frame(exception)) {
		note_left_out();
		return;
	}
	writer = writer_reserve(WIRE_EXCEPTION);
	if (!writer) {
		take_off();
		return;
	}
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
	thread_self.writer->throwing = !hooks_monitoring_leaves_out_exceptions();
}

/* As record_unwind(): a generator may catch what raised at RESUME; its whole body has an exception handler. */
static void record_raise(struct object *const *arguments)
{
	struct writer *writer = thread_self.writer;

	if (!writer->throwing && python_unwinds_at_resume(arguments[0], arguments[1]))
		writer_expect_stack();
	writer->throwing = 0;
	note_raised();
	if (config.events & EVENT_EXCEPTION && !hooks_monitoring_leaves_out_exceptions())
		record_exception(arguments[2]);
	else
		note_left_out();
}

/*
 * A line event does not name its function. A line of a function that is not recorded would be attributed to its caller.
 */
static void record_line(struct object *const *arguments)
{
	if (!filter_hides || !(definitions_code(arguments[0]) & (DEFINITION_HIDDEN | CODE_THINNED)))
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
CALLBACK(on_call_budgeted, return record_budgeted(WIRE_C_CALL, arguments))
CALLBACK(on_c_return_budgeted, return record_budgeted(WIRE_C_RETURN, arguments))
CALLBACK(on_c_raise_budgeted, return record_budgeted(WIRE_C_EXCEPTION, arguments))
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
#define BUDGETED(name)                                                                                                 \
	{                                                                                                              \
		name##_budgeted, name##_budgeted_with_memory                                                           \
	}

static const struct {
	const char *event;
	vectorcall call[2][2];
	vectorcall call_calibrated[2][2]; /* EVPROF_CALIBRATE */
	unsigned wanted;		  /* for any of these: enum setting_event */
	bool set;			  /* false: comes with CALL */
	vectorcall call_budgeted[2];	  /* EVPROF_BUDGET, likewise in two forms; NULL: as without */
} callbacks[] = {
    {"PY_START", ONE(on_start), ONE(on_start_calibrated), EVENT_CALL, true, {NULL}},
    {"PY_RESUME", ONE(on_resume), ONE(on_resume), EVENT_CALL, true, {NULL}},
    {"PY_THROW", ONE(on_throw), ONE(on_throw), EVENT_CALL, true, {NULL}},
    {"PY_RETURN", ONE(on_return), ONE(on_return), EVENT_CALL, true, {NULL}},
    {"PY_YIELD", ONE(on_yield), ONE(on_yield), EVENT_CALL, true, {NULL}},
    {"PY_UNWIND", ONE(on_unwind), ONE(on_unwind), EVENT_CALL, true, {NULL}},
    {"CALL", BOTH(on_call), BOTH(on_call_calibrated), EVENT_C_CALL, true, BUDGETED(on_call)},
    {"C_RETURN", BOTH(on_c_return), BOTH(on_c_return_calibrated), EVENT_C_CALL, false, BUDGETED(on_c_return)},
    {"C_RAISE", BOTH(on_c_raise), BOTH(on_c_raise_calibrated), EVENT_C_CALL, false, BUDGETED(on_c_raise)},
    {"RAISE", ONE(on_raise), ONE(on_raise), EVENT_CALL | EVENT_EXCEPTION, true, {NULL}},
    {"LINE", ONE(on_line), ONE(on_line), EVENT_LINE, true, {NULL}},
    {"JUMP", ONE(on_jump), ONE(on_jump), EVENT_LINE, true, {NULL}},
    /* These replace the callbacks above. */
    {"PY_RESUME", ONE(on_resume_with_line), ONE(on_resume_with_line), EVENT_LINE, true, {NULL}},
    {"PY_THROW", ONE(on_throw_with_line), ONE(on_throw_with_line), EVENT_LINE, true, {NULL}},
};

bool monitoring_find_constants(struct object *monitoring)
{
	if (!missing)
		missing = python.PyObject_GetAttrString(monitoring, "MISSING"); /* shared by all interpreters */
	if (!disable)
		disable = python.PyObject_GetAttrString(monitoring, "DISABLE"); /* likewise */
	return missing && disable;
}

static vectorcall callback_of(size_t number)
{
	bool beside_memory = event_blocks_expected();

	if (config.budget && config_may_thin() && !python.free_threaded &&
	    callbacks[number].call_budgeted[beside_memory])
		return callbacks[number].call_budgeted[beside_memory];
	return (config.calibrate ? callbacks[number].call_calibrated
				 : callbacks[number].call)[beside_memory][python.free_threaded];
}

struct monitoring_event monitoring_event(size_t number)
{
	if (number >= sizeof(callbacks) / sizeof(callbacks[0]))
		return (struct monitoring_event){0};
	return (struct monitoring_event){.name = callbacks[number].event,
					 .call = callback_of(number),
					 .wanted = (config.events & callbacks[number].wanted) != 0,
					 .set = callbacks[number].set};
}
