/*
 * pairs.h - a table from two numbers to one, for edges between functions and for the sizes of memory blocks.
 */
#ifndef EVPROF_TOOLS_UTIL_PAIRS_H
#define EVPROF_TOOLS_UTIL_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
	uint64_t key; /* 0: free */
	uint64_t value;
};

struct pairs {
	struct pair *slots;
	size_t mask; /* size - 1 */
	size_t count;
};

static inline size_t pairs_home(const struct pairs *pairs, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash ^ hash >> 29) & pairs->mask;
}

/* Where a key that is not 0 stands, or would. There is at least one slot. */
static inline size_t pairs_slot(const struct pairs *pairs, uint64_t key)
{
	size_t slot = pairs_home(pairs, key);

	while (pairs->slots[slot].key && pairs->slots[slot].key != key)
		slot = (slot + 1) & pairs->mask;
	return slot;
}

/* The value of a key that is not 0; 0 where there is none. */
static inline uint64_t pairs_value(const struct pairs *pairs, uint64_t key)
{
	return pairs->slots ? pairs->slots[pairs_slot(pairs, key)].value : 0;
}

/* The value of a key that is not 0, made with value 0 if it is new. NULL where memory ran out. */
uint64_t *pairs_make(struct pairs *pairs, uint64_t key);
/* Takes the key out. Returns whether it was there, and its value. */
bool pairs_take(struct pairs *pairs, uint64_t key, uint64_t *value);
void pairs_done(struct pairs *pairs);

#endif
