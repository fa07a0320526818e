/*
 * greenlets.h - the Python stack of a greenlet of another process, while another one runs in its thread.
 *
 * A greenlet that does not run has its innermost frame as a Python object. From greenlet 3.0 on, which Python 3.12
 * needs, its frames lead to each other past what was in its C stack, so no saved C stack is read.
 */
#ifndef EVPROF_TOOLS_STACK_GREENLETS_H
#define EVPROF_TOOLS_STACK_GREENLETS_H

#include "stack/layout.h"

/* Whether objects of a type are greenlets: its name, or that of a type from which it derives. */
bool greenlet_is_name(const char *type_name);

/*
 * Reads the frames, innermost first. Returns their number; 0: it runs, has not begun, has ended, or cannot be read. One
 * that resumes meanwhile gives any frames: the caller reads twice.
 */
size_t greenlet_stack(const struct layout *layout, struct process *process, uint64_t greenlet,
		      struct remote_frame *frames, size_t max);

#endif
