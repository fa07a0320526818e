/*
 * pending_rejoin.h - the first process of a session whose collector was killed. It may sleep and not know yet that
 * another collector has replaced that one. The new collector stays until the process joins or ends.
 */
#ifndef COLLECTOR_PENDING_REJOIN_H
#define COLLECTOR_PENDING_REJOIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"

struct pending_rejoin {
	struct loop_source source; /* fd: a pidfd, owned */
	struct loop *loop;	   /* NULL: no process is pending */
	pid_t pid;
};

/* pid: 0, or one without a process here: none is pending. */
void pending_rejoin_init(struct pending_rejoin *pending, struct loop *loop, pid_t pid);
void pending_rejoin_done(struct pending_rejoin *pending);

/* The process with this pid has joined. */
void pending_rejoin_joined(struct pending_rejoin *pending, pid_t pid);
bool pending_rejoin_any(const struct pending_rejoin *pending);

#endif
