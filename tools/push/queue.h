/*
 * queue.h - the requests that wait, and when the next one may be sent. No thread, clock or connection is in it, so that
 * a simulation drives ten thousand of them (tests/unit/test_tools_push_fleet.c). For sender.c.
 *
 *   2xx                                  sent
 *   429, 502, 503, 504, and no answer    sent again, after 0.5 s, 1 s, 2 s, ... 30 s, and not before Retry-After
 *   anything else                        rejected: it would be again
 *
 * Each wait is random, from half to one and a half of that. Of hosts that are given the same Retry-After, each adds a
 * random time of its own: up to that time, 30 s at most. Once a server takes requests again, the wait is halved with
 * each: what many hosts have kept does not fall on it in its first second.
 *
 * What waits is in a spool (spool.h), which is bounded. Not thread-safe: the owner has a lock.
 */
#ifndef EVPROF_TOOLS_PUSH_QUEUE_H
#define EVPROF_TOOLS_PUSH_QUEUE_H

#include <stdint.h>

#include "push/spool.h"

enum push_outcome { PUSH_SENT, PUSH_AGAIN, PUSH_REJECTED };

struct push_queue {
	struct push_spool spool;
	int64_t wait_ms; /* after the last failure; less after each success since, 0 at last */
	uint64_t random; /* jitter.h */
};

/* What that status says; 0: there was no answer. */
enum push_outcome push_queue_outcome(long status);
/*
 * After the answer to push_spool_first(): removes the request, or leaves it to be sent again. retry_after_ms: -1: none.
 * wait_ms gets the time until the next one may be sent.
 */
enum push_outcome push_queue_answered(struct push_queue *queue, long status, int64_t retry_after_ms, int64_t *wait_ms);
/* The end is near: waits begin anew. */
void push_queue_hurry(struct push_queue *queue);

#endif
