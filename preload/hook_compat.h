/*
 * hook_compat.h - other tools at the interpreter's hooks (profilers, debuggers, tracemalloc) find them as without
 * evprof.
 *
 * A builtin function by which the program asks for a hook that evprof uses is wrapped: its PyMethodDef leads to a
 * function here, which calls the real one and puts right what would differ. The function object itself stays as it is.
 */
#ifndef PRELOAD_HOOK_COMPAT_H
#define PRELOAD_HOOK_COMPAT_H

#include "python.h"

/* Wraps sys.setprofile. Once, before the first hook is set. GIL held. */
void hook_compat_begin(void);

/* The same with sys._debugmallocstats, before the first allocator is set. */
void hook_compat_of_memory(void);

/* Wraps the functions of sys.monitoring that take a tool's id. Again does nothing. GIL held. */
void hook_compat_wrap_monitoring(struct object *monitoring);

/*
 * A C function is about to be called for the first time since the process joined. owner: its class ("" where it has
 * none) or its module. GIL held.
 */
void hook_compat_meet(const struct python_method *method, const char *owner);

/* A module is about to be imported; one whose functions are to be wrapped may have been. GIL held. */
void hook_compat_look(void);

#endif
