/*
 * mappings.h - what the resident size of this process consists of, from /proc/self/smaps. Called by finish.c, once.
 *
 * The process reads it itself: it does not wait for a collector in `evprof run`, and is gone when one looks. The kernel
 * walks the page tables, which takes a tenth of the time that freeing them takes: so a process with more than 4 GiB is
 * not read, nor text after 4 MiB, 50 ms of CPU time or a second. Needs no memory; errno may change.
 */
#ifndef PRELOAD_MAPPINGS_H
#define PRELOAD_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/ring.h"

#define MAPPINGS_RESIDENT_MAX (UINT64_C(4) << 30)

/* All zeros: nothing is read. */
struct mappings {
	uint64_t bytes[RING_RESIDENTS];
	/* Internal. */
	uint64_t *part;	    /* of bytes, to which the current mapping belongs */
	uint64_t guard_end; /* end of a mapping without access and name before it; 0: there is none */
};

/* False: it could not be read to its end. */
bool mappings_read(struct mappings *mappings);
/* One line of the file, without the end of line; it may be cut behind the first characters of a name. */
void mappings_take_line(struct mappings *mappings, const char *line);

#endif
