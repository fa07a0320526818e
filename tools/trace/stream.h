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
	uint64_t last_ticks; /* where the chunk before ended */
	uint16_t holes;
	bool began;
	bool hole;
	uint64_t missing;
	uint32_t read; /* chunks, one after the other */
	uint64_t from; /* nothing before that is wanted */
	struct trace_own_events *own;
};

void trace_stream_open(struct trace_stream *stream, struct trace *trace, const struct trace_thread *thread);
/*
 * The next chunk of events. Returns 1, or 0 at the end. A damaged chunk is left out, and the next good one says so in
 * hole; if none follows, one without events (count 0) does.
 */
int trace_stream_next(struct trace_stream *stream, struct trace_events *events);
void trace_stream_close(struct trace_stream *stream);
/* Right after opening: begins at that one of the thread's places, as if nothing was before. */
void trace_stream_skip(struct trace_stream *stream, size_t first);

/* Events of a thread by kind, as its end in the file says; counted where that is missing. Returns 0 or -ENOMEM. */
int trace_count_events(struct trace *trace, struct trace_thread *thread);

/* Of the whole trace, as its end says; counted where that is missing. */
struct trace_totals {
	uint64_t events;
	uint64_t lost;
};

/* Returns 0 or -ENOMEM. */
int trace_count_totals(struct trace *trace, struct trace_totals *totals);

/* --- between stream.c and own_events.c --- */

/* As trace_stream_next(), of the thread's own chunks alone, with times as they were. */
int trace_stream_chunk(struct trace_stream *stream, struct trace_events *events);
/* Has each sampled thread of a trace that is loaded have what it wrote itself. Returns 0 or -ENOMEM. */
int trace_own_events_find(struct trace *trace);
/*
 * Puts what the thread itself wrote before until among these events of its sampler. The arrays stay valid until the
 * next call. Returns 0 or -ENOMEM: the events are as they were.
 */
int trace_own_events_merge(struct trace_stream *stream, struct trace_events *events, uint64_t until);
void trace_own_events_close(struct trace_own_events *own);

#endif
