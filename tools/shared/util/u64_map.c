/*
 * u64_map.c - open addressing with linear probing; see u64_map.h.
 */
#include "util/u64_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/invariant.h"
#include "util/grow.h"

static int grow_slots(struct u64_map *map)
{
	size_t size = map->slots ? (map->mask + 1) * 2 : 1024;
	struct u64_map grown = {.slots = calloc(size, sizeof(*grown.slots)), .mask = size - 1, .count = map->count};

	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; map->slots && i <= map->mask; i++)
		if (map->slots[i].key)
			grown.slots[u64_map_slot(&grown, map->slots[i].key)] = map->slots[i];
	free(map->slots);
	*map = grown;
	return 0;
}

uint64_t *u64_map_make(struct u64_map *map, uint64_t key)
{
	size_t slot;

	if ((!map->slots || map->count * 2 > map->mask) && grow_slots(map) < 0)
		return NULL;
	slot = u64_map_slot(map, key);
	if (!map->slots[slot].key) {
		map->slots[slot] = (struct u64_map_slot){.key = key};
		map->count++;
	}
	invariant(map->count * 2 <= map->mask + 1);
	return &map->slots[slot].value;
}

uint64_t u64_map_number(struct u64_map *map, uint64_t key, void *array, uint32_t *count, size_t *allocated, size_t size)
{
	uint64_t *number = u64_map_make(map, key);
	char *at;

	if (!number || *number)
		return number ? *number : 0;
	if (grow_by_one(array, allocated, *count, size))
		return 0;
	memcpy(&at, array, sizeof(at));
	memset(at + *count * size, 0, size);
	return *number = ++*count;
}

/* Moves elements after a freed slot into it, if that brings them nearer to their home slot. */
static void close_hole(struct u64_map *map, size_t hole)
{
	size_t slot = hole;

	for (;;) {
		size_t wanted;

		slot = (slot + 1) & map->mask;
		if (!map->slots[slot].key)
			break;
		wanted = u64_map_home(map, map->slots[slot].key);
		if (((slot - wanted) & map->mask) < ((slot - hole) & map->mask))
			continue;
		map->slots[hole] = map->slots[slot];
		hole = slot;
	}
	map->slots[hole] = (struct u64_map_slot){0};
	invariant(map->count <= map->mask); /* a free slot ends each search */
}

bool u64_map_take(struct u64_map *map, uint64_t key, uint64_t *value)
{
	size_t slot;

	if (!map->slots)
		return false;
	slot = u64_map_slot(map, key);
	if (!map->slots[slot].key)
		return false;
	invariant(map->count);
	*value = map->slots[slot].value;
	map->count--;
	close_hole(map, slot);
	invariant(map->slots[u64_map_slot(map, key)].key != key);
	return true;
}

void u64_map_done(struct u64_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}
