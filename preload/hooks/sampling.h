/* sampling.h - sampled stacks, which a sampler reads from outside (evprof/sampling.h), in place of hooks. */
#ifndef PRELOAD_SAMPLING_H
#define PRELOAD_SAMPLING_H

/*
 * Publishes the layout to the sampler, once in each process image. GIL held. Does nothing while no Python function
 * runs.
 */
void sampling_begin(void);

#endif
