/*
 * alive.c - see alive.h.
 */
#include "alive/alive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "evprof/invariant.h"
#include "util/grow.h"

#define SLOTS_MIN 1024u
#define MAPPERS_MIN 1024u /* below that, those of ranges that are gone stay */

/* --- blocks --- */

static size_t home_of(uint64_t address, size_t mask)
{
	uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash ^ hash >> 29) & mask;
}

/* Where the address is, or would be. */
static struct alive_block *find(struct alive_block *slots, size_t mask, uint64_t address)
{
	size_t at = home_of(address, mask);

	while (slots[at].address && slots[at].address != address)
		at = (at + 1) & mask;
	return &slots[at];
}

static bool is_needed(const struct alive *alive, const struct alive_block *slot)
{
	return slot->address && (!slot->freed || slot->ticks >= alive->forgotten_ticks);
}

/* Makes the table anew, without what may be forgotten. At most a quarter of it is taken then. */
static int renew(struct alive *alive)
{
	size_t needed = 0, wanted = SLOTS_MIN;
	struct alive_block *slots;

	for (size_t i = 0; i < alive_slots(alive); i++)
		needed += is_needed(alive, &alive->slots[i]);
	while (wanted < needed * 4)
		wanted *= 2;
	slots = calloc(wanted, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < alive_slots(alive); i++)
		if (is_needed(alive, &alive->slots[i]))
			*find(slots, wanted - 1, alive->slots[i].address) = alive->slots[i];
	free(alive->slots);
	alive->slots = slots;
	alive->mask = wanted - 1;
	alive->taken = needed;
	return 0;
}

static bool comes_after(const struct alive_block *event, const struct alive_block *slot)
{
	if (!slot->address || event->ticks > slot->ticks)
		return true;
	return event->ticks == slot->ticks && (event->thread == slot->thread || !event->freed);
}

/* event: an allocation, or with `freed` a free. */
static int put(struct alive *alive, const struct alive_block *event)
{
	struct alive_block *slot;

	if (!event->address)
		return 0;
	if ((!alive->slots || alive->taken * 2 > alive->mask) && renew(alive) < 0)
		return -ENOMEM;
	slot = find(alive->slots, alive->mask, event->address);
	alive->taken += !slot->address;
	invariant(alive->taken <= alive->mask);
	if (comes_after(event, slot))
		*slot = *event;
	return 0;
}

/* --- sums --- */

static struct alive_sum *sum_of(struct alive *alive, uint32_t stack, uint32_t value)
{
	uint32_t *recent = &alive->recent_sums[(stack * 31 + value) % ALIVE_RECENT];
	uint64_t number;

	if (*recent && alive->sums[*recent - 1].stack == stack && alive->sums[*recent - 1].value == value)
		return &alive->sums[*recent - 1];
	number = u64_map_number(&alive->sum_numbers, ((uint64_t)stack + 1) << WIRE_FREED_VALUE_BITS | value,
				&alive->sums, &alive->sum_count, &alive->sums_allocated, sizeof(*alive->sums));

	if (!number)
		return NULL;
	*recent = (uint32_t)number;
	alive->sums[number - 1].stack = stack;
	alive->sums[number - 1].value = value;
	return &alive->sums[number - 1];
}

/* What a block counts for; a mapped range is always recorded. */
static struct alive_sum weight_of(const struct alive *alive, uint64_t bytes, bool mapped)
{
	uint64_t interval = mapped ? 0 : alive->interval;

	return (struct alive_sum){.units = estimate_blocks(interval, bytes), .bytes = estimate_bytes(interval, bytes)};
}

/* times: 1, or -1 to take it away. */
static int count(struct alive *alive, uint32_t stack, uint32_t value, const struct alive_sum *weight, int times)
{
	struct alive_sum *sum = sum_of(alive, stack, value);

	if (!sum)
		return -ENOMEM;
	sum->units += (uint64_t)times * weight->units;
	sum->bytes += (uint64_t)times * weight->bytes;
	sum->temporary += (uint64_t)times * weight->temporary;
	return 0;
}

int alive_allocate(struct alive *alive, const struct alive_block *block)
{
	struct alive_sum weight = weight_of(alive, block->bytes, false);
	int error = count(alive, block->stack, wire_freed_value(block->domain, false, block->bytes), &weight, 1);

	return error ? error : put(alive, block);
}

int alive_free(struct alive *alive, uint64_t address, uint64_t ticks, uint32_t thread)
{
	const struct alive_block event = {
	    .address = address, .ticks = ticks, .thread = (uint16_t)thread, .freed = true};

	return put(alive, &event);
}

int alive_note_temporary(struct alive *alive, uint32_t stack, unsigned domain, bool mapped, uint64_t bytes)
{
	const struct alive_sum one = {.temporary = 1};

	return count(alive, stack, wire_freed_value(domain, mapped, bytes), &one, 1);
}

int alive_add_freed(struct alive *alive, const struct alive_sum *freed)
{
	return count(alive, freed->stack, freed->value, freed, 1);
}

/* --- mappings --- */

int alive_map(struct alive *alive, const struct alive_mapping *mapping)
{
	size_t at = alive->waiting_count;

	if (grow_by_one(&alive->waiting, &alive->waiting_allocated, at, sizeof(*alive->waiting)))
		return -ENOMEM;
	while (at && alive->waiting[at - 1].ticks > mapping->ticks)
		at--;
	memmove(&alive->waiting[at + 1], &alive->waiting[at], (alive->waiting_count - at) * sizeof(*mapping));
	alive->waiting[at] = *mapping;
	alive->waiting_count++;
	return 0;
}

struct unmapping {
	const struct alive *alive;
	struct alive_unmapped unmapped;
};

static void range_gone(void *user, const struct mapped_range *gone, int more)
{
	struct unmapping *unmapping = user;
	struct alive_unmapped *unmapped = &unmapping->unmapped;

	(void)more;
	if (unmapped->part.begin != unmapped->part.end)
		return;
	unmapped->part = *gone;
	unmapped->mapper = unmapping->alive->mappers[gone->owner];
}

/* NULL: nothing that counts was unmapped there. */
static const struct alive_unmapped *find_unmapped(const struct alive *alive, const struct mapped_range *range)
{
	for (size_t i = 1; i <= ALIVE_UNMAPPED && i <= alive->unmapped_count; i++) {
		const struct alive_unmapped *unmapped = &alive->unmapped[(alive->unmapped_count - i) % ALIVE_UNMAPPED];

		if (unmapped->range.begin == range->begin && unmapped->range.end == range->end)
			return unmapped->part.begin == unmapped->part.end ? NULL : unmapped;
	}
	return NULL;
}

/* Forgets the mappers of ranges that are gone. */
static int renew_mappers(struct alive *alive)
{
	struct alive_mapper *mappers;

	if (alive->mapper_count < MAPPERS_MIN || alive->mapper_count < 2 * alive->ranges.count)
		return 0;
	mappers = malloc((alive->ranges.count + 1) * sizeof(*mappers));
	if (!mappers)
		return -ENOMEM;
	for (size_t i = 0; i < alive->ranges.count; i++) {
		mappers[i] = alive->mappers[alive->ranges.at[i].owner];
		alive->ranges.at[i].owner = (uint32_t)i;
	}
	free(alive->mappers);
	alive->mappers = mappers;
	alive->mapper_count = alive->ranges.count;
	alive->mappers_allocated = alive->ranges.count + 1;
	return 0;
}

static int add_range(struct alive *alive, struct mapped_range range, const struct alive_mapper *mapper)
{
	int error = renew_mappers(alive);

	if (!error)
		error = grow_by_one(&alive->mappers, &alive->mappers_allocated, alive->mapper_count,
				    sizeof(*alive->mappers));
	if (error)
		return error;
	range.owner = (uint32_t)alive->mapper_count;
	alive->mappers[alive->mapper_count++] = *mapper;
	return mapped_ranges_add(&alive->ranges, &range);
}

static int count_range(struct alive *alive, const struct alive_mapping *mapping, bool shared)
{
	const struct alive_mapper mapper = {mapping->ticks, mapping->stack};
	struct mapped_range range = mapping->range;
	uint64_t bytes = range.end - range.begin;
	struct alive_sum weight = weight_of(alive, bytes, true);
	int error = count(alive, mapping->stack, wire_freed_value(0, true, bytes), &weight, 1);

	range.shared = shared;
	return error ? error : add_range(alive, range, &mapper);
}

/* Back where it was, or elsewhere: then it counts as a new one. */
static int apply_moved(struct alive *alive, const struct alive_mapping *mapping)
{
	const struct mapped_range *range = &mapping->range;
	const struct alive_unmapped *unmapped = find_unmapped(alive, &mapping->from);

	if (!unmapped)
		return 0;
	if (range->begin != unmapped->range.begin || range->end != unmapped->range.end)
		return count_range(alive, mapping, unmapped->part.shared);
	return add_range(alive, unmapped->part, &unmapped->mapper);
}

static int apply(struct alive *alive, const struct alive_mapping *mapping)
{
	const struct mapped_range *range = &mapping->range;
	struct unmapping unmapping = {alive, {.range = *range}};
	int error = mapped_ranges_remove(&alive->ranges, range->begin, range->end, range_gone, &unmapping);

	if (error || range->begin == range->end)
		return error;
	if (wire_head_kind(mapping->head) == WIRE_MUNMAP)
		alive->unmapped[alive->unmapped_count++ % ALIVE_UNMAPPED] = unmapping.unmapped;
	else if (mapping->head >> WIRE_VALUE_SHIFT == WIRE_MMAP_MOVED)
		error = apply_moved(alive, mapping);
	else if (mapping->head >> WIRE_VALUE_SHIFT != WIRE_MMAP_FILE)
		error = count_range(alive, mapping, range->shared);
	return error;
}

int alive_settle(struct alive *alive, uint64_t before_ticks)
{
	size_t settled = 0;
	int error = 0;

	while (settled < alive->waiting_count && alive->waiting[settled].ticks < before_ticks && !error)
		error = apply(alive, &alive->waiting[settled++]);
	alive->waiting_count -= settled;
	if (settled)
		memmove(alive->waiting, alive->waiting + settled, alive->waiting_count * sizeof(*alive->waiting));
	return error;
}

/* --- both --- */

/* Those of `later` must not be settled: its ranges would have no order among those of alive. */
int alive_join(struct alive *alive, const struct alive *later)
{
	int error = 0;

	invariant(!later->ranges.count);
	for (size_t i = 0; i < alive_slots(later) && !error; i++)
		error = put(alive, &later->slots[i]);
	for (uint32_t i = 0; i < later->sum_count && !error; i++)
		error = count(alive, later->sums[i].stack, later->sums[i].value, &later->sums[i], 1);
	for (size_t i = 0; i < later->waiting_count && !error; i++)
		error = alive_map(alive, &later->waiting[i]);
	return error;
}

/* Takes away what is alive from a copy of the sums. */
static int subtract(struct alive *copy, const struct alive *alive)
{
	int error = 0;

	for (size_t i = 0; i < alive_slots(alive) && !error; i++) {
		const struct alive_block *slot = &alive->slots[i];
		struct alive_sum weight = weight_of(alive, slot->bytes, false);

		if (alive_is_block(slot))
			error =
			    count(copy, slot->stack, wire_freed_value(slot->domain, false, slot->bytes), &weight, -1);
	}
	for (size_t i = 0; i < alive->ranges.count && !error; i++) {
		const struct mapped_range *range = &alive->ranges.at[i];
		struct alive_sum weight = weight_of(alive, range->end - range->begin, true);

		error = count(copy, alive->mappers[range->owner].stack,
			      wire_freed_value(0, true, range->end - range->begin), &weight, -1);
	}
	return error;
}

/*
 * A part of a mapped range may have a class of sizes that nothing was allocated with; it makes a sum of its own. So
 * there may be more than in alive, and the numbers of one are below zero (modulo 2^64): all of a stack add up.
 */
int alive_freed(const struct alive *alive, struct alive_sum **result, uint32_t *result_count)
{
	struct alive copy = {.interval = alive->interval};
	int error = 0;

	for (uint32_t i = 0; i < alive->sum_count && !error; i++)
		error = count(&copy, alive->sums[i].stack, alive->sums[i].value, &alive->sums[i], 1);
	if (!error)
		error = subtract(&copy, alive);
	*result = error ? NULL : copy.sums;
	*result_count = copy.sum_count;
	if (!error)
		copy.sums = NULL;
	alive_done(&copy);
	return error;
}

void alive_done(struct alive *alive)
{
	free(alive->slots);
	free(alive->sums);
	u64_map_done(&alive->sum_numbers);
	free(alive->waiting);
	mapped_ranges_done(&alive->ranges);
	free(alive->mappers);
	*alive = (struct alive){0};
}
