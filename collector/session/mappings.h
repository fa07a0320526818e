/*
 * mappings.h - what the resident size of a process consists of, from /proc/PID/smaps. Called by resident.c, once at the
 * end of a process that says that it ends.
 *
 * The kernel walks the page tables for it, so a process with more than 8 GiB or 4 MiB of such text is not read, and
 * after a tenth of a second no more is. Needs the rights of a debugger, which a collector of another user has not.
 */
#ifndef COLLECTOR_MAPPINGS_H
#define COLLECTOR_MAPPINGS_H

#include <stdbool.h>
#include <sys/types.h>

#include "trace/meta.h"

#define MAPPINGS_RESIDENT_MAX (UINT64_C(8) << 30)

/* False: it could not be read to its end. */
bool mappings_read(pid_t pid, struct meta_resident_parts *parts);

/* The mapping whose lines are read. All zeros: none. */
struct mappings_reader {
	uint64_t *part;	    /* of parts, to which its resident bytes belong */
	uint64_t guard_end; /* end of a mapping without access and name before it; 0: there is none */
};

/* One line of the file, without the end of line. */
void mappings_take_line(struct mappings_reader *reader, const char *line, struct meta_resident_parts *parts);

#endif
