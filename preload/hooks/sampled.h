/*
 * sampled.h - processes whose stacks a sampler reads from outside (evprof/sampling.h), in place of hooks; and the names
 * of threads where no calls are hooked, as with memory alone.
 *
 * The name of a thread is read when the thread is created, in pthread_create(), and when the setter of Thread.name is
 * called.
 */
#ifndef PRELOAD_SAMPLED_H
#define PRELOAD_SAMPLED_H

#include <pthread.h>

/*
 * Publishes the layout to the sampler, once in each process image. GIL held. Does nothing while no Python function
 * runs.
 */
void sampling_begin(void);

/* pthread_create() has created this thread. Does nothing if Thread.start() did not call it, or if calls are hooked. */
void sampled_names_created(pthread_t thread);

/* If no calls are hooked: records new names once threading is imported; does nothing before. GIL held. */
void sampled_names_look(void);

/* Stores the name of the thread, which is about to fork, for the child. GIL held. */
void sampled_names_before_fork(void);

#endif
