/* sampling.h - stacks that a sampler reads from outside (evprof/sampling.h), in place of hooks. */
#ifndef PRELOAD_SAMPLING_H
#define PRELOAD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

/* Starts the sampler of the ring in memfd. With the lock of the process; scratch as for spawn.h. */
void sampling_follow(int memfd, void *scratch);

/*
 * Tells the sampler where everything is, once for each process image. GIL held; where no Python function runs yet,
 * nothing is done.
 */
void sampling_begin(void);

/* The kernel's id of a thread of this process that lives. False: it is not known. */
bool sampling_thread_id(const void *thread, uint32_t *tid);

/*
 * What was told is not so any more: in the child of a fork, and at Python's end. It is told again when there is
 * something.
 */
void sampling_forget(void);

#endif
