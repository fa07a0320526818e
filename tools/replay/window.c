/*
 * window.c - finds where counting begins and ends in a process. See window.h. Called by profile.c.
 */
#include "replay/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

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

uint8_t *window_marks_named(const struct trace_process *process, const char *begin, const char *end)
{
	uint8_t *named = calloc(process->marks.count + 1, sizeof(*named));
	uint32_t id;

	for (id = 1; named && id < process->marks.count; id++) {
		struct text name = process->marks.at[id] ? trace_string(process->marks.at[id], 1) : (struct text){0};

		if (process->marks.at[id] && text_same(name, text_of(begin)))
			named[id] |= WINDOW_MARK_BEGINS;
		if (process->marks.at[id] && text_same(name, text_of(end)))
			named[id] |= WINDOW_MARK_ENDS;
	}
	return named;
}

/* edge: of the thread's next mark. */
static int search_chunk(struct window *window, const struct trace_events *events, const uint8_t *named, uint32_t count,
			struct window_edge *edge)
{
	const uint64_t *extra = events->extras;
	int error = 0;
	uint32_t i;

	edge->ticks = events->first_ticks;
	for (i = 0; i < events->count && !error; i++) {
		uint32_t head = events->heads[i], id;
		unsigned kind = wire_head_kind(head);

		edge->ticks = wire_time_of(kind, edge->ticks, events->ticks[i], extra);
		id = kind == WIRE_MARK ? (uint32_t)wire_number(head, extra) : 0;
		extra += wire_extra_words(head);
		/* A mark that is both begin and end ends the open window first, then begins a new one. */
		edge->begins = false;
		if (id < count && named[id] & WINDOW_MARK_ENDS)
			error = add_edge(window, edge);
		edge->begins = true;
		if (id < count && named[id] & WINDOW_MARK_BEGINS && !error)
			error = add_edge(window, edge);
		edge->mark += kind == WIRE_MARK;
	}
	return error;
}

static int search_threads(struct window *window, struct trace *trace, const struct trace_process *process,
			  const uint8_t *named)
{
	int error = 0;
	size_t i;

	for (i = 0; i < process->thread_count && !error; i++) {
		struct window_edge edge = {.thread = process->threads[i]};
		struct trace_stream stream;
		struct trace_events events;

		trace_stream_open(&stream, trace, trace->threads[edge.thread]);
		while (!error && trace_stream_next(&stream, &events))
			error = search_chunk(window, &events, named, process->marks.count, &edge);
		trace_stream_close(&stream);
	}
	return error;
}

static int by_time(const void *left, const void *right)
{
	const struct window_edge *a = left, *b = right;

	return compare_u64(a->ticks, b->ticks) ?: compare_u64(a->thread, b->thread) ?: compare_u64(a->mark, b->mark)
		   ?: a->begins - b->begins;
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

/* The process that started this one, which joined before it. NULL: it is not in the trace. */
static const struct trace_process *parent_of(const struct trace *trace, const struct trace_process *process)
{
	for (uint32_t i = process->ppid ? process->number : 0; i-- > 0;)
		if (trace->processes[i] && trace->processes[i]->pid == process->ppid)
			return trace->processes[i];
	return NULL;
}

static int inherit(struct window *windows, const struct trace *trace, const struct trace_process *process)
{
	const struct trace_process *parent = parent_of(trace, process);
	int error = 0;

	for (size_t i = 0; parent && i < windows[parent->number].count && !error; i++) {
		struct window_edge edge = windows[parent->number].edges[i];

		edge.thread = TRACE_NOBODY;
		edge.ticks = trace_ticks(process, trace_ns(parent, edge.ticks));
		error = add_edge(&windows[process->number], &edge);
	}
	return error;
}

int window_of_marks(struct window *windows, struct trace *trace, const struct trace_process *process, const char *begin,
		    const char *end)
{
	struct window *window = &windows[process->number];
	uint8_t *named = window_marks_named(process, begin, end);
	int error = named ? 0 : -ENOMEM;

	if (!error && process->marks.count)
		error = search_threads(window, trace, process, named);
	if (!error && window->count) {
		qsort(window->edges, window->count, sizeof(*window->edges), by_time);
		keep_alternating(window);
	}
	free(named);
	return error || window->count ? error : inherit(windows, trace, process);
}

uint64_t window_inside(const struct window *window, uint64_t begin, uint64_t end)
{
	bool inside = window->open_at_start;
	uint64_t since = begin, ticks = 0;

	for (size_t i = 0; i < window->count && since < end; i++) {
		uint64_t at = window->edges[i].ticks < end ? window->edges[i].ticks : end;

		if (at > since && inside)
			ticks += at - since;
		since = at > since ? at : since;
		inside = window->edges[i].begins;
	}
	return ticks + (inside && end > since ? end - since : 0);
}

void window_done(struct window *window)
{
	free(window->edges);
	memset(window, 0, sizeof(*window));
}
