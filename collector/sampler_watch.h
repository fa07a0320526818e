/* sampler_watch.h - whether the sampler of a process that runs is still there. Called by the session. */
#ifndef COLLECTOR_SAMPLER_WATCH_H
#define COLLECTOR_SAMPLER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct process;

/* What is known of the sampler of one process image. */
struct sampler_watch {
	bool wanted;	    /* the process is sampled */
	bool seen;	    /* its sampler was there */
	bool lost;	    /* and is not there any more, although the image goes on */
	uint64_t check_ns;  /* not looked before */
	uint64_t missed_ns; /* since when it was not found; 0: it was */
};

/*
 * Looks, now and then, while the process runs. True: the sampler has just been found to be lost; what it had open is
 * closed, at the time of its last sample.
 */
bool sampler_watch_look(struct process *process, uint64_t now_ns);

#endif
