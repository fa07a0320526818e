/*
 * post.h - one HTTP request by libcurl, which is loaded when it is wanted. For sender.c.
 */
#ifndef EVPROF_TOOLS_PUSH_POST_H
#define EVPROF_TOOLS_PUSH_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/settings.h"

#define POST_ANSWER_BYTES 65536 /* more of an answer is dropped */

/* A connection, which is kept from one request to the next. */
struct post {
	void *handle;
	void *headers;
	const struct push_settings *settings;
	const volatile bool *stop; /* true: a request under way is given up */
};

struct post_answer {
	long status;		/* of HTTP; 0: there is no answer, and `reason` says why */
	int64_t retry_after_ms; /* of Retry-After; -1: none */
	char reason[320];
	uint8_t *body; /* room for POST_ANSWER_BYTES, of the caller */
	size_t length;
};

/* False after one line in `reason`: libcurl is not here, or lacks what is asked for. */
bool post_open(struct post *post, const struct push_settings *settings, const volatile bool *stop, char *reason,
	       size_t reason_bytes);
/* Sends a body, which is gzip'ed if it looks so, and waits for the answer, settings->timeout_ms at most. */
void post_send(struct post *post, const void *body, size_t length, struct post_answer *answer);
void post_close(struct post *post);

/* The value of Retry-After in ms: seconds, or a date; now: seconds since 1970. -1: it is neither. */
int64_t post_retry_after(const char *value, int64_t now);

#endif
