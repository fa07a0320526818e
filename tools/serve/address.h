/*
 * address.h - where evprof serve listens, and which names a browser may call it by.
 */
#ifndef EVPROF_TOOLS_SERVE_ADDRESS_H
#define EVPROF_TOOLS_SERVE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define SERVE_ADDRESS_BYTES 64

struct serve_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} socket;
	socklen_t length;
	bool is_loopback;
};

/* "127.0.0.1:0", "[::1]:8080", "localhost:0". False: it is none. */
bool serve_address_parse(const char *text, struct serve_address *address);

/*
 * Listens there. text: gets the address with its port, as a URL has it. Returns the descriptor or -errno.
 */
int serve_address_listen(const struct serve_address *address, char text[SERVE_ADDRESS_BYTES]);

/*
 * Whether the Host header of a request names an address and not a host: a page of another site whose name is made to
 * lead here (DNS rebinding) has that name in it. "localhost" is fine, and any port: it may be that of a tunnel.
 */
bool serve_host_is_address(const char *host);

#endif
