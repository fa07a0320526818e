/*
 * socket_owner.h - whether the path of a socket shows that its listener is meant.
 *
 * A host's daemon runs as its own user, which its clients do not know. They accept a listener at a path where only
 * root, the client's user and the listener's can have put a socket: the path's folders, up to the root, are theirs, and
 * no other user may write to them. An abstract name has no owner and shows nothing.
 */
#ifndef EVPROF_SOCKET_OWNER_H
#define EVPROF_SOCKET_OWNER_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/system_calls.h"

#ifndef O_PATH /* of fcntl.h with _GNU_SOURCE */
#define O_PATH 010000000
#endif

#define SOCKET_OWNER_FOLDERS_MAX 64

static inline bool socket_owner_none_else_writes(const struct stat *status, uid_t user)
{
	return !(status->st_mode & (S_IWGRP | S_IWOTH)) &&
	       (status->st_uid == 0 || status->st_uid == system_geteuid() || status->st_uid == user);
}

/* Checks the folders from that of a path up to the root. Takes the descriptor. */
static inline bool socket_owner_upwards(int folder, uid_t user)
{
	struct stat status, above;
	bool theirs = fstat(folder, &status) == 0;

	for (int i = 0; theirs; i++) {
		int next = i < SOCKET_OWNER_FOLDERS_MAX ? openat(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

		theirs = next >= 0 && socket_owner_none_else_writes(&status, user) && fstat(next, &above) == 0;
		if (next >= 0) {
			close(folder);
			folder = next;
		}
		if (theirs && above.st_ino == status.st_ino && above.st_dev == status.st_dev)
			break;
		status = above;
	}
	close(folder);
	return theirs;
}

/* name: a path, or '@' and an abstract name. user: the listener's, as the kernel names it. */
static inline bool socket_owner_is_shown(const char *name, uid_t user)
{
	const char *slash = strrchr(name, '/');
	char folder[128]; /* longer than the path of any socket */
	struct stat status;
	int fd;

	if (name[0] != '/' || (size_t)(slash - name) + 2 > sizeof(folder))
		return false;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name) + 1, name);
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstatat(fd, slash + 1, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(status.st_mode))
		return socket_owner_upwards(fd, user);
	close(fd);
	return false;
}

#endif
