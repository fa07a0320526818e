/*
 * resident.h - the resident size of a process over time, as /proc/PID/status has it. Called by the session.
 *
 * Read in the collector's rounds, at most four times a second, and less often in a long recording. A sample that equals
 * the one before is left out. Samples go to the trace in groups, so that a chunk holds several.
 */
#ifndef COLLECTOR_RESIDENT_H
#define COLLECTOR_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/meta.h"

struct json_t;
struct ring_layout;

/* All zeros: none is read. */
struct resident {
	struct meta_resident read; /* not written yet */
	bool wanted;
	uint64_t due_ns;   /* time of the next read */
	uint64_t pause_ns; /* time between reads ... */
	unsigned reads;	   /* ... and their number since it changed */
	uint64_t since_ns; /* when the first of `read` was made */
	bool last;	   /* read at the end of the process */
	struct meta_resident_sample before;
};

/* events: enum setting_event. Nothing is read until memory is recorded. Called again where others are recorded. */
void resident_begin(struct resident *resident, unsigned events);

/* Reads if a read is due. True: the samples are to be written. ends: the process says that it ends. */
bool resident_look(struct resident *resident, pid_t pid, const struct ring_layout *layout, bool ends, uint64_t now_ns);

#endif
