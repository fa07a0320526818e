/*
 * collector.h - all of a collector: sessions, the server, and the rounds in which they are looked after.
 */
#ifndef COLLECTOR_COLLECTOR_H
#define COLLECTOR_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"
#include "pace.h"
#include "server.h"
#include "session.h"

#define COLLECTOR_JOIN_NS UINT64_C(10000000000) /* a private collector that nobody joins ends after it */

struct collector {
	struct loop loop;
	struct session_tools tools;
	struct server *server;
	struct session *sessions;
	bool private;
	bool had_session;
	bool stopping;
	uint64_t started_ns;
	struct pace pace;
};

struct collector_config {
	int listen_fd;
	bool private;
	pid_t resumes; /* first process of a session that had another private collector before; 0: none */
	bool allow_other_users;
	const char *output_dir; /* NULL for a private one */
	const char *formats;	/* likewise; and where none are wanted */
	const char *output;
	struct user_limits limits;
};

/* Takes the listening socket over on success. 0 or -errno. */
int collector_init(struct collector *collector, const struct collector_config *config);
void collector_done(struct collector *collector);

/* Does what there is to do, then waits for more, at most max_wait_ms (-1: without bound). False: it is at its end. */
bool collector_turn(struct collector *collector, int max_wait_ms);

/* Everything that is there goes into the files, and these are finished. */
void collector_stop(struct collector *collector);

#endif
