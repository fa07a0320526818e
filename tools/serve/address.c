/*
 * address.c - see address.h.
 */
#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 64

/* Digits and nothing else. -1: no port. */
static int read_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	long port = digits > 0 && digits <= 5 && !text[digits] ? strtol(text, NULL, 10) : -1;

	return port >= 0 && port <= 65535 ? (int)port : -1;
}

/* The host of HOST:PORT, with its brackets off. Returns the position of the colon; NULL: there is none, or no room. */
static const char *split_host(const char *text, char *host, size_t size)
{
	const char *end = text[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
	const char *from = text + (text[0] == '[');

	if (!end || (size_t)(end - from) >= size)
		return NULL;
	memcpy(host, from, (size_t)(end - from));
	host[end - from] = '\0';
	end += text[0] == '[';
	return *end == ':' ? end : NULL;
}

static bool take_host(const char *host, in_port_t port, struct serve_address *address)
{
	*address = (struct serve_address){0};
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &address->socket.v4.sin_addr) == 1) {
		address->socket.v4.sin_family = AF_INET;
		address->socket.v4.sin_port = port;
		address->length = sizeof(address->socket.v4);
		address->is_loopback = ntohl(address->socket.v4.sin_addr.s_addr) >> 24 == 127;
		return true;
	}
	if (inet_pton(AF_INET6, host, &address->socket.v6.sin6_addr) == 1) {
		address->socket.v6.sin6_family = AF_INET6;
		address->socket.v6.sin6_port = port;
		address->length = sizeof(address->socket.v6);
		address->is_loopback = IN6_IS_ADDR_LOOPBACK(&address->socket.v6.sin6_addr);
		return true;
	}
	return false;
}

bool serve_address_parse(const char *text, struct serve_address *address)
{
	char host[INET6_ADDRSTRLEN];
	const char *colon = split_host(text, host, sizeof(host));
	int port = colon ? read_port(colon + 1) : -1;

	return port >= 0 && take_host(host, htons((in_port_t)port), address) &&
	       (text[0] == '[') == (address->socket.any.sa_family == AF_INET6);
}

static int print_address(int fd, char text[SERVE_ADDRESS_BYTES])
{
	struct serve_address bound = {.length = sizeof(bound.socket)};
	char host[INET6_ADDRSTRLEN];

	if (getsockname(fd, &bound.socket.any, &bound.length) < 0)
		return -errno;
	if (bound.socket.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &bound.socket.v6.sin6_addr, host, sizeof(host));
		snprintf(text, SERVE_ADDRESS_BYTES, "[%s]:%d", host, ntohs(bound.socket.v6.sin6_port));
	} else {
		inet_ntop(AF_INET, &bound.socket.v4.sin_addr, host, sizeof(host));
		snprintf(text, SERVE_ADDRESS_BYTES, "%s:%d", host, ntohs(bound.socket.v4.sin_port));
	}
	return 0;
}

int serve_address_listen(const struct serve_address *address, char text[SERVE_ADDRESS_BYTES])
{
	int fd = socket(address->socket.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int error = fd < 0 ? -errno : 0;

	if (!error)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!error && (bind(fd, &address->socket.any, address->length) < 0 || listen(fd, BACKLOG) < 0))
		error = -errno;
	if (!error)
		error = print_address(fd, text);
	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	return error;
}

bool serve_host_is_address(const char *host)
{
	char whole[SERVE_ADDRESS_BYTES + 8];
	const char *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');
	struct serve_address ignored;

	if (strlen(host) >= SERVE_ADDRESS_BYTES)
		return false;
	/* Without a port where that is 80. */
	snprintf(whole, sizeof(whole), "%s%s", host, !colon || (bracket && colon < bracket) ? ":80" : "");
	return serve_address_parse(whole, &ignored);
}
