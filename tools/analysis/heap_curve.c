/*
 * heap_curve.c - the curve of the heap. See heap_curve.h.
 */
#include "analysis/heap_curve.h"

#include <errno.h>
#include <stdbool.h>

#include "analysis/mapped_ranges.h"
#include "replay/merge.h"
#include "util/u64_map.h"

struct point {
	int64_t ns;
	uint64_t bytes;
};

struct heap {
	int64_t every_ns;
	void (*sample)(void *owner, int64_t ns, uint64_t bytes);
	void *owner;
	struct u64_map sizes; /* address: size + 1 */
	struct mapped_ranges ranges;
	uint64_t bytes;
	/* The current step of the curve. */
	bool any;
	int64_t begin_ns;
	struct point low, high, last;
};

/*
 * A block that one domain gets from another is reported twice with the same address. It counts once, with the last
 * size, and the first free removes it.
 */
static void heap_free(struct heap *heap, uint64_t address)
{
	uint64_t size;

	if (address && u64_map_take(&heap->sizes, address, &size))
		heap->bytes -= size - 1;
}

static int heap_made(struct heap *heap, uint64_t address, uint64_t size)
{
	uint64_t *value;

	heap_free(heap, address);
	value = u64_map_make(&heap->sizes, address);
	if (!value)
		return -ENOMEM;
	*value = size + 1;
	heap->bytes += size;
	return 0;
}

static int heap_block(struct heap *heap, uint32_t head, const uint64_t *extra)
{
	uint64_t address = wire_memory_address(extra[0]);
	unsigned kind = wire_head_kind(head);

	if (kind == WIRE_FREE) {
		heap_free(heap, address);
		return 0;
	}
	if (!address)
		return 0;
	if (kind == WIRE_REALLOC)
		heap_free(heap, wire_memory_address(extra[1]));
	return heap_made(heap, address, wire_memory_size(head, extra[0]));
}

static void heap_unmapped(void *user, const struct mapped_range *gone, int more)
{
	struct heap *heap = user;

	(void)more;
	heap->bytes -= gone->end - gone->begin;
}

/* Mappings of files are no memory of the program's. */
static int heap_mapping(struct heap *heap, uint32_t head, const uint64_t *extra)
{
	struct mapped_range range = mapped_range_of(head, extra);
	int error = mapped_ranges_remove(&heap->ranges, range.begin, range.end, heap_unmapped, heap);

	if (error || wire_head_kind(head) != WIRE_MMAP || head >> WIRE_VALUE_SHIFT || range.begin == range.end)
		return error;
	heap->bytes += range.end - range.begin;
	return mapped_ranges_add(&heap->ranges, &range);
}

static bool heap_takes(uint32_t head, bool of_python)
{
	unsigned kind = wire_head_kind(head);

	if (wire_is_memory(kind))
		return !of_python || wire_memory_domain(head) != WIRE_DOMAIN_NATIVE;
	return !of_python && (kind == WIRE_MMAP || kind == WIRE_MUNMAP);
}

static int heap_event(struct heap *heap, uint32_t head, const uint64_t *extra)
{
	return wire_is_memory(wire_head_kind(head)) ? heap_block(heap, head, extra) : heap_mapping(heap, head, extra);
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

int heap_curve(struct trace *trace, const struct trace_process *process, const struct filter *filter, bool of_python,
	       int64_t every_ns, void (*sample)(void *owner, int64_t ns, uint64_t bytes), void *owner)
{
	struct heap heap = {.every_ns = every_ns, .sample = sample, .owner = owner};
	struct merge_event event = {0};
	struct merge merge;
	int error = merge_open_process(&merge, trace, process, filter);

	if (error)
		return error;
	if (filter->from_given)
		merge_skip(&merge, trace->start_ns + filter->from_ns);
	while (!error && merge_next(&merge, &event)) {
		int64_t ns = event.ns - trace->start_ns;

		if (ns >= filter_to(filter))
			break;
		if (!heap_takes(event.head, of_python) || ns < filter_from(filter))
			continue;
		error = heap_event(&heap, event.head, event.extra);
		add_point(&heap, ns);
	}
	if (!error)
		end_step(&heap);
	u64_map_done(&heap.sizes);
	mapped_ranges_done(&heap.ranges);
	merge_close(&merge);
	return error;
}
