/*
 * events.h - unpacks the events of a chunk from its payload.
 */
#ifndef EVPROF_TOOLS_TRACE_EVENTS_H
#define EVPROF_TOOLS_TRACE_EVENTS_H

#include "trace/chunk.h"

/*
 * The only function that knows the layout of events in a chunk. Returns 0, -EBADMSG if the payload is inconsistent, or
 * -ENOMEM.
 */
int trace_unpack_events(struct trace_payload *payload, struct trace_events *events);

#endif
