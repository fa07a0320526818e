/*
 * server.c - accepts connections, checks their credentials, reads one message from each. Called by collector.c.
 *
 * A connection is not trusted until its message is parsed. It costs a few bytes and is dropped after a while.
 */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/answer.h"
#include "base/clock.h"
#include "base/log.h"
#include "evprof/system_calls.h"
#include "session/process.h"

#ifndef SO_PEERPIDFD /* since Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

#define SERVER_FDS_MAX 8 /* more than a valid message has, to close any surplus */
#define FREE_TO_READ 4	 /* descriptors: those of a message, and those for checking them */
#define FREE_AT_MOST 32	 /* limit of the test */

/*
 * Limits of connections that have sent nothing yet. Strangers may join known sessions only, and share few places: as
 * many as are between connect() and send() on a busy machine. Each user other than ours has its own limit.
 */
#define STRANGERS_MAX 64u
#define USER_PEERS_MAX 256u
#define ACCEPTS_MAX 256u /* in a round: endless connections must not delay the draining */

struct peer {
	struct loop_source source;
	struct peer *next;
	struct server *server;
	uint64_t since_ns;
	struct ucred who;
	bool stranger; /* served only for a known session */
	bool waiting;  /* for free descriptors; not in the loop until then */
};

struct server {
	struct loop_source source; /* the listening socket */
	struct loop *loop;
	struct server_handler handler;
	struct server_config config;
	bool paused;	    /* out of descriptors: not in the loop until some are free */
	bool paused_said;   /* and no connection was accepted since */
	bool more;	    /* the last round could not accept all connections */
	struct peer *peers; /* newest first */
	unsigned peer_count;
	unsigned stranger_count; /* strangers among them */
	char message[CONTROL_MESSAGE_MAX_BYTES + 1];
};

static void free_peer(struct peer *peer)
{
	if (peer->source.fd >= 0) {
		if (!peer->waiting)
			loop_remove(peer->server->loop, &peer->source);
		close(peer->source.fd);
	}
	free(peer);
}

/*
 * Whether that many descriptors are free. A message whose descriptors find no room would be lost, and its process with
 * it. So it stays in the socket until ended processes leave room.
 */
static bool descriptors_free(const struct server *server, unsigned count)
{
	int fds[FREE_AT_MOST];
	unsigned got = 0;

	count = count < FREE_AT_MOST ? count : FREE_AT_MOST;
	while (got < count && (fds[got] = fcntl(server->source.fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		got++;
	for (unsigned i = 0; i < got; i++)
		close(fds[i]);
	return got == count;
}

/* link: the pointer to the peer in the list. */
static void close_peer(struct peer **link)
{
	struct peer *peer = *link;

	*link = peer->next;
	peer->server->peer_count--;
	peer->server->stranger_count -= peer->stranger;
	free_peer(peer);
}

/* Detaches a hold connection from its peer: its descriptor stays open. */
static int release_peer(struct peer *peer)
{
	int fd = peer->source.fd;

	loop_remove(peer->server->loop, &peer->source);
	peer->source.fd = -1;
	return fd;
}

static unsigned take_fds(struct msghdr *header, int fds[SERVER_FDS_MAX])
{
	unsigned count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes && count < SERVER_FDS_MAX; at += sizeof(int))
			memcpy(&fds[count++], CMSG_DATA(part) + at, sizeof(int));
	}
	return count;
}

/* A pidfd of the sender, which could not open one itself. A descriptor or -1. */
static int pidfd_of(const struct peer *peer)
{
	socklen_t length = sizeof(int);
	int pidfd;

	if (getsockopt(peer->source.fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
		return pidfd;
	return (int)syscall(SYS_pidfd_open, peer->who.pid, 0);
}

/* Takes over the two descriptors on success (and sets *kept). */
static int handle_join(struct peer *peer, const struct control_message *message, int fds[SERVER_FDS_MAX],
		       unsigned *fd_count, bool *kept, char *reason, size_t reason_bytes)
{
	const struct server_handler *handler = &peer->server->handler;
	int error;

	if (*fd_count == CONTROL_FDS - 1 && (fds[*fd_count] = pidfd_of(peer)) >= 0)
		++*fd_count;
	if (*fd_count == CONTROL_FDS - 1) {
		error = -errno;
		snprintf(reason, reason_bytes, "the process cannot be watched: pidfd_open(): %s", strerror(-error));
	} else if (*fd_count != CONTROL_FDS) {
		error = -EINVAL;
		snprintf(reason, reason_bytes, "the message came with %u descriptors instead of %d", *fd_count,
			 CONTROL_FDS);
	} else {
		error = handler->join(handler->context, message, fds[0], fds[1], &peer->who, reason, reason_bytes);
		*kept = error == 0;
	}
	if (error && handler->absent)
		handler->absent(handler->context, message, reason);
	return error;
}

static int handle_hold(struct peer *peer, const struct control_message *message, char *reason, size_t reason_bytes)
{
	const struct server_handler *handler = &peer->server->handler;
	int fd = release_peer(peer);
	int error = handler->hold(handler->context, message, fd, &peer->who, reason, reason_bytes);

	if (error)
		close(fd);
	return error;
}

static bool is_own(const struct peer *peer)
{
	return peer->who.uid == system_geteuid();
}

/* A program may give up its user before it forks: its children know the session id, which cannot be guessed. */
static bool is_welcome(const struct peer *peer, const struct control_message *message)
{
	const struct server_handler *handler = &peer->server->handler;

	return is_own(peer) || peer->server->config.allow_other_users ||
	       (message->type != CONTROL_HOLD && handler->knows && handler->knows(handler->context, message));
}

/* Whether a peer may ask anything. What it is shown is the handler's. */
static bool may_ask(const struct peer *peer, const struct peer_rights *rights)
{
	return rights->all || peer->server->config.allow_other_users || is_own(peer);
}

/* error: of control_parse(), with its reason. */
static int handle_request(struct peer *peer, const struct control_message *message, int error, char *reason,
			  size_t reason_bytes)
{
	const struct server_handler *handler = &peer->server->handler;
	struct peer_rights rights = peer_rights_of(peer->source.fd, &peer->who, peer->server->config.control_group);
	int fd = release_peer(peer);

	if (!may_ask(peer, &rights)) {
		snprintf(reason, reason_bytes, "this evprof-collector serves user %u only, not user %u",
			 (unsigned)system_geteuid(), (unsigned)peer->who.uid);
		error = -EPERM;
	}
	if (error)
		answer_send_error(fd, reason);
	else
		handler->request(handler->context, message, fd, &rights);
	return error;
}

/* evprof run prints the reason after the program. The reason has no quotes. */
static void refuse_hold(const struct peer *peer, const char *reason)
{
	char answer[512];
	int bytes;

	bytes = snprintf(answer, sizeof(answer),
			 "{\"evprof\":%d,\"type\":\"summary\",\"error\":\"nothing was recorded: %s\"}", CONTROL_VERSION,
			 reason);
	if (bytes < (int)sizeof(answer))
		send(peer->source.fd, answer, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A message of another version: evprof run prints the reason, its own or that of a process of its session. */
static void report_version(struct peer *peer, const struct control_message *message, const char *reason)
{
	const struct server_handler *handler = &peer->server->handler;

	if (message->type == CONTROL_HOLD && is_welcome(peer, message))
		refuse_hold(peer, reason);
	else if (message->type != CONTROL_HOLD && handler->absent)
		handler->absent(handler->context, message, reason);
}

static int refuse_user(const struct peer *peer, const struct control_message *message, char *reason,
		       size_t reason_bytes)
{
	snprintf(reason, reason_bytes,
		 "the collector serves user %u only, not user %u: start it with --allow-other-users",
		 (unsigned)system_geteuid(), (unsigned)peer->who.uid);
	if (message->type == CONTROL_HOLD)
		refuse_hold(peer, reason);
	return -EPERM;
}

static int handle_message(struct peer *peer, size_t bytes, int fds[SERVER_FDS_MAX], unsigned *fd_count, bool *kept,
			  char *reason, size_t reason_bytes)
{
	struct server *server = peer->server;
	struct control_message message;
	int error, handled;

	error = control_parse(server->message, bytes, &message, reason, reason_bytes);
	if (control_is_request(message.type)) {
		handled = handle_request(peer, &message, error, reason, reason_bytes);
		if (!error)
			control_message_done(&message);
		return handled;
	}
	if (error == -EPROTONOSUPPORT)
		report_version(peer, &message, reason);
	if (error)
		return error;
	if (!is_welcome(peer, &message)) {
		error = refuse_user(peer, &message, reason, reason_bytes);
	} else if (message.type == CONTROL_HOLD) {
		error = handle_hold(peer, &message, reason, reason_bytes);
	} else if (message.type == CONTROL_JOIN) {
		error = handle_join(peer, &message, fds, fd_count, kept, reason, reason_bytes);
	} else if (server->handler.absent) {
		server->handler.absent(server->handler.context, &message, message.reason);
	}
	control_message_done(&message);
	return error;
}

/* False: the message has to wait for free descriptors. */
static bool may_read(struct peer *peer)
{
	bool may = descriptors_free(peer->server, FREE_TO_READ);

	if (!may && !peer->waiting) {
		loop_remove(peer->server->loop, &peer->source);
		peer->waiting = true;
	} else if (may && peer->waiting && loop_add(peer->server->loop, &peer->source) == 0) {
		peer->waiting = false;
	}
	return may && !peer->waiting;
}

/* Reads the message of a peer. False: it has not come yet. True: the peer is to be closed. */
static bool read_peer(struct peer *peer)
{
	struct server *server = peer->server;
	union {
		char bytes[CMSG_SPACE(SERVER_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = server->message, .iov_len = CONTROL_MESSAGE_MAX_BYTES};
	struct msghdr header = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	int fds[SERVER_FDS_MAX];
	char reason[256] = "";
	bool kept = false;
	unsigned fd_count;
	ssize_t count;

	if (!may_read(peer))
		return false;
	count = recvmsg(peer->source.fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	fd_count = count >= 0 ? take_fds(&header, fds) : 0;
	if (count > 0 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		snprintf(reason, sizeof(reason), "the message is too long, or the collector has no descriptor left");
	else if (count > 0)
		handle_message(peer, (size_t)count, fds, &fd_count, &kept, reason, sizeof(reason));
	if (reason[0]) {
		log_warning("refused process %d: %s", (int)peer->who.pid, reason);
		if (fd_count > 0 && !kept)
			process_refuse(fds[0], reason);
	}
	for (unsigned i = 0; i < fd_count && !kept; i++)
		close(fds[i]);
	return true;
}

static void peer_ready(struct loop_source *source)
{
	struct peer *peer = LOOP_OWNER(source, struct peer, source);
	struct peer **link = &peer->server->peers;

	if (!read_peer(peer))
		return;
	while (*link != peer)
		link = &(*link)->next;
	close_peer(link);
}

/* Whether both count against the same limit as the newer one. */
static bool same_share(const struct peer *peer, const struct peer *newer)
{
	return newer->stranger ? peer->stranger : !peer->stranger && peer->who.uid == newer->who.uid;
}

/* The oldest peer that counts against the same limit as the newer one, and the number of these. */
static struct peer **oldest_of_share(struct server *server, const struct peer *newer, unsigned *count)
{
	struct peer **oldest = NULL;

	*count = 0;
	for (struct peer **link = &server->peers; *link; link = &(*link)->next) {
		if (!same_share(*link, newer))
			continue;
		oldest = link;
		++*count;
	}
	return oldest;
}

/* The peer to drop when all places are taken: strangers first, our own user last. */
static struct peer **oldest_of_all(struct server *server)
{
	struct peer **oldest = NULL;
	int least = 0;

	for (struct peer **link = &server->peers; *link; link = &(*link)->next) {
		int standing = (*link)->stranger ? 0 : is_own(*link) ? 2 : 1;

		if (!oldest || standing <= least) {
			oldest = link;
			least = standing;
		}
	}
	return oldest;
}

static void make_room(struct server *server, const struct peer *newer)
{
	unsigned most = newer->stranger ? STRANGERS_MAX : is_own(newer) ? SERVER_PEERS_MAX : USER_PEERS_MAX;
	unsigned count;
	struct peer **oldest = oldest_of_share(server, newer, &count);

	if (count < most)
		oldest = server->peer_count < SERVER_PEERS_MAX ? NULL : oldest_of_all(server);
	if (!oldest)
		return;
	read_peer(*oldest); /* a message that has arrived is still handled */
	close_peer(oldest);
}

static int add_peer(struct server *server, int fd)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	socklen_t length = sizeof(peer->who);
	int error = -ENOMEM;

	if (!peer)
		return error;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer->who, &length) < 0) {
		error = -errno;
		goto fail;
	}
	peer->stranger = !is_own(peer) && !server->config.allow_other_users;
	make_room(server, peer);
	peer->source = (struct loop_source){.fd = fd, .ready = peer_ready};
	peer->server = server;
	peer->since_ns = clock_now_ns();
	error = loop_add(server->loop, &peer->source);
	if (error)
		goto fail;
	peer->next = server->peers;
	server->peers = peer;
	server->peer_count++;
	server->stranger_count += peer->stranger;
	if (read_peer(peer)) /* most messages have arrived by now */
		close_peer(&server->peers);
	return 0;
fail:
	free(peer);
	return error;
}

static void pause_accepting(struct server *server)
{
	if (server->paused)
		return;
	if (!server->paused_said)
		log_error("no descriptor left: new processes wait (raise the limit of open files)");
	server->paused_said = true;
	loop_remove(server->loop, &server->source);
	server->paused = true;
}

/*
 * Whether there are descriptors for one more connection, and for each accepted one that was not read. Strangers do not
 * count here, so that they do not keep others out.
 */
static bool may_accept(const struct server *server)
{
	return descriptors_free(server, 1 + FREE_TO_READ + 2 * (server->peer_count - server->stranger_count));
}

static int accept_one(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 || (errno != EPERM && errno != ENOSYS))
		return fd;
	fd = accept(listening, NULL, NULL); /* some seccomp filters of containers allow only this call */
	if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* True: there were connections. */
static bool accept_all(struct server *server)
{
	struct pollfd poller = {.fd = server->source.fd, .events = POLLIN};
	unsigned i;

	for (i = 0; i < ACCEPTS_MAX; i++) {
		int error;
		int fd;

		if (poll(&poller, 1, 0) <= 0)
			break;
		if (!may_accept(server)) {
			pause_accepting(server);
			break;
		}
		fd = accept_one(server->source.fd);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
				pause_accepting(server);
			break;
		}
		server->paused_said = false;
		error = add_peer(server, fd);
		if (error) {
			log_error("cannot serve a connection: %s", strerror(-error));
			close(fd);
		}
	}
	server->more = i == ACCEPTS_MAX;
	return i > 0;
}

static void listen_ready(struct loop_source *source)
{
	accept_all(LOOP_OWNER(source, struct server, source));
}

static void read_waiting(struct server *server)
{
	struct peer **link = &server->peers;

	while (*link) {
		if ((*link)->waiting && read_peer(*link))
			close_peer(link);
		else
			link = &(*link)->next;
	}
}

static bool is_silent(const struct peer *peer, uint64_t now_ns)
{
	struct pollfd poller = {.fd = peer->source.fd, .events = POLLIN};

	if (peer->waiting || now_ns <= peer->since_ns || now_ns - peer->since_ns < SERVER_SILENT_NS)
		return false;
	/* A message may have arrived while we slept. */
	return poll(&poller, 1, 0) <= 0;
}

static void close_silent(struct server *server, uint64_t now_ns)
{
	struct peer **link = &server->peers;

	while (*link) {
		if (!is_silent(*link, now_ns)) {
			link = &(*link)->next;
			continue;
		}
		log_info("process %d connected and said nothing: closed", (int)(*link)->who.pid);
		close_peer(link);
	}
}

bool server_poll(struct server *server, uint64_t now_ns)
{
	read_waiting(server);
	close_silent(server, now_ns);
	if (server->paused && may_accept(server) && loop_add(server->loop, &server->source) == 0)
		server->paused = false;
	return accept_all(server);
}

bool server_expects(const struct server *server, uid_t uid, uint64_t since_ns)
{
	for (const struct peer *peer = server->peers; peer; peer = peer->next) {
		if (peer->since_ns >= since_ns && peer->who.uid == uid)
			return true;
	}
	return server->more;
}

bool server_is_short(const struct server *server)
{
	return server->paused;
}

bool server_has_peers(const struct server *server)
{
	return server->peer_count > server->stranger_count || server->paused;
}

static int check_listening(int fd)
{
	socklen_t length = sizeof(int);
	int type;
	int accepting;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0)
		return -errno;
	length = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) < 0)
		return -errno;
	return type == SOCK_SEQPACKET && accepting ? 0 : -EPROTOTYPE;
}

int server_new(struct loop *loop, int listen_fd, const struct server_config *config,
	       const struct server_handler *handler, struct server **result)
{
	int error = check_listening(listen_fd);
	struct server *server;

	/* Again, so that SO_PEERCRED gives our pid from now on, and not that of the socket's creator. */
	if (!error && listen(listen_fd, CONTROL_BACKLOG) < 0)
		error = -errno;
	if (error)
		return error;
	server = malloc(sizeof(*server));
	if (!server)
		return -ENOMEM;
	memset(server, 0, offsetof(struct server, message));
	server->source = (struct loop_source){.fd = listen_fd, .ready = listen_ready};
	server->loop = loop;
	server->handler = *handler;
	server->config = *config;
	error = loop_add(loop, &server->source);
	if (error) {
		free(server);
		return error;
	}
	*result = server;
	return 0;
}

void server_free(struct server *server)
{
	if (!server)
		return;
	while (server->peers) {
		struct peer *peer = server->peers;

		server->peers = peer->next;
		free_peer(peer);
	}
	if (!server->paused)
		loop_remove(server->loop, &server->source);
	close(server->source.fd);
	free(server);
}
