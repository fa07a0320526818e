/*
 * watcher.h - evprof watch, which follows the trace of a session and finds the calls that took too long.
 *
 * In a process of its own: the collector must not fall behind, and a replay of each event is dear. Called by
 * triggers.c.
 */
#ifndef COLLECTOR_WATCHER_H
#define COLLECTOR_WATCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/tool_lines.h"

#define WATCHER_FOUND_MAX 32u

/* A call that took too long. */
struct watcher_found {
	unsigned trigger; /* number in the list; any */
	int pid;	  /* as the trace has it; any */
	uint64_t begin_ns;
};

/* All zeros: none was started. */
struct watcher {
	struct tool_lines lines;
	struct watcher_found found[WATCHER_FOUND_MAX];
	unsigned found_count;
};

struct watcher_config {
	const char *list;  /* as EVPROF_TRIGGER */
	const char *trace; /* path */
	uid_t uid;	   /* of the session's user ... */
	gid_t gid;	   /* ... whose rights it gets, where this collector is root */
};

/* A failure is logged, and the watcher finds nothing. */
void watcher_start(struct watcher *watcher, struct loop *loop, const struct watcher_config *config);
/* Removes the oldest call that was found. False: none. */
bool watcher_take(struct watcher *watcher, struct watcher_found *found);
/* It has read all that is in the trace soon, and ends. */
void watcher_finish(struct watcher *watcher);
/* Whether it may still find something. */
bool watcher_runs(const struct watcher *watcher);
/* Ends it now. */
void watcher_stop(struct watcher *watcher);

#endif
