/*
 * own_events.c - merges the events of a sampled thread into those of its sampler. See stream.h.
 *
 * A thread of a sampled process writes its start, fork, mark, exec and end events to its own slot, and its sampler
 * writes its samples to another. So a trace has two streams for the thread. Readers see one: the sampler's, with the
 * thread's own events in order of time. Stack records in the thread's own stream are not used, as they are empty.
 */
#include "trace/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "trace/event_buffer.h"

struct trace_own_events {
	struct trace_stream own; /* the thread's own stream */
	struct trace_events events;
	const uint64_t *extra;
	uint32_t at;
	uint64_t now;
	bool thread_ends; /* WIRE_THREAD_END is put after the sampler's last event */
	struct event_buffer merged;
};

/* ---- pairing of threads ------------------------------------------------------------------------------------------ */

static bool overlap(const struct trace_thread *sampled, const struct trace_thread *own)
{
	return sampled->place_count && own->place_count &&
	       sampled->places[sampled->place_count - 1].last_ticks >= own->places[0].first_ticks &&
	       sampled->places[0].first_ticks <= own->places[own->place_count - 1].last_ticks;
}

static void add_counts(struct trace_thread *thread, const struct trace_thread *own)
{
	unsigned kind;

	if (!thread->events || !thread->lost || !own->events || !own->lost) {
		free(thread->events); /* counted on request */
		free(thread->lost);
		thread->events = thread->lost = NULL;
		return;
	}
	for (kind = 0; kind < WIRE_KINDS; kind++) {
		thread->events[kind] += own->events[kind];
		thread->lost[kind] += own->lost[kind];
	}
}

/* Whether own has the better name: the name was set on whichever of the two was known last. */
static bool has_better_name(const struct trace_thread *thread, const struct trace_thread *own)
{
	if (!thread->name || !own->name)
		return own->name;
	if (thread->kernel_name != own->kernel_name)
		return thread->kernel_name;
	return own->number > thread->number;
}

/* Attaches own to thread. The first and last chunk of thread span the times of both. */
static void attach_own(struct trace *trace, struct trace_thread *thread, struct trace_thread *own)
{
	struct trace_place *first = &thread->places[0], *last = &thread->places[thread->place_count - 1];
	uint64_t end = own->places[own->place_count - 1].last_ticks;

	if (own->places[0].first_ticks < first->first_ticks)
		first->first_ticks = own->places[0].first_ticks;
	if (end > last->last_ticks)
		last->last_ticks = end;
	if (own->start_ticks < thread->start_ticks)
		thread->start_ticks = own->start_ticks;
	if (has_better_name(thread, own)) {
		free(thread->name);
		thread->name = own->name;
		own->name = NULL;
	}
	add_counts(thread, own);
	thread->own = own;
	trace->threads[own->number] = NULL;
}

static int find_in_process(struct trace *trace, struct trace_process *process, struct u64_map *sampled)
{
	size_t i, kept = 0;

	for (i = 0; i < process->thread_count; i++) {
		struct trace_thread *thread = trace->threads[process->threads[i]];
		uint64_t *number = thread->sampled ? u64_map_make(sampled, thread->tid + UINT64_C(1)) : NULL;

		if (thread->sampled && !number)
			return -ENOMEM;
		if (number)
			*number = thread->number + 1;
	}
	for (i = 0; i < process->thread_count; i++) {
		struct trace_thread *own = trace->threads[process->threads[i]];
		uint64_t number = own->sampled ? 0 : u64_map_value(sampled, own->tid + UINT64_C(1));
		struct trace_thread *thread = number ? trace->threads[number - 1] : NULL;

		if (thread && !thread->own && overlap(thread, own))
			attach_own(trace, thread, own);
		else
			process->threads[kept++] = process->threads[i];
	}
	process->thread_count = kept;
	return 0;
}

int trace_own_events_find(struct trace *trace)
{
	int error = 0;

	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		struct trace_process *process = trace->processes[i];
		struct u64_map sampled = {0};

		if (process && trace_process_sample_rate(process))
			error = find_in_process(trace, process, &sampled);
		u64_map_done(&sampled);
	}
	return error;
}

/* ---- the thread's own events ------------------------------------------------------------------------------------- */

static bool has_next(struct trace_own_events *own)
{
	while (own->at == own->events.count) {
		if (!trace_stream_chunk(&own->own, &own->events))
			return false;
		own->at = 0;
		own->extra = own->events.extras;
		own->now = own->events.first_ticks;
	}
	return true;
}

static uint64_t next_time(const struct trace_own_events *own)
{
	return wire_time_of(wire_head_kind(own->events.heads[own->at]), own->now, own->events.ticks[own->at],
			    own->extra);
}

/*
 * By CPU time, the events between two of the sampler's have the time of the first: what the thread ran in the pause is
 * recorded at its end, and a pause that ends without counts as run.
 */
static uint64_t shown_time(const struct trace_own_events *own)
{
	return own->own.trace->clock == CPU_CLOCK_WALL ? own->now : own->merged.last;
}

/* Takes the events before `until`; those before `from` are left out. */
static void take_until(struct trace_own_events *own, uint64_t from, uint64_t until)
{
	while (!own->merged.error && has_next(own) && next_time(own) < until) {
		uint32_t head = own->events.heads[own->at];
		unsigned kind = wire_head_kind(head);

		own->now = next_time(own);
		own->at++;
		if (kind == WIRE_THREAD_END)
			own->thread_ends = true;
		else if (!wire_is_bookkeeping(kind) && own->now >= from)
			event_buffer_put_at(&own->merged, shown_time(own), head, own->extra);
		own->extra += wire_extra_words(head);
	}
}

/* ---- one chunk --------------------------------------------------------------------------------------------------- */

/* Returns the time before the first event. */
static uint64_t begin(struct trace_own_events *own, const struct trace_events *events, uint64_t from)
{
	own->merged.count = own->merged.extra_count = 0;
	own->merged.error = 0;
	own->merged.last = events->first_ticks;
	if (has_next(own) && next_time(own) < own->merged.last)
		own->merged.last = next_time(own) < from ? from : next_time(own);
	return own->merged.last;
}

static void merge(struct trace_own_events *own, const struct trace_events *events, uint64_t from, uint64_t until)
{
	const uint64_t *extra = events->extras;
	uint64_t now = events->first_ticks;

	for (uint32_t i = 0; i < events->count && !own->merged.error; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);

		now = wire_time_of(kind, now, events->ticks[i], extra);
		take_until(own, from, now);
		if (wire_is_time(kind)) { /* its ticks are not a time */
			event_buffer_put(&own->merged, events->heads[i], events->ticks[i], extra);
			own->merged.last = now;
		} else {
			event_buffer_put_at(&own->merged, now, events->heads[i], extra);
		}
		extra += wire_extra_words(events->heads[i]);
	}
	/* The stack is unknown from here on: the sampler may have been killed. */
	if (until == UINT64_MAX && has_next(own))
		event_buffer_put_at(&own->merged, own->merged.last, wire_head(WIRE_STACK, 0), NULL);
	take_until(own, from, until);
	if (until == UINT64_MAX && own->thread_ends)
		event_buffer_put_at(&own->merged, own->merged.last, wire_extended(WIRE_THREAD_END, 0, 0), NULL);
}

int trace_own_events_merge(struct trace_stream *stream, struct trace_events *events, uint64_t until)
{
	static const uint64_t none[1]; /* readers count on from where the extra words are */
	struct trace_own_events *own = stream->own;
	uint64_t first;

	if (!own) {
		own = stream->own = calloc(1, sizeof(*own));
		if (!own)
			return -ENOMEM;
		trace_stream_open(&own->own, stream->trace, stream->thread->own);
	}
	first = begin(own, events, stream->from);
	merge(own, events, stream->from, until);
	if (own->merged.error)
		return own->merged.error;
	events->heads = own->merged.heads;
	events->ticks = own->merged.ticks;
	events->extras = own->merged.extras ? own->merged.extras : none;
	events->count = own->merged.count;
	events->extra_count = own->merged.extra_count;
	events->first_ticks = first;
	return 0;
}

void trace_own_events_close(struct trace_own_events *own)
{
	if (!own)
		return;
	trace_stream_close(&own->own);
	event_buffer_done(&own->merged);
	free(own);
}
