/*
 * session.h - the session of evprof run: a private collector or the host's, and the hold connection, which keeps the
 * session open until the program has ended and delivers the summary.
 */
#ifndef EVPROF_TOOLS_RUN_SESSION_H
#define EVPROF_TOOLS_RUN_SESSION_H

#include <jansson.h>

#include "evprof/control.h"

struct run_session {
	char id[CONTROL_SESSION_DIGITS + 1];
	char *socket; /* '@' and an abstract name, or an absolute path */
	int hold;     /* the connection; -1: none */
	int wait_ms;  /* set by the caller: time for processes that outlive the program */
};

/*
 * Joins the collector at that socket, or starts a private one if socket is NULL. output is a template of an absolute
 * path. Returns 0, or -1 after an error on stderr.
 */
int run_session_open(struct run_session *session, const char *socket, const char *collector, const char *output);

/* Whether something listens at that socket: 0 or -errno. */
int run_session_try(const char *socket);

/* Makes a socket that listens there: '@' and an abstract name, or a path. Returns it or -errno. */
int run_socket_listen(const char *name);

/*
 * Starts a private collector, which listens at this socket, and closes that. It ends with the processes that join it.
 * name: for the line. A socket that is -errno was not made. Returns 0, or -1 after an error on stderr.
 */
int run_collector_start(int listening, const char *name, const char *collector);

/*
 * Opens a session at a private collector of this user, so that it knows the secret by which processes of other users
 * join. Returns the connection, with whose end the session's processes are all that it waits for; or -errno.
 */
int run_session_hold(const char *id, const char *socket, const char *output);

/*
 * Starts the collector's program with these descriptors from CONTROL_LISTEN_FD on, as a grandchild: it outlives this
 * process and is no child of it. Returns 0 or -errno.
 */
#define RUN_COLLECTOR_FDS 3
int run_collector_program(const char *collector, char *const *argv, const int *fds, int count);

/* The bytes in hexadecimal, for text that is not UTF-8. NULL: no memory. */
json_t *run_session_hex(const char *bytes);

/* Makes the id of a session, its secret, of CONTROL_SESSION_DIGITS digits. Returns 0 or -errno. */
int run_session_id(char *id);

/*
 * Waits for the collector's summary: wait_ms and some time more. NULL if none came; *seconds is then the time waited,
 * or 0 if the collector has ended.
 */
json_t *run_session_summary(struct run_session *session, int *seconds);
void run_session_done(struct run_session *session);

#endif
