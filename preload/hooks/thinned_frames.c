/* thinned_frames.c - see thinned_frames.h. */
#include "hooks/thinned_frames.h"

#include "base/log_line.h"
#include "definitions/definitions.h"
#include "hooks/frame_evaluator.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "ring/process.h"

#define KNOWN 1024

/* A frame that is evaluated, on the stack of evaluate(). */
struct evaluation {
	struct evaluation *outer; /* NULL: none, or one that began before the evaluator was set */
	const void *frame;
	const struct object *code;
	enum thinned thinned;
	uint32_t version;
};

static struct {
	bool set;
	bool gone;	  /* it has stepped back */
	bool any;	  /* something is thinned */
	uint32_t version; /* of what is thinned */
	bool inlines;	  /* python_inlines_subscripts() */
} frames;

static __thread struct evaluation *innermost __attribute__((tls_model("initial-exec")));

/* Whether all calls of Python functions that the code makes come here. */
static bool calls_evaluator(const struct object *code)
{
	static struct {
		const struct object *code;
		uint32_t version; /* since then a code object may have died */
	} known[KNOWN], *place;

	if (likely(!frames.inlines))
		return true;
	place = &known[(uintptr_t)code / 64 % KNOWN];
	if (place->code == code && place->version == frames.version)
		return true;
	if (!definitions_despecialize_subscripts((struct object *)code, false))
		return false;
	place->code = code;
	place->version = frames.version;
	return true;
}

/*
 * While the C functions of a function are left out: one of its subscripts has begun to call a function, and would be
 * specialized to do so without the evaluator.
 */
static void note_subscript(const struct evaluation *caller)
{
	if (caller->thinned == THINNED_C_CALLS &&
	    python_is_specialized_subscript(python_field(caller->frame, python.layout.inner_previous)))
		definitions_despecialize_subscripts((struct object *)caller->code, true);
}

/* Without C functions alone: not if calls of Python functions would be missed with them. */
static enum thinned thinned_code(const struct object *code)
{
	enum thinned thinned = frames.any ? definitions_thinned(thread_self.writer, code) : THINNED_NOT;

	return thinned == THINNED_C_CALLS && !calls_evaluator(code) ? THINNED_NOT : thinned;
}

static enum thinned thinned_now(struct evaluation *evaluation)
{
	if (evaluation->version != frames.version) {
		evaluation->version = frames.version;
		evaluation->thinned = thinned_code(evaluation->code);
	}
	return evaluation->thinned;
}

/* The events that the interpreter does not report while the profile function is off. */
static void put(unsigned kind, const struct evaluation *evaluation)
{
	struct writer *writer;
	uint32_t id;

	thread_self.evaluated = evaluation->frame;
	writer = writer_reserve(kind);
	thread_self.evaluated = NULL;
	if (!writer)
		return;
	id = DEFINITION_ID((uint32_t)ids_find(&process->ids, evaluation->code));
	if (id)
		writer_put(writer, wire_head(kind, id));
	else
		writer_lose(writer, kind);
}

static struct object *evaluate(struct thread_state *state, const void *frame, int thrown);

/* Another evaluator that was set meanwhile is not replaced. */
static void step_back(void)
{
	frames.gone = true;
	frame_evaluator_remove(evaluate);
	thinned_frames_changed(false);
}

/* Whether the thread's profile function is evprof's alone, on or off. */
static inline bool may_switch(struct thread_state *state)
{
	return thread_self.hooked_state == state && !frames.gone && !thread_self.greenlets &&
	       hooks_profile_is_alone(state) && !frame_evaluator_stack_is_short();
}

/* Without switching: what was taken off comes back. */
static __attribute__((noinline, cold)) struct object *evaluate_plainly(struct thread_state *state, const void *frame,
								       int thrown)
{
	if (!frames.gone && frame_evaluator_stack_is_short())
		step_back();
	if (thread_self.hooked_state == state && hooks_profile_is_alone(state) && hooks_profile_is_off(state))
		hooks_profile_place(state);
	return frame_evaluator_original(state, frame, thrown);
}

static void begin(struct thread_state *state, const struct evaluation *evaluation)
{
	bool off = hooks_profile_is_off(state);

	if (evaluation->thinned == THINNED) {
		frame_evaluator_count_pass(definitions_is_generator((struct object *)evaluation->code));
		frame_evaluator_passes.switches += !off;
	}
	if (evaluation->thinned == THINNED_C_CALLS)
		put(WIRE_CALL, evaluation);
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
		put(returned ? WIRE_RETURN : WIRE_UNWIND, evaluation);
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
static inline bool passes(const struct thread_state *state, const struct object *code, uint64_t *value)
{
	return frames.any && hooks_profile_is_off(state) && thread_self.hooked_state == state &&
	       !thread_self.greenlets && ids_find_fast(&thread_self.writer->ids, code, value) &&
	       *value & CODE_THINNED && !frame_evaluator_stack_is_short();
}

static struct object *evaluate(struct thread_state *state, const void *frame, int thrown)
{
	const struct object *code = python_field(frame, python.layout.chain_code);
	struct evaluation here;
	struct object *result;
	uint64_t value;

	if (likely(passes(state, code, &value))) {
		frame_evaluator_count_pass(value & CODE_IS_GENERATOR);
		return frame_evaluator_original(state, frame, thrown);
	}
	if (unlikely(!may_switch(state)))
		return evaluate_plainly(state, frame, thrown);
	if (unlikely(frames.inlines) && innermost)
		note_subscript(innermost);
	here = (struct evaluation){.outer = innermost, .frame = frame, .code = code, .version = frames.version};
	here.thinned = thinned_code(code);
	innermost = &here;
	begin(state, &here);
	result = frame_evaluator_original(state, frame, thrown);
	innermost = here.outer;
	if (likely(may_switch(state)))
		end(state, &here, result != NULL);
	return result;
}

bool thinned_frames_begin(void)
{
	if (!frames.set && frame_evaluator_set(evaluate)) {
		frames.set = true;
		frames.inlines = python_inlines_subscripts();
	}
	return frames.set;
}

void thinned_frames_forget(void)
{
	frames.set = frames.gone = frames.any = false;
	innermost = NULL;
}

/* A loop may have no event at which the profile function would be taken off. */
static void take_off_running(void)
{
	struct thread_state *state = python.current_thread_state();

	if (innermost && innermost->frame == python_running_frame() && may_switch(state) && thinned_now(innermost) &&
	    !hooks_profile_is_off(state))
		hooks_profile_take_off(state);
}

void thinned_frames_changed(bool any)
{
	frames.any = any && !frames.gone;
	frames.version++;
	if (!any)
		install_profile_everywhere();
	else if (frames.any)
		take_off_running();
	if (frames.set && !frames.gone && !frame_evaluator_is(evaluate)) {
		log_line(LOG_INFO,
			 "another frame evaluator is set (PEP 523); what EVPROF_BUDGET leaves out costs more");
		step_back();
	}
}

void thinned_frames_forked(void)
{
	struct thread_state *state = frames.set ? python.current_thread_state() : NULL;

	frames.any = false;
	frames.version++;
	if (state && thread_self.hooked_state == state && hooks_profile_is_off(state))
		hooks_profile_place(state);
}

void thinned_frames_leave_out(struct object *frame)
{
	if (innermost && !thread_self.greenlets && !frames.gone && innermost->frame == python_inner_frame(frame) &&
	    thinned_now(innermost) && hooks_profile_is_alone(python.current_thread_state()))
		hooks_profile_take_off(python.current_thread_state());
}
