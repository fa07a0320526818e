/*
 * load.h - what the chunks of a trace say, but the events: once, when the trace is opened. For reader.c.
 */
#ifndef EVPROF_TOOLS_TRACE_LOAD_H
#define EVPROF_TOOLS_TRACE_LOAD_H

#include "trace/trace.h"

/*
 * Reads META, DEFINITIONS and CLOCK chunks, makes processes and threads, and sorts the rest by thread. Returns 0,
 * -ENOMEM or -EBADMSG.
 */
int trace_load(struct trace *trace);
void trace_unload(struct trace *trace);

#endif
