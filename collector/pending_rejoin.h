/*
 * pending_rejoin.h - the first process of a session whose collector was killed: it may be asleep and not know yet
 * that another collector has taken its place, which stays until it joins or ends.
 */
#ifndef COLLECTOR_PENDING_REJOIN_H
#define COLLECTOR_PENDING_REJOIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "loop.h"

struct pending_rejoin {
	struct loop_source source; /* fd: a pidfd, owned */
	struct loop *loop;	   /* NULL: nobody is awaited */
	pid_t pid;
};

/* pid 0, or one that is nobody's here: nobody is awaited. */
void pending_rejoin_init(struct pending_rejoin *awaited, struct loop *loop, pid_t pid);
void pending_rejoin_done(struct pending_rejoin *awaited);

/* A process with this pid has joined. */
void pending_rejoin_joined(struct pending_rejoin *awaited, pid_t pid);
bool pending_rejoin_any(const struct pending_rejoin *awaited);

#endif
