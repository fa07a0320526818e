/*
 * pusher.h - evprof push (--push) or evprof ship (--ship) beside a daemon: started with it, started again if it ends,
 * ended after it.
 *
 * It ends when its standard input is closed, and not on SIGTERM: systemd sends that to all processes of a service, and
 * what the daemon writes at its end is to be sent, too.
 */
#ifndef COLLECTOR_PUSHER_H
#define COLLECTOR_PUSHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "trace/tool_run.h"

#define SHIP_PATTERNS_MAX 16

/* What evprof ship gets. */
struct ship_options {
	const char *command; /* of the shell, or s3://BUCKET/PREFIX; NULL: nothing is shipped */
	const char *patterns[SHIP_PATTERNS_MAX];
	unsigned pattern_count;
	bool no_arguments;
};

struct pusher {
	const char *url;		 /* NULL: nothing is pushed */
	const struct ship_options *ship; /* NULL: it is evprof push */
	const char *socket;		 /* of the daemon; NULL: it came from systemd */
	const char *folder;		 /* of its traces */
	struct loop *loop;
	struct tool_run run;
	int input;	     /* the other end of its standard input; -1: none */
	uint64_t started_ns; /* 0: it is not wanted */
};

/* The owner has set url, socket and folder, or ship and folder. Errors are logged, and end nothing. */
void pusher_start(struct pusher *pusher, struct loop *loop);
/*
 * Starts it again if it has ended, at most once a minute. Called in each turn. Returns the ms until it is to be called
 * again, -1: any.
 */
int pusher_tend(struct pusher *pusher, uint64_t now_ns);
/* Before the loop ends. Returns the pidfd for pusher_finish(), -1: it does not run. */
int pusher_leave(struct pusher *pusher);
/* When all traces are finished: ends it, and waits until it has sent them, for some seconds. */
void pusher_finish(struct pusher *pusher, int pidfd);

#endif
