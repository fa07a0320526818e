/*
 * inject.h - has Python's main thread run a script at its next safe point, in a process that does not cooperate.
 *
 *   until 3.13   ptrace: the stopped main thread calls Py_AddPendingCall(PyRun_SimpleString, script) (inject_call.c);
 *                once the library is loaded, its own function takes the place of PyRun_SimpleString
 *   from 3.14    what sys.remote_exec() does: the path of a file is written to the thread's state (remote_exec.c)
 *
 * The main thread is stopped for less than a millisecond; others are not. It runs the script between two instructions
 * of Python, so not while it is in C code or waits.
 */
#ifndef EVPROF_TOOLS_ATTACH_INJECT_H
#define EVPROF_TOOLS_ATTACH_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/target.h"

extern const bool inject_is_possible; /* on this processor */

#define INJECT_BYTES (32 * 1024)

/* What is written to the process. */
struct inject_text {
	/* Returns the bytes for memory at that address, fewer than INJECT_BYTES; *bytes: how many. */
	const char *(*make)(void *request, uint64_t address, size_t *bytes);
	void *request;
};

/*
 * Copies the text into INJECT_BYTES of new memory of the process and queues a call of the function, an address there,
 * with that memory, which the library releases. wait_ms: for a Python that still starts, which cannot import. Returns
 * 0, or -1 with one line, without a period, in why.
 */
int inject_call(const struct target *target, uint64_t function, const struct inject_text *text, int wait_ms, char *why,
		size_t why_bytes);

#endif
