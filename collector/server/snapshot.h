/*
 * snapshot.h - prepares running traces for a copy (evprof snapshot).
 *
 * The client copies: it can read what the collector writes, and knows the format. Until it releases the trace, or a
 * time is over, nothing leaves a trace that keeps its last stretch.
 */
#ifndef COLLECTOR_SNAPSHOT_H
#define COLLECTOR_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/requests.h"

struct json_t;
struct session;

/* Before a round: what was recorded so far is to be written. Again: nothing. */
void snapshot_begin(struct session *sessions, struct request *request);
/* After a round: whether it is, or has taken too long. */
bool snapshot_is_ready(const struct session *sessions, const struct request *request, uint64_t now_ns);

/*
 * The answer (evprof/control.h): the traces of the processes that the request names and its peer may ask about. A new
 * object; NULL: no memory.
 */
struct json_t *snapshot_answer(struct session *sessions, const struct request *request, uint64_t now_ns);

#endif
