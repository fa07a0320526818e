/*
 * tool_lines.h - a verb of evprof(1) that follows a trace as long as its session lasts, and prints lines.
 *
 * It ends when its standard input is closed. What it prints is not trusted: it reads what a program wrote.
 */
#ifndef COLLECTOR_TOOL_LINES_H
#define COLLECTOR_TOOL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "trace/tool_run.h"

#define TOOL_LINE_BYTES 1024u /* longer lines are dropped */

/* All zeros: none was started. */
struct tool_lines {
	void (*take)(struct tool_lines *lines, const char *line); /* set by the owner */
	/* Internal. */
	struct tool_run run;
	struct loop_source source; /* fd: what it prints, owned */
	struct loop *loop;
	int input; /* closed: it is to end; owned */
	bool open; /* the source is read */
	bool started;
	char line[TOOL_LINE_BYTES];
	size_t used;
	bool skips; /* the rest of a line that is too long */
};

/* argv: as for tool_run_start(). 0 or -errno; a failure to start evprof itself is logged, and it has ended. */
int tool_lines_start(struct tool_lines *lines, struct loop *loop, const char *const *argv);
/* Sends a line with that number. False: it has ended, or does not read. */
bool tool_lines_send(struct tool_lines *lines, uint64_t number);
/* It is to read what is in the trace, and to end. */
void tool_lines_finish(struct tool_lines *lines);
/* Whether it runs, or printed what was not read yet. */
bool tool_lines_run(const struct tool_lines *lines);
/* Waits for its end, for so long at most, after tool_lines_finish(). What it still prints is not read. */
void tool_lines_wait(struct tool_lines *lines, int ms);
/* Ends it now; leave: it ends by itself, when it has done what it does after tool_lines_finish(). */
void tool_lines_stop(struct tool_lines *lines, bool leave);

#endif
