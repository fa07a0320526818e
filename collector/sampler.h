/*
 * sampler.h - the program that `evprof-collector --sample` is: takes samples of the stacks of one process.
 *
 * A sample becomes what hooks would have told, had the thread called its functions at the moments they were first and
 * last seen: what was there before and is not any more returns, what is new is called, and the line that runs is told
 * at each sample. So times are estimates, counts are those of what was seen, and everything that reads a trace reads
 * this one.
 */
#ifndef COLLECTOR_SAMPLER_H
#define COLLECTOR_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Samples the process until it ends or becomes another image; sampling: the address of its struct sampling. Descriptors
 * as in evprof/sampling.h. Returns 0 or -errno: it could not begin.
 */
int sampler_run(pid_t pid, uint64_t sampling);

#endif
