/*
 * evaluator.c - a frame evaluator (PEP 523, Python 3.9 to 3.11) that counts, set and removed as torch.compile and
 * debuggers do: it calls the one that was there before, and puts it back. Called by ctypes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef void *(*evaluator)(void *state, void *frame, int thrown);

static evaluator before;
static long count;

static void *evaluate(void *state, void *frame, int thrown)
{
	count++;
	return before(state, frame, thrown);
}

static void set(evaluator function)
{
	void *interpreter = ((void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Get"))();

	((void (*)(void *, evaluator))dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc"))(interpreter,
												   function);
}

void begin(void)
{
	void *interpreter = ((void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Get"))();

	before = ((evaluator(*)(void *))dlsym(RTLD_DEFAULT, "_PyInterpreterState_GetEvalFrameFunc"))(interpreter);
	set(evaluate);
}

long end(void)
{
	set(before);
	return count;
}
