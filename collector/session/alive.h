/*
 * alive.h - evprof cut --alive, which follows the trace of a session that keeps what is alive (EVPROF_KEEP=alive), and
 * replaces the trace at its end. What it has read leaves the trace (trace/kept.h).
 *
 * In a process of its own: the collector must not fall behind, and does not read traces. If it ends too early, what was
 * alive before is lost, and the trace keeps its last stretch.
 */
#ifndef COLLECTOR_ALIVE_H
#define COLLECTOR_ALIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/tool_lines.h"

struct trace_output;

/* All zeros: none was started. */
struct session_alive {
	struct tool_lines lines;
	struct trace_output *trace;
	bool refused; /* it is not started: its user has too many */
	bool finishing;
	uint64_t until_ns; /* likewise: it is waited for until then */
	bool done;	   /* the trace was replaced, or is without us */
};

/* A process has joined: starts it, if the trace keeps what is alive. */
void session_alive_start(struct session_alive *alive, struct loop *loop, struct trace_output *trace);
/* After the rings were read. */
void session_alive_round(struct session_alive *alive);
/*
 * Asks for what is alive so far, for a hold of the trace (trace/kept.h). Returns the path of the file that will have
 * it, and `number` in the META of its processes; "": nobody does that.
 */
const char *session_alive_ask(struct session_alive *alive, uint64_t number, char path[PATH_MAX]);
/* The trace is complete. Whether it is still being replaced; for a limited time. */
bool session_alive_finish(struct session_alive *alive, uint64_t now_ns);
/* leave: it finishes by itself. */
void session_alive_stop(struct session_alive *alive, bool leave);

#endif
