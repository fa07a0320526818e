/*
 * session.h - the collector's side of evprof run: a private collector or the host's, and the hold connection that
 * keeps the session open until the program has ended and brings the summary.
 */
#ifndef EVPROF_TOOLS_RUN_SESSION_H
#define EVPROF_TOOLS_RUN_SESSION_H

#include <jansson.h>
#include <stdbool.h>

#include "evprof/control.h"

struct run_session {
	char id[CONTROL_SESSION_DIGITS + 1];
	char *socket; /* '@' and an abstract name, or an absolute path */
	int hold;     /* the connection; -1: none */
	int wait_ms;  /* to be set: for processes that go on behind the program */
};

/*
 * Joins the collector at that socket, or starts a private one where socket is NULL. output: template of an absolute
 * path. Returns 0, or -1 after saying why on stderr.
 */
int run_session_open(struct run_session *session, const char *socket, const char *collector, const char *output);
/*
 * Waits for what the collector has to say: a while, beside wait_ms. NULL if nothing came, after that many seconds; 0:
 * the collector has ended.
 */
json_t *run_session_summary(struct run_session *session, int *seconds);
void run_session_done(struct run_session *session);

#endif
