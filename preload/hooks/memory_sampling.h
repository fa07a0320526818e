/*
 * memory_sampling.h - which allocations are recorded where they are sampled by bytes (EVPROF_MEMORY_INTERVAL).
 *
 * The bytes that a thread allocates are a line with random points on it (a Poisson process), one each interval bytes on
 * average. An allocation with a point in its bytes is recorded: one of s bytes with the probability
 * 1 - exp(-s / interval), whatever was allocated before. So a thread counts down the bytes to its next point.
 *
 * The frees of recorded blocks are recorded, and no others. The process keeps the addresses of recorded live blocks:
 *
 *   filter  a count of the addresses for each of 16384 classes. It stays in the first cache, and a free of a block
 *           whose class has none loads one byte
 *   table   open addressing: an address is in one of two buckets of a cache line each
 *
 * Both are changed by atomic steps, without a lock, in any thread and in signal handlers. A thread that frees a block
 * has it from the thread that allocated it, so it sees what that one wrote before. A block leaves the table before it
 * is freed, so another thread that gets its address adds it anew. The child of a fork has a copy.
 *
 * invariant: the count of a class is at least the number of its addresses in the table
 *
 * Where both buckets of an address are full, the allocation is lost, and counted as lost.
 */
#ifndef PRELOAD_MEMORY_SAMPLING_H
#define PRELOAD_MEMORY_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/writer.h"

#define MEMORY_SAMPLING_CLASSES 16384u

extern _Atomic uint8_t memory_sampling_filter[MEMORY_SAMPLING_CLASSES];

/* Adjacent blocks have adjacent classes, so few lines of the filter are in use at a time. */
static inline unsigned memory_sampling_class(uintptr_t address)
{
	return (unsigned)(address >> 4 ^ address >> 18) % MEMORY_SAMPLING_CLASSES;
}

/* Draws the bytes to the next point. state: of the generator; any value. */
uint64_t memory_sampling_draw(uint64_t *state, uint64_t interval);

/* Off the fast path: the first allocation of a thread, or one with a point in its bytes. */
bool memory_sampling_reach(size_t size) __attribute__((cold, noinline));
bool memory_sampling_find(const void *block) __attribute__((cold, noinline));

/* Whether the calling thread's allocation of that size is recorded; passes its bytes. */
static inline __attribute__((always_inline)) bool memory_sampling_takes(size_t size)
{
	if (unlikely(size > thread_self.sampling_left))
		return memory_sampling_reach(size);
	thread_self.sampling_left -= size;
	return false;
}

/* Notes a recorded block. False: there is no room, so its allocation must not be recorded. */
bool memory_sampling_add(const void *block) __attribute__((cold, noinline));

/* By the filter: false if it is not in the table. */
static inline __attribute__((always_inline)) bool memory_sampling_may_know(const void *block)
{
	return atomic_load_explicit(&memory_sampling_filter[memory_sampling_class((uintptr_t)block)],
				    memory_order_relaxed) != 0;
}

/* A block is about to be freed, or moved: whether its allocation was recorded. It is forgotten. */
static inline __attribute__((always_inline)) bool memory_sampling_remove(const void *block)
{
	return unlikely(memory_sampling_may_know(block)) && memory_sampling_find(block);
}

/*
 * A realloc: what of it is recorded. The new size decides before it runs, so that the old block is out of the table
 * when its address may be another thread's. Where only its end is recorded, the event has the size 0.
 */
enum memory_sampling_part {
	MEMORY_SAMPLING_OLD = 1, /* the end of the old block */
	MEMORY_SAMPLING_NEW = 2, /* the new block */
	MEMORY_SAMPLING_LOST = 4,
};

static inline __attribute__((always_inline)) unsigned memory_sampling_realloc_begin(const void *old, size_t size)
{
	return (old && memory_sampling_remove(old) ? MEMORY_SAMPLING_OLD : 0u) |
	       (memory_sampling_takes(size) ? MEMORY_SAMPLING_NEW : 0u);
}

/* made: NULL if it failed; then the old block lives on. parts: not 0. Returns what is recorded. */
unsigned memory_sampling_realloc_end(unsigned parts, const void *old, const void *made) __attribute__((cold, noinline));

#endif
