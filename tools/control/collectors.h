/*
 * collectors.h - the collectors of this host that a verb asks: found, connected and asked. Used by the verbs that look
 * at or control running processes (evprof status).
 *
 * Without a socket these are all collectors of the user in this network namespace: private ones, and each daemon that
 * listens at CONTROL_DAEMON_SOCKET or at another name with "evprof" in it. /proc/net/unix lists the names, and the
 * kernel names each listener's user: root, this user, or the owner of the socket's path. Others are left out. Root asks
 * all.
 */
#ifndef EVPROF_TOOLS_CONTROL_COLLECTORS_H
#define EVPROF_TOOLS_CONTROL_COLLECTORS_H

#include <stddef.h>

#include "control/request.h"

struct control_collectors {
	struct control_collector *at; /* in the order of their sockets' names */
	size_t count;
};

/*
 * Connects to the collector at that socket; NULL: to that of EVPROF_SOCKET; without either to all of the user's.
 * Returns 0, or -1 after one line on stderr, which names the verb: none can be asked. Without a verb (NULL) nothing is
 * printed. The caller calls control_collectors_done() in both cases.
 */
int control_collectors_find(const char *verb, const char *socket, struct control_collectors *collectors);

/*
 * Sends each the request, an object without evprof, and waits for all answers together at most that time. An answer
 * with an "error" becomes the collector's error.
 */
void control_collectors_ask(struct control_collectors *collectors, json_t *request, int timeout_ms);

void control_collectors_done(struct control_collectors *collectors);

/*
 * Prints one line on stderr for each collector that did not answer, but those that have ended, and one if none is left.
 * Returns the exit status: CLI_FINE, CLI_DAMAGED (some did not answer), CLI_FAILED (none did).
 */
int control_collectors_complain(const char *verb, const struct control_collectors *collectors);

#endif
