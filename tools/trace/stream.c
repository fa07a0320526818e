/*
 * stream.c - the events of one thread, chunk by chunk, with the gaps between them. See stream.h.
 */
#include "trace/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void trace_stream_open(struct trace_stream *stream, struct trace *trace, const struct trace_thread *thread)
{
	memset(stream, 0, sizeof(*stream));
	stream->trace = trace;
	stream->thread = thread;
	stream->start_ticks = thread->start_ticks;
	stream->next = thread->former;
}

void trace_stream_skip(struct trace_stream *stream, size_t first)
{
	stream->next = first;
	if (first == stream->thread->former || first >= stream->thread->place_count)
		return;
	stream->holes = stream->thread->places[first].holes;
	stream->from = stream->thread->places[first].first_ticks;
}

size_t trace_stream_place(const struct trace_thread *thread, uint64_t ticks)
{
	size_t first = thread->former;

	while (first < thread->place_count && thread->places[first].last_ticks < ticks)
		first++;
	return first;
}

/* Whether a part of the file is missing between this chunk and the one before, and with it events of this thread. */
static bool hole_before(const struct trace_stream *stream, const struct trace_place *place)
{
	if (place->holes == stream->holes)
		return false;
	return !stream->began || place->first_ticks != stream->last_ticks;
}

/* Requests the next chunks, while the caller processes this one. A caller of a single chunk requests none. */
static void read_ahead(const struct trace_stream *stream)
{
	size_t number;

	if (stream->read < 2)
		return;
	for (number = stream->next; number < stream->thread->place_count && number < stream->next + TRACE_AHEAD_CHUNKS;
	     number++)
		trace_ahead_ask(stream->trace, stream, number, &stream->thread->places[number]);
}

/* Reads the place before stream->next. */
static int read_events(struct trace_stream *stream, struct trace_place *place, struct trace_events *events)
{
	int error;

	stream->read++;
	if (!trace_ahead_take(stream->trace, stream, stream->next - 1, &stream->payload, events, &error)) {
		error = trace_read_payload(stream->trace, place, &stream->payload);
		if (!error)
			error = trace_unpack_events(&stream->payload, events);
	} else if (place->damaged) {
		error = -EBADMSG;
	}
	read_ahead(stream);
	return trace_note_error(stream->trace, place, error);
}

int trace_stream_chunk(struct trace_stream *stream, struct trace_events *events)
{
	const struct trace_thread *thread = stream->thread;
	size_t end = trace_stream_is_former(stream) ? thread->former : thread->place_count;

	while (stream->next < end) {
		struct trace_place *place = &thread->places[stream->next++];
		bool bad;

		stream->hole |= hole_before(stream, place);
		bad = read_events(stream, place, events) < 0;
		stream->began = true;
		stream->holes = place->holes;
		stream->last_ticks = place->last_ticks;
		if (bad) {
			stream->hole = true;
			stream->missing += place->events;
			continue;
		}
		events->hole = stream->hole;
		events->missing = stream->missing;
		stream->hole = false;
		stream->missing = 0;
		return 1;
	}
	if (!stream->hole)
		return 0;
	*events = (struct trace_events){.hole = true, .missing = stream->missing, .first_ticks = stream->last_ticks};
	stream->hole = false;
	return 1;
}

int trace_stream_next(struct trace_stream *stream, struct trace_events *events)
{
	const struct trace_thread *thread = stream->thread;
	uint64_t until = UINT64_MAX;

	if (!trace_stream_chunk(stream, events))
		return 0;
	if (stream->next < thread->place_count)
		until = thread->places[stream->next].first_ticks;
	if (thread->own && trace_own_events_merge(stream, events, until) < 0)
		stream->trace->damage.out_of_memory = true;
	if (stream->trace->clock != CPU_CLOCK_WALL)
		cpu_time_apply(&stream->cpu_time, stream->trace->clock, trace_process_of(stream->trace, thread),
			       events);
	return 1;
}

void trace_stream_close(struct trace_stream *stream)
{
	trace_own_events_close(stream->own);
	stream->own = NULL;
	if (stream->read)
		trace_ahead_forget(stream->trace, stream);
	stream->read = 0;
	trace_payload_done(&stream->payload);
}

static void count_chunk(const struct trace_events *events, struct trace_thread *thread)
{
	const uint64_t *extra = events->extras;
	uint32_t i;

	thread->lost[WIRE_NONE] += events->missing;
	for (i = 0; i < events->count; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);

		if (kind == WIRE_GAP)
			thread->lost[WIRE_NONE] += *extra;
		extra += wire_extra_words(events->heads[i]);
		thread->events[kind] += !wire_is_bookkeeping(kind);
	}
}

int trace_count_events(struct trace *trace, struct trace_thread *thread)
{
	struct trace_stream stream;
	struct trace_events events = {0};

	if (thread->events && thread->lost)
		return 0;
	thread->events = calloc(WIRE_KINDS, sizeof(*thread->events));
	thread->lost = calloc(WIRE_KINDS, sizeof(*thread->lost));
	if (!thread->events || !thread->lost)
		return -ENOMEM;
	trace_stream_open(&stream, trace, thread);
	while (trace_stream_next(&stream, &events))
		count_chunk(&events, thread);
	trace_stream_close(&stream);
	return 0;
}

int trace_count_totals(struct trace *trace, struct trace_totals *totals)
{
	uint32_t i;

	*totals = (struct trace_totals){0};
	if (trace->complete) {
		*totals = (struct trace_totals){trace->end.events, trace->end.lost};
		return 0;
	}
	for (i = 0; i < trace->thread_count; i++) {
		if (!trace->threads[i])
			continue;
		if (trace_count_events(trace, trace->threads[i]) < 0)
			return -ENOMEM;
		totals->events += trace_sum(trace->threads[i]->events);
		totals->lost += trace_sum(trace->threads[i]->lost);
	}
	for (i = 0; i < trace->process_count; i++)
		totals->lost += trace->processes[i] ? trace_sum(trace->processes[i]->lost) : 0;
	return 0;
}
