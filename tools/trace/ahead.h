/*
 * ahead.h - reads the chunks that are next, in a thread of its own. For stream.c; reader.c ends it.
 *
 * At most TRACE_AHEAD_CHUNKS are read ahead, for all streams. A stream is known by its address. All are for the thread
 * that owns the trace.
 */
#ifndef EVPROF_TOOLS_TRACE_AHEAD_H
#define EVPROF_TOOLS_TRACE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/events.h"
#include "trace/trace.h"

struct trace_stream;

#define TRACE_AHEAD_CHUNKS 4

/* Asks for the place with that number of the stream's thread, if there is room and it was not asked for. */
void trace_ahead_ask(struct trace *trace, const struct trace_stream *stream, size_t number,
		     const struct trace_place *place);
/*
 * What was asked for: waits until it is read, exchanges payload for it, and sets *error to what trace_fetch() or
 * trace_unpack_events() returned. False where it was not asked for, or nobody has begun with it.
 */
bool trace_ahead_take(struct trace *trace, const struct trace_stream *stream, size_t number,
		      struct trace_payload *payload, struct trace_events *events, int *error);
/* The stream ends here. */
void trace_ahead_forget(struct trace *trace, const struct trace_stream *stream);
/* Ends the thread. NULL is fine. */
void trace_ahead_free(struct trace_ahead *ahead);

#endif
