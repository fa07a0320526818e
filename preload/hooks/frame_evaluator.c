/* frame_evaluator.c - see frame_evaluator.h. */
#include "hooks/frame_evaluator.h"

#include <errno.h>
#include <pthread.h>

#include "base/seccomp.h"
#include "definitions/definitions.h"

#define STACK_LEFT 262144

frame_evaluator frame_evaluator_original;
struct frame_passes frame_evaluator_passes;
static frame_evaluator own; /* the last one that evprof has set */
__thread uintptr_t frame_evaluator_stack_low __attribute__((tls_model("initial-exec")));

bool frame_evaluator_is_possible(void)
{
	return !python.monitoring && python._PyInterpreterState_SetEvalFrameFunc &&
	       python._PyInterpreterState_GetEvalFrameFunc && python.layout.state_profile && python.layout.chain_code;
}

/* Under a filter of system calls it stays unknown: the C library reads the main thread's from /proc. */
void frame_evaluator_learn_stack(void)
{
	int saved_errno = errno;
	pthread_attr_t attributes;
	void *low = NULL;
	size_t size = 0;

	frame_evaluator_stack_low = 1;
	if (seccomp_active())
		return;
	thread_self.nesting++; /* it allocates */
	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
	}
	thread_self.nesting--;
	if (low)
		frame_evaluator_stack_low = (uintptr_t)low + (size / 4 < STACK_LEFT ? size / 4 : STACK_LEFT);
	errno = saved_errno;
}

bool frame_evaluator_is(frame_evaluator ours)
{
	return python._PyInterpreterState_GetEvalFrameFunc(python.PyInterpreterState_Main()) == (void *)ours;
}

bool frame_evaluator_set(frame_evaluator ours)
{
	frame_evaluator original = (frame_evaluator)python_symbol("_PyEval_EvalFrameDefault");

	if (!original || !frame_evaluator_is(original))
		return false;
	frame_evaluator_original = original;
	own = ours;
	python._PyInterpreterState_SetEvalFrameFunc(python.PyInterpreterState_Main(), (void *)ours);
	return true;
}

void frame_evaluator_remove(frame_evaluator ours)
{
	if (frame_evaluator_is(ours))
		python._PyInterpreterState_SetEvalFrameFunc(python.PyInterpreterState_Main(),
							    (void *)frame_evaluator_original);
}

static struct object *stand_in(struct thread_state *state, const void *frame, int thrown)
{
	const struct object *code = python_field(frame, python.layout.chain_code);
	uint64_t value;

	if (ids_find_fast(&thread_self.writer->ids, code, &value) && !frame_evaluator_stack_is_short())
		frame_evaluator_count_pass(value & CODE_IS_GENERATOR);
	return frame_evaluator_original(state, frame, thrown);
}

frame_evaluator frame_evaluator_stand_in(bool on)
{
	void *interpreter = python.PyInterpreterState_Main();
	frame_evaluator before = (frame_evaluator)python._PyInterpreterState_GetEvalFrameFunc(interpreter);

	if (!frame_evaluator_original)
		frame_evaluator_original = (frame_evaluator)python_symbol("_PyEval_EvalFrameDefault");
	if (!frame_evaluator_original || (before != frame_evaluator_original && before != own && before != stand_in))
		return NULL;
	python._PyInterpreterState_SetEvalFrameFunc(interpreter, (void *)(on ? stand_in : frame_evaluator_original));
	return before;
}

void frame_evaluator_put_back(frame_evaluator before)
{
	if (before)
		python._PyInterpreterState_SetEvalFrameFunc(python.PyInterpreterState_Main(), (void *)before);
}
