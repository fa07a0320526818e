/*
 * started.h - whether Python 3.6 of another process can import, which decides when evprof attach may ask it to. Later
 * ones say so themselves (Py_IsInitialized()).
 */
#ifndef EVPROF_TOOLS_STACK_STARTED_H
#define EVPROF_TOOLS_STACK_STARTED_H

#include <stddef.h>
#include <sys/types.h>

/* Waits for it, at most that long. Returns 0, or -1 with one line, without a period, in why. */
int started_wait(pid_t pid, int wait_ms, char *why, size_t why_bytes);

#endif
