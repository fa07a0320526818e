/* collector.h - a whole collector: its sessions, its server, and the rounds that serve them. */
#ifndef COLLECTOR_COLLECTOR_H
#define COLLECTOR_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "session/pace.h"
#include "server/metrics.h"
#include "server/metrics_http.h"
#include "server/requests.h"
#include "server/server.h"
#include "session/session.h"

#define COLLECTOR_JOIN_NS UINT64_C(10000000000) /* a private collector ends if no process joins in this time */

struct collector {
	struct loop loop;
	struct session_tools tools;
	struct server *server;
	struct session *sessions;
	struct metrics metrics;
	struct metrics_http *metrics_http; /* NULL: none */
	struct requests requests;	   /* answered after the next round */
	bool private;
	bool had_session;
	uint64_t started_ns;
	struct pace pace;
};

struct collector_config {
	int listen_fd;
	bool private;
	pid_t resumes; /* first process of a session whose private collector was replaced; 0: none */
	struct server_config server;
	const char *output_dir; /* NULL: private collector */
	const char *formats;	/* likewise; also NULL without formats */
	const char *output;
	struct setting_keep keep;   /* of each trace; all zeros: as its program wants */
	struct setting_keep rotate; /* likewise; all zeros: a session has one trace */
	const char *trigger;	    /* likewise; NULL: as its program wants */
	struct user_limits limits;
	struct folder_limits folder_limits;
	const char *metrics; /* path of a file; NULL: none */
	int metrics_fd;	     /* a listening socket; 0: none */
};

/* Takes over the listening socket on success. 0 or -errno. */
int collector_init(struct collector *collector, const struct collector_config *config);
void collector_done(struct collector *collector);

/* Runs a round, then waits for the next, at most max_wait_ms (-1: without limit). False: the collector is finished. */
bool collector_turn(struct collector *collector, int max_wait_ms);

/* Writes what evprof status shows to the log, whatever its level. */
void collector_log_status(struct collector *collector);

/* Writes everything from the rings to the trace files, and finishes these. */
void collector_stop(struct collector *collector);

#endif
