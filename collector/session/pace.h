/*
 * pace.h - how long a collector sleeps between two rounds. Called by collector.c.
 *
 * A round costs microseconds, and each one wakes a processor, so the rate of rounds follows the rate of writing. A
 * sleep of more than a few milliseconds is announced to the processes, which end it before a ring is full (enum
 * ring_sleep). Therefore its length follows what has been written, and not what might be. When nothing has been written
 * for a second, the processes end a sleep at the first event. That is announced one sleep in advance, so that no thread
 * is in the middle of an event for which it checked `sleep` before the announcement.
 */
#ifndef COLLECTOR_PACE_H
#define COLLECTOR_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/drain.h"
#include "evprof/ring.h"

struct pace {
	uint64_t looked_ns;    /* start of the last round */
	uint64_t came_ns;      /* when written data was last found */
	int us;		       /* the planned length of the last sleep */
	enum ring_sleep sleep; /* announcement for the next sleep */
};

struct pace_limits {
	int longest_us;	 /* limit of a sleep */
	int gather_us;	 /* longest stay of an event in a ring ... */
	uint64_t due_ns; /* ... whose contents are due at this time, if it is in the future */
	bool young;	 /* a session has just begun: keep the backlog small for programs that end soon */
};

/* Time until the next round, in us. result: of the last round, which began at now_ns. Sets pace->sleep. */
int pace_next(struct pace *pace, const struct drain_result *result, const struct pace_limits *limits, uint64_t now_ns);

#endif
