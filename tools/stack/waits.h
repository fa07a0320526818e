/* waits.h - what a thread of another process does or waits for, as the kernel shows it. */
#ifndef EVPROF_TOOLS_STACK_WAITS_H
#define EVPROF_TOOLS_STACK_WAITS_H

#include "stack/layout.h"

enum wait_kind {
	WAIT_UNKNOWN,
	WAIT_NONE, /* it runs, or waits for a processor */
	WAIT_GIL,
	WAIT_LOCK,
	WAIT_SLEEP,
	WAIT_IO,
	WAIT_CHILD,
	WAIT_SIGNAL,
	WAIT_DISK,
	WAIT_STOPPED,
};

struct wait {
	enum wait_kind kind;
	char detail[256]; /* the system call, and the file for input and output; "" where there is nothing to add */
};

/* The word for JSON, and that for people. */
const char *wait_word(enum wait_kind kind);
const char *wait_text(enum wait_kind kind);

/*
 * Whether a thread waits or is stopped. *switches: how often it has left a processor: where it waits before and after,
 * and the number is the same, it has not run in between.
 */
bool wait_is_off(pid_t pid, pid_t tid, uint64_t *switches);

void wait_find(const struct layout *layout, const struct process *process, pid_t tid, struct wait *wait);

#endif
