/*
 * u64_map.h - a hash table from 64-bit keys to 64-bit values, such as edges between functions and sizes of blocks.
 */
#ifndef SHARED_U64_MAP_H
#define SHARED_U64_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct u64_map_slot {
	uint64_t key; /* 0: free */
	uint64_t value;
};

struct u64_map {
	struct u64_map_slot *slots;
	size_t mask; /* size - 1 */
	size_t count;
};

static inline size_t u64_map_home(const struct u64_map *map, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash ^ hash >> 29) & map->mask;
}

/* The slot where a key is or would be. The key is not 0, and the table has at least one slot. */
static inline size_t u64_map_slot(const struct u64_map *map, uint64_t key)
{
	size_t slot = u64_map_home(map, key);

	while (map->slots[slot].key && map->slots[slot].key != key)
		slot = (slot + 1) & map->mask;
	return slot;
}

/* The value of a key that is not 0; 0 if the key is not in the table. */
static inline uint64_t u64_map_value(const struct u64_map *map, uint64_t key)
{
	return map->slots ? map->slots[u64_map_slot(map, key)].value : 0;
}

/* The value of a key that is not 0, added with value 0 if it is new. NULL if memory ran out. */
uint64_t *u64_map_make(struct u64_map *map, uint64_t key);
/*
 * The number, from 1, of the array's element for a key that is not 0. For a new key an element of zeros is appended;
 * array, *allocated and size as in grow_by_one(). 0 if memory ran out.
 */
uint64_t u64_map_number(struct u64_map *map, uint64_t key, void *array, uint32_t *count, size_t *allocated,
			size_t size);
/* Removes the key. Returns whether it was in the table, and its value. */
bool u64_map_take(struct u64_map *map, uint64_t key, uint64_t *value);
void u64_map_done(struct u64_map *map);

#endif
