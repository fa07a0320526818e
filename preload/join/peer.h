/* peer.h - whether the listener at a socket may receive what this process is about to send. */
#ifndef PRELOAD_PEER_H
#define PRELOAD_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "evprof/ring.h"

/*
 * Whether the other end of a connection is root, this user, or another accepted one (peer.c). name: of the socket, a
 * path or @name. who: gets the peer's user, as this namespace shows it.
 */
bool peer_is_ours(int connection, const char *name, uid_t *who);

/* This process starts a session: its forked children may run as other users, and still accept this user's collector. */
void peer_session_begins(void);

/* In the child of a fork: reads what its parent shared with its collector, which was verified then. */
void peer_of_parent(const struct ring_header *shared);

#endif
