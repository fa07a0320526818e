/* sampling.h - sampled stacks, which a sampler reads from outside (evprof/sampling.h), in place of hooks. */
#ifndef PRELOAD_SAMPLING_H
#define PRELOAD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

/* Starts the sampler of the ring in memfd. The process's lock is held; scratch as for spawn.h. */
void sampling_follow(int memfd, void *scratch);

/*
 * Publishes the layout to the sampler, once in each process image. GIL held. Does nothing while no Python function
 * runs.
 */
void sampling_begin(void);

/* The kernel's id of a live thread of this process. False: it is not known. */
bool sampling_thread_id(const void *thread, uint32_t *tid);

/*
 * Invalidates the published layout: in the child of a fork, and at Python's end. sampling_begin() publishes it again.
 */
void sampling_forget(void);

#endif
