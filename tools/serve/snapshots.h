/*
 * snapshots.h - snapshots that browsers have asked for: copied and made a report by evprof snapshot and evprof export,
 * which run as processes of their own. So a large trace takes no memory of the server, and one that is damaged does not
 * end it.
 *
 * Bounded: two are made at a time, and so many are kept, in a folder that is removed at the end. The owner has a lock
 * around each call.
 */
#ifndef EVPROF_TOOLS_SERVE_SNAPSHOTS_H
#define EVPROF_TOOLS_SERVE_SNAPSHOTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/output.h"

#define SNAPSHOTS_KEPT 12
#define SNAPSHOTS_AT_ONCE 2
#define SNAPSHOT_LIMIT_BYTES (UINT64_C(1) << 30) /* of a file; more is nothing for a browser */
#define SNAPSHOT_LIMIT_S 300

enum snapshot_state { SNAPSHOT_FREE, SNAPSHOT_COPIES, SNAPSHOT_EXPORTS, SNAPSHOT_READY, SNAPSHOT_FAILED };

struct snapshot {
	enum snapshot_state state;
	uint32_t number; /* from 1 */
	int64_t pid;
	uint32_t last_s;
	char program[64];
	int64_t at_ms;	  /* when it was asked for, since 1970 */
	int64_t since_ns; /* of CLOCK_MONOTONIC: when the running process was started */
	pid_t child;	  /* 0: none */
	char error[300];
};

struct snapshots {
	const char *socket; /* as evprof snapshot has it; NULL: none */
	char folder[PATH_MAX];
	struct snapshot at[SNAPSHOTS_KEPT];
	uint32_t made;
};

/* Makes the folder. Returns 0 or -errno. */
int snapshots_init(struct snapshots *snapshots, const char *socket);
/* Ends what runs, and removes the folder. */
void snapshots_done(struct snapshots *snapshots);

/*
 * Begins one. program: its name, for the list. Returns its number; 0: as many are being made as may be; -errno.
 */
int64_t snapshots_begin(struct snapshots *snapshots, int64_t pid, const char *program, uint32_t last_s);
/* Looks after the running processes. Returns whether there are any. */
bool snapshots_tend(struct snapshots *snapshots);

/* NULL: it was never made, or is not kept any more. */
const struct snapshot *snapshots_find(const struct snapshots *snapshots, uint32_t number);
/* Opens a file of one that is ready. ending: ".evp" or ".html". Returns the descriptor or -errno. */
int snapshots_open(const struct snapshots *snapshots, const struct snapshot *snapshot, const char *ending,
		   uint64_t *bytes);
/* Writes an array of all, the newest first. */
void snapshots_put(const struct snapshots *snapshots, struct output *output);

#endif
