/*
 * locals.h - the local variables of functions on the stacks of another process, for evprof stack --locals.
 *
 * The process runs meanwhile. A variable is shown if it has the same object before its value is read and after, in a
 * frame that is still on the stack: what a variable refers to is not freed.
 */
#ifndef EVPROF_TOOLS_STACK_LOCALS_H
#define EVPROF_TOOLS_STACK_LOCALS_H

#include "stack/threads.h"
#include "stack/values.h"

struct local {
	char name[64];
	struct value value;
};

struct frame_locals {
	struct local *at; /* in the order of the code object; owned */
	size_t count, room;
};

/*
 * Reads the variables that are set in a frame, of threads or of a suspended coroutine. Module level and class bodies
 * have none. Nothing is added where the frame cannot be read, or has changed. 0 or -ENOMEM.
 */
int locals_read(const struct layout *layout, struct process *process, const struct remote_frame *frame,
		struct frame_locals *locals);

void locals_done(struct frame_locals *locals);

#endif
