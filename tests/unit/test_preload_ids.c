/*
 * test_preload_ids.c - the table of ids: how much of it hooks find by loads alone.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../preload/ids.h"

#define HEAP_BLOCKS 262144 /* addresses to choose from, as an allocator's, in steps of 16 bytes */

static struct ids ids;

static const void *key_of(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (const void *)(uintptr_t)(UINT64_C(0x7f1200000000) + (*seed >> 33) % HEAP_BLOCKS * 16);
}

/* How many of so many functions the hooks do not find. */
static unsigned missed(unsigned count, uint64_t seed)
{
	uint64_t again = seed;
	unsigned misses = 0;

	for (unsigned i = 0; i < count; i++)
		cr_assert(ids_insert(&ids, key_of(&seed), 1));
	for (unsigned i = 0; i < count; i++) {
		const void *key = key_of(&again);
		uint64_t value;

		cr_assert(eq(u64, ids_find(&ids, key), 1));
		misses += !ids_find_fast(&ids, key, &value);
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
