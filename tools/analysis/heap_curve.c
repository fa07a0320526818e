/*
 * heap_curve.c - see heap_curve.h.
 */
#include "analysis/heap_curve.h"

#include <stdbool.h>

#include "analysis/blocks.h"
#include "analysis/memory_estimate.h"
#include "replay/merge.h"

struct point {
	int64_t ns;
	uint64_t bytes;
};

struct heap {
	const struct filter *filter;
	int64_t every_ns;
	void (*sample)(void *owner, int64_t ns, uint64_t bytes);
	void *owner;
	struct blocks blocks;
	unsigned sources;
	uint64_t interval; /* trace_process_memory_interval() */
	uint64_t bytes;
	/* The current step of the curve. */
	bool any;
	int64_t begin_ns;
	struct point low, high, last;
};

/* Such an event has a point, even if it changes nothing. */
static bool is_of_sources(uint32_t head, unsigned sources)
{
	unsigned kind = wire_head_kind(head);

	return blocks_is_event(kind) && sources >> blocks_source_of(head) & 1;
}

static void heap_gone(void *user, const struct heap_block *gone, int more, bool freed)
{
	struct heap *heap = user;

	(void)more, (void)freed;
	if (!gone->owner || !(heap->sources >> gone->source & 1))
		return;
	heap->bytes -= gone->source == BLOCK_MAPPED ? gone->bytes : estimate_bytes(heap->interval, gone->bytes);
}

/* Blocks of threads that are not shown have no owner. Mappings of files are no memory of the program's. */
static int heap_event(struct heap *heap, const struct merge_event *event)
{
	struct heap_block made;
	int error = blocks_pass(&heap->blocks, event->thread->number, event->head, event->extra, &made);

	if (error || !made.address || made.source == BLOCK_OF_FILE)
		return error;
	if (!made.back)
		made.owner = filter_thread(heap->filter, event->thread);
	if (made.owner && heap->sources >> made.source & 1)
		heap->bytes += made.source == BLOCK_MAPPED ? made.bytes : estimate_bytes(heap->interval, made.bytes);
	return blocks_add(&heap->blocks, &made);
}

/*
 * Reports the lowest and the highest value of the step in order of time, and the last, which holds until the next step,
 * however late that is.
 */
static void end_step(struct heap *heap)
{
	bool low_first = heap->low.ns <= heap->high.ns;
	const struct point points[] = {low_first ? heap->low : heap->high, low_first ? heap->high : heap->low,
				       heap->last};

	for (unsigned i = 0; i < 3 && heap->any; i++)
		if (i == 2 || points[i].ns != points[i + 1].ns || points[i].bytes != points[i + 1].bytes)
			heap->sample(heap->owner, points[i].ns, points[i].bytes);
	heap->any = false;
}

static void add_point(struct heap *heap, int64_t ns)
{
	struct point point = {ns, heap->bytes};

	if (heap->any && ns - heap->begin_ns >= heap->every_ns)
		end_step(heap);
	if (!heap->any) {
		heap->begin_ns = ns;
		heap->low = heap->high = point;
	}
	if (point.bytes < heap->low.bytes)
		heap->low = point;
	if (point.bytes > heap->high.bytes)
		heap->high = point;
	heap->last = point;
	heap->any = true;
}

int heap_curve(struct trace *trace, const struct trace_process *process, const struct filter *filter, unsigned sources,
	       int64_t every_ns, void (*sample)(void *owner, int64_t ns, uint64_t bytes), void *owner)
{
	struct heap heap = {
	    .filter = filter, .sources = sources, .every_ns = every_ns, .sample = sample, .owner = owner};
	struct merge_event event = {0};
	struct merge merge;
	int error = merge_open_process(&merge, trace, process);

	if (error)
		return error;
	heap.interval = trace_process_memory_interval(process);
	heap.blocks.gone = heap_gone;
	heap.blocks.user = &heap;
	if (filter->from_given)
		merge_skip(&merge, trace->start_ns + filter->from_ns);
	while (!error && merge_next(&merge, &event)) {
		int64_t ns = event.ns - trace->start_ns;

		if (ns >= filter_to(filter))
			break;
		if (!blocks_want(wire_head_kind(event.head)) || ns < filter_from(filter))
			continue;
		error = heap_event(&heap, &event);
		if (is_of_sources(event.head, sources) || heap.bytes != heap.last.bytes)
			add_point(&heap, ns);
	}
	if (!error)
		end_step(&heap);
	blocks_done(&heap.blocks);
	merge_close(&merge);
	return error;
}

void rss_curve(const struct trace *trace, const struct trace_process *process, const struct filter *filter,
	       void (*sample)(void *owner, const struct rss_point *point), void *owner)
{
	for (uint32_t i = 0; i < process->resident_count; i++) {
		const struct trace_resident *read = &process->resident[i];
		const struct rss_point point = {
		    .ns = trace_ns(process, read->ticks) - trace->start_ns,
		    .bytes = read->anonymous + read->file + read->shared,
		    .anonymous = read->anonymous,
		    .file = read->file,
		    .shared = read->shared,
		};

		if (point.ns >= filter_from(filter) && point.ns < filter_to(filter))
			sample(owner, &point);
	}
}
