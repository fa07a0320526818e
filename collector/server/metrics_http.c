/*
 * metrics_http.c - see metrics_http.h. Called by the loop, and by collector.c between rounds.
 */
#include "server/metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define BACKLOG 16

struct client {
	struct loop_source source;
	struct metrics_http *server;
	struct client *next;
	uint64_t since_ns;
	size_t used;
	char request[METRICS_REQUEST_BYTES + 1];
	char *answer; /* NULL: the request is not complete */
	size_t left;
	const char *at; /* in the answer */
};

struct metrics_http {
	struct loop_source source; /* the listening socket */
	struct loop *loop;
	metrics_http_text *make_text;
	void *context;
	char *text;
	size_t text_bytes;
	uint64_t text_ns;
	struct client *clients; /* newest first */
	unsigned count;
};

/* --- address --- */

static bool parse_address(const char *text, struct sockaddr_storage *address, socklen_t *length)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
	const char *colon = strrchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	long port = digits && digits <= 5 && !colon[1 + digits] ? atol(colon + 1) : 0;

	*address = (struct sockaddr_storage){0};
	if (port < 1 || port > 65535)
		return false;
	if (strncmp(text, "127.0.0.1:", (size_t)(colon - text) + 1) == 0) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((in_port_t)port);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*length = sizeof(*v4);
		return colon - text == 9;
	}
	if (strncmp(text, "[::1]:", (size_t)(colon - text) + 1) == 0) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((in_port_t)port);
		v6->sin6_addr = in6addr_loopback;
		*length = sizeof(*v6);
		return colon - text == 5;
	}
	return false;
}

bool metrics_http_is_address(const char *text)
{
	struct sockaddr_storage address;
	socklen_t length;

	return parse_address(text, &address, &length);
}

int metrics_http_listen(const char *text)
{
	struct sockaddr_storage address;
	socklen_t length;
	int one = 1, error = 0, fd;

	if (!parse_address(text, &address, &length))
		return -EINVAL;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, BACKLOG) < 0)
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* --- requests --- */

/* The value of the Host header. Its length; 0: there is none. */
static size_t find_host(const char *request, const char **host)
{
	const char *line = request;

	while ((line = strstr(line, "\r\n")) != NULL && line[2] != '\r') {
		line += 2;
		if (strncasecmp(line, "host:", 5) == 0) {
			*host = line + 5 + strspn(line + 5, " \t");
			return strcspn(*host, " \t\r");
		}
	}
	return 0;
}

/* An address or localhost: the name of another site may lead here, too (DNS rebinding). */
static bool is_own_host(const char *host, size_t length)
{
	static const char local[] = "localhost";
	size_t name = length >= strlen(local) && strncasecmp(host, local, strlen(local)) == 0 ? strlen(local) : 0;

	if (length > 0 && host[0] == '[')
		return strspn(host + 1, "0123456789abcdefABCDEF:.]") + 1 >= length;
	/* A name of digits and dots is none. */
	return length > 0 && (!name || name == length || host[name] == ':') &&
	       strspn(host + name, "0123456789.:") + name >= length;
}

int metrics_http_status(const char *request, bool *is_head)
{
	const char *place = strchr(request, ' '), *host;
	size_t length;

	*is_head = strncmp(request, "HEAD ", 5) == 0;
	if (!place || strcspn(place + 1, " \r") == 0 ||
	    strncmp(place + 1 + strcspn(place + 1, " \r"), " HTTP/1.", 8) != 0)
		return 400;
	length = find_host(request, &host);
	if (!length || !is_own_host(host, length))
		return 403;
	if (!*is_head && strncmp(request, "GET ", 4) != 0)
		return 405;
	length = strcspn(++place, " ?");
	return length == strlen("/metrics") && strncmp(place, "/metrics", length) == 0 ? 200 : 404;
}

static const char *reason_of(int status)
{
	return status == 200   ? "OK"
	       : status == 400 ? "Bad Request"
	       : status == 403 ? "Forbidden"
	       : status == 404 ? "Not Found"
	       : status == 405 ? "Method Not Allowed"
			       : "Internal Server Error";
}

/* Made anew where the last one is not fresh. NULL: no memory. */
static const char *fresh_text(struct metrics_http *server, uint64_t now_ns)
{
	if (server->text && now_ns - server->text_ns < METRICS_FRESH_NS)
		return server->text;
	free(server->text);
	server->text = server->make_text(server->context, &server->text_bytes);
	server->text_ns = now_ns;
	return server->text;
}

/* False: no memory. */
static bool make_answer(struct client *client, uint64_t now_ns)
{
	bool is_head;
	int status = metrics_http_status(client->request, &is_head), length;
	const char *text = status == 200 ? fresh_text(client->server, now_ns) : reason_of(status);
	size_t bytes = status == 200 ? client->server->text_bytes : strlen(text ? text : "");

	if (!text)
		return false;
	client->answer = malloc(bytes + 512);
	if (!client->answer)
		return false;
	length =
	    snprintf(client->answer, 512,
		     "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: "
		     "%zu\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
		     status, reason_of(status), bytes);
	memcpy(client->answer + length, text, is_head ? 0 : bytes);
	client->at = client->answer;
	client->left = (size_t)length + (is_head ? 0 : bytes);
	return true;
}

/* --- clients --- */

static void free_client(struct client **link)
{
	struct client *client = *link;

	*link = client->next;
	client->server->count--;
	loop_remove(client->server->loop, &client->source);
	close(client->source.fd);
	free(client->answer);
	free(client);
}

/* False: the connection is done. */
static bool send_rest(struct client *client)
{
	ssize_t count = send(client->source.fd, client->at, client->left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (count < 0)
		return errno == EAGAIN || errno == EINTR;
	client->at += count;
	client->left -= (size_t)count;
	if (!client->left)
		shutdown(client->source.fd, SHUT_WR);
	return client->left > 0;
}

/* False: the connection is done. */
static bool read_request(struct client *client)
{
	ssize_t count =
	    recv(client->source.fd, client->request + client->used, METRICS_REQUEST_BYTES - client->used, MSG_DONTWAIT);

	if (count < 0)
		return errno == EAGAIN || errno == EINTR;
	if (count == 0 || memchr(client->request + client->used, '\0', (size_t)count))
		return false;
	client->used += (size_t)count;
	client->request[client->used] = '\0';
	if (!strstr(client->request, "\r\n\r\n"))
		return client->used < METRICS_REQUEST_BYTES;
	return make_answer(client, clock_now_ns()) && send_rest(client) &&
	       loop_await_room(client->server->loop, &client->source) == 0;
}

static void client_ready(struct loop_source *source)
{
	struct client *client = LOOP_OWNER(source, struct client, source);
	struct client **link = &client->server->clients;

	if (client->answer ? send_rest(client) : read_request(client))
		return;
	while (*link != client)
		link = &(*link)->next;
	free_client(link);
}

/* The oldest makes room for a new one. */
static void make_room(struct metrics_http *server)
{
	struct client **link = &server->clients;

	if (server->count < METRICS_CLIENTS)
		return;
	while ((*link)->next)
		link = &(*link)->next;
	free_client(link);
}

static bool add_client(struct metrics_http *server, int fd)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return false;
	client->source = (struct loop_source){.fd = fd, .ready = client_ready};
	client->server = server;
	client->since_ns = clock_now_ns();
	if (loop_add(server->loop, &client->source) < 0) {
		free(client);
		return false;
	}
	make_room(server);
	client->next = server->clients;
	server->clients = client;
	server->count++;
	return true;
}

/* One at a time: others wait in the socket, and the rings do not. */
static void listen_ready(struct loop_source *source)
{
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && !add_client(LOOP_OWNER(source, struct metrics_http, source), fd))
		close(fd);
}

/* --- all --- */

int metrics_http_new(struct loop *loop, int listen_fd, metrics_http_text *text, void *context,
		     struct metrics_http **result)
{
	struct metrics_http *server = calloc(1, sizeof(*server));
	int error;

	if (!server)
		return -ENOMEM;
	*server = (struct metrics_http){
	    .source = {.fd = listen_fd, .ready = listen_ready}, .loop = loop, .make_text = text, .context = context};
	error = loop_add(loop, &server->source);
	if (error) {
		free(server);
		return error;
	}
	*result = server;
	return 0;
}

void metrics_http_free(struct metrics_http *server)
{
	if (!server)
		return;
	while (server->clients)
		free_client(&server->clients);
	loop_remove(server->loop, &server->source);
	close(server->source.fd);
	free(server->text);
	free(server);
}

bool metrics_http_tend(struct metrics_http *server, uint64_t now_ns)
{
	struct client **link = server ? &server->clients : NULL;

	while (link && *link) {
		if (now_ns - (*link)->since_ns > METRICS_CLIENT_NS && now_ns > (*link)->since_ns)
			free_client(link);
		else
			link = &(*link)->next;
	}
	return server && server->clients;
}
