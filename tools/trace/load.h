/*
 * load.h - loads everything but the events from the chunks of a trace, once, when it is opened. For reader.c.
 */
#ifndef EVPROF_TOOLS_TRACE_LOAD_H
#define EVPROF_TOOLS_TRACE_LOAD_H

#include "trace/trace.h"

/*
 * Reads META, DEFINITIONS and CLOCK chunks, creates processes and threads, and groups the other chunks by thread.
 * Returns 0, -ENOMEM or -EBADMSG.
 */
int trace_load(struct trace *trace);
void trace_unload(struct trace *trace);

#endif
