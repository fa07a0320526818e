/* sampler.h - the sampler of this process image (evprof/sampling.h). */
#ifndef PRELOAD_SAMPLER_H
#define PRELOAD_SAMPLER_H

#include <stdbool.h>

/* Starts the sampler of the ring in memfd. The process's lock is held; scratch as for spawn.h. */
void sampler_follow(int memfd, void *scratch);

/* Whether the layout was not published yet in this process image. */
bool sampler_wants_layout(void);

/* Publishes the layout to the sampler, if it is known. GIL held. */
void sampler_publish(void);

/*
 * Invalidates the published layout: in the child of a fork, and at Python's end. sampling_begin() publishes it again.
 */
void sampler_forget(void);

#endif
