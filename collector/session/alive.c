/*
 * alive.c - see alive.h.
 */
#include "session/alive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "trace/trace_output.h"

#define TRACE_ENDING ".evp"
/* At the end processes wait; a GiB that is not read yet takes a minute. */
#define FINISH_NS UINT64_C(120000000000)
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

	if (alive->lines.started || alive->refused || !trace->kept.limits.alive || trace->writer.fd < 0 ||
	    trace->failed || trace->in_memory) /* nobody has it at its end */
		return;
	alive->refused = !trace_output_begin_tool(trace);
	if (alive->refused)
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

const char *session_alive_ask(struct session_alive *alive, uint64_t number, char path[PATH_MAX])
{
	const char *trace = alive->trace ? alive->trace->path : "";
	size_t length = strlen(trace), ending = strlen(TRACE_ENDING);

	path[0] = '\0';
	if (length > ending && !strcmp(trace + length - ending, TRACE_ENDING))
		length -= ending;
	if (alive->trace && alive->trace->kept.is_read && !alive->finishing && length + 16 < PATH_MAX &&
	    tool_lines_send(&alive->lines, number))
		snprintf(path, PATH_MAX, "%.*s-alive" TRACE_ENDING, (int)length, trace);
	return path;
}

bool session_alive_finish(struct session_alive *alive, uint64_t now_ns)
{
	if (!alive->lines.started || alive->done)
		return false;
	if (alive->trace->failed || !alive->trace->kept.is_read) {
		session_alive_stop(alive, false);
		return false;
	}
	if (!alive->finishing)
		alive->until_ns = now_ns + FINISH_NS;
	alive->finishing = true;
	tool_lines_finish(&alive->lines);
	if (tool_lines_run(&alive->lines) && now_ns < alive->until_ns)
		return true;
	alive->done = !alive->lines.run.failed;
	if (tool_lines_run(&alive->lines)) {
		log_warning("%s has its last stretch, until evprof cut --alive replaces it", alive->trace->path);
		session_alive_stop(alive, true);
		return false;
	}
	if (!alive->done)
		give_up(alive);
	return false;
}

void session_alive_stop(struct session_alive *alive, bool leave)
{
	tool_lines_stop(&alive->lines, leave);
	alive->finishing = false;
}
