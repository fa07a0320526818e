/*
 * http.c - see http.h.
 *
 * The numbers and types are those of libmicrohttpd.so.12 (microhttpd.h of 0.9.71 to 1.0), the same on all machines.
 * tests/unit/test_tools_serve.c compares them with the header where that is installed.
 */
#include "serve/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/microhttpd.h"
#include "util/library.h"

#define CONNECTIONS 256u
#define CONNECTION_BYTES ((size_t)24 << 10) /* the head of a request, and of its answer */
#define SILENT_S 15u			    /* without a byte either way */

static struct {
	void *(*start_daemon)(unsigned flags, uint16_t port, void *accept, void *accept_owner, mhd_handler *handler,
			      void *handler_owner, ...);
	void (*stop_daemon)(void *daemon);
	const char *(*lookup_connection_value)(void *connection, int kind, const char *key);
	void *(*create_response_from_buffer)(size_t size, void *buffer, int mode);
	void *(*create_response_from_fd64)(uint64_t size, int fd);
	int (*add_response_header)(void *response, const char *header, const char *content);
	int (*queue_response)(void *connection, unsigned status, void *response);
	void (*destroy_response)(void *response);
} mhd;

static void *server;
static http_handler *answer_by;

static bool load_library(void)
{
	static const char *const names[] = {"libmicrohttpd.so.12", NULL};
	const struct library_symbol symbols[] = {
	    {"MHD_start_daemon", &mhd.start_daemon},
	    {"MHD_stop_daemon", &mhd.stop_daemon},
	    {"MHD_lookup_connection_value", &mhd.lookup_connection_value},
	    {"MHD_create_response_from_buffer", &mhd.create_response_from_buffer},
	    {"MHD_create_response_from_fd64", &mhd.create_response_from_fd64},
	    {"MHD_add_response_header", &mhd.add_response_header},
	    {"MHD_queue_response", &mhd.queue_response},
	    {"MHD_destroy_response", &mhd.destroy_response},
	    {NULL, NULL},
	};

	return library_load(names, symbols);
}

static const char *find_value(const void *connection, const char *name)
{
	return mhd.lookup_connection_value((void *)(uintptr_t)connection, MHD_ARGUMENT, name);
}

static void *make_response(struct http_answer *answer)
{
	if (answer->fd >= 0)
		return mhd.create_response_from_fd64(answer->file_bytes, answer->fd);
	if (answer->body)
		return mhd.create_response_from_buffer(answer->length, answer->body, MHD_FREES);
	return mhd.create_response_from_buffer(answer->length, (void *)(uintptr_t)answer->text, MHD_KEEPS);
}

/* Nothing is cached, nothing is sent on to other sites, and no other site may use it. */
static void add_headers(void *response, const struct http_answer *answer)
{
	static const char *const always[][2] = {{"Cache-Control", "no-store"},
						{"Referrer-Policy", "same-origin"},
						{"X-Content-Type-Options", "nosniff"},
						{"X-Frame-Options", "DENY"},
						{"Cross-Origin-Resource-Policy", "same-origin"},
						{"Cross-Origin-Opener-Policy", "same-origin"}};
	char disposition[200];

	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		mhd.add_response_header(response, always[i][0], always[i][1]);
	mhd.add_response_header(response, "Content-Type", answer->type);
	mhd.add_response_header(response, "Content-Security-Policy", answer->policy);
	if (answer->location[0])
		mhd.add_response_header(response, "Location", answer->location);
	if (answer->file_name[0]) {
		snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", answer->file_name);
		mhd.add_response_header(response, "Content-Disposition", disposition);
	}
}

static int send_answer(void *connection, struct http_answer *answer)
{
	void *response = make_response(answer);
	int result;

	if (!response) {
		free(answer->body);
		if (answer->fd >= 0)
			close(answer->fd);
		return MHD_FAILED;
	}
	add_headers(response, answer);
	result = mhd.queue_response(connection, (unsigned)answer->status, response);
	mhd.destroy_response(response);
	return result;
}

/* Called with the head of a request, then with each part of its body, which is dropped, then without one. */
static int on_request(void *owner, void *connection, const char *path, const char *method, const char *version,
		      const char *upload, size_t *upload_bytes, void **state)
{
	static const char begun;
	struct serve_message message = {.method = method,
					.path = path,
					.host = mhd.lookup_connection_value(connection, MHD_HEADER, "Host"),
					.origin = mhd.lookup_connection_value(connection, MHD_HEADER, "Origin"),
					.site = mhd.lookup_connection_value(connection, MHD_HEADER, "Sec-Fetch-Site"),
					.value = find_value,
					.context = connection};
	struct http_answer answer = {
	    .status = 500, .type = "text/plain; charset=utf-8", .policy = "default-src 'none'", .text = "", .fd = -1};

	(void)version;
	(void)upload;
	if (!*state) {
		*state = (void *)(uintptr_t)&begun;
		return MHD_FINE;
	}
	if (*upload_bytes) {
		*upload_bytes = 0;
		return MHD_FINE;
	}
	answer_by(owner, &message, &answer);
	return send_answer(connection, &answer);
}

bool http_start(int listen_fd, http_handler *handler, void *owner, char *reason, size_t reason_bytes)
{
	if (!load_library()) {
		snprintf(reason, reason_bytes,
			 "libmicrohttpd is not here, which carries HTTP: install it (Debian, Ubuntu: apt install "
			 "libmicrohttpd12; Fedora, Arch: libmicrohttpd), or use evprof top");
		close(listen_fd);
		return false;
	}
	answer_by = handler;
	server = mhd.start_daemon(MHD_OWN_THREAD | MHD_EPOLL | MHD_WAKE_PIPE, 0, NULL, NULL, on_request, owner,
				  MHD_LISTEN_SOCKET, listen_fd, MHD_CONNECTION_LIMIT, CONNECTIONS, MHD_MEMORY_LIMIT,
				  CONNECTION_BYTES, MHD_TIMEOUT, SILENT_S, MHD_END);
	if (server)
		return true;
	snprintf(reason, reason_bytes, "libmicrohttpd does not start");
	close(listen_fd);
	return false;
}

void http_stop(void)
{
	mhd.stop_daemon(server); /* and closes the listening socket */
	server = NULL;
}
