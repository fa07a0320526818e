/*
 * hooks_frame.c - calls and returns by a frame evaluation function (PEP 523), from 3.9 to 3.11, where neither calls of
 * C functions nor lines are recorded.
 *
 * A profile function gets the calls of C functions, too, only to leave them out; the interpreter calls an evaluator for
 * frames alone. evaluate() writes an event before and after it lets Python run the frame:
 *
 *   a frame of f -> evaluate() -> WIRE_CALL -> _PyEval_EvalFrameDefault() -> WIRE_RETURN
 *
 * It writes a call itself where loads alone find its id and room for it. Every other call is left to the profile
 * function of hooks_profile.c, which is set for that one event (report_alone()): while it runs, the frame is the
 * running one, whose names and arguments are read. The same is done where the program has a profile function or a trace
 * function: these decide by an exception whether the function runs. And at the recursion limit, where Python does not
 * run it.
 *
 * Python 3.11.0 to 3.11.3 does not ask the evaluator for a __getitem__() that x[i] calls, unless the thread counts as
 * traced. So a function with subscripts runs traced there (CODE_SLOW_SUBSCRIPTS), though nobody gets the events, until
 * it has run often enough: then its subscripts are not specialized again (definitions_unmark_subscripts()).
 *
 * The profile function takes over for good where little of a thread's stack is left, and where another evaluator is
 * set, which need not call this one. Frames that run when recording begins end without an event, so there must be none.
 */
#include "base/config.h"
#include "base/log_line.h"
#include "definitions/definitions.h"
#include "definitions/tasks.h"
#include "hooks/budget.h"
#include "hooks/event_blocks.h"
#include "hooks/frame_evaluator.h"
#include "hooks/hooks.h"
#include "hooks/program.h"
#include "life/life.h"
#include "python/profiled_frame.h"
#include "ring/process.h"
#include "ring/writer.h"

/*
 * Functions that are on the stack while Python runs have no variable whose address is taken: greenlets copy the stack,
 * and the marks of the address sanitizer around such variables stay behind.
 */
#ifdef __SANITIZE_ADDRESS__
#define PUT_INLINE __attribute__((noinline))
#else
#define PUT_INLINE inline __attribute__((always_inline))
#endif

static struct {
	bool tried;		      /* since Python has begun */
	bool on;		      /* evaluate() records; else the profile function does, or nobody */
	const void *interpreter;      /* the one that has the evaluator */
	const frame_evaluator *place; /* in the interpreter */
} frames = {.place = &frame_evaluator_original};

/* The frame whose call report_alone() is to record. A frame that ends in this state was never reported. */
static __thread const void *unreported __attribute__((tls_model("initial-exec")));

static struct object *evaluate(struct thread_state *state, const void *frame, int thrown);

bool hooks_frame_records(const struct thread_state *state)
{
	return frames.on && python_field(state, PYTHON_STATE_INTERPRETER) == frames.interpreter;
}

/* Also false once another evaluator was set, though that is noticed later. */
static inline bool records(void)
{
	return __atomic_load_n(frames.place, __ATOMIC_RELAXED) == evaluate;
}

static struct object *code_of(const void *frame)
{
	return python_field(frame, PYTHON_FRAME_CODE);
}

/* As python_last_instruction(). In 3.11 it lies before the code until the frame begins. */
static const uint8_t *last_instruction(const void *frame)
{
	return python.inner_frames ? python_field(frame, python.layout.inner_previous)
				   : python_last_instruction((struct object *)frame, code_of(frame), false);
}

/* The value of a code object in ids.h by loads alone, if evaluate() records, and has room; else 0. */
static PUT_INLINE uint64_t loaded_value(const struct object *code)
{
	const struct writer *writer = thread_self.writer;
	uint64_t value;

	return records() && writer_has_room(writer) && ids_find_fast(&writer->ids, code, &value) ? value : 0;
}

/* The same in any case; 0: none yet. */
static uint64_t value_of(const struct object *code)
{
	return process->base ? ids_find(&process->ids, code) : 0;
}

static bool has_subscripts(const struct object *code)
{
	uint64_t value;

	if (!definitions_subscripts)
		return false;
	value = value_of(code);
	return value ? value >> 32 & CODE_SLOW_SUBSCRIPTS : python_has_subscripts(code);
}

/* ---- the call that loads alone do not find ---------------------------------------------------------------------- */

static int report_alone(struct object *self, struct object *frame, int what, struct object *argument);
static int report_after_program(struct object *self, struct object *frame, int what, struct object *argument);

/* The program may have set another function meanwhile. */
static void stop_reporting(struct thread_state *state)
{
	python_profile *function = hooks_profile_field(state);

	if (*function == report_after_program)
		*function = thread_self.chained;
	else if (*function == report_alone)
		*function = NULL;
	python_unmark_traced(state);
}

static bool is_unreported(struct object *frame, int what)
{
	return what == PYTHON_TRACE_CALL && python_inner_frame(frame) == unreported;
}

/*
 * The profile function for one call. While a function with subscripts runs, it stays, as Python would go on untraced
 * without any.
 */
static int report_alone(struct object *self, struct object *frame, int what, struct object *argument)
{
	(void)self;
	if (!is_unreported(frame, what)) {
		if (definitions_unmark_subscripts(python_profiled_code(frame)))
			stop_reporting(python.current_thread_state());
		return 0;
	}
	hooks_profile_record(frame, what, argument);
	unreported = NULL;
	if (!has_subscripts(python_profiled_code(frame)))
		stop_reporting(python.current_thread_state());
	return 0;
}

/* The program's own gets it first. If that raises, the function does not run, and no call is recorded. */
static int report_after_program(struct object *self, struct object *frame, int what, struct object *argument)
{
	int result = thread_self.chained(self, frame, what, argument);

	if (!is_unreported(frame, what))
		return result;
	if (!result) {
		hooks_profile_record(frame, what, argument);
		unreported = NULL;
	}
	stop_reporting(python.current_thread_state());
	if (!frames.on)
		hooks_profile_put_back(false);
	return result;
}

static void report_call_of(struct thread_state *state, const void *frame, int thrown)
{
	python_profile *function = hooks_profile_field(state);

	if (!*function) {
		*function = report_alone;
	} else if (*function != report_alone && *function != report_after_program) {
		thread_self.chained = *function;
		*function = report_after_program;
	}
	python_mark_traced(state);
	unreported = frame;
	if (thread_self.writer != &writer_absent)
		thread_self.writer->throwing = thrown != 0;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static unsigned end_kind(const void *frame, const struct object *result)
{
	const uint8_t *last = last_instruction(frame);

	if (!result)
		return WIRE_UNWIND;
	return definitions_is_generator(code_of(frame)) && last && !python_returns(last) ? WIRE_YIELD : WIRE_RETURN;
}

/* Nothing is recorded: Python runs its frames itself. */
static void remove_if_idle(void)
{
	if (process_records_nothing())
		hooks_frame_remove();
}

static void record_end(const void *frame, unsigned kind)
{
	struct object *code = code_of(frame);
	struct writer *writer;
	uint32_t value;

	if (value_of(code) & (DEFINITION_HIDDEN | CODE_THINNED))
		return;
	thread_self.evaluated = frame;
	writer = writer_reserve(kind);
	thread_self.evaluated = NULL;
	if (!writer) {
		remove_if_idle();
		return;
	}
	value = definitions_code_of_frame(code, python_field(frame, python.layout.chain_globals));
	if (value & DEFINITION_HIDDEN)
		return;
	if (value)
		writer_put(writer, wire_head(kind, DEFINITION_ID(value)));
	else
		writer_lose(writer, kind);
}

/* The end of a call that was recorded, or was lost. Where the profile function took over, it has recorded the end. */
static __attribute__((noinline)) void end_any(const void *frame, const struct object *result)
{
	struct object *code = code_of(frame);

	hooks_frame_look();
	if (!frames.on)
		return;
	if (program_records(code, false))
		record_end(frame, end_kind(frame, result));
	program_returns(code);
}

/* ---- generators, and functions with subscripts ------------------------------------------------------------------ */

/* The value of code of which begin_known() and end_known() can write events, else 0. */
static uint64_t known_value(const void *frame)
{
	uint64_t value = loaded_value(code_of(frame));

	return value >> 32 & ~(uint64_t)(CODE_SLOW_GENERATOR | CODE_SLOW_SUBSCRIPTS) ? 0 : value;
}

/*
 * Until 3.10 a generator that has not begun does not show that an exception is thrown into it. In 3.11 the call that
 * makes a generator is evaluated, too: it ends at its first instruction.
 */
static unsigned begin_kind(const void *frame, int thrown)
{
	const uint8_t *last = last_instruction(frame);

	if (!python.inner_frames)
		return !last ? WIRE_CALL : thrown ? WIRE_THROW : WIRE_RESUME;
	return thrown ? WIRE_THROW : *last == PYTHON_OPCODE_RETURN_GENERATOR ? WIRE_CALL : WIRE_RESUME;
}

static bool makes_generator(const void *frame)
{
	return python.inner_frames && definitions_is_generator(code_of(frame)) &&
	       last_instruction(frame) < (const uint8_t *)code_of(frame) + python_basic_size(python.code_type);
}

/* The call of code of which known_value() is not 0. */
static __attribute__((noinline)) void begin_known(const void *frame, int thrown, uint64_t value)
{
	unsigned kind = value & CODE_IS_GENERATOR ? begin_kind(frame, thrown) : WIRE_CALL;
	uint32_t head = wire_head(kind, DEFINITION_ID((uint32_t)value));
	const void *of_task = value & CODE_IS_COROUTINE ? definitions_task_frame(frame, python_running_frame()) : NULL;

	if (of_task)
		writer_put_step(thread_self.writer, head, definitions_task(kind, of_task));
	else
		writer_put_plain(thread_self.writer, head);
}

static __attribute__((noinline)) bool end_known(const void *frame, const struct object *result)
{
	uint64_t value = known_value(frame);

	if (!value)
		return false;
	writer_put_plain(thread_self.writer, wire_head(end_kind(frame, result), DEFINITION_ID((uint32_t)value)));
	return true;
}

/* ---- the evaluator ---------------------------------------------------------------------------------------------- */

/* Whether the profile function is evprof's alone, or none is set, and no trace function. */
static bool is_own(const struct thread_state *state)
{
	const python_profile *functions = hooks_profile_field(state);

	return !functions[1] && (!functions[0] || functions[0] == report_alone);
}

/* While the program's profile function or trace function runs, the interpreter reports nothing. */
static bool is_in_program_hook(const struct thread_state *state)
{
	return !is_own(state) && !python_is_traced(state);
}

/* Whether the profile function is needed to know if the call takes place. */
static inline __attribute__((always_inline)) bool may_fail(const struct thread_state *state)
{
	if (unlikely(!hooks_profile_is_off(state)))
		return true;
	return python.inner_frames
		   ? python_int(state, PYTHON_STATE_DEPTH_LEFT) <= 0
		   : python_int(state, PYTHON_STATE_DEPTH) >= python_int(frames.interpreter, PYTHON_INTERPRETER_LIMIT);
}

/* In 3.11: the caller has subscripts, see above. */
static inline __attribute__((always_inline)) bool is_traced(const struct thread_state *state)
{
	return python.inner_frames && **(uint8_t *const *)((const char *)state + python.layout.state_cframe);
}

/* Code that is left out, and has no other slow-path flag; or is left out for now (budget.h). */
static bool is_left_out(const struct object *code)
{
	uint64_t value = loaded_value(code);

	value = value ? value : value_of(code);
	return value >> 32 == CODE_SLOW_HIDDEN || value & CODE_THINNED;
}

/* Without room: counts the event of a plain function as lost if the event before was, and returns whether. */
static __attribute__((noinline)) bool goes_on_losing(const struct object *code, unsigned kind)
{
	struct writer *writer = thread_self.writer;
	uint32_t id;

	if (!records() || writer_has_room(writer) || !writer_goes_on_losing(writer) ||
	    !definitions_code_fast(writer, code, &id))
		return false;
	writer_count_lost(writer, kind);
	return true;
}

/* What was left out when it began may be recorded when it ends: from then on it is on the stacks that are written. */
static struct object *evaluate_left_out(struct thread_state *state, const void *frame, int thrown, uint64_t value)
{
	struct object *result;

	frame_evaluator_count_pass(value & CODE_IS_GENERATOR);
	result = frame_evaluator_original(state, frame, thrown);
	if (unlikely(!is_left_out(code_of(frame))))
		end_any(frame, result);
	return result;
}

static struct object *evaluate_reported(struct thread_state *state, const void *frame, int thrown)
{
	struct object *result;

	report_call_of(state, frame, thrown);
	result = frame_evaluator_original(state, frame, thrown);
	stop_reporting(state);
	if (likely(unreported != frame)) /* else a trace function has raised */
		end_any(frame, result);
	return result;
}

static struct object *evaluate_known(struct thread_state *state, const void *frame, int thrown, uint64_t value)
{
	bool traced = value >> 32 & CODE_SLOW_SUBSCRIPTS && !definitions_unmark_subscripts(code_of(frame));
	struct object *result;

	begin_known(frame, thrown, value);
	if (traced)
		python_mark_traced(state);
	result = frame_evaluator_original(state, frame, thrown);
	if (traced)
		stop_reporting(state);
	if (unlikely(!end_known(frame, result)))
		end_any(frame, result);
	return result;
}

static struct object *evaluate_losing(struct thread_state *state, const void *frame, int thrown)
{
	struct object *result = frame_evaluator_original(state, frame, thrown);

	if (!goes_on_losing(code_of(frame), result ? WIRE_RETURN : WIRE_UNWIND))
		end_any(frame, result);
	return result;
}

static struct object *evaluate_own(struct thread_state *state, const void *frame, int thrown)
{
	uint64_t value;

	if (may_fail(state))
		return evaluate_reported(state, frame, thrown);
	value = known_value(frame);
	if (value)
		return evaluate_known(state, frame, thrown, value);
	if (goes_on_losing(code_of(frame), WIRE_CALL))
		return evaluate_losing(state, frame, thrown);
	return evaluate_reported(state, frame, thrown);
}

/*
 * The state of tracing of the caller is set aside meanwhile. In 3.11 a signal handler may run where the call of the
 * interrupted function is about to be reported. Greenlets are traced each for itself; the profile function is the
 * thread's.
 */
static __attribute__((noinline)) struct object *evaluate_any(struct thread_state *state, const void *frame, int thrown)
{
	const void *outer = unreported;
	python_profile function;
	struct object *result;
	bool own, traced;

	hooks_frame_look();
	if (unlikely(config.budget && !writer_has_room(thread_self.writer)))
		budget_look();
	if (!frames.on || is_in_program_hook(state) || makes_generator(frame))
		return frame_evaluator_original(state, frame, thrown);
	if (is_left_out(code_of(frame)))
		return evaluate_left_out(state, frame, thrown, value_of(code_of(frame)));
	function = *hooks_profile_field(state);
	own = is_own(state);
	traced = python_is_traced(state);
	stop_reporting(state);
	unreported = NULL;
	result = own ? evaluate_own(state, frame, thrown) : evaluate_reported(state, frame, thrown);
	unreported = outer;
	if (!records())
		return result;
	if (outer) {
		report_call_of(state, outer, 0);
	} else if (own && traced && hooks_profile_is_off(state)) {
		*hooks_profile_field(state) = function;
		python_mark_traced(state);
	}
	return result;
}

/* The event of a plain function. False: it is none, or a WIRE_TIME is needed; nothing is written. */
static inline __attribute__((always_inline)) bool put_plain(uint64_t value, unsigned kind)
{
	return likely(value && value <= CODE_PLAIN_MAX) &&
	       writer_put_fast(thread_self.writer, wire_head(kind, DEFINITION_ID((uint32_t)value)));
}

static struct object *evaluate(struct thread_state *state, const void *frame, int thrown)
{
	struct object *result;
	uint64_t value;

	if (unlikely(may_fail(state) || is_traced(state) || frame_evaluator_stack_is_short()))
		return evaluate_any(state, frame, thrown);
	value = loaded_value(code_of(frame));
	if (unlikely(value & CODE_THINNED))
		return evaluate_left_out(state, frame, thrown, value);
	if (unlikely(!put_plain(value, WIRE_CALL)))
		return evaluate_any(state, frame, thrown);
	result = frame_evaluator_original(state, frame, thrown);
	if (unlikely(!put_plain(loaded_value(code_of(frame)), result ? WIRE_RETURN : WIRE_UNWIND)))
		end_any(frame, result);
	return result;
}

/* ---- the beginning and the end of its use ----------------------------------------------------------------------- */

/* In 3.11 frame objects are made for the profile function: event_blocks.h needs the event of each. */
static bool is_possible(void)
{
	return frame_evaluator_is_possible() && python.layout.interpreter_evaluator &&
	       !(config.events & (EVENT_C_CALL | EVENT_LINE)) && !(python.inner_frames && event_blocks_expected()) &&
	       python_is_main() && python.PyInterpreterState_Head && python.PyInterpreterState_ThreadHead &&
	       python.PyThreadState_Next && python.Py_GetRecursionLimit;
}

static const void *frame_of(const struct thread_state *state)
{
	return python.inner_frames ? python_field(python_field(state, python.layout.state_cframe), PYTHON_CFRAME_FRAME)
				   : python_field(state, PYTHON_STATE_FRAME);
}

static bool any_frame_runs(void)
{
	struct thread_state *state = python.PyInterpreterState_ThreadHead((void *)frames.interpreter);

	while (state && !frame_of(state))
		state = python.PyThreadState_Next(state);
	return state != NULL;
}

static bool knows_recursion(void)
{
	return python.Py_GetRecursionLimit() == (python.inner_frames
						     ? python_int(python.current_thread_state(), PYTHON_STATE_LIMIT)
						     : python_int(frames.interpreter, PYTHON_INTERPRETER_LIMIT));
}

/* Sets it, if the interpreter has it where it is expected. */
static bool set_evaluator(void)
{
	frames.place =
	    (const frame_evaluator *)((const char *)frames.interpreter + python.layout.interpreter_evaluator);
	if (knows_recursion() && frame_evaluator_set(evaluate)) {
		if (records())
			return true;
		frame_evaluator_remove(evaluate);
	}
	frames.place = &frame_evaluator_original;
	return false;
}

bool hooks_frame_set(void)
{
	if (!frames.tried) {
		frames.tried = true;
		frames.interpreter = python.PyInterpreterState_Main ? python.PyInterpreterState_Main() : NULL;
		frames.on = is_possible() && !any_frame_runs() && set_evaluator();
		definitions_subscripts = frames.on && python_inlines_subscripts();
	}
	return hooks_frame_records(python.current_thread_state());
}

/* Another thread that is about to report to the program's function, too, goes on with that by itself. */
static void stop_reports(void)
{
	struct thread_state *state = python.PyInterpreterState_ThreadHead((void *)frames.interpreter);

	for (; state; state = python.PyThreadState_Next(state))
		if (*hooks_profile_field(state) == report_alone)
			stop_reporting(state);
}

void hooks_frame_remove(void)
{
	if (!frames.on)
		return;
	frame_evaluator_remove(evaluate);
	stop_reports();
	frames.on = false;
	frames.place = &frame_evaluator_original;
}

bool hooks_frame_enable(bool on)
{
	static bool paused;

	if (on == frames.on || on != paused)
		return frames.on;
	paused = !on;
	if (on)
		frames.on = set_evaluator();
	else
		hooks_frame_remove();
	return true;
}

/* Of the current thread also in front of the program's. */
static void set_profile_functions(void)
{
	struct thread_state *state = python.current_thread_state();

	stop_reporting(state);
	if (*hooks_profile_field(state))
		hooks_profile_set();
	else
		hooks_profile_place(state);
	install_profile_everywhere();
}

void hooks_frame_look(void)
{
	bool other;

	if (!frames.on || (records() && !frame_evaluator_stack_is_short()))
		return;
	other = !records();
	hooks_frame_remove();
	set_profile_functions();
	if (!other)
		return;
	log_line(LOG_INFO, "another frame evaluator is set (PEP 523); recording calls costs more");
	process_expect_stacks(); /* it may have run functions that were not recorded */
}

bool hooks_frame_traces(void)
{
	const struct thread_state *state = python.current_thread_state();

	return hooks_frame_records(state) && is_own(state) && is_traced(state);
}

static __thread python_profile program_profile __attribute__((tls_model("initial-exec")));

/*
 * In front of the program's profile function, for one event. To a function that runs traced, Python reports the return
 * of the call by which the program's was set.
 */
static int drop_return(struct object *self, struct object *frame, int what, struct object *argument)
{
	python_profile *current = hooks_profile_field(python.current_thread_state());

	if (*current == drop_return)
		*current = program_profile;
	else if (thread_self.chained == drop_return)
		thread_self.chained = program_profile;
	if (what == PYTHON_TRACE_C_RETURN || what == PYTHON_TRACE_C_EXCEPTION)
		return 0;
	return program_profile(self, frame, what, argument);
}

void hooks_frame_tracing_changed(bool traced)
{
	struct thread_state *state = python.current_thread_state();
	python_profile *current;
	const void *frame;

	if (!hooks_frame_records(state))
		return;
	current = hooks_profile_field(state);
	if (hooks_profile_is_off(state)) {
		frame = python_running_frame();
		if (frame && has_subscripts(code_of(frame)))
			python_mark_traced(state);
	} else if (traced && *current && *current != report_alone && *current != drop_return) {
		program_profile = *current;
		*current = drop_return;
	}
}

/*
 * After greenlet's trace function Python computes anew, from the profile function alone, whether the thread counts as
 * traced: a mark of the function that resumes is gone.
 */
void hooks_frame_switched(void)
{
	struct thread_state *state = python.current_thread_state();
	const struct object *code;
	const void *frame;

	if (!definitions_subscripts || !hooks_frame_records(state) || !is_own(state))
		return;
	frame = python_running_frame();
	code = frame ? code_of(frame) : NULL;
	*hooks_profile_field(state) = code && has_subscripts(code) && !is_left_out(code) ? report_alone : NULL;
}

void hooks_frame_forget(void)
{
	frames.on = frames.tried = false;
	frames.place = &frame_evaluator_original;
}
