/*
 * merge.c - k-way merge of threads by a heap. See merge.h.
 */
#include "replay/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/invariant.h"

/* Times before the clock's zero are before all others. */
static uint64_t heap_key(int64_t ns)
{
	return (uint64_t)ns ^ UINT64_C(1) << 63;
}

static struct merge_source *first_source(const struct merge *merge)
{
	return &merge->sources[merge->heap.at[0].source];
}

/* Reads the next chunk. False at the end of the thread, which frees its memory. */
static bool load_events(struct merge *merge, struct merge_source *source)
{
	do {
		if (!trace_stream_next(&source->stream, &source->events)) {
			trace_stream_close(&source->stream);
			return false;
		}
		if (merge->loaded)
			merge->loaded(merge->owner, source->stream.thread, source->events.count);
	} while (!source->events.count && !source->events.hole);
	source->loaded = true;
	source->at = 0;
	source->extra = source->events.extras;
	source->ticks = source->events.first_ticks;
	if (source->events.hole)
		source->ns = trace_ns(source->process, source->ticks);
	else
		merge_find_time(source);
	return true;
}

static int make_room(struct merge *merge, struct trace *trace, size_t threads)
{
	memset(merge, 0, sizeof(*merge));
	merge->trace = trace;
	merge->end_ns = INT64_MAX;
	merge->sources = calloc(threads + 1, sizeof(*merge->sources));
	merge->heap.at = calloc(threads + 1, sizeof(*merge->heap.at));
	if (merge->sources && merge->heap.at)
		return 0;
	merge_close(merge);
	return -ENOMEM;
}

static void add_thread(struct merge *merge, const struct trace_thread *thread)
{
	struct merge_source *source = &merge->sources[merge->source_count];

	trace_stream_open(&source->stream, merge->trace, thread);
	source->process = trace_process_of(merge->trace, thread);
	source->ns = trace_ns(source->process, thread->places[0].first_ticks);
	time_heap_put(&merge->heap, heap_key(source->ns), merge->source_count++);
}

int merge_open(struct merge *merge, struct trace *trace,
	       bool (*wanted)(void *owner, const struct trace_process *process, const struct trace_thread *thread),
	       void *owner)
{
	int error = make_room(merge, trace, trace->thread_count);
	uint32_t i;

	for (i = 0; !error && i < trace->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[i];

		if (thread && thread->place_count &&
		    (!wanted || wanted(owner, trace_process_of(trace, thread), thread)))
			add_thread(merge, thread);
	}
	return error;
}

int merge_open_process(struct merge *merge, struct trace *trace, const struct trace_process *process)
{
	int error = make_room(merge, trace, process->thread_count);
	size_t i;

	for (i = 0; !error && i < process->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[process->threads[i]];

		if (thread->place_count)
			add_thread(merge, thread);
	}
	return error;
}

void merge_skip(struct merge *merge, int64_t ns)
{
	uint32_t i;

	merge->heap.count = 0;
	for (i = 0; i < merge->source_count; i++) {
		struct merge_source *source = &merge->sources[i];
		const struct trace_thread *thread = source->stream.thread;
		size_t first = trace_stream_place(thread, trace_ticks(source->process, ns));

		if (first == thread->place_count)
			continue;
		trace_stream_skip(&source->stream, first);
		source->ns = trace_ns(source->process, thread->places[first].first_ticks);
		time_heap_put(&merge->heap, heap_key(source->ns), i);
	}
}

void merge_end_at(struct merge *merge, int64_t ns)
{
	merge->end_ns = ns;
}

/* A chunk that is not loaded yet begins at a time that is known. */
static void find_begin(struct merge_source *source)
{
	const struct trace_stream *stream = &source->stream;
	int64_t ns;

	if (source->loaded || stream->next >= stream->thread->place_count)
		return;
	ns = trace_ns(source->process, stream->thread->places[stream->next].first_ticks);
	source->ns = ns > source->ns ? ns : source->ns;
}

/* Loads chunks until the heap's first source is loaded and the earliest. False: no source is left before the end. */
static bool load_first(struct merge *merge)
{
	while (merge->heap.count && !first_source(merge)->loaded) {
		if (first_source(merge)->ns >= merge->end_ns)
			return false;
		if (load_events(merge, first_source(merge)))
			time_heap_change_first(&merge->heap, heap_key(first_source(merge)->ns));
		else
			time_heap_remove_first(&merge->heap);
	}
	return merge->heap.count > 0;
}

/* The time of the earliest source but the first; INT64_MAX: there is none. */
static int64_t second_ns(const struct merge *merge)
{
	const struct time_heap *heap = &merge->heap;
	int64_t first = INT64_MAX;

	for (size_t i = 1; i < 3 && i < heap->count; i++) {
		int64_t ns = (int64_t)(heap->at[i].time ^ UINT64_C(1) << 63);

		first = ns < first ? ns : first;
	}
	return first;
}

struct merge_source *merge_first(struct merge *merge)
{
	if (merge->heap.count) {
		find_begin(first_source(merge));
		time_heap_change_first(&merge->heap, heap_key(first_source(merge)->ns));
	}
	if (!load_first(merge))
		return NULL;
	invariant(time_heap_first_is_earliest(&merge->heap));
	merge->until_ns = second_ns(merge);
	return first_source(merge);
}

bool merge_next(struct merge *merge, struct merge_event *event)
{
	struct merge_source *source = merge->heap.count ? first_source(merge) : NULL;

	if (!source || !merge_goes_on(merge, source))
		source = merge_first(merge);
	if (!source)
		return false;
	event->process = source->process;
	event->thread = source->stream.thread;
	merge_take(source, event);
	return true;
}

void merge_close(struct merge *merge)
{
	uint32_t i;

	for (i = 0; i < merge->source_count; i++)
		trace_stream_close(&merge->sources[i].stream);
	free(merge->sources);
	free(merge->heap.at);
	memset(merge, 0, sizeof(*merge));
}
