/*
 * test_preload_ids.c - the table of ids: how much of it hooks find by loads alone.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "preload/ring/ids.h"

#define HEAP_BLOCKS 262144 /* possible addresses, as an allocator's, in steps of 16 bytes */

static struct ids ids;

static const void *key_of(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (const void *)(uintptr_t)(UINT64_C(0x7f1200000000) + (*seed >> 33) % HEAP_BLOCKS * 16);
}

/* The number of functions that the hooks do not find. */
static unsigned missed(unsigned count, uint64_t seed)
{
	struct ids_view view;
	uint64_t again = seed;
	unsigned misses = 0;

	for (unsigned i = 0; i < count; i++)
		cr_assert(ids_insert(&ids, key_of(&seed), 1));
	view = ids_look(&ids);
	for (unsigned i = 0; i < count; i++) {
		const void *key = key_of(&again);
		uint64_t value;

		cr_assert(eq(u64, ids_find(&ids, key), 1));
		misses += !ids_find_fast(&view, key, &value);
	}
	ids_clear(&ids);
	return misses;
}

/* A function that is not found costs more at each of its events. */
Test(ids, hooks_find_nearly_all)
{
	const unsigned counts[] = {50, 200, 500, 600, 2000, 2100, 8000};

	ids_begin(&ids);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned misses = 0;

		for (uint64_t seed = 1; seed <= 20; seed++)
			misses += missed(counts[i], seed);
		cr_expect(misses <= counts[i] * 20 / 200, "%u of 20 times %u functions are not found", misses,
			  counts[i]);
	}
}

/* A thread that has not looked for a while must not find what died since, and what is there now at its address. */
Test(ids, nothing_is_found_in_a_table_of_before)
{
	static const char keys[4096];
	struct ids_view before;
	unsigned known;
	uint64_t value;

	ids_begin(&ids);
	for (known = 0; known < 100; known++)
		cr_assert(ids_insert(&ids, &keys[known], known + 1));
	before = ids_look(&ids);
	cr_assert(ids_find_fast(&before, &keys[0], &value));
	cr_assert(eq(u64, value, 1));
	for (; known < sizeof(keys) && ids_look(&ids).entries == before.entries; known++)
		cr_assert(ids_insert(&ids, &keys[known], known + 1));
	cr_assert(ids_look(&ids).mask > before.mask);
	ids_remove(&ids, &keys[0]);
	for (unsigned i = 0; i < known; i++)
		cr_expect_not(ids_find_fast(&before, &keys[i], &value), "key %u", i);
	cr_assert(eq(u64, ids_find(&ids, &keys[0]), 0));
	for (unsigned i = 1; i < known; i++)
		cr_assert(eq(u64, ids_find(&ids, &keys[i]), i + 1));
}

static uint64_t doubled(uint64_t value)
{
	return 2 * value;
}

/* Also those that do not stand in their first place; what has been removed stays so. */
Test(ids, all_values_change)
{
	static const char keys[3000];

	ids_begin(&ids);
	for (unsigned i = 0; i < sizeof(keys); i++)
		cr_assert(ids_insert(&ids, &keys[i], i + 1));
	ids_remove(&ids, &keys[5]);
	ids_each(&ids, doubled);
	for (unsigned i = 0; i < sizeof(keys); i++)
		cr_assert(eq(u64, ids_find(&ids, &keys[i]), i == 5 ? 0 : 2 * (i + 1)));
}
