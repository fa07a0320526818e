/*
 * thread_names.h - the names that Python's threading gives to threads.
 *
 * If calls are hooked, the calls of two functions of threading.py provide the names. If stacks are sampled there is no
 * such hook: a name is read when the thread is created, in pthread_create(), and when the setter of Thread.name is
 * called.
 */
#ifndef PRELOAD_THREAD_NAMES_H
#define PRELOAD_THREAD_NAMES_H

#include <pthread.h>
#include <stdbool.h>

/* Reads a name. first: Thread._bootstrap_inner() starts, in the new thread; else the setter of Thread.name does. */
void thread_names_learn(bool first);

/* pthread_create() has created this thread. Does nothing if Thread.start() did not call it, or if calls are hooked. */
void thread_names_created(pthread_t thread);

/* If stacks are sampled: records new names once threading is imported; does nothing before. GIL held. */
void thread_names_look(void);

/* Stores the name of the thread, which is about to fork, for the child. GIL held. */
void thread_names_before_fork(void);

#endif
