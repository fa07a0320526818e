/*
 * pending_calls.h - whether Python's pending calls can be added to from a signal handler, wherever it interrupts.
 *
 * Py_AddPendingCall() takes a lock, for which a handler would wait forever in the thread that holds it. From 3.13 on
 * the lock is a byte before the calls of the main thread (struct _pending_calls in CPython's pycore_ceval_state.h, the
 * same up to 3.15). Its address is found where a call stands that was just added, with the counters around it.
 */
#ifndef PRELOAD_PYTHON_PENDING_CALLS_H
#define PRELOAD_PYTHON_PENDING_CALLS_H

#include <stdbool.h>

/* Looks for the lock; not finding it changes nothing. GIL held. */
void pending_calls_find(void);

/* Whether the calling thread does not hold the lock. False where that is not known. In a signal handler, too. */
bool pending_calls_are_free(void);

#endif
