/*
 * test_tools_time_heap.c - the heap against a plain search: entries come out by time, of equal times the lowest source
 * first.
 */
#include <criterion/criterion.h>

#include "tools/util/time_heap.h"

enum { SOURCES = 37, ROUNDS = 5000 };

static struct time_heap_entry entries[SOURCES];
static uint64_t times[SOURCES]; /* 0: not in the heap */
static struct time_heap heap = {entries, 0};
static uint32_t seed = 7;

static uint32_t random_below(uint32_t end)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % end;
}

static uint32_t earliest(void)
{
	uint32_t found = SOURCES;

	for (uint32_t i = 0; i < SOURCES; i++)
		if (times[i] && (found == SOURCES || times[i] < times[found]))
			found = i;
	return found;
}

static void put_all(void)
{
	for (uint32_t i = SOURCES; i-- > 0;) {
		times[i] = 1 + random_below(50);
		time_heap_put(&heap, times[i], i);
	}
}

static void expect_first(void)
{
	uint32_t first = earliest();

	cr_assert_eq(heap.at[0].source, first);
	cr_assert_eq(heap.at[0].time, times[first]);
	cr_assert(time_heap_first_is_earliest(&heap));
}

Test(time_heap, each_source_comes_at_its_time)
{
	put_all();
	for (int round = 0; round < ROUNDS; round++) {
		expect_first();
		times[heap.at[0].source] += random_below(20);
		time_heap_change_first(&heap, times[heap.at[0].source]);
	}
}

Test(time_heap, removed_sources_do_not_come_back)
{
	put_all();
	for (size_t left = SOURCES; left > 0; left--) {
		cr_assert_eq(heap.count, left);
		expect_first();
		times[heap.at[0].source] = 0;
		time_heap_remove_first(&heap);
	}
	cr_assert_eq(heap.count, 0);
}

Test(time_heap, times_beyond_the_signed_ones_are_late)
{
	time_heap_put(&heap, UINT64_MAX, 0);
	time_heap_put(&heap, 1, 1);
	cr_assert_eq(heap.at[0].source, 1);
}
