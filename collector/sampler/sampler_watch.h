/* sampler_watch.h - whether the sampler of a running process still lives. Called by the session. */
#ifndef COLLECTOR_SAMPLER_WATCH_H
#define COLLECTOR_SAMPLER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/ring.h"

/* State of the sampler of one process image. */
struct sampler_watch {
	bool wanted;	    /* the process is sampled */
	bool seen;	    /* its sampler was found alive */
	bool lost;	    /* it ended before the image */
	uint64_t check_ns;  /* time of the next check */
	uint64_t missed_ns; /* time of the first failed check; 0: the last one succeeded */
};

/* Checks at intervals while the process runs. True: the sampler was there, and has been missed for some time. */
bool sampler_watch_missed(struct sampler_watch *watch, int memfd, uint64_t now_ns);

/* The sampler is lost: ends its slots, at the time of its last sample. */
void sampler_watch_end(struct sampler_watch *watch, const struct ring_layout *layout, struct ring_header *header,
		       struct ring_slot *slots);

#endif
