/*
 * hold.h - the connection of `evprof run`: it keeps a session open, and gets the summary when it is closed for writing.
 */
#ifndef COLLECTOR_HOLD_H
#define COLLECTOR_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"
#include "meta.h"

/*
 * Processes that still run so long after the end of the hold are left to themselves. Long enough for what ends because
 * the program has ended, such as the helpers of multiprocessing, which notice it by a pipe and then bring an
 * interpreter to its end.
 */
#define HOLD_GRACE_NS UINT64_C(300000000)
/* Where the other side is the first process of the namespace, all others end with it. */
#define HOLD_INIT_GRACE_NS UINT64_C(50000000)

struct hold {
	struct loop_source source; /* fd: the connection, owned */
	struct hold *next;
	struct loop *loop;
	bool closing;
	bool init; /* the other side is the first process of our pid namespace */
	uint64_t closed_ns;
	uint64_t wait_ns; /* beside HOLD_GRACE_NS */
};

int hold_new(struct loop *loop, int fd, struct hold **result);

/* Sends the answer, as far as the other side takes it without waiting, and closes. */
void hold_answer(struct hold *hold, const struct meta_summary *summary);

#endif
