/* snapshot.h - copies of what is recorded of running processes, for evprof snapshot and evprof record. */
#ifndef EVPROF_TOOLS_CMD_SNAPSHOT_H
#define EVPROF_TOOLS_CMD_SNAPSHOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot {
	const char *verb;
	const char *target;
	const char *to;	    /* NULL: a name is made */
	const char *socket; /* NULL: as in control_collectors_find() */
	const char *last;   /* last_ns as the user has given it */
	int64_t last_ns;    /* 0: all */
	int64_t from_ns;    /* of CLOCK_MONOTONIC; 0: all. A copy that begins later is incomplete */
	int64_t until_ns;   /* likewise */
	bool quiet;	    /* print the names of the files only */
	size_t written;
	int status;
};

/* Copies the traces. Returns the exit status. */
int snapshot_copy(struct snapshot *snapshot);

/*
 * Has the collector of a process write all that it has, and let nothing leave the trace for that time, until
 * snapshot_release(). Returns an element of "traces" (control.h), which has until_ns, or NULL after a line on stderr.
 */
json_t *snapshot_hold(const struct snapshot *snapshot, int64_t hold_ms);
/*
 * Whether a copy can be made and would overwrite no trace that a collector writes. False after one line on stderr.
 */
bool snapshot_can_copy(const struct snapshot *snapshot, const json_t *described, const char *to);
/* The pid of its first process in the trace. */
int64_t snapshot_pid(const json_t *described);
void snapshot_release(const struct snapshot *snapshot, const json_t *described);

#endif
