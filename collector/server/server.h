/* server.h - accepts connections, and has those that have not sent their message yet. */
#ifndef COLLECTOR_SERVER_H
#define COLLECTOR_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/control.h"
#include "base/loop.h"
#include "base/peer.h"

#define SERVER_PEERS_MAX 2048
#define SERVER_SILENT_NS UINT64_C(5000000000)

struct server;

/*
 * Callbacks of the server. A callback that returns 0 takes over the descriptors; otherwise they remain the server's,
 * and `reason` is sent.
 */
struct server_handler {
	void *context;
	int (*join)(void *context, const struct control_message *message, int memfd, int pidfd, const struct ucred *who,
		    char *reason, size_t reason_bytes);
	/* Whether the message names a session here that processes of other users may join. NULL: none is. */
	bool (*knows)(void *context, const struct control_message *message);
	/* A process was not recorded, for this reason. NULL: ignored. */
	void (*absent)(void *context, const struct control_message *message, const char *reason);
	int (*hold)(void *context, const struct control_message *message, int fd, const struct ucred *who, char *reason,
		    size_t reason_bytes);
	/* A control request. Takes over the connection, for answer_send() (base/answer.h), now or later. */
	void (*request)(void *context, const struct control_message *message, int fd, const struct peer_rights *rights);
};

struct server_config {
	bool allow_other_users;
	const gid_t *control_group; /* whose members may ask about all processes; NULL: none */
};

/*
 * Takes over a listening SOCK_SEQPACKET socket. -ENOTSOCK or -EPROTOTYPE for any other descriptor, or another -errno.
 */
int server_new(struct loop *loop, int listen_fd, const struct server_config *config,
	       const struct server_handler *handler, struct server **result);
void server_free(struct server *server); /* or NULL */

/*
 * Accepts all waiting connections and reads their messages. Closes those that have been silent for too long. True:
 * there were new connections, which may wait for a round.
 */
bool server_poll(struct server *server, uint64_t now_ns);

/*
 * Whether this user has connections that came after since_ns and have sent nothing yet, or one round could not accept
 * all connections. The caller limits the time for which it waits for them: they may never stop coming.
 */
bool server_expects(const struct server *server, uid_t uid, uint64_t since_ns);
/* Whether connections wait for free descriptors. Sessions may free theirs, and must not finish. */
bool server_is_short(const struct server *server);
/* Whether a connection that may join has sent nothing yet, or waits for free descriptors. */
bool server_has_peers(const struct server *server);

#endif
