/*
 * pairs.c - open addressing with linear probing; see pairs.h.
 */
#include "util/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/invariant.h"

static int grow(struct pairs *pairs)
{
	size_t size = pairs->slots ? (pairs->mask + 1) * 2 : 1024;
	struct pairs grown = {.slots = calloc(size, sizeof(*grown.slots)), .mask = size - 1, .count = pairs->count};
	size_t i;

	if (!grown.slots)
		return -ENOMEM;
	for (i = 0; pairs->slots && i <= pairs->mask; i++)
		if (pairs->slots[i].key)
			grown.slots[pairs_slot(&grown, pairs->slots[i].key)] = pairs->slots[i];
	free(pairs->slots);
	*pairs = grown;
	return 0;
}

uint64_t *pairs_make(struct pairs *pairs, uint64_t key)
{
	size_t slot;

	if ((!pairs->slots || pairs->count * 2 > pairs->mask) && grow(pairs) < 0)
		return NULL;
	slot = pairs_slot(pairs, key);
	if (!pairs->slots[slot].key) {
		pairs->slots[slot] = (struct pair){.key = key};
		pairs->count++;
	}
	invariant(pairs->count * 2 <= pairs->mask + 1);
	return &pairs->slots[slot].value;
}

/* Moves what stands behind a freed slot forward, where that brings it nearer to its home. */
static void close_hole(struct pairs *pairs, size_t hole)
{
	size_t slot = hole;

	for (;;) {
		size_t wanted;

		slot = (slot + 1) & pairs->mask;
		if (!pairs->slots[slot].key)
			break;
		wanted = pairs_home(pairs, pairs->slots[slot].key);
		if (((slot - wanted) & pairs->mask) < ((slot - hole) & pairs->mask))
			continue;
		pairs->slots[hole] = pairs->slots[slot];
		hole = slot;
	}
	pairs->slots[hole] = (struct pair){0};
	invariant(pairs->count <= pairs->mask); /* a free slot ends each search */
}

bool pairs_take(struct pairs *pairs, uint64_t key, uint64_t *value)
{
	size_t slot;

	if (!pairs->slots)
		return false;
	slot = pairs_slot(pairs, key);
	if (!pairs->slots[slot].key)
		return false;
	invariant(pairs->count);
	*value = pairs->slots[slot].value;
	pairs->count--;
	close_hole(pairs, slot);
	invariant(pairs->slots[pairs_slot(pairs, key)].key != key);
	return true;
}

void pairs_done(struct pairs *pairs)
{
	free(pairs->slots);
	memset(pairs, 0, sizeof(*pairs));
}
