/*
 * http.h - an HTTP server by GNU libmicrohttpd, loaded when it is wanted: evprof needs none to be installed.
 *
 * The only unit that knows the library. One thread of its own answers all connections, none of which waits for another;
 * their number, their memory and their time are bounded. One server at a time.
 */
#ifndef EVPROF_TOOLS_SERVE_HTTP_H
#define EVPROF_TOOLS_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/route.h"

/* What is sent back. */
struct http_answer {
	int status;
	const char *type;   /* Content-Type */
	const char *policy; /* Content-Security-Policy */
	char *body;	    /* of malloc(), is freed; NULL: a file, or text */
	const char *text;   /* that stays; NULL: a file or body */
	size_t length;	    /* of body or text */
	int fd;		    /* a file, is closed; -1: none */
	uint64_t file_bytes;
	char location[32];   /* of a 303 */
	char file_name[160]; /* to be saved under; "": it is shown. No quotes and controls */
};

/* Called in the thread of the server. */
typedef void http_handler(void *owner, const struct serve_message *message, struct http_answer *answer);

/*
 * Answers connections to a listening socket, which it takes over. False: the library is not here, which `reason` says
 * in one line, with what to do, or it does not start.
 */
bool http_start(int listen_fd, http_handler *handler, void *owner, char *reason, size_t reason_bytes);
/* Closes all connections. */
void http_stop(void);

#endif
