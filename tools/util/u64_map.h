/*
 * u64_map.h - a table from two numbers to one, for edges between functions and for the sizes of memory blocks.
 */
#ifndef EVPROF_TOOLS_UTIL_U64_MAP_H
#define EVPROF_TOOLS_UTIL_U64_MAP_H

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

/* Where a key that is not 0 stands, or would. There is at least one slot. */
static inline size_t u64_map_slot(const struct u64_map *map, uint64_t key)
{
	size_t slot = u64_map_home(map, key);

	while (map->slots[slot].key && map->slots[slot].key != key)
		slot = (slot + 1) & map->mask;
	return slot;
}

/* The value of a key that is not 0; 0 where there is none. */
static inline uint64_t u64_map_value(const struct u64_map *map, uint64_t key)
{
	return map->slots ? map->slots[u64_map_slot(map, key)].value : 0;
}

/* The value of a key that is not 0, made with value 0 if it is new. NULL where memory ran out. */
uint64_t *u64_map_make(struct u64_map *map, uint64_t key);
/* Takes the key out. Returns whether it was there, and its value. */
bool u64_map_take(struct u64_map *map, uint64_t key, uint64_t *value);
void u64_map_done(struct u64_map *map);

#endif
