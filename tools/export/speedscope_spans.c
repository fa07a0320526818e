/*
 * speedscope_spans.c - see speedscope_spans.h.
 */
#include "export/speedscope_spans.h"

#include <errno.h>
#include <stdlib.h>

#include "util/grow.h"

static uint32_t name_number(struct speedscope_spans *spans, struct call_walk *walk, uint32_t id, bool unfinished)
{
	uint64_t key = (uint64_t)unfinished << 63 | ((uint64_t)walk->process->number + 1) << 32 | id;
	uint64_t number = u64_map_number(&spans->name_numbers, key, &spans->names, &spans->name_count,
					 &spans->names_allocated, sizeof(*spans->names));

	if (!number) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	spans->names[number - 1] = (struct span_frame){span_name(walk->process, id), unfinished};
	return (uint32_t)number - 1;
}

static void end_span(struct speedscope_spans *spans, struct call_walk *walk, uint64_t number, int64_t end_ns,
		     bool unfinished)
{
	struct span span = spans_end(&spans->open, walk, number);

	free(span.text);
	if (!span.number)
		return;
	if (grow_by_one(&spans->at, &spans->allocated, spans->count, sizeof(*spans->at))) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	spans->at[spans->count++] = (struct closed_span){.start_ns = span.start_ns,
							 .end_ns = end_ns > span.start_ns ? end_ns : span.start_ns,
							 .thread = span.thread,
							 .name = name_number(spans, walk, span.name, unfinished)};
}

void speedscope_spans_event(struct speedscope_spans *spans, struct call_walk *walk, uint32_t head,
			    const uint64_t *extra)
{
	unsigned kind = wire_head_kind(head);

	if (kind == WIRE_SPAN_BEGIN) {
		const struct span *span = spans_begin(&spans->open, walk, extra);

		if (span && span->end_ns >= 0) /* another thread has ended it, and was read before */
			end_span(spans, walk, span->number, span->end_ns, false);
	} else if (kind == WIRE_SPAN_END) {
		end_span(spans, walk, wire_number(head, extra), walk->now_ns, false);
	}
}

void speedscope_spans_process_end(struct speedscope_spans *spans, struct call_walk *walk)
{
	const struct span *span;

	for (size_t left = SIZE_MAX; (span = spans_next_unfinished(&spans->open, walk, &left));)
		end_span(spans, walk, span->number, walk->now_ns, true);
	spans_done(&spans->open);
}

/* By thread and start; the longer one of two first, as it is around the other. */
static int compare_starts(const void *left, const void *right)
{
	const struct closed_span *a = left, *b = right;

	return compare_u64(a->thread, b->thread) ?: compare_i64(a->start_ns, b->start_ns)
		   ?: compare_i64(b->end_ns, a->end_ns);
}

static int compare_layers(const void *left, const void *right)
{
	const struct closed_span *a = left, *b = right;

	return compare_u64(a->thread, b->thread) ?: compare_u64(a->layer, b->layer)
		   ?: compare_i64(a->start_ns, b->start_ns) ?: compare_u64(a->depth, b->depth);
}

/* The ends of the open spans of a layer, outermost first. */
struct layer {
	int64_t *ends;
	size_t count, allocated;
};

/* Whether the span is within the innermost open one of the layer, or there is none. */
static bool fits(struct layer *layer, const struct closed_span *span)
{
	while (layer->count && layer->ends[layer->count - 1] <= span->start_ns)
		layer->count--;
	return !layer->count || span->end_ns <= layer->ends[layer->count - 1];
}

static int place(struct layer *layers, uint32_t *used, struct closed_span *span)
{
	uint32_t number = 0;

	while (number < *used && !fits(&layers[number], span))
		number++;
	span->layer = number;
	if (number == SPEEDSCOPE_LAYERS)
		return 0;
	if (number == *used)
		layers[(*used)++].count = 0;
	if (grow_by_one(&layers[number].ends, &layers[number].allocated, layers[number].count, sizeof(int64_t)))
		return -ENOMEM;
	span->depth = (uint32_t)layers[number].count;
	layers[number].ends[layers[number].count++] = span->end_ns;
	return 0;
}

int speedscope_spans_layout(struct speedscope_spans *spans)
{
	struct layer *layers = calloc(SPEEDSCOPE_LAYERS + 1, sizeof(*layers));
	uint32_t used = 0;
	int error = layers ? 0 : -ENOMEM;

	if (spans->count)
		qsort(spans->at, spans->count, sizeof(*spans->at), compare_starts);
	for (size_t i = 0; i < spans->count && !error; i++) {
		if (i && spans->at[i].thread != spans->at[i - 1].thread)
			used = 0;
		error = place(layers, &used, &spans->at[i]);
	}
	for (uint32_t i = 0; layers && i <= SPEEDSCOPE_LAYERS; i++)
		free(layers[i].ends);
	free(layers);
	if (spans->count)
		qsort(spans->at, spans->count, sizeof(*spans->at), compare_layers);
	return error;
}

void speedscope_spans_done(struct speedscope_spans *spans)
{
	spans_done(&spans->open);
	u64_map_done(&spans->name_numbers);
	free(spans->names);
	free(spans->at);
	*spans = (struct speedscope_spans){0};
}
