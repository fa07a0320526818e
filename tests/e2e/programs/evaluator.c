/*
 * evaluator.c - a frame evaluator (PEP 523, Python 3.9 to 3.11) that counts, set and removed as others do.
 * torch.compile calls the one that was there before, and puts it back; debuggers call Python's own. Called by ctypes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef void *(*evaluator)(void *state, void *frame, int thrown);

static evaluator before, next;
static long count;

static void *evaluate(void *state, void *frame, int thrown)
{
	count++;
	return next(state, frame, thrown);
}

static void *interpreter(void)
{
	return ((void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Get"))();
}

static void set(evaluator function)
{
	((void (*)(void *, evaluator))dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc"))(interpreter(),
												   function);
}

/* The address of the one that is set. */
void *current(void)
{
	return ((void *(*)(void *))dlsym(RTLD_DEFAULT, "_PyInterpreterState_GetEvalFrameFunc"))(interpreter());
}

void begin(int alone)
{
	before = (evaluator)current();
	next = alone ? (evaluator)dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault") : before;
	set(evaluate);
}

long end(void)
{
	set(before);
	return count;
}
