/*
 * thread_names.h - what Python's threading calls the threads of the program.
 *
 * Where calls are hooked, the calls of two functions of threading.py tell it. Where stacks are sampled there is no such
 * hook: a name is read when the thread is made, in pthread_create(), and when the setter of Thread.name is called.
 */
#ifndef PRELOAD_THREAD_NAMES_H
#define PRELOAD_THREAD_NAMES_H

#include <pthread.h>
#include <stdbool.h>

/* first: Thread._bootstrap_inner() begins, in the new thread; or the setter of Thread.name does. */
void thread_names_learn(bool first);

/* pthread_create() made this thread. Nothing happens where Thread.start() did not call it, or calls are hooked. */
void thread_names_created(pthread_t thread);

/* GIL held; until threading is imported, and where stacks are sampled: from then on new names are heard. */
void thread_names_look(void);

/* GIL held: the thread is about to fork. */
void thread_names_before_fork(void);

#endif
