/*
 * sampled_names.h - the names of threads where stacks are sampled: a name is read when the thread is created, in
 * pthread_create(), and when the setter of Thread.name is called.
 */
#ifndef PRELOAD_SAMPLED_NAMES_H
#define PRELOAD_SAMPLED_NAMES_H

#include <pthread.h>

/* pthread_create() has created this thread. Does nothing if Thread.start() did not call it, or if calls are hooked. */
void sampled_names_created(pthread_t thread);

/* If stacks are sampled: records new names once threading is imported; does nothing before. GIL held. */
void sampled_names_look(void);

/* Stores the name of the thread, which is about to fork, for the child. GIL held. */
void sampled_names_before_fork(void);

#endif
