/*
 * status.h - what evprof status shows: the collector, and each process that is recorded. docs/formats.md has the
 * members.
 */
#ifndef COLLECTOR_STATUS_H
#define COLLECTOR_STATUS_H

#include <stdint.h>

#include "base/peer.h"

struct folder;
struct json_t;
struct session;

struct status_source {
	const struct session *sessions;
	struct folder *folder; /* without a path: of a private collector */
	uint64_t started_ns;
};

/*
 * The answer to a "status" request: the processes that the target names and the rights include. The caller frees the
 * object. NULL: no memory.
 */
struct json_t *status_answer(const struct status_source *source, const char *target, const struct peer_rights *rights,
			     uint64_t now_ns);

#endif
