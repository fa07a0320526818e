/*
 * time_heap.h - a binary heap of sources by the time of their next event, the earliest first; of equal times, the
 * lowest source first. Knows nothing of traces.
 */
#ifndef EVPROF_TOOLS_UTIL_TIME_HEAP_H
#define EVPROF_TOOLS_UTIL_TIME_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct time_heap_entry {
	uint64_t time;
	uint32_t source;
};

struct time_heap {
	struct time_heap_entry *at; /* the owner's; no entry is before at[(i - 1) / 2] */
	size_t count;
};

static inline bool time_heap_is_before(struct time_heap_entry a, struct time_heap_entry b)
{
	return a.time != b.time ? a.time < b.time : a.source < b.source;
}

/* The first entry is not after its children. */
static inline bool time_heap_first_is_earliest(const struct time_heap *heap)
{
	return (heap->count < 2 || !time_heap_is_before(heap->at[1], heap->at[0])) &&
	       (heap->count < 3 || !time_heap_is_before(heap->at[2], heap->at[0]));
}

/* Only with room. */
static inline void time_heap_put(struct time_heap *heap, uint64_t time, uint32_t source)
{
	struct time_heap_entry entry = {time, source};
	size_t place = heap->count++;

	for (; place > 0 && time_heap_is_before(entry, heap->at[(place - 1) / 2]); place = (place - 1) / 2)
		heap->at[place] = heap->at[(place - 1) / 2];
	heap->at[place] = entry;
}

/* Replaces the first entry. */
static inline void time_heap_replace_first(struct time_heap *heap, struct time_heap_entry entry)
{
	size_t place = 0, child;

	while ((child = 2 * place + 1) < heap->count) {
		child += child + 1 < heap->count && time_heap_is_before(heap->at[child + 1], heap->at[child]);
		if (!time_heap_is_before(heap->at[child], entry))
			break;
		heap->at[place] = heap->at[child];
		place = child;
	}
	heap->at[place] = entry;
}

static inline void time_heap_change_first(struct time_heap *heap, uint64_t time)
{
	time_heap_replace_first(heap, (struct time_heap_entry){time, heap->at[0].source});
}

static inline void time_heap_remove_first(struct time_heap *heap)
{
	heap->count--;
	time_heap_replace_first(heap, heap->at[heap->count]);
}

#endif
