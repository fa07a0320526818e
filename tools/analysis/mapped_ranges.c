/*
 * mapped_ranges.c - see mapped_ranges.h.
 */
#include "analysis/mapped_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "evprof/wire.h"
#include "util/grow.h"

/* The first range that ends after the address. */
static size_t find_range(const struct mapped_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->at[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int insert(struct mapped_ranges *ranges, size_t place, const struct mapped_range *range)
{
	struct mapped_range added = *range; /* may be an element */
	int error = grow_by_one(&ranges->at, &ranges->allocated, ranges->count, sizeof(*ranges->at));

	if (error)
		return error;
	memmove(&ranges->at[place + 1], &ranges->at[place], (ranges->count - place) * sizeof(*ranges->at));
	ranges->at[place] = added;
	ranges->count++;
	return 0;
}

/* Removes the middle of a range. */
static int split(struct mapped_ranges *ranges, size_t place, const struct mapped_range *middle)
{
	int error = insert(ranges, place, &ranges->at[place]);

	if (error)
		return error;
	ranges->at[place].end = middle->begin;
	ranges->at[place + 1].begin = middle->end;
	return 0;
}

int mapped_ranges_remove(struct mapped_ranges *ranges, uint64_t begin, uint64_t end, mapped_gone *gone, void *user)
{
	size_t place = find_range(ranges, begin), kept = place;
	int error;

	if (begin >= end)
		return 0;
	for (; place < ranges->count && ranges->at[place].begin < end; place++) {
		struct mapped_range *range = &ranges->at[place], part = *range;

		part.begin = part.begin > begin ? part.begin : begin;
		part.end = part.end < end ? part.end : end;
		if (part.begin > range->begin && part.end < range->end) {
			error = split(ranges, place, &part);
			if (!error)
				gone(user, &part, 1);
			return error;
		}
		if (part.begin > range->begin)
			range->end = part.begin;
		else
			range->begin = part.end;
		gone(user, &part, range->begin < range->end ? 0 : -1);
		if (range->begin < range->end)
			ranges->at[kept++] = *range;
	}
	if (kept < place) {
		memmove(&ranges->at[kept], &ranges->at[place], (ranges->count - place) * sizeof(*ranges->at));
		ranges->count -= place - kept;
	}
	return 0;
}

int mapped_ranges_add(struct mapped_ranges *ranges, const struct mapped_range *range)
{
	return insert(ranges, find_range(ranges, range->begin), range);
}

void mapped_ranges_done(struct mapped_ranges *ranges)
{
	free(ranges->at);
	*ranges = (struct mapped_ranges){0};
}

#define PAGE_BYTES UINT64_C(4096)

struct mapped_range mapped_range_of(uint32_t head, const uint64_t *extra)
{
	struct mapped_range range = {0};

	if (wire_extra_words(head) < 2 || !extra[0] || extra[1] > UINT64_MAX - PAGE_BYTES - extra[0])
		return range;
	range.shared = wire_head_kind(head) == WIRE_MMAP && head >> WIRE_VALUE_SHIFT == WIRE_MMAP_SHARED;
	range.begin = extra[0];
	range.end = extra[0] + (extra[1] + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	return range;
}
