/*
 * alive.h - the live blocks of a process and the sums of its allocations by stack, without their order.
 *
 * For recordings that keep what is alive and no events (EVPROF_KEEP=alive). Threads' events reach a trace in batches,
 * so that a block may be freed by a batch that comes before the one that allocates it. So nothing is matched:
 *
 *   block    the last event of an address decides, by its time: it is alive if that is an allocation. An address that
 *            was freed is remembered for a while (alive_forget()), because an earlier allocation may still come
 *   sums     each allocation counts for its stack. What was freed is that without the live blocks
 *   mapped   munmap() takes parts of ranges, which needs their order: such events wait (alive_settle()). What has moved
 *            is known by the range that was unmapped for it, one of the last ALIVE_UNMAPPED
 *
 * The result depends on the events only, not on the order of the batches; of each thread they come in order. Two sets
 * of batches can be counted alone and joined (alive_join()).
 *
 * At the same time: in a thread the later event, else the allocation. A free is recorded before it happens and an
 * allocation after, so the one that follows a free in another thread may have its time.
 *
 * Memory: 80 to 160 bytes for each address, at their maximum, and 60 for each stack and class of sizes.
 */
#ifndef EVPROF_TOOLS_ALIVE_ALIVE_H
#define EVPROF_TOOLS_ALIVE_ALIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/mapped_ranges.h"
#include "evprof/wire.h"
#include "util/u64_map.h"

#define ALIVE_RECENT 256
#define ALIVE_UNMAPPED 16

struct alive_block {
	uint64_t address; /* 0: a free slot */
	uint64_t ticks;	  /* of its last event */
	uint64_t bytes;
	uint32_t stack;	 /* the owner's number */
	uint16_t thread; /* the low bits of its number */
	uint8_t domain;	 /* enum wire_domain */
	bool freed;
};

/* What distinguishes sums of one stack: wire_freed_value(). */
struct alive_sum {
	uint32_t stack;
	uint32_t value;
	uint64_t units; /* allocations, in ESTIMATE_UNIT */
	uint64_t bytes;
	uint64_t temporary;
};

/* A WIRE_MMAP or WIRE_MUNMAP. */
struct alive_mapping {
	struct mapped_range range;
	struct mapped_range from; /* of WIRE_MMAP_MOVED: what was unmapped for it */
	uint64_t ticks;
	uint32_t head;
	uint32_t stack;
};

/* Whose a mapped range is: the owner of struct mapped_range is its index. */
struct alive_mapper {
	uint64_t ticks;
	uint32_t stack;
};

/* A range that was unmapped. */
struct alive_unmapped {
	struct mapped_range range;
	struct mapped_range part; /* the first of it that was a block; empty: none was */
	struct alive_mapper mapper;
};

/* All zeros but the interval: nothing was counted yet. */
struct alive {
	uint64_t interval; /* of the sampling of allocations; 0: each is recorded */
	struct alive_block *slots;
	size_t mask;  /* their number - 1 */
	size_t taken; /* slots with an address */
	uint64_t forgotten_ticks;
	struct alive_sum *sums;
	uint32_t sum_count;
	size_t sums_allocated;
	struct u64_map sum_numbers;
	uint32_t recent_sums[ALIVE_RECENT]; /* numbers of sums, from 1, by a hash: most are found there */
	struct alive_mapping *waiting;	    /* in the order of their times */
	size_t waiting_count, waiting_allocated;
	struct mapped_ranges ranges; /* after those that do not wait */
	struct alive_mapper *mappers;
	size_t mapper_count, mappers_allocated;
	struct alive_unmapped unmapped[ALIVE_UNMAPPED];
	size_t unmapped_count; /* so far: the next one is at its remainder */
};

/* Each returns 0 or -ENOMEM. */
int alive_allocate(struct alive *alive, const struct alive_block *block);
int alive_free(struct alive *alive, uint64_t address, uint64_t ticks, uint32_t thread);
/* A block of that size and stack was temporary. */
int alive_note_temporary(struct alive *alive, uint32_t stack, unsigned domain, bool mapped, uint64_t bytes);
/* Allocations whose blocks are gone, as a WIRE_FREED has them. */
int alive_add_freed(struct alive *alive, const struct alive_sum *freed);
int alive_map(struct alive *alive, const struct alive_mapping *mapping);
/* Counts the waiting mappings before that time: no earlier one comes. */
int alive_settle(struct alive *alive, uint64_t before_ticks);
/* later: for each thread, what came after that of alive; both count with the same stacks. It is not changed. */
int alive_join(struct alive *alive, const struct alive *later);
void alive_done(struct alive *alive);

/* Addresses that were freed before that time may be forgotten: no earlier event comes. */
static inline void alive_forget(struct alive *alive, uint64_t before_ticks)
{
	if (before_ticks > alive->forgotten_ticks)
		alive->forgotten_ticks = before_ticks;
}

/* The number of slots; those that alive_is_block() names hold live blocks. */
static inline size_t alive_slots(const struct alive *alive)
{
	return alive->slots ? alive->mask + 1 : 0;
}

static inline bool alive_is_block(const struct alive_block *slot)
{
	return slot->address && !slot->freed;
}

/*
 * What was allocated and is gone, by stack: the sums without what is alive. The caller frees the array. Waiting
 * mappings are in neither. Returns 0 or -ENOMEM.
 */
int alive_freed(const struct alive *alive, struct alive_sum **result, uint32_t *count);

#endif
