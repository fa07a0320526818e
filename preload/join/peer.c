/*
 * peer.c - see peer.h. Called by handshake.c for every connection, before anything is sent.
 *
 * An abstract name has no owner: when a collector is gone, any user of the host may listen there. So only the user that
 * the kernel reports counts (SO_PEERCRED), never a message or a variable. Root and this user are accepted, because they
 * can access this process's memory anyway. Another user is accepted if one of those has decided so:
 *
 *   - The user who started the session, whom forked children know from memory. Not from the environment: a program
 *     that is executed as another user may have that from anybody.
 *   - A listener at a path where only root, this user and that user can have put a socket (evprof/socket_owner.h). This
 *     is how a host's daemon runs as its own user.
 *
 * In a user namespace all users without a uid there are shown as one and the same user, this one included. A listener
 * then needs another proof: it is the process that the parent's memory was shared with, or one that this process may
 * signal.
 */
#include "join/peer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "evprof/socket_owner.h"
#include "evprof/system_calls.h"

#define NOBODY 65534 /* users without a uid here (/proc/sys/kernel/overflowuid); it may also be an ordinary user */

/* Kept through forks, and never read from the environment. */
static uid_t session_user = (uid_t)-1;
static struct {
	pid_t pid;
	uint64_t start_time;
} known; /* the parent's collector; 0: unknown */

void peer_session_begins(void)
{
	session_user = system_geteuid();
}

void peer_of_parent(const struct ring_header *shared)
{
	int pid = atomic_load(&shared->collector_pid);

	if (pid <= 0)
		return;
	known.pid = pid;
	known.start_time = atomic_load(&shared->collector_start_time);
}

static bool has_that_user(uid_t user)
{
	if (user == NOBODY && !proc_has_all_users())
		return false;
	if (user == 0 || user == system_geteuid() || user == system_getuid())
		return true;
	return user == session_user && proc_has_all_users();
}

/* A reused pid is another process. */
static bool is_same_process(pid_t pid)
{
	return pid > 0 && pid == known.pid && known.start_time &&
	       time_namespace_same_start(proc_start_time(pid, NULL, NULL), known.start_time);
}

/* If neither this user nor the peer has a uid here, permission to signal it shows that the users are the same. */
static bool is_as_nameless(const struct ucred *who)
{
	return who->uid == NOBODY && system_geteuid() == NOBODY && who->pid > 0 && kill(who->pid, 0) == 0;
}

bool peer_is_ours(int connection, const char *name, uid_t *user)
{
	struct ucred who;
	socklen_t length = sizeof(who);
	int saved_errno = errno;
	bool ours;

	*user = NOBODY;
	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length))
		return false;
	*user = who.uid;
	ours = has_that_user(who.uid) || is_same_process(who.pid) || is_as_nameless(&who) ||
	       socket_owner_is_shown(name, who.uid);
	errno = saved_errno;
	return ours;
}
