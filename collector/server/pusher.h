/*
 * pusher.h - evprof push beside a daemon (--push): started with it, started again if it ends, ended after it.
 *
 * It ends when its standard input is closed, and not on SIGTERM: systemd sends that to all processes of a service, and
 * what the daemon writes at its end is to be pushed, too.
 */
#ifndef COLLECTOR_PUSHER_H
#define COLLECTOR_PUSHER_H

#include <stdint.h>

#include "base/loop.h"
#include "trace/tool_run.h"

struct pusher {
	const char *url;    /* NULL: nothing is pushed */
	const char *socket; /* of the daemon; NULL: it came from systemd */
	const char *folder; /* of its traces */
	struct loop *loop;
	struct tool_run run;
	int input; /* the other end of its standard input; -1: none */
	uint64_t started_ns;
};

/* The owner has set url, socket and folder. Errors are logged, and end nothing. */
void pusher_start(struct pusher *pusher, struct loop *loop);
/* Starts it again if it has ended. Called in each turn. */
void pusher_tend(struct pusher *pusher, uint64_t now_ns);
/* Before the loop ends. Returns the pidfd for pusher_finish(), -1: it does not run. */
int pusher_leave(struct pusher *pusher);
/* When all traces are finished: ends it, and waits until it has sent them, for some seconds. */
void pusher_finish(struct pusher *pusher, int pidfd);

#endif
