/*
 * hooks_profile.c - calls and returns until Python 3.11, by PyEval_SetProfile.
 *
 * The interpreter calls the hook with the GIL held and tracing switched off for the thread: for each call and return of
 * a Python function, and from the evaluation loop for C functions. The hook must not fail. Of its arguments it reads
 * only the code object and the PyMethodDef.
 */
#include <string.h>

#include "base/config.h"
#include "definitions/definitions.h"
#include "definitions/tasks.h"
#include "hooks/budget.h"
#include "hooks/event_blocks.h"
#include "hooks/hook_compat.h"
#include "hooks/hooks.h"
#include "hooks/program.h"
#include "hooks/thinned_frames.h"
#include "life/life.h"
#include "python/profiled_frame.h"
#include "ring/process.h"
#include "ring/writer.h"

#define ALL_WANTED                                                                                                     \
	(1u << PYTHON_TRACE_CALL | 1u << PYTHON_TRACE_RETURN | 1u << PYTHON_TRACE_C_CALL |                             \
	 1u << PYTHON_TRACE_C_RETURN | 1u << PYTHON_TRACE_C_EXCEPTION)

static unsigned wanted; /* bits 1 << TRACE_* */

/* C calls reported to this thread's profile function of the program that have not ended. */
static __thread uint32_t open_calls __attribute__((tls_model("initial-exec")));

/* The methods that throw into a generator or coroutine. Until 3.10, see enter_kind(). */
static const struct python_method *throwers[4];

/*
 * Whether a generator or coroutine starts, resumes or gets an exception thrown in. In 3.11 the frame is at RESUME,
 * whose argument is 0 at the start, or, for a throw, still at the yield. Until 3.10 the frame does not distinguish a
 * throw; the C call of throw() or close() just before it does.
 */
static inline __attribute__((always_inline)) unsigned enter_kind(struct writer *writer, struct object *frame,
								 struct object *code, bool inner)
{
	const uint8_t *last = python_last_instruction(frame, code, inner);
	unsigned thrown = writer->throwing;

	if (unlikely(thrown))
		writer->throwing = 0;
	if (!inner)
		return !last ? WIRE_CALL : thrown ? WIRE_THROW : WIRE_RESUME;
	if (python_suspends(last))
		return WIRE_THROW;
	return last[1] == 0 ? WIRE_CALL : WIRE_RESUME;
}

static inline __attribute__((always_inline)) unsigned leave_kind(struct object *frame, struct object *code, bool inner)
{
	const uint8_t *last = python_last_instruction(frame, code, inner);

	return last && !python_returns(last) ? WIRE_YIELD : WIRE_RETURN;
}

/*
 * Writes the start or resume of a coroutine as the step of a task. False: another recorded coroutine awaits it, nothing
 * is written.
 */
static bool put_step(struct writer *writer, uint32_t head, struct object *frame)
{
	const void *inner = python_inner_frame(frame);
	const void *of_task = definitions_task_frame(inner, python_frame_back(inner));

	if (!of_task)
		return false;
	writer_put_step(writer, head, definitions_task(wire_head_plain_kind(head), of_task));
	return true;
}

/*
 * 3.11: whether the frame is unwound where it starts or resumes. The source of the exception decides whether the start
 * was recorded. It was not if the source ran before the profile function (a signal handler, an exception sent to the
 * thread, a trace function) or is the program's profile function; it was if it is another tool's.
 */
static inline bool is_at_resume(struct object *frame)
{
	return python.inner_frames && python_resumes(python_last_instruction(frame, NULL, true));
}

/* Until its next line event a generator is at the line of its yield. */
static void put_current_line(unsigned kind, struct object *frame)
{
	if (config.events & EVENT_LINE && (kind == WIRE_RESUME || kind == WIRE_THROW) && python.PyFrame_GetLineNumber)
		hooks_line_put_current(python.PyFrame_GetLineNumber(frame));
}

/* Called before there is room for the event: a lost event is counted by kind, too. */
static unsigned kind_of(int what, struct object *frame, struct object *code, struct object *argument)
{
	if (what != PYTHON_TRACE_CALL && !argument)
		return WIRE_UNWIND;
	if (!definitions_is_generator(code))
		return what == PYTHON_TRACE_CALL ? WIRE_CALL : WIRE_RETURN;
	return what == PYTHON_TRACE_CALL ? enter_kind(thread_self.writer, frame, code, python.inner_frames)
					 : leave_kind(frame, code, python.inner_frames);
}

static int profile_chained(struct object *self, struct object *frame, int what, struct object *argument);
static python_profile profile_function(void);

void hooks_profile_remove(struct thread_state *state)
{
	bool own = state == python.current_thread_state();
	python_profile *current = hooks_profile_field(state);

	if (!python.layout.state_profile)
		return;
	/* What another thread's goes in front of is known to that thread only, which takes it off at its next event. */
	if (*current == profile_chained && own)
		*current = thread_self.chained;
	else if (*current == profile_function())
		*current = NULL;
	if (own)
		thread_self.hooked_state = NULL;
}

void hooks_profile_forget(void)
{
	wanted = 0;
}

bool hooks_profile_is_alone(const struct thread_state *state)
{
	const python_profile *functions = hooks_profile_field(state);

	return !functions[1] && (!functions[0] || functions[0] == profile_function());
}

void hooks_profile_take_off(struct thread_state *state)
{
	*hooks_profile_field(state) = NULL;
	python_unmark_traced(state);
}

/* Nothing is recorded: takes the hook of this thread off. Python's own marks follow after the event. */
static void take_off(void)
{
	if (process_records_nothing())
		hooks_profile_remove(python.current_thread_state());
}

static void record_code(int what, struct object *frame, struct object *argument, struct object *code)
{
	unsigned kind = kind_of(what, frame, code, argument);
	struct writer *writer;
	uint32_t value;

	if (kind == WIRE_UNWIND && is_at_resume(frame))
		writer_expect_stack();
	if (definitions_hides_code(code))
		return;
	writer = writer_reserve(kind);
	if (!writer) {
		take_off();
		return;
	}
	value = definitions_code(code);
	if (value & DEFINITION_HIDDEN)
		return;
	if (!value) {
		writer_lose(writer, kind);
		return;
	}
	if (!(value & CODE_IS_COROUTINE && what == PYTHON_TRACE_CALL &&
	      put_step(writer, wire_head(kind, DEFINITION_ID(value)), frame)))
		writer_put(writer, wire_head(kind, DEFINITION_ID(value)));
	put_current_line(kind, frame);
}

static inline unsigned function_kind(int what)
{
	/* A load is cheaper than branches. */
	static const uint8_t kinds[] = {[PYTHON_TRACE_C_CALL] = WIRE_C_CALL,
					[PYTHON_TRACE_C_EXCEPTION] = WIRE_C_EXCEPTION,
					[PYTHON_TRACE_C_RETURN] = WIRE_C_RETURN};

	return kinds[what];
}

/* Notes that the C call is one that throws, for calls that are not recorded. */
static void note_throw(int what, struct object *function)
{
	const struct python_method *method;

	if (python.inner_frames || what < PYTHON_TRACE_C_CALL || thread_self.writer == &writer_absent)
		return;
	method = python_field(function, PYTHON_C_FUNCTION_METHOD);
	for (size_t i = 0; i < sizeof(throwers) / sizeof(throwers[0]); i++)
		if (method == throwers[i])
			thread_self.writer->throwing = what == PYTHON_TRACE_C_CALL;
}

/*
 * The start of cProfile, or the load of an extension module, whose functions are wrapped where C calls are not
 * recorded. Until 3.7 no audit event announces an import.
 */
static void meet_function(int what, struct object *function)
{
	const struct python_method *method;

	if (python.PySys_AddAuditHook || what != PYTHON_TRACE_C_CALL)
		return;
	method = python_field(function, PYTHON_C_FUNCTION_METHOD);
	if (!strcmp(method->name, "enable"))
		hook_compat_look();
	hook_compat_meet_import(method);
}

static void record_function(int what, struct object *function)
{
	const struct python_method *method = python_field(function, PYTHON_C_FUNCTION_METHOD);
	unsigned kind = function_kind(what);
	struct writer *writer;
	uint32_t value;

	if (definitions_hides_function(method, function))
		return;
	writer = writer_reserve(kind);
	if (!writer) {
		note_throw(what, function);
		take_off();
		return;
	}
	value = definitions_function(method, function);
	if (!value) {
		writer_lose(writer, kind);
		return;
	}
	if (value & FUNCTION_THROWS)
		writer->throwing = kind == WIRE_C_CALL;
	if (!(value & DEFINITION_HIDDEN))
		writer_put(writer, wire_head(kind, DEFINITION_ID(value)));
}

static void find_throwers(void)
{
	static const char *const names[] = {"throw", "close"};
	struct object *types[] = {python.generator_type, python.coroutine_type};

	for (size_t i = 0; i < sizeof(throwers) / sizeof(throwers[0]); i++) {
		struct object *type = types[i / 2];
		struct object *method = type ? python.PyObject_GetAttrString(type, names[i % 2]) : NULL;

		if (method && python_type(method) == python.method_descriptor_type)
			throwers[i] = python_field(method, PYTHON_DESCRIPTOR_METHOD);
		python.Py_DecRef(method); /* the type keeps it */
	}
	python.PyErr_Clear();
}

/* Every case that the fast path leaves out. */
static __attribute__((noinline)) int profile_any(struct object *self, struct object *frame, int what,
						 struct object *argument)
{
	(void)self;
	if (!(wanted >> what & 1)) {
		note_throw(what, argument);
		meet_function(what, argument);
		return 0;
	}
	if (what < PYTHON_TRACE_C_CALL) {
		struct object *code = python_profiled_code(frame);

		if (program_records(code, what == PYTHON_TRACE_CALL))
			record_code(what, frame, argument, code);
		if (what == PYTHON_TRACE_RETURN)
			program_returns(code);
	} else {
		record_function(what, argument);
	}
	return 0;
}

void hooks_profile_record(struct object *frame, int what, struct object *argument)
{
	profile_any(NULL, frame, what, argument);
}

/* After a pause of seconds the time does not fit the fast path. enter_kind() has already cleared the throw by then. */
static __attribute__((noinline)) int put_late(uint32_t head)
{
	writer_put(thread_self.writer, head);
	return 0;
}

static inline __attribute__((always_inline)) int put_kind(struct writer *writer, uint32_t head)
{
	return likely(writer_put_fast(writer, head)) ? 0 : put_late(head);
}

static __attribute__((noinline)) int put_coroutine(struct object *frame, uint32_t head)
{
	return put_step(thread_self.writer, head, frame) ? 0 : put_kind(thread_self.writer, head);
}

/*
 * Writes an event of a generator, or of other code without further slow-path flags (value: see definitions.h). There is
 * room. The caller passes what it has in registers: half of a program's events may be those of generators.
 */
static inline __attribute__((always_inline)) int put_generator(struct object *frame, int what, struct object *argument,
							       uint32_t value, struct writer *writer,
							       struct object *code, bool inner)
{
	uint32_t kind = WIRE_UNWIND;

	if (what == PYTHON_TRACE_CALL)
		kind = value & CODE_IS_GENERATOR ? enter_kind(writer, frame, code, inner) : WIRE_CALL;
	else if (argument)
		kind = value & CODE_IS_GENERATOR ? leave_kind(frame, code, inner) : WIRE_RETURN;
	else if (inner && is_at_resume(frame))
		return profile_any(NULL, frame, what, argument);
	if (unlikely(value & CODE_IS_COROUTINE) && what == PYTHON_TRACE_CALL)
		return put_coroutine(frame, wire_head(kind, DEFINITION_ID(value)));
	return put_kind(writer, wire_head(kind, DEFINITION_ID(value)));
}

static __attribute__((noinline)) int profile_generator(struct object *frame, int what, struct object *argument,
						       uint32_t value, struct writer *writer, struct object *code)
{
	return put_generator(frame, what, argument, value, writer, code, false);
}

static __attribute__((noinline)) int profile_inner_generator(struct object *frame, int what, struct object *argument,
							     uint32_t value, struct writer *writer, struct object *code)
{
	return put_generator(frame, what, argument, value, writer, code, true);
}

static inline __attribute__((always_inline)) int profile_code(struct object *frame, int what, struct object *argument,
							      uint32_t value, struct writer *writer,
							      struct object *code, bool inner)
{
	return inner ? profile_inner_generator(frame, what, argument, value, writer, code)
		     : profile_generator(frame, what, argument, value, writer, code);
}

/* Code that the fast path does not find: far from its first place in the table, hidden, or new. */
static __attribute__((noinline)) int profile_far(struct object *frame, int what, struct object *argument)
{
	struct object *code = python_profiled_code(frame);
	uint32_t value = definitions_code_allowing(thread_self.writer, code, CODE_SLOW_GENERATOR);

	if (value)
		return profile_code(frame, what, argument, value, thread_self.writer, code, python.inner_frames);
	return definitions_code_allowing(thread_self.writer, code, CODE_SLOW_HIDDEN)
		   ? 0
		   : profile_any(NULL, frame, what, argument);
}

/* 3.11: a plain function ends by an exception. Its frame is examined here, off the path of calls and returns. */
static __attribute__((noinline)) int profile_unwound(struct object *frame, int what, struct object *argument)
{
	uint32_t id;

	if (unlikely(is_at_resume(frame) ||
		     !definitions_code_fast(thread_self.writer, python_profiled_code(frame), &id) ||
		     !writer_put_fast(thread_self.writer, wire_head(WIRE_UNWIND, id))))
		return profile_any(NULL, frame, what, argument);
	return 0;
}

/* Without room: counts an event of a plain function as lost if the event before was, and returns whether. */
static inline __attribute__((always_inline)) bool profile_loses(struct writer *writer, struct object *code, int what,
								struct object *argument)
{
	unsigned kind;
	uint32_t id;

	if (!writer_goes_on_losing(writer) || !argument)
		return false;
	if (what < PYTHON_TRACE_C_CALL) {
		if (!definitions_code_fast(writer, code, &id))
			return false;
		kind = what == PYTHON_TRACE_CALL ? WIRE_CALL : WIRE_RETURN;
	} else {
		if (!definitions_function_fast(writer, python_field(argument, PYTHON_C_FUNCTION_METHOD), &id))
			return false;
		kind = function_kind(what);
	}
	writer_count_lost(writer, kind);
	return true;
}

/* Records one event of a wanted kind. Each rare case is a tail call, so that no register is saved for it. */
static inline __attribute__((always_inline)) int profile_fast(struct object *frame, struct object *code, int what,
							      struct object *argument, bool inner)
{
	struct writer *writer = thread_self.writer;
	uint32_t id;
	unsigned kind;

	if (!writer_has_room(writer))
		return profile_loses(writer, code, what, argument) ? 0 : profile_any(NULL, frame, what, argument);
	if (what < PYTHON_TRACE_C_CALL) {
		uint64_t value;

		if (unlikely(!ids_find_fast(&writer->ids, code, &value)))
			return profile_far(frame, what, argument);
		if (unlikely(value & ~(uint64_t)WIRE_ARG_MAX)) {
			if (value >> 32 == CODE_SLOW_GENERATOR)
				return profile_code(frame, what, argument, (uint32_t)value, writer, code, inner);
			return profile_far(frame, what, argument);
		}
		id = (uint32_t)value;
		kind = what == PYTHON_TRACE_CALL ? WIRE_CALL : argument ? WIRE_RETURN : WIRE_UNWIND;
		if (inner && unlikely(kind == WIRE_UNWIND))
			return profile_unwound(frame, what, argument);
	} else {
		if (!definitions_function_fast(writer, python_field(argument, PYTHON_C_FUNCTION_METHOD), &id))
			return profile_any(NULL, frame, what, argument);
		kind = function_kind(what);
	}
	if (unlikely(!writer_put_fast(writer, wire_head(kind, id))))
		return profile_any(NULL, frame, what, argument);
	return 0;
}

/* Until 3.10 the frame object holds the code. */
static int profile_frame(struct object *self, struct object *frame, int what, struct object *argument)
{
	(void)self;
	return profile_fast(frame, python_profiled_code_of(frame, false), what, argument, false);
}

/* In 3.11 the interpreter's own frame holds the code. */
static int profile_inner_frame(struct object *self, struct object *frame, int what, struct object *argument)
{
	(void)self;
	return profile_fast(frame, python_profiled_code_of(frame, true), what, argument, true);
}

/* EVPROF_BUDGET: what a thinned function does is left out, see thinned_frames.h. */
static int profile_budgeted(struct object *self, struct object *frame, int what, struct object *argument)
{
	/* First, as it may thin the caller. */
	if (unlikely(!writer_has_room(thread_self.writer)))
		budget_look();
	if (what >= PYTHON_TRACE_C_CALL &&
	    unlikely(definitions_thinned(thread_self.writer, python_profiled_code(frame)))) {
		thinned_frames_leave_out(frame);
		return 0;
	}
	if (wanted != ALL_WANTED)
		return profile_any(self, frame, what, argument);
	return python.inner_frames ? profile_inner_frame(self, frame, what, argument)
				   : profile_frame(self, frame, what, argument);
}

/* 3.11: a function starts or resumes, or returns or yields. Only start and end of the function count here. */
static inline __attribute__((always_inline)) void note_frame(struct object *frame, bool begins, struct object *argument)
{
	const uint8_t *last = python_last_instruction(frame, NULL, true);

	if (begins && last[1] == 0 && python_resumes(last))
		event_blocks_begin(frame);
	else if (!begins && (!argument || python_returns(last)))
		event_blocks_end(frame);
}

static inline __attribute__((always_inline)) bool may_be_bound_by_program(struct object *frame, bool inner)
{
	const uint8_t *last = python_last_instruction(frame, python_profiled_code(frame), inner);

	return last && python_calls_unbound(last);
}

/* Hides what Python allocates to report an event from the memory events. */
static inline __attribute__((always_inline)) void note_blocks(struct object *frame, int what, struct object *argument,
							      bool inner)
{
	if (what > PYTHON_TRACE_C_CALL)
		event_blocks_return(argument);
	else if (what < PYTHON_TRACE_C_CALL && inner)
		note_frame(frame, what == PYTHON_TRACE_CALL, argument);
	else if (what == PYTHON_TRACE_C_CALL && (writer_holds(thread_self.writer) || thread_self.lost_block) &&
		 !may_be_bound_by_program(frame, inner))
		event_blocks_call(argument);
}

#define WITH_MEMORY(profile, inner)                                                                                    \
	static int profile##_with_memory(struct object *self, struct object *frame, int what, struct object *argument) \
	{                                                                                                              \
		note_blocks(frame, what, argument, inner);                                                             \
		return profile(self, frame, what, argument);                                                           \
	}

WITH_MEMORY(profile_any, python.inner_frames)
WITH_MEMORY(profile_budgeted, python.inner_frames)
WITH_MEMORY(profile_frame, false)
WITH_MEMORY(profile_inner_frame, true)

#define FORM_OF(profile) (event_blocks_expected() ? profile##_with_memory : (profile))

/* The fast functions do not check which events are wanted and do not record lines. */
static python_profile profile_function(void)
{
	if (config.budget && config_may_thin())
		return FORM_OF(profile_budgeted);
	if (config.events & EVENT_LINE || wanted != ALL_WANTED)
		return FORM_OF(profile_any);
	if (python.inner_frames)
		return FORM_OF(profile_inner_frame);
	return FORM_OF(profile_frame);
}

/*
 * Whether the program's profile function gets an event. With evprof's hook set, the interpreter reports the return of a
 * C function even if no profile function was set when it was called: of sys.setprofile() itself, first of all. The
 * program's function does not get these returns.
 */
static bool is_reported(int what)
{
	open_calls += what == PYTHON_TRACE_C_CALL;
	if (what != PYTHON_TRACE_C_RETURN && what != PYTHON_TRACE_C_EXCEPTION)
		return true;
	return open_calls && open_calls--;
}

/* Calls the program's profile function. It may raise, upon which Python removes it, or set another one. */
static int call_program_profile(struct object *self, struct object *frame, int what, struct object *argument)
{
	bool in_program_profile = thread_self.in_program_profile;
	int result;

	if (!is_reported(what))
		return 0;
	thread_self.in_program_profile = true;
	result = thread_self.chained(self, frame, what, argument);
	thread_self.in_program_profile = in_program_profile;
	if (result && what == PYTHON_TRACE_C_CALL && open_calls)
		open_calls--;
	if (*hooks_profile_field(python.current_thread_state()) != profile_chained)
		hooks_profile_put_back(false);
	return result;
}

static python_profile chained_function(void)
{
	return config.budget && config_may_thin() ? FORM_OF(profile_budgeted) : FORM_OF(profile_any);
}

/*
 * Calls evprof's profile function and the program's, which gets what it would get without evprof, its own object
 * included. If it raises at a start, the function is not called and no end is reported.
 */
static int profile_chained(struct object *self, struct object *frame, int what, struct object *argument)
{
	bool begins = what == PYTHON_TRACE_CALL || what == PYTHON_TRACE_C_CALL;
	int result;

	if (!begins)
		chained_function()(NULL, frame, what, argument);
	result = call_program_profile(self, frame, what, argument);
	if (begins && !result)
		chained_function()(NULL, frame, what, argument);
	return result;
}

/*
 * Until 3.11 a thread has one profile function. The program may set its own (cProfile, coverage, a debugger); evprof
 * then takes its place and calls both. Only the function pointer is replaced: sys.getprofile() still returns the
 * program's object, and no audit event is raised.
 */
static bool chain_profile(struct thread_state *state)
{
	python_profile *current = hooks_profile_field(state);

	if (!python.layout.state_profile || !*current)
		return false;
	if (*current == profile_function() || *current == profile_chained)
		return true;
	thread_self.chained = *current;
	*current = profile_chained;
	if (thread_self.writer->slot)
		thread_self.writer->resync = 1; /* its own function ran without ours: calls and returns were missed */
	return true;
}

void hooks_profile_set(void)
{
	wanted = (config.events & EVENT_CALL ? 1u << PYTHON_TRACE_CALL | 1u << PYTHON_TRACE_RETURN : 0) |
		 (config.events & EVENT_C_CALL
		      ? 1u << PYTHON_TRACE_C_CALL | 1u << PYTHON_TRACE_C_RETURN | 1u << PYTHON_TRACE_C_EXCEPTION
		      : 0);
	if (!throwers[0])
		find_throwers();
	if (!wanted || hooks_frame_set() || chain_profile(python.current_thread_state()))
		return;
	if (thread_self.writer->slot)
		thread_self.writer->resync = 1;
	open_calls = 0;
	event_blocks_forget();
	python.PyEval_SetProfile(profile_function(), NULL);
}

void hooks_profile_put_back(bool missed)
{
	struct thread_state *state = python.current_thread_state();
	uint32_t resync = thread_self.writer->resync;

	if (python.monitoring || thread_self.hooked_state != state || hooks_frame_records(state))
		return;
	if (*hooks_profile_field(state))
		hooks_profile_set();
	else
		hooks_profile_set_new(state);
	thread_self.writer->resync = resync;
	if (missed)
		writer_expect_stack();
}

bool hooks_profile_place(struct thread_state *state)
{
	if (!wanted || !python.layout.state_profile)
		return false;
	if (hooks_frame_records(state))
		return true;
	*hooks_profile_field(state) = profile_function();
	python_mark_traced(state);
	return true;
}

bool hooks_profile_set_new(struct thread_state *state)
{
	if (!hooks_profile_place(state))
		return false;
	open_calls = 0;
	return true;
}
