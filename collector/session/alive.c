/*
 * alive.c - see alive.h.
 */
#include "session/alive.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "trace/trace_output.h"

#define SO_FAR_S "60" /* between two writes of what is alive so far */

static void take_line(struct tool_lines *lines, const char *line)
{
	struct session_alive *alive = LOOP_OWNER(lines, struct session_alive, lines);
	unsigned long long offset = strtoull(line, NULL, 10);

	if (offset > alive->trace->kept.read_bytes)
		alive->trace->kept.read_bytes = offset;
}

static void give_up(struct session_alive *alive)
{
	alive->trace->kept.is_read = false;
	log_error("%s: what was alive is lost, the trace keeps its last stretch: evprof cut --alive has ended",
		  alive->trace->path);
}

void session_alive_start(struct session_alive *alive, struct loop *loop, struct trace_output *trace)
{
	const char *argv[] = {"evprof",	    "cut",	 "--alive", "--until-closed", "--every", SO_FAR_S,
			      "--in-place", trace->path, NULL};

	if (alive->lines.started || !trace->kept.limits.alive || trace->writer.fd < 0 || trace->failed)
		return;
	alive->trace = trace;
	alive->lines.take = take_line;
	trace->kept.is_read = true;
	if (tool_lines_start(&alive->lines, loop, argv))
		give_up(alive);
}

void session_alive_round(struct session_alive *alive)
{
	if (alive->lines.started && !alive->finishing && alive->trace->kept.is_read && !alive->lines.run.running)
		give_up(alive);
}

bool session_alive_finish(struct session_alive *alive)
{
	if (!alive->lines.started || alive->done)
		return false;
	if (alive->trace->failed || !alive->trace->kept.is_read) {
		session_alive_stop(alive, false);
		return false;
	}
	alive->finishing = true;
	tool_lines_finish(&alive->lines);
	if (tool_lines_run(&alive->lines))
		return true;
	alive->done = !alive->lines.run.failed;
	if (!alive->done)
		give_up(alive);
	return false;
}

void session_alive_stop(struct session_alive *alive, bool leave)
{
	tool_lines_stop(&alive->lines, leave);
	alive->finishing = false;
}
