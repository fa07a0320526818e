/*
 * listen.c - the collector's listening socket. See listen.h.
 */
#include "server/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/network.h"

/* Whether the socket file is left from a collector that is gone. */
static bool is_stale(const char *path, const struct sockaddr_un *address, socklen_t length)
{
	struct stat status;
	bool refused;
	int fd;

	if (lstat(path, &status) < 0 || !S_ISSOCK(status.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (const struct sockaddr *)address, length) < 0 && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static int bind_socket(int fd, const char *name, const struct sockaddr_un *address, socklen_t length, mode_t mode)
{
	mode_t saved = umask(0777 & ~mode);
	int error = bind(fd, (const struct sockaddr *)address, length) < 0 ? -errno : 0;

	if (error == -EADDRINUSE && name[0] != '@' && is_stale(name, address, length) && unlink(name) == 0)
		error = bind(fd, (const struct sockaddr *)address, length) < 0 ? -errno : 0;
	umask(saved);
	if (!error && listen(fd, CONTROL_BACKLOG) < 0)
		error = -errno;
	return error;
}

/* Lets the members of a group connect, too. */
static int open_to_group(const char *path, gid_t group)
{
	return lchown(path, (uid_t)-1, group) < 0 || chmod(path, 0660) < 0 ? -errno : 0;
}

int server_listen(const char *name, bool for_all_users, const gid_t *group, char *reason, size_t reason_bytes)
{
	struct sockaddr_un address;
	socklen_t length;
	int error = network_address(name, &address, &length);
	int fd;

	if (error) {
		snprintf(reason, reason_bytes, "the name of the socket has 1 to %zu bytes, not %zu: use another",
			 sizeof(address.sun_path) - 1, strlen(name));
		return error;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	error = fd < 0 ? -errno : bind_socket(fd, name, &address, length, for_all_users ? 0666 : 0600);
	if (!error && group && name[0] != '@' && !for_all_users && (error = open_to_group(name, *group)) != 0)
		unlink(name);
	if (!error)
		return fd;
	if (error == -EADDRINUSE)
		snprintf(reason, reason_bytes, "%s is in use: another collector runs there, or it is not a socket",
			 name);
	else
		snprintf(reason, reason_bytes, "cannot listen at %s: %s", name, strerror(-error));
	if (fd >= 0)
		close(fd);
	return error;
}
