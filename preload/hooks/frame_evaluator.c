/* frame_evaluator.c - see frame_evaluator.h. */
#include "hooks/frame_evaluator.h"

#include <errno.h>
#include <pthread.h>

#include "base/log_line.h"
#include "base/seccomp.h"
#include "definitions/definitions.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "ring/process.h"

#define STACK_LEFT 262144 /* bytes: with less, or a quarter of a small stack, no evaluation adds its own */

/* pystate.h: _PyFrameEvalFunction. frame: PyFrameObject until 3.10, _PyInterpreterFrame in 3.11. */
typedef struct object *(*evaluator)(struct thread_state *state, const void *frame, int thrown);

/* A frame that is evaluated, on the stack of evaluate(). */
struct evaluation {
	struct evaluation *outer; /* NULL: none, or one that began before the evaluator was set */
	const void *frame;
	const struct object *code;
	enum thinned thinned;
	uint32_t version;
};

static struct {
	evaluator original; /* _PyEval_EvalFrameDefault(); NULL: not set */
	bool gone;	    /* it has stepped back */
	bool any;	    /* something is thinned */
	uint32_t version;   /* of what is thinned */
	uint64_t passes;
} evaluators;

static __thread struct evaluation *innermost __attribute__((tls_model("initial-exec")));
static __thread uintptr_t stack_low __attribute__((tls_model("initial-exec"))); /* 0: not known yet */

bool frame_evaluator_is_possible(void)
{
	return !python.monitoring && python._PyInterpreterState_SetEvalFrameFunc &&
	       python._PyInterpreterState_GetEvalFrameFunc && python.layout.state_profile && python.layout.chain_code;
}

uint64_t frame_evaluator_passes(void)
{
	return evaluators.passes;
}

/* Of richards of pyperformance, with a prototype. In 3.11 Python functions call each other through C then. */
double frame_evaluator_ns(void)
{
	return python.inner_frames ? 24 : 9;
}

static enum thinned thinned_now(struct evaluation *evaluation)
{
	if (evaluation->version != evaluators.version) {
		evaluation->version = evaluators.version;
		evaluation->thinned =
		    evaluators.any ? definitions_thinned(thread_self.writer, evaluation->code) : THINNED_NOT;
	}
	return evaluation->thinned;
}

/* The events that the interpreter does not report while the profile function is off. */
static void put(unsigned kind, const struct object *code)
{
	struct writer *writer = writer_reserve(kind);
	uint32_t id;

	if (!writer)
		return;
	id = DEFINITION_ID((uint32_t)ids_find(&process->ids, code));
	if (id)
		writer_put(writer, wire_head(kind, id));
	else
		writer_lose(writer, kind);
}

/* Under a filter of system calls it stays unknown: the C library reads the main thread's from /proc. */
static __attribute__((noinline, cold)) void learn_stack(void)
{
	int saved_errno = errno;
	pthread_attr_t attributes;
	void *low = NULL;
	size_t size = 0;

	stack_low = 1;
	if (seccomp_active())
		return;
	thread_self.nesting++; /* it allocates */
	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
	}
	thread_self.nesting--;
	if (low)
		stack_low = (uintptr_t)low + (size / 4 < STACK_LEFT ? size / 4 : STACK_LEFT);
	errno = saved_errno;
}

static inline bool stack_is_short(void)
{
	if (unlikely(!stack_low))
		learn_stack();
	return (uintptr_t)__builtin_frame_address(0) < stack_low;
}

static struct object *evaluate(struct thread_state *state, const void *frame, int thrown);

/* Another evaluator that was set meanwhile is not replaced. */
static void step_back(void)
{
	void *interpreter = python.PyInterpreterState_Main();

	evaluators.gone = true;
	if (python._PyInterpreterState_GetEvalFrameFunc(interpreter) == (void *)evaluate)
		python._PyInterpreterState_SetEvalFrameFunc(interpreter, (void *)evaluators.original);
	frame_evaluator_changed(false);
}

/* Whether the thread's profile function is evprof's alone, on or off. */
static inline bool may_switch(struct thread_state *state)
{
	return thread_self.hooked_state == state && !evaluators.gone && !thread_self.greenlets &&
	       hooks_profile_is_alone(state) && !stack_is_short();
}

/* Without switching: what was taken off comes back. */
static __attribute__((noinline, cold)) struct object *evaluate_plainly(struct thread_state *state, const void *frame,
								       int thrown)
{
	if (!evaluators.gone && stack_is_short())
		step_back();
	if (thread_self.hooked_state == state && hooks_profile_is_alone(state) && hooks_profile_is_off(state))
		hooks_profile_place(state);
	return evaluators.original(state, frame, thrown);
}

static void begin(struct thread_state *state, const struct evaluation *evaluation)
{
	bool off = hooks_profile_is_off(state);

	evaluators.passes += evaluation->thinned == THINNED;
	if (evaluation->thinned == THINNED_C_CALLS)
		put(WIRE_CALL, evaluation->code);
	if (evaluation->thinned && !off)
		hooks_profile_take_off(state);
	else if (!evaluation->thinned && off)
		hooks_profile_place(state);
}

/* The profile function may have been set, or have been taken off, since the frame began. */
static void end(struct thread_state *state, struct evaluation *evaluation, bool returned)
{
	bool off = hooks_profile_is_off(state), wanted;

	if (off && thinned_now(evaluation) != THINNED)
		put(returned ? WIRE_RETURN : WIRE_UNWIND, evaluation->code);
	wanted = !evaluation->outer || thinned_now(evaluation->outer) == THINNED_NOT;
	if (wanted && off)
		hooks_profile_place(state);
	else if (!wanted && !off)
		hooks_profile_take_off(state);
}

/*
 * A thinned function that one with the profile function off calls: nothing is to be switched. Should the profile
 * function be set before it ends, nothing takes it off until then.
 */
static inline bool passes(const struct thread_state *state, const struct object *code)
{
	uint64_t value;

	return evaluators.any && hooks_profile_is_off(state) && thread_self.hooked_state == state &&
	       !thread_self.greenlets && ids_find_fast(&thread_self.writer->ids, code, &value) &&
	       value & CODE_THINNED && !stack_is_short();
}

static struct object *evaluate(struct thread_state *state, const void *frame, int thrown)
{
	const struct object *code = python_field(frame, python.layout.chain_code);
	struct evaluation here;
	struct object *result;

	if (likely(passes(state, code))) {
		evaluators.passes++;
		return evaluators.original(state, frame, thrown);
	}
	if (unlikely(!may_switch(state)))
		return evaluate_plainly(state, frame, thrown);
	here = (struct evaluation){.outer = innermost, .frame = frame, .code = code, .version = evaluators.version};
	if (evaluators.any)
		here.thinned = definitions_thinned(thread_self.writer, code);
	innermost = &here;
	begin(state, &here);
	result = evaluators.original(state, frame, thrown);
	innermost = here.outer;
	if (likely(may_switch(state)))
		end(state, &here, result != NULL);
	return result;
}

bool frame_evaluator_set(void)
{
	void *interpreter = python.PyInterpreterState_Main();
	evaluator original = (evaluator)python_symbol("_PyEval_EvalFrameDefault");

	if (!original || python._PyInterpreterState_GetEvalFrameFunc(interpreter) != (void *)original)
		return false;
	evaluators.original = original;
	python._PyInterpreterState_SetEvalFrameFunc(interpreter, (void *)evaluate);
	return true;
}

void frame_evaluator_changed(bool any)
{
	evaluators.any = any && !evaluators.gone;
	evaluators.version++;
	if (!any)
		install_profile_everywhere();
	if (evaluators.original && !evaluators.gone &&
	    python._PyInterpreterState_GetEvalFrameFunc(python.PyInterpreterState_Main()) != (void *)evaluate) {
		log_line(LOG_INFO,
			 "another frame evaluator is set (PEP 523); what EVPROF_BUDGET leaves out costs more");
		step_back();
	}
}

void frame_evaluator_forked(void)
{
	struct thread_state *state = evaluators.original ? python.current_thread_state() : NULL;

	evaluators.any = false;
	evaluators.version++;
	if (state && thread_self.hooked_state == state && hooks_profile_is_off(state))
		hooks_profile_place(state);
}

void frame_evaluator_leave_out(struct object *frame)
{
	if (innermost && !thread_self.greenlets && !evaluators.gone && innermost->frame == python_inner_frame(frame) &&
	    hooks_profile_is_alone(python.current_thread_state()))
		hooks_profile_take_off(python.current_thread_state());
}
