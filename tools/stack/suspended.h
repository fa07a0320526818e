/*
 * suspended.h - the coroutines of another process that do not run now: the tasks of asyncio, and those of other loops;
 * and its greenlets that do not.
 *
 * They are found in the lists of Python's garbage collector, which have every coroutine, Task and greenlet. The process
 * runs meanwhile; a list that changes is followed as far as it leads.
 */
#ifndef EVPROF_TOOLS_STACK_SUSPENDED_H
#define EVPROF_TOOLS_STACK_SUSPENDED_H

#include "stack/threads.h"

struct suspended_task {
	char name[64];		    /* of a Task; "" for a coroutine that no Task has; of a greenlet: its type's */
	struct stack_frame *frames; /* innermost first; owned */
	size_t count;
};

struct suspended {
	struct suspended_task *at;
	size_t count, room;
	size_t tasks;  /* the first ones; the others are greenlets */
	size_t frames; /* of all */
	bool cut;      /* there are too many objects or frames to look at all, or the lists have changed */
};

/* 0 or -ENOMEM. The caller calls suspended_done() in both cases. */
int suspended_read(const struct layout *layout, struct process *process, struct codes *codes,
		   struct suspended *suspended);

void suspended_done(struct suspended *suspended);

#endif
