/*
 * tool_run.h - runs a verb of evprof(1) for a trace, in a process of its own.
 *
 * The collector knows no format, and does not read traces: it starts `evprof export --beside` (EVPROF_FORMAT, --format)
 * or `evprof cut`, and waits for its end in the loop, serving others meanwhile.
 */
#ifndef COLLECTOR_TOOL_RUN_H
#define COLLECTOR_TOOL_RUN_H

#include <stdbool.h>

#include "base/loop.h"

struct tool_run {
	struct loop_source source; /* fd: the pidfd of evprof, owned */
	int input, output;	   /* of evprof, the caller's descriptors, unless both are 0: those of the collector */
	char *const *environment;  /* NULL: none */
	struct loop *loop;
	bool running;
	bool failed; /* it could not be started, or its exit status was not 0 */
	int status;  /* its exit status; -1: it runs, was ended, or could not be started */
};

/*
 * Starts it. *run: zeros, but for input, output and environment. argv: from "evprof" to NULL. The environment and argv
 * are used during the call only. Errors set `failed`; a failure to start is also logged.
 */
void tool_run_start(struct tool_run *run, struct loop *loop, const char *const *argv);

/* Whether a verb that writes a trace has ended and written it. It has also of one that is incomplete, or grows. */
bool tool_run_wrote(const struct tool_run *run);

/* Waits for its end, for so long at most. For a collector that ends itself. */
void tool_run_wait(struct tool_run *run, int ms);

/* It goes on, and nobody waits for it. */
void tool_run_leave(struct tool_run *run);
/* Ends it if it still runs: then it has failed. */
void tool_run_stop(struct tool_run *run);
/* The same for a verb that ignores SIGTERM (--until-closed). */
void tool_run_kill(struct tool_run *run);

#endif
