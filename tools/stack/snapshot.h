/* snapshot.h - all that evprof stack reads of one process. */
#ifndef EVPROF_TOOLS_STACK_SNAPSHOT_H
#define EVPROF_TOOLS_STACK_SNAPSHOT_H

#include "stack/locals.h"
#include "stack/native.h"
#include "stack/suspended.h"
#include "stack/threads.h"

struct snapshot {
	struct process process;
	struct layout layout;
	struct codes codes;
	struct stack_threads threads;
	struct suspended suspended;
	struct frame_locals *locals; /* of all frames of the threads, then of the suspended tasks; NULL: not read */
	size_t frame_count;
	struct native_stack *native; /* of all threads; NULL: not read */
	char command[256];	     /* the command line, cut if it does not fit; "" if there is none */
};

/* What is read but the stacks. */
struct snapshot_wish {
	bool locals, native;
};

/*
 * Reads the process. Returns 0, or -1 with one line, without a period, in why. The caller calls snapshot_done() in both
 * cases.
 */
int snapshot_take(struct snapshot *snapshot, pid_t pid, const struct snapshot_wish *wish, char *why, size_t why_bytes);

void snapshot_done(struct snapshot *snapshot);

#endif
