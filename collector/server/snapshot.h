/*
 * snapshot.h - prepares running traces for a copy (evprof snapshot).
 *
 * The client copies: it can read what the collector writes, and knows the format. Until it releases the trace, or a
 * time is over, nothing leaves a trace that keeps its last stretch.
 */
#ifndef COLLECTOR_SNAPSHOT_H
#define COLLECTOR_SNAPSHOT_H

#include <stdint.h>

#include "server/requests.h"

struct json_t;
struct session;

/*
 * The answer (evprof/control.h): the traces of the processes that the request names and its peer may ask about, with
 * all that is in their rings written. A new object; NULL: no memory.
 */
struct json_t *snapshot_answer(struct session *sessions, const struct request *request, uint64_t now_ns);

#endif
