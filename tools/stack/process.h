/*
 * process.h - the memory of another process, the ranges of it that it can write, and its threads, for evprof stack.
 *
 * Nothing is written to the process and it is never stopped. What is read is its choice, and not trusted.
 */
#ifndef EVPROF_TOOLS_STACK_PROCESS_H
#define EVPROF_TOOLS_STACK_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/target.h"
#include "remote/remote.h"

struct process_range {
	uint64_t start, end;
	bool python; /* of the file that defines Python's functions, or the zeroed memory behind it */
};

struct process_thread {
	uint32_t own; /* its id in the process's pid namespace, as Python has it */
	pid_t tid;    /* ours */
};

struct process {
	struct target target;
	struct remote *remote;
	struct process_range *ranges; /* that can be written, in order of their addresses */
	size_t range_count, range_room;
	struct process_thread *threads;
	size_t thread_count, thread_room;
};

/*
 * Opens the memory of a Python. Returns 0, or -1 with one line, without a period, in why. The caller calls
 * process_close() in both cases.
 */
int process_open(struct process *process, pid_t pid, char *why, size_t why_bytes);

void process_close(struct process *process);

/* The range that has the address; NULL: the process cannot write there. */
const struct process_range *process_range_of(const struct process *process, uint64_t address);

/* Our id of a thread of the process; 0: there is none. */
pid_t process_tid(const struct process *process, uint32_t own);

static inline bool process_word(const struct process *process, uint64_t address, uint64_t *word)
{
	return remote_word(process->remote, address, word);
}

#endif
