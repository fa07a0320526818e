/*
 * peer.h - what the other side of a connection may ask about: root, the collector's own user and the control group
 * about all processes, any other user about its own.
 */
#ifndef COLLECTOR_PEER_H
#define COLLECTOR_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct peer_rights {
	uid_t uid;
	bool all;   /* may ask about the processes of all users */
	bool named; /* its number stands for one user; otherwise none of its processes is known to be its own */
};

/* who: the credentials of the connection fd. group: that of --control-group; NULL: none. */
struct peer_rights peer_rights_of(int fd, const struct ucred *who, const gid_t *group);

/* Whether the rights include the processes of this user. */
bool peer_may(const struct peer_rights *rights, uid_t uid);

#endif
