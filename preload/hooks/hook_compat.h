/*
 * hook_compat.h - keeps other tools at the interpreter's hooks (profilers, debuggers, tracemalloc) working as without
 * evprof.
 *
 * A builtin function with which the program requests a hook that evprof uses is wrapped: its PyMethodDef is redirected
 * to a function here, which calls the real one and corrects what would differ. The function object itself is unchanged.
 */
#ifndef PRELOAD_HOOK_COMPAT_H
#define PRELOAD_HOOK_COMPAT_H

#include "python/python.h"

/*
 * Wraps sys.setprofile, sys._setprofileallthreads and sys.settrace; from then on each C function that is one of ours,
 * before its first call since the process joined. Once, before the first hook is set. GIL held.
 */
void hook_compat_begin(void);

/* Wraps sys._debugmallocstats. Called before the first allocator is set. GIL held. */
void hook_compat_of_memory(void);

/* Wraps the functions of sys.monitoring that take a tool id. Further calls do nothing. GIL held. */
void hook_compat_wrap_monitoring(struct object *monitoring);

/*
 * Wraps id() and the attribute f_code of frames. They then raise their audit events only if there is another audit hook
 * than evprof's (`hook`), whose entry is the first of Python's list. For when a module is about to be imported; further
 * calls do nothing. GIL held.
 */
void hook_compat_of_audits(const void *hook);

/* The program adds an audit hook, or Python frees the entry of evprof's: audit events are not evprof's alone. */
void hook_compat_share_audits(void);

/*
 * Until 3.7, before a call of a C function that is not recorded: if it loads an extension module, it is wrapped, to
 * notice that greenlet was imported. GIL held.
 */
void hook_compat_meet_import(const struct python_method *method);

/* Gives the wrapped functions back; they may be wrapped again. GIL held. */
void hook_compat_end(void);

/* Wraps the functions of modules that have been imported. Called when a module is about to be imported. GIL held. */
void hook_compat_look(void);

#endif
