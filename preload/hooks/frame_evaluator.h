/*
 * frame_evaluator.h - the function that Python calls for each frame instead of its own (PEP 523), from 3.9 to 3.11.
 *
 * It has two users, of which a process has one: hooks_frame.c records calls by it, and thinned_frames.c keeps thinned
 * functions from being reported. Python has one such function for each interpreter; evprof sets that of the first one.
 *
 * In 3.11 calls between Python functions go through C while one is set, and take room of the C stack.
 *
 * All functions: GIL held.
 */
#ifndef PRELOAD_FRAME_EVALUATOR_H
#define PRELOAD_FRAME_EVALUATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"
#include "ring/writer.h"

/*
 * pystate.h: _PyFrameEvalFunction. frame: PyFrameObject until 3.10, _PyInterpreterFrame in 3.11. thrown: an exception
 * is thrown into the generator. NULL: with an exception.
 */
typedef struct object *(*frame_evaluator)(struct thread_state *state, const void *frame, int thrown);

/* Python's own, after frame_evaluator_set(). */
extern frame_evaluator frame_evaluator_original;

/* Whether this Python can have one. */
bool frame_evaluator_is_possible(void);

/* False: another one is set, which stays. */
bool frame_evaluator_set(frame_evaluator ours);

/* Whether it is set, and not another one that was set meanwhile. */
bool frame_evaluator_is(frame_evaluator ours);

/* Sets Python's own, unless another one was set meanwhile. */
void frame_evaluator_remove(frame_evaluator ours);

/*
 * Evaluations of thinned functions (budget.h) so far: they give no event and cost nevertheless. GIL held; exact for one
 * interpreter.
 */
struct frame_passes {
	uint64_t calls;
	uint64_t steps;	   /* of generators and coroutines, which run in C anyway */
	uint64_t switches; /* of these evaluations: the profile function was taken off for them */
};
extern struct frame_passes frame_evaluator_passes;

static inline void frame_evaluator_count_pass(bool step)
{
	if (step)
		frame_evaluator_passes.steps++;
	else
		frame_evaluator_passes.calls++;
}

/*
 * For calibrate.c, for a while: one that does what the evaluation of a thinned function takes (on), or Python's own,
 * instead of what is set. Returns what was set, for frame_evaluator_put_back(); NULL: another tool's, which stays.
 */
frame_evaluator frame_evaluator_stand_in(bool on);
void frame_evaluator_put_back(frame_evaluator before);

/*
 * Where the thread's stack has less than 256 KiB left, or a quarter of a small one, no evaluation is to add what it
 * takes itself.
 */
extern __thread uintptr_t frame_evaluator_stack_low __attribute__((tls_model("initial-exec"))); /* 0: not known yet */
void frame_evaluator_learn_stack(void) __attribute__((cold, noinline));

static inline __attribute__((always_inline)) bool frame_evaluator_stack_is_short(void)
{
	if (unlikely(!frame_evaluator_stack_low))
		frame_evaluator_learn_stack();
	return (uintptr_t)__builtin_frame_address(0) < frame_evaluator_stack_low;
}

#endif
