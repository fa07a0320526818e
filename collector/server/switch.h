/*
 * switch.h - asks processes to stop or start their recording, or to set a mark (evprof stop, start, mark).
 */
#ifndef COLLECTOR_SWITCH_H
#define COLLECTOR_SWITCH_H

#include "server/requests.h"

struct json_t;
struct session;

/*
 * Asks the processes that the request names and its rights include, and answers which these are: {"processes":
 * [{"pid", "program", "follows", "followed", "refused", "outside"}]}. Where one of them has too many requests to
 * follow, none is asked, and the answer is an error. The caller frees the object. NULL: no memory.
 */
struct json_t *switch_answer(struct session *sessions, const struct request *request);

#endif
