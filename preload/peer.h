/* peer.h - whether who listens at a socket may be sent what this process is about to send. */
#ifndef PRELOAD_PEER_H
#define PRELOAD_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "evprof/ring.h"

/*
 * Whether the other end of a connection is root's, ours, or of another who is meant (peer.c). name: of the socket, a
 * path or @name. who: its user, as far as one is shown here.
 */
bool peer_is_ours(int connection, const char *name, uid_t *who);

/* This process starts a session: its forked children may go on as other users, and take a collector of ours then. */
void peer_session_begins(void);

/* In the child of a fork: what its parent shared with its collector, which was looked at then. */
void peer_of_parent(const struct ring_header *shared);

#endif
