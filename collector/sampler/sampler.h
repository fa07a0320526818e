/*
 * sampler.h - the program `evprof-collector --sample`: samples the stacks of one process.
 *
 * A sample becomes the events that hooks would record if the thread called each function when it was first seen and
 * left it when it was last seen. A function that is no longer on the stack returns, a new one is called, and each
 * sample records the current line. So times are estimates, counts are those of the observed calls, and all readers of
 * traces work unchanged.
 */
#ifndef COLLECTOR_SAMPLER_H
#define COLLECTOR_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Samples the process until it ends or calls exec. sampling: the address of its struct sampling; 0: for a tool, until
 * that ends sampling. Descriptors: as in evprof/sampling.h. Returns 0 or -errno: it could not begin.
 */
int sampler_run(pid_t pid, uint64_t sampling);

#endif
