/*
 * thinned_frames.h - Python 3.9 to 3.11: while a thinned function runs (budget.h), the interpreter reports nothing.
 *
 * These versions have one profile function a thread, and no events by code object. A frame evaluation function (PEP
 * 523) is called for each frame instead: it takes the profile function off before a thinned function runs, and sets it
 * again before one that is not, and after each. So a thinned function costs a call and two look-ups.
 *
 *   a frame of f -> evaluate() -> profile function on or off for f -> _PyEval_EvalFrameDefault() -> as for f's caller
 *
 * A loop that runs when it is thinned takes the profile function off at its next event. What is reported of thinned
 * functions nevertheless is left out by the profile function (hooks_profile.c), so exactness does not depend on the
 * evaluator, only the cost does.
 *
 * It steps back, with one line, where another one is set (torch.compile, debuggers), and without one where greenlets
 * exchange stacks or little of the thread's stack is left: from 3.11 on calls between Python functions otherwise need
 * none of it. Then everything is reported.
 *
 * All functions: GIL held.
 */
#ifndef PRELOAD_THINNED_FRAMES_H
#define PRELOAD_THINNED_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"

/* Sets the evaluator, unless it was set before. False: another one is set, which stays. */
bool thinned_frames_begin(void);

/*
 * Other functions are thinned than before, or, with any = false, none: all threads have their profile function, and go
 * on with it until the next event.
 */
void thinned_frames_changed(bool any);

/* Python starts once more: it has no evaluator. */
void thinned_frames_forget(void);

/* In the child of a fork: nothing is thinned. */
void thinned_frames_forked(void);

/* In the profile function: what this frame does is left out. frame: what the profile function got. */
void thinned_frames_leave_out(struct object *frame);

#endif
