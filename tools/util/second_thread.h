/*
 * second_thread.h - helper threads in addition to the main one, which has the trace and the output.
 *
 * Used for read-ahead (trace/ahead.c) and for output (batches.c).
 */
#ifndef EVPROF_TOOLS_UTIL_SECOND_THREAD_H
#define EVPROF_TOOLS_UTIL_SECOND_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Whether there is a second processor for it. */
bool second_thread_helps(void);

/* Starts a thread with all signals blocked, because the main thread handles them. Returns 0 or an error number. */
int second_thread_start(pthread_t *thread, void *(*run)(void *owner), void *owner);

#endif
