/*
 * spans.c - see spans.h.
 */
#include "replay/spans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/grow.h"

#define GREENLET_SHIFT 20
#define THREAD_SHIFT 40

/* The numbers of thread, greenlet and task in one word; not 0. Numbers that do not fit share a context. */
static uint64_t context_of(struct call_walk *walk)
{
	uint64_t mask = (UINT64_C(1) << GREENLET_SHIFT) - 1;

	return ((uint64_t)walk->thread->number + 1) << THREAD_SHIFT | (walk_greenlet(walk) & mask) << GREENLET_SHIFT |
	       (walk_task(walk) & mask);
}

static struct span *find(const struct spans *spans, uint64_t number)
{
	uint64_t index = number ? u64_map_value(&spans->open, number) : 0;

	return index ? &spans->at[index - 1] : NULL;
}

/* A free place. Places of spans that have ended are used again. */
static struct span *take_place(struct spans *spans)
{
	struct span *place;

	if (spans->free) {
		place = &spans->at[spans->free - 1];
		spans->free = place->context;
		return place;
	}
	if (grow_by_one(&spans->at, &spans->allocated, spans->count, sizeof(*spans->at)))
		return NULL;
	return &spans->at[spans->count++];
}

struct span *spans_begin(struct spans *spans, struct call_walk *walk, const uint64_t *extra)
{
	uint64_t context = context_of(walk), number = extra[1], *top, *index, end = 0;
	struct span *span;

	if (!number || find(spans, number))
		return NULL;
	top = u64_map_make(&spans->tops, context);
	index = top ? u64_map_make(&spans->open, number) : NULL;
	span = index ? take_place(spans) : NULL;
	if (!span) {
		walk_fail(walk, -ENOMEM);
		return NULL;
	}
	u64_map_take(&spans->ends, number, &end);
	*index = (uint64_t)(span - spans->at) + 1;
	*span = (struct span){.number = number,
			      .context = context,
			      .parent = find(spans, *top) ? *top : 0,
			      .start_ns = walk->now_ns,
			      .since_ns = walk->now_ns,
			      .end_ns = (int64_t)end - 1,
			      .name = (uint32_t)extra[0],
			      .thread = walk->thread->number};
	*top = number;
	return span;
}

static uint64_t ns_since(int64_t since_ns, int64_t now_ns)
{
	return now_ns > since_ns ? (uint64_t)(now_ns - since_ns) : 0;
}

/* The child that is open, if any, gets the span's parent as its own. The open spans of a context are one chain. */
static void leave_chain(struct spans *spans, struct span *span, int64_t now_ns)
{
	uint64_t *top = u64_map_make(&spans->tops, span->context);
	struct span *child = top ? find(spans, *top) : NULL;

	if (top && *top == span->number)
		*top = span->parent;
	for (; child && child != span; child = find(spans, child->parent)) {
		if (child->parent != span->number)
			continue;
		span->inner_ns += ns_since(child->since_ns, now_ns);
		child->since_ns = now_ns;
		child->parent = span->parent;
		return;
	}
}

struct span spans_end(struct spans *spans, struct call_walk *walk, uint64_t number)
{
	struct span *span = find(spans, number), ended, *parent;
	uint64_t index, *end;

	if (!span && spans->in_turn && number) {
		end = u64_map_make(&spans->ends, number);
		if (end)
			*end = (uint64_t)walk->now_ns + 1;
		else
			walk_fail(walk, -ENOMEM);
	}
	if (!span)
		return (struct span){0};
	leave_chain(spans, span, walk->now_ns);
	parent = find(spans, span->parent);
	if (parent)
		parent->inner_ns += ns_since(span->since_ns, walk->now_ns);
	ended = *span;
	*span = (struct span){.context = spans->free};
	u64_map_take(&spans->open, number, &index);
	spans->free = index;
	return ended;
}

/* For spans_begin_process(). */
struct ends {
	struct spans *spans;
	struct spans seen; /* what is open in the walk of all threads together */
};

/* An end in the tick of its begin may come before it. */
static void keep_end(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	bool begins = wire_head_kind(head) == WIRE_SPAN_BEGIN;
	struct ends *ends = owner;
	const struct span *begun = begins ? spans_begin(&ends->seen, walk, extra) : NULL;
	struct span span;

	if (begins ? !begun || begun->end_ns < 0 : wire_head_kind(head) != WIRE_SPAN_END)
		return;
	span = spans_end(&ends->seen, walk, begins ? extra[1] : wire_number(head, extra));
	if (span.number && (begins || span.thread != walk->thread->number))
		spans_end(ends->spans, walk, span.number);
}

/* Whether a thread may end a span that began in another one: two of them have spans, or one that --thread excludes. */
static int may_end_elsewhere(const struct spans *spans, const struct call_walk *walk)
{
	unsigned with_spans = 0;

	for (size_t i = 0; i < walk->process->thread_count; i++) {
		struct trace_thread *thread = walk->trace->threads[walk->process->threads[i]];
		bool excluded = !filter_thread(walk->filter, thread);

		if (!excluded && !spans->ends_first)
			continue;
		if (trace_count_events(walk->trace, thread) < 0)
			return -ENOMEM;
		if (!thread->own && !thread->events[WIRE_SPAN_BEGIN] && !thread->events[WIRE_SPAN_END])
			continue;
		if (++with_spans > 1 || excluded)
			return 1;
	}
	return 0;
}

int spans_begin_process(struct spans *spans, const struct call_walk *walk)
{
	static const struct call_visitor visitor = {.other = keep_end};
	struct progress progress = {0}; /* shown is that of the walk */
	struct ends ends = {.spans = spans, .seen.in_turn = true};
	int error = may_end_elsewhere(spans, walk);

	if (error > 0)
		error = walk_together(walk->trace, walk->process, walk->filter, &progress, &visitor, &ends);
	spans_done(&ends.seen);
	return error;
}

static int64_t last_ns(const struct call_walk *walk)
{
	int64_t last = filter_from(walk->filter);

	for (size_t i = 0; i < walk->process->thread_count; i++) {
		const struct trace_thread *thread = walk->trace->threads[walk->process->threads[i]];
		int64_t ns;

		if (!thread->place_count)
			continue;
		ns =
		    trace_ns(walk->process, thread->places[thread->place_count - 1].last_ticks) - walk->trace->start_ns;
		last = ns > last ? ns : last;
	}
	return last < filter_to(walk->filter) ? last : filter_to(walk->filter);
}

struct span *spans_next_unfinished(struct spans *spans, struct call_walk *walk, size_t *left)
{
	struct span *span;
	int64_t now_ns;
	char *text;

	*left = *left < spans->count ? *left : spans->count;
	while (*left && !spans->at[*left - 1].number)
		--*left;
	if (!*left)
		return NULL;
	span = &spans->at[--*left];
	if (asprintf(&text, "unfinished%s%s", span->text ? ", " : "", span->text ? span->text : "") < 0) {
		walk_fail(walk, -ENOMEM);
		return NULL;
	}
	free(span->text);
	span->text = text;
	now_ns = last_ns(walk);
	walk->now_ns = now_ns > span->start_ns ? now_ns : span->start_ns;
	return span;
}

void spans_done(struct spans *spans)
{
	u64_map_done(&spans->open);
	u64_map_done(&spans->tops);
	u64_map_done(&spans->ends);
	for (size_t i = 0; i < spans->count; i++)
		free(spans->at[i].text);
	free(spans->at);
	*spans = (struct spans){.in_turn = spans->in_turn, .ends_first = spans->ends_first};
}

int spans_take_row(struct u64_map *ends, uint64_t row, const struct span *span, int64_t end_ns)
{
	uint64_t *end = u64_map_make(ends, row);

	if (!end)
		return -ENOMEM;
	if (*end > (uint64_t)span->start_ns + 1)
		return 0;
	*end = (uint64_t)end_ns + 1;
	return 1;
}

struct text span_name(const struct trace_process *process, uint64_t id)
{
	const struct wire_definition *mark = trace_name(&process->marks, (uint32_t)id);

	return mark ? trace_string(mark, 1) : text_of("?");
}
