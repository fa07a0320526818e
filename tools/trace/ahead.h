/*
 * ahead.h - read-ahead of the next chunks in a thread. For stream.c; reader.c ends the thread.
 *
 * At most TRACE_AHEAD_CHUNKS chunks are read ahead, over all streams. The address of a stream identifies it. Only the
 * thread that owns the trace may call these functions.
 */
#ifndef EVPROF_TOOLS_TRACE_AHEAD_H
#define EVPROF_TOOLS_TRACE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/events.h"
#include "trace/trace.h"

struct trace_stream;

#define TRACE_AHEAD_CHUNKS 4

/* Requests the place with that index of the stream's thread, if a slot is free and it was not requested before. */
void trace_ahead_ask(struct trace *trace, const struct trace_stream *stream, size_t number,
		     const struct trace_place *place);
/*
 * Takes a requested chunk: waits until it is read, swaps its payload with the caller's, and sets *error to the result
 * of trace_fetch() or trace_unpack_events(). False if the chunk was not requested, or the thread has not begun to read
 * it.
 */
bool trace_ahead_take(struct trace *trace, const struct trace_stream *stream, size_t number,
		      struct trace_payload *payload, struct trace_events *events, int *error);
/* Drops the stream's requests. Call it at the end of the stream. */
void trace_ahead_forget(struct trace *trace, const struct trace_stream *stream);
/* Ends the thread and frees everything. ahead may be NULL. */
void trace_ahead_free(struct trace_ahead *ahead);

#endif
