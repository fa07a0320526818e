/*
 * stream.h - the events of one thread, chunk by chunk.
 */
#ifndef EVPROF_TOOLS_TRACE_STREAM_H
#define EVPROF_TOOLS_TRACE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/cpu_time.h"
#include "trace/chunk.h"
#include "trace/trace.h"

/* The events of one thread. */
struct trace_stream {
	struct trace *trace;
	const struct trace_thread *thread;
	uint64_t start_ticks; /* of the thread: its number may become another's */
	struct trace_payload payload;
	struct cpu_time cpu_time;
	size_t next;	     /* index in thread->places */
	uint64_t last_ticks; /* end of the last chunk */
	uint16_t holes;
	bool began;
	bool hole;
	uint64_t missing;
	uint32_t read; /* number of chunks read in sequence */
	uint64_t from; /* own events before this time are skipped */
	struct trace_own_events *own;
};

void trace_stream_open(struct trace_stream *stream, struct trace *trace, const struct trace_thread *thread);
/* Whether the number is another thread's since. What was left of the stream's own comes before that one. */
static inline bool trace_stream_is_former(const struct trace_stream *stream)
{
	return stream->start_ticks != stream->thread->start_ticks;
}

/*
 * Reads the next chunk of events. Returns 1, or 0 at the end. A damaged chunk is skipped, and the next good one has
 * `hole` set; if none follows, a chunk without events (count 0) has.
 */
int trace_stream_next(struct trace_stream *stream, struct trace_events *events);
void trace_stream_close(struct trace_stream *stream);
/* The index of the thread's first place that may hold an event at that time or later; place_count if there is none. */
size_t trace_stream_place(const struct trace_thread *thread, uint64_t ticks);
/* Begins at that index of the thread's places, without a hole before it. Call it right after opening. */
void trace_stream_skip(struct trace_stream *stream, size_t first);

/* Sets a thread's events by kind, from its end in the file, or by counting if that is missing. Returns 0 or -ENOMEM. */
int trace_count_events(struct trace *trace, struct trace_thread *thread);

/* The totals of the whole trace, from its end in the file, or counted if that is missing. */
struct trace_totals {
	uint64_t events;
	uint64_t lost;
};

/* Returns 0 or -ENOMEM. */
int trace_count_totals(struct trace *trace, struct trace_totals *totals);

/*
 * --- ahead.c: read-ahead of the next chunks of a thread. For stream.c; reader.c ends the thread ---
 *
 * At most TRACE_AHEAD_CHUNKS chunks are read ahead, over all streams. The address of a stream identifies it. Only the
 * thread that owns the trace may call these functions.
 */

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

/* --- between stream.c and own_events.c --- */

/* Like trace_stream_next(), but only the thread's own chunks, with unchanged times. */
int trace_stream_chunk(struct trace_stream *stream, struct trace_events *events);
/* Attaches to each sampled thread of a loaded trace its own events. Returns 0 or -ENOMEM. */
int trace_own_events_find(struct trace *trace);
/*
 * Merges the thread's own events before `until` into these events of its sampler. The arrays stay valid until the next
 * call. Returns 0, or -ENOMEM, which leaves the events unchanged.
 */
int trace_own_events_merge(struct trace_stream *stream, struct trace_events *events, uint64_t until);
void trace_own_events_close(struct trace_own_events *own);

#endif
