/*
 * run_session.h - the collector's side of evprof run: a private collector or the host's, and the hold connection that
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
};

/*
 * Joins the collector at that socket, or starts a private one where socket is NULL. output: template of an absolute
 * path. Returns 0, or -1 after saying why on stderr.
 */
int run_session_open(struct run_session *session, const char *socket, const char *collector, const char *output);
/* Waits for what the collector has to say, at most RUN_SUMMARY_SECONDS. NULL if nothing came. */
json_t *run_session_summary(struct run_session *session);
void run_session_done(struct run_session *session);

/* The collector has to write what is in the rings, which it does in well under a second unless the disk is slow. */
#define RUN_SUMMARY_SECONDS 30
#define RUN_FORMATS_SECONDS 600 /* where other formats are written, too */

#endif
