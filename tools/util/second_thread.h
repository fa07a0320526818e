/*
 * second_thread.h - threads beside the one that has the trace and the output.
 *
 * Used by what reads ahead (trace/ahead.c) and what works behind (batches.c).
 */
#ifndef EVPROF_TOOLS_UTIL_SECOND_THREAD_H
#define EVPROF_TOOLS_UTIL_SECOND_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Is there a processor for it? */
bool second_thread_helps(void);

/* With all signals blocked: they are for the thread that has the output. Returns 0 or an error number. */
int second_thread_start(pthread_t *thread, void *(*run)(void *owner), void *owner);

#endif
