/*
 * window.c - finds where counting begins and ends in a process. See window.h. Called by profile.c.
 */
#include "replay/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_edge(struct window *window, const struct window_edge *edge)
{
	void *grown = realloc(window->edges, (window->count + 1) * sizeof(*window->edges));

	if (!grown)
		return -ENOMEM;
	window->edges = grown;
	window->edges[window->count++] = *edge;
	return 0;
}

static int64_t clamp_ns(int64_t ns)
{
	return ns < TRACE_NS_FAR ? ns : TRACE_NS_FAR;
}

int window_of_times(struct window *window, const struct trace *trace, const struct trace_process *process,
		    const int64_t *from_ns, const int64_t *to_ns)
{
	struct window_edge edge = {.thread = TRACE_NOBODY, .begins = true};
	int error = 0;

	*window = (struct window){.open_at_start = !from_ns};
	if (from_ns) {
		edge.ticks = trace_ticks(process, trace->start_ns + clamp_ns(*from_ns));
		error = add_edge(window, &edge);
	}
	if (to_ns && !error) {
		edge.ticks = trace_ticks(process, trace->start_ns + clamp_ns(*to_ns));
		edge.begins = false;
		error = add_edge(window, &edge);
	}
	return error;
}

/* The marks of the process with that name, by mark id. */
static bool *marks_named(const struct trace_process *process, const char *name)
{
	bool *named = calloc(process->marks.count + 1, sizeof(*named));
	uint32_t id;

	for (id = 1; named && id < process->marks.count; id++)
		if (process->marks.at[id] && text_same(trace_string(process->marks.at[id], 1), text_of(name)))
			named[id] = true;
	return named;
}

struct search {
	struct window *window;
	const struct trace_process *process;
	const bool *begin;
	const bool *end;
	uint32_t thread;
	uint32_t marks; /* marks of the thread so far */
};

static int search_mark(struct search *search, uint32_t id, uint64_t ticks)
{
	struct window_edge edge = {.ticks = ticks, .thread = search->thread, .mark = search->marks++};
	int error = 0;

	if (id >= search->process->marks.count)
		return 0;
	/* A mark that is both begin and end ends the open window first, then begins a new one. */
	if (search->end[id])
		error = add_edge(search->window, &edge);
	edge.begins = true;
	if (search->begin[id] && !error)
		error = add_edge(search->window, &edge);
	return error;
}

static int search_chunk(struct search *search, const struct trace_events *events)
{
	const uint64_t *extra = events->extras;
	uint64_t now = events->first_ticks;
	int error = 0;
	uint32_t i;

	for (i = 0; i < events->count && !error; i++) {
		uint32_t head = events->heads[i];
		unsigned kind = wire_head_kind(head);

		now = wire_time_of(kind, now, events->ticks[i], extra);
		if (kind == WIRE_MARK)
			error = search_mark(search, (uint32_t)wire_number(head, extra), now);
		extra += wire_extra_words(head);
	}
	return error;
}

static int search_threads(struct search *search, struct trace *trace)
{
	int error = 0;
	size_t i;

	for (i = 0; i < search->process->thread_count && !error; i++) {
		struct trace_stream stream;
		struct trace_events events;

		search->thread = search->process->threads[i];
		search->marks = 0;
		trace_stream_open(&stream, trace, trace->threads[search->thread]);
		while (!error && trace_stream_next(&stream, &events))
			error = search_chunk(search, &events);
		trace_stream_close(&stream);
	}
	return error;
}

static int by_time(const void *left, const void *right)
{
	const struct window_edge *a = left;
	const struct window_edge *b = right;

	if (a->ticks != b->ticks)
		return a->ticks < b->ticks ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->mark != b->mark)
		return a->mark < b->mark ? -1 : 1;
	return a->begins - b->begins;
}

/* Removes edges without effect: an end outside a window, a begin inside. */
static void keep_alternating(struct window *window)
{
	size_t kept = 0;
	bool inside = false;
	size_t i;

	for (i = 0; i < window->count; i++) {
		if (window->edges[i].begins == inside)
			continue;
		inside = !inside;
		window->edges[kept++] = window->edges[i];
	}
	window->count = kept;
}

int window_of_marks(struct window *window, struct trace *trace, const struct trace_process *process, const char *begin,
		    const char *end)
{
	bool *begins = marks_named(process, begin);
	bool *ends = marks_named(process, end);
	struct search search = {.window = window, .process = process, .begin = begins, .end = ends};
	int error = -ENOMEM;

	*window = (struct window){0};
	if (begins && ends)
		error = process->marks.count ? search_threads(&search, trace) : 0;
	if (!error && window->count) {
		qsort(window->edges, window->count, sizeof(*window->edges), by_time);
		keep_alternating(window);
	}
	free(begins);
	free(ends);
	return error;
}

void window_done(struct window *window)
{
	free(window->edges);
	memset(window, 0, sizeof(*window));
}
