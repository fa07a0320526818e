/*
 * memory_stack.h - the Python stacks of allocations, where calls are not recorded: what has changed in the calling
 * thread since its last allocation (WIRE_STACK_CHANGE).
 *
 * A thread keeps a copy of its stack: of each frame its address, its code, and the instruction at which it stands. At
 * an allocation the frames are compared with the copy, from the innermost outwards. A frame at the same address, with
 * the same code at the same instruction, may have been entered anew, by another caller. So all are compared, up to one
 * that is known to wait still for the same call (own_frames_result(), from 3.11 on): no frame further out has run. The
 * addresses come from the copy, so no load waits for the one before.
 *
 * Allocates nothing but the copy, once for each thread, and keeps errno.
 */
#ifndef PRELOAD_MEMORY_STACK_H
#define PRELOAD_MEMORY_STACK_H

#include <stdbool.h>

extern bool memory_stack_known; /* stacks are written: everything that is read has been found */

/* Whether the settings ask for these stacks. */
bool memory_stack_wanted(void);

/* Finds what is read, at the first call at which a Python function runs. GIL held, nothing of evprof's runs. */
void memory_stack_begin(void);

/* No more stacks are read, until the next begin. GIL held, recording is stopped. */
void memory_stack_end_all(void);

extern bool memory_stack_frames_wait; /* own_frames_result() knows where frames wait */

/*
 * Of memory_stack_write(): what mostly has changed is nothing, the instruction of the innermost function, or which
 * function that is. Frames are compared up to one that waits for the same call, or all of them. False: it is something
 * else, or there is no room; nothing was written.
 */
bool memory_stack_step_to_waiting(bool attached) __attribute__((noinline));
bool memory_stack_step_of_all(bool attached) __attribute__((noinline));

/* Of memory_stack_write(): everything else. */
bool memory_stack_write_any(unsigned kind, bool attached) __attribute__((noinline));

/*
 * Writes what has changed in the stack of the calling thread, before an event of this kind, an allocation. False: there
 * is no room, and the event is lost and counted. Only if memory_stack_known. A signal handler must not call it while it
 * runs (thread_self.writing, thread_self.nesting).
 *
 * attached: the thread has the GIL, or is attached where there is none, and may allocate Python's objects here.
 * Otherwise Python is not called, as it may hold a lock of its own (tracemalloc in the raw domain); what cannot be
 * named so is written as unknown (0), and named at the next allocation of an attached thread.
 */
static inline __attribute__((always_inline)) bool memory_stack_write(unsigned kind, bool attached)
{
	bool written =
	    memory_stack_frames_wait ? memory_stack_step_to_waiting(attached) : memory_stack_step_of_all(attached);

	return __builtin_expect(written, 1) || memory_stack_write_any(kind, attached);
}

/* The calling thread ends. */
void memory_stack_end(void);

#endif
