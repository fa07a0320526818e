/*
 * pace.h - how long a collector sleeps between two rounds. Called by collector.c.
 *
 * A round costs microseconds, and each one wakes a processor: there are as many as what is written asks for. A sleep
 * of more than some milliseconds is announced to the processes, which end it before a ring is full (enum ring_sleep).
 * So it goes by what has been written up to now, and not by what might be. When nothing has been written for a second,
 * the processes end it at the first event. That is announced one sleep before it is relied on, so that no thread is in
 * the middle of an event for which it has looked before the announcement.
 */
#ifndef COLLECTOR_PACE_H
#define COLLECTOR_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "drain.h"
#include "evprof/ring.h"

struct pace {
	uint64_t looked_ns;    /* when the last round began ... */
	uint64_t left_words;   /* ... and what it left in the rings */
	uint64_t came_ns;      /* when something was last seen to have been written */
	int us;		       /* the last sleep as it was meant to be */
	enum ring_sleep sleep; /* what the processes are to know of the next one */
};

struct pace_limits {
	uint64_t chunk_words; /* worth a round */
	int longest_us;	      /* beside what wakes us */
	int gather_us;	      /* no event waits longer in a ring ... */
	uint64_t due_ns;      /* ... and what is in them is read then, if it is later than now */
	bool young;	      /* a session has just begun: whoever ends now is not to wait for much */
};

/* Until the next round. result: of the last one, which began at now_ns. Sets pace->sleep. */
int pace_next(struct pace *pace, const struct drain_result *result, const struct pace_limits *limits, uint64_t now_ns);

#endif
