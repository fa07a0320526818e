/*
 * stream.h - the events of one thread, chunk by chunk.
 */
#ifndef EVPROF_TOOLS_TRACE_STREAM_H
#define EVPROF_TOOLS_TRACE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/cpu_time.h"
#include "trace/events.h"
#include "trace/trace.h"

/* The events of one thread. */
struct trace_stream {
	struct trace *trace;
	const struct trace_thread *thread;
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
/*
 * Reads the next chunk of events. Returns 1, or 0 at the end. A damaged chunk is skipped, and the next good one has
 * `hole` set; if none follows, a chunk without events (count 0) has.
 */
int trace_stream_next(struct trace_stream *stream, struct trace_events *events);
void trace_stream_close(struct trace_stream *stream);
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
