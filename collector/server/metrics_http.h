/*
 * metrics_http.h - the status of a collector for Prometheus, which asks for it over HTTP at a loopback address
 * (--metrics 127.0.0.1:9464).
 *
 * A minimum of HTTP/1.1: GET or HEAD of /metrics, one request a connection. Whoever connects is a stranger: at most
 * METRICS_CLIENTS are served, each with METRICS_REQUEST_BYTES for its request and METRICS_CLIENT_NS in all. The
 * collector waits for none of them.
 */
#ifndef COLLECTOR_METRICS_HTTP_H
#define COLLECTOR_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

#define METRICS_CLIENTS 16u
#define METRICS_REQUEST_BYTES 4096u
#define METRICS_CLIENT_NS UINT64_C(5000000000)
#define METRICS_FRESH_NS UINT64_C(500000000) /* a text is sent to all who ask in this time */

struct metrics_http;

/* Listens at "127.0.0.1:PORT" or "[::1]:PORT". A descriptor or -errno; -EINVAL: that is no such address. */
int metrics_http_listen(const char *address);
/* Whether it is such an address. */
bool metrics_http_is_address(const char *address);

/* Makes the text of the answer. The caller frees it. NULL: no memory. */
typedef char *metrics_http_text(void *context, size_t *bytes);

/* Takes over the listening socket on success. Returns 0 or -errno. */
int metrics_http_new(struct loop *loop, int listen_fd, metrics_http_text *text, void *context,
		     struct metrics_http **result);
/* NULL: none. */
void metrics_http_free(struct metrics_http *server);

/* Closes connections whose time is over. Returns whether there are others, to be looked after. NULL: none. */
bool metrics_http_tend(struct metrics_http *server, uint64_t now_ns);

/*
 * The status of HTTP for a request with its head complete: 200; 400: it is none; 403: by the name of a host, which may
 * be that of another site's page; 404: of another place; 405: by another method.
 */
int metrics_http_status(const char *request, bool *is_head);

#endif
