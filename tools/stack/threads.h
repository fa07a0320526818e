/*
 * threads.h - the Python stacks of the threads of another process.
 *
 * The process runs meanwhile. The stack of a thread that waits, even for the GIL for a moment, is exact. That of one
 * that runs all the time is read three times, and what all reads have is shown. If they differ, they are read again;
 * what has changed (the innermost functions of a busy thread) is left out at last, and the stack marked.
 */
#ifndef EVPROF_TOOLS_STACK_THREADS_H
#define EVPROF_TOOLS_STACK_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/codes.h"
#include "stack/waits.h"

struct stack_frame {
	struct remote_frame at;
	uint32_t code; /* its number in struct codes */
	uint32_t line; /* 0: not known */
};

struct stack_thread {
	pid_t tid;
	uint64_t state;
	char name[64]; /* Python's, or the kernel's; "" without one */
	struct wait wait;
	struct stack_frame *frames; /* innermost first; owned */
	size_t count;
	bool changed; /* the innermost functions are missing */
};

struct stack_threads {
	struct stack_thread *at; /* in Python's order, the oldest first */
	size_t count, room;
	size_t frames;	/* of all */
	int64_t end_ns; /* CLOCK_MONOTONIC: no stack is read from then on */
	bool cut;	/* threads are missing: to read all takes too long, or they have too many frames */
};

/*
 * Reads all threads, for some ten seconds at most, whatever is in that process. 0 or -ENOMEM. The caller calls
 * stack_threads_done() in both cases.
 */
int stack_threads_read(const struct layout *layout, struct process *process, struct codes *codes,
		       struct stack_threads *threads);

void stack_threads_done(struct stack_threads *threads);

#endif
