/*
 * hold.h - the connection of `evprof run`. It keeps a session open, and gets the summary when it is shut down for
 * writing.
 */
#ifndef COLLECTOR_HOLD_H
#define COLLECTOR_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "trace/meta.h"

/*
 * Grace period after the end of a hold; processes that run longer are no longer waited for. It is long enough for
 * processes that end because the program has ended: helpers of multiprocessing notice that by a pipe and then finalize
 * an interpreter.
 */
#define HOLD_GRACE_NS UINT64_C(300000000)
/* The same where the other side is the first process of the namespace: all others end with it. */
#define HOLD_INIT_GRACE_NS UINT64_C(50000000)

struct hold {
	struct loop_source source; /* fd: the connection, owned */
	struct hold *next;
	struct loop *loop;
	bool closing;
	bool init; /* the other side is the first process of our pid namespace */
	uint64_t closed_ns;
	uint64_t wait_ns; /* in addition to HOLD_GRACE_NS */
};

int hold_new(struct loop *loop, int fd, struct hold **result);

/* Sends the answer without waiting for the other side, and closes the connection. */
void hold_answer(struct hold *hold, const struct meta_summary *summary);

#endif
