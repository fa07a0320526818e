/* cut_find.c - finds the stretches between marks, and those of spans. See cut.h. */
#include "cut/cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

/* A search in one process. */
struct search {
	struct cut_list *list;
	struct trace *trace;
	const struct trace_process *process;
	const char *begin, *end; /* names of marks; end NULL: begin is that of spans, NULL: any */
	const struct u64_map *wanted;
	struct u64_map open; /* spans whose end was not found, number to index + 1 in the list */
	struct edge {
		struct cut_edge edge;
		bool begins;
	} * edges; /* of marks */
	size_t edge_count, edges_allocated;
	bool ends_only;
};

static const struct cut_edge no_begin = {.ns = INT64_MIN}, no_end = {.ns = INT64_MAX};

void cut_list_done(struct cut_list *list)
{
	free(list->at);
	*list = (struct cut_list){0};
}

struct cut_stretch cut_of_times(const struct trace *trace, const struct filter *filter)
{
	struct cut_stretch stretch = {no_begin, no_end};

	if (filter->from_given)
		stretch.from.ns = trace->start_ns + filter->from_ns;
	if (filter->to_given)
		stretch.to.ns = trace->start_ns + filter->to_ns;
	return stretch;
}

static int add_stretch(struct search *search, const struct cut_edge *from, uint64_t number)
{
	struct cut_list *list = search->list;

	if (grow_by_one(&list->at, &list->allocated, list->count, sizeof(*list->at)))
		return -ENOMEM;
	list->at[list->count++] = (struct cut_found){{*from, no_end}, search->process, number};
	return 0;
}

static bool is_named(const struct search *search, uint64_t id, const char *name)
{
	const struct wire_definition *mark =
	    id <= UINT32_MAX ? trace_name(&search->process->marks, (uint32_t)id) : NULL;

	return !name || (mark && text_same(trace_string(mark, 1), text_of(name)));
}

/* --- marks --- */

static int take_mark(struct search *search, const struct cut_edge *edge, uint64_t id)
{
	/* A mark that is both ends a stretch first, then begins the next. */
	for (int begins = 0; begins < 2; begins++) {
		if (!is_named(search, id, begins ? search->begin : search->end))
			continue;
		if (grow_by_one(&search->edges, &search->edges_allocated, search->edge_count, sizeof(*search->edges)))
			return -ENOMEM;
		search->edges[search->edge_count++] = (struct edge){*edge, begins};
	}
	return 0;
}

static int by_time(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	return compare_u64(a->edge.ticks, b->edge.ticks)
		   ?: compare_u64(a->edge.thread->number, b->edge.thread->number)
		   ?: compare_u64(a->edge.place, b->edge.place) ?: compare_u64(a->edge.at, b->edge.at)
		   ?: a->begins - b->begins;
}

static int pair_marks(struct search *search)
{
	bool inside = false;
	int error = 0;

	if (search->edge_count)
		qsort(search->edges, search->edge_count, sizeof(*search->edges), by_time);
	for (size_t i = 0; i < search->edge_count && !error; i++) {
		const struct edge *edge = &search->edges[i];

		if (edge->begins == inside)
			continue;
		inside = edge->begins;
		if (inside)
			error = add_stretch(search, &edge->edge, 0);
		else
			search->list->at[search->list->count - 1].stretch.to = edge->edge;
	}
	return error;
}

/* --- spans --- */

static int take_begin(struct search *search, const struct cut_edge *edge, const uint64_t *extra)
{
	uint64_t *index;

	if (search->ends_only || !extra[1] || !is_named(search, extra[0], search->begin))
		return 0;
	if (search->wanted && !u64_map_value(search->wanted, cut_span_key(search->process->pid, extra[1])))
		return 0;
	index = u64_map_make(&search->open, extra[1]);
	if (!index)
		return -ENOMEM;
	*index = search->list->count + 1;
	return add_stretch(search, edge, extra[1]);
}

static void take_end(struct search *search, const struct cut_edge *edge, uint64_t number)
{
	uint64_t index;

	if (number && u64_map_take(&search->open, number, &index))
		search->list->at[index - 1].stretch.to = *edge;
}

/* --- events --- */

static int take_event(struct search *search, struct cut_edge *edge, uint32_t head, const uint64_t *extra)
{
	unsigned kind = wire_head_kind(head);

	edge->ns = trace_ns(search->process, edge->ticks);
	if (kind == WIRE_MARK && search->end)
		return take_mark(search, edge, wire_number(head, extra));
	if (kind == WIRE_SPAN_BEGIN && !search->end && wire_extra_words(head) >= 2)
		return take_begin(search, edge, extra);
	if (kind == WIRE_SPAN_END && !search->end)
		take_end(search, edge, wire_number(head, extra));
	return 0;
}

static int search_chunk(struct search *search, const struct trace_events *events, struct cut_edge *edge)
{
	const uint64_t *extra = events->extras;
	int error = 0;

	edge->ticks = events->first_ticks;
	for (uint32_t i = 0; i < events->count && !error; i++) {
		uint32_t head = events->heads[i];

		edge->ticks = wire_time_of(wire_head_plain_kind(head), edge->ticks, events->ticks[i], extra);
		edge->at = i;
		if (wire_head_plain_kind(head) == WIRE_EXTENDED)
			error = take_event(search, edge, head, extra);
		extra += wire_extra_words(head);
	}
	return error;
}

/* The events of a sampled thread's own stream are found there, as they are written from there. */
static int search_thread(struct search *search, const struct trace_thread *thread)
{
	struct cut_edge edge = {.thread = thread};
	struct trace_stream stream;
	struct trace_events events;
	int error = 0;

	trace_stream_open(&stream, search->trace, thread);
	while (!error && trace_stream_chunk(&stream, &events)) {
		edge.place = stream.next - 1;
		error = search_chunk(search, &events, &edge);
	}
	trace_stream_close(&stream);
	if (!error && thread->own)
		error = search_thread(search, thread->own);
	return error;
}

static int search_threads(struct search *search)
{
	int error = 0;

	for (size_t i = 0; i < search->process->thread_count && !error; i++)
		error = search_thread(search, search->trace->threads[search->process->threads[i]]);
	return error;
}

static int search_process(struct search *search)
{
	int error = search_threads(search);

	/* A span may end in a thread that was read before its begin. */
	if (!error && search->open.count && search->process->thread_count > 1) {
		search->ends_only = true;
		error = search_threads(search);
	}
	if (!error && search->end)
		error = pair_marks(search);
	u64_map_done(&search->open);
	free(search->edges);
	return error;
}

static int by_begin(const void *left, const void *right)
{
	const struct cut_found *a = left, *b = right;

	return compare_i64(a->stretch.from.ns, b->stretch.from.ns)
		   ?: compare_u64(a->process->number, b->process->number) ?: compare_u64(a->number, b->number);
}

static int search_all(struct cut_list *list, struct trace *trace, const struct filter *filter,
		      const struct search *model)
{
	int error = 0;

	*list = (struct cut_list){0};
	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		struct search search = *model;

		search.list = list;
		search.trace = trace;
		search.process = trace->processes[i];
		if (search.process && search.process->marks.count && filter_process(filter, search.process))
			error = search_process(&search);
	}
	if (!error && list->count)
		qsort(list->at, list->count, sizeof(*list->at), by_begin);
	if (error)
		cut_list_done(list);
	return error;
}

int cut_of_marks(struct cut_list *list, struct trace *trace, const struct filter *filter, const char *begin,
		 const char *end)
{
	return search_all(list, trace, filter, &(const struct search){.begin = begin, .end = end});
}

int cut_of_spans(struct cut_list *list, struct trace *trace, const struct filter *filter, const char *name,
		 const struct u64_map *wanted)
{
	return search_all(list, trace, filter, &(const struct search){.begin = name, .wanted = wanted});
}
