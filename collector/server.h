/*
 * server.h - the listening socket, and the connections that have not said yet what they want.
 */
#ifndef COLLECTOR_SERVER_H
#define COLLECTOR_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "control.h"
#include "loop.h"

#define SERVER_PEERS_MAX 2048
#define SERVER_SILENT_NS UINT64_C(5000000000)

struct server;

/* What the server hands on: descriptors go over with a 0; otherwise they stay the server's and `reason` is sent. */
struct server_handler {
	void *context;
	int (*join)(void *context, const struct control_message *message, int memfd, int pidfd, const struct ucred *who,
		    char *reason, size_t reason_bytes);
	/* Whether a join is one of a session that has begun here and is of this user. NULL: none is. */
	bool (*knows)(void *context, const struct control_message *message);
	/* No process has come of it, and why. NULL: nobody wants to know. */
	void (*absent)(void *context, const struct control_message *message, const char *reason);
	int (*hold)(void *context, const struct control_message *message, int fd, const struct ucred *who, char *reason,
		    size_t reason_bytes);
};

/*
 * Opens the socket of the host's daemon: a path, or @ and an abstract name. A socket file that nobody answers at is
 * replaced. A descriptor, or -errno with one line in `reason`.
 */
int server_listen(const char *name, bool for_all_users, char *reason, size_t reason_bytes);

/* Takes over a listening SOCK_SEQPACKET socket. -ENOTSOCK or -EPROTOTYPE when it is none, or another -errno. */
int server_new(struct loop *loop, int listen_fd, bool allow_other_users, const struct server_handler *handler,
	       struct server **result);
void server_free(struct server *server);

/*
 * Accepts everybody who waits and reads what is there. Closes who has been silent for too long. True: somebody has
 * come, and may be waiting for a round.
 */
bool server_poll(struct server *server, uint64_t now_ns);

/*
 * Connections of this user that have not said anything yet and came after since_ns, or more connections than one round
 * accepts. Whoever waits for them does so for a bounded time: there may be no end of them.
 */
bool server_expects(const struct server *server, uid_t uid, uint64_t since_ns);
/* Some wait for descriptors: sessions may free theirs, and may not end. */
bool server_is_short(const struct server *server);
/* Somebody who may join has connected and not said anything yet, or waits for descriptors. */
bool server_has_peers(const struct server *server);

#endif
