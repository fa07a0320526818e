/*
 * peer.c - see peer.h. Called by the server, for each control request.
 *
 * All that counts is what the kernel knows of the peer at the time of its connect(): user, group, supplementary groups.
 */
#include "base/peer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/users.h"
#include "evprof/proc.h"
#include "evprof/system_calls.h"

#ifndef SO_PEERGROUPS /* since Linux 4.13 */
#define SO_PEERGROUPS 59
#endif

#define GROUPS_FEW 64

static bool is_among(const gid_t *groups, size_t count, gid_t group)
{
	for (size_t i = 0; i < count; i++) {
		if (groups[i] == group)
			return true;
	}
	return false;
}

static bool has_group(int fd, const struct ucred *who, gid_t group)
{
	gid_t few[GROUPS_FEW], *all = few;
	socklen_t bytes = sizeof(few);
	int result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &bytes);
	bool has;

	if (who->gid == group)
		return true;
	if (result < 0 && errno == ERANGE) {
		all = malloc(bytes); /* the kernel has set what they need */
		result = all ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &bytes) : -1;
	}
	has = result == 0 && is_among(all, bytes / sizeof(gid_t), group);
	if (all != few)
		free(all);
	return has;
}

struct peer_rights peer_rights_of(int fd, const struct ucred *who, const gid_t *group)
{
	struct peer_rights rights = {.uid = who->uid, .named = who->uid != USER_NOBODY || proc_has_all_users()};

	rights.all =
	    who->uid == 0 || (rights.named && who->uid == system_geteuid()) || (group && has_group(fd, who, *group));
	return rights;
}

bool peer_may(const struct peer_rights *rights, uid_t uid)
{
	return rights->all || (rights->named && rights->uid == uid);
}
