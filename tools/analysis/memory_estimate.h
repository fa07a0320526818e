/*
 * memory_estimate.h - what a sampled allocation stands for (EVPROF_MEMORY_INTERVAL).
 *
 * An allocation of s bytes is recorded with the probability p = 1 - exp(-s / interval), so it stands for 1 / p
 * allocations, of s bytes each. Sums of these are unbiased. An estimate depends on the size alone: what a block adds
 * is what its free takes away. Mapped ranges are all recorded.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_MEMORY_ESTIMATE_H
#define EVPROF_TOOLS_ANALYSIS_MEMORY_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/wire.h"

#define ESTIMATE_UNIT 1024u /* numbers of allocations are kept in 1024ths, as most stand for no whole number */

/* interval: 0 if every allocation was recorded, then the estimates are exact. */
uint64_t estimate_blocks(uint64_t interval, uint64_t size); /* in ESTIMATE_UNIT */
uint64_t estimate_bytes(uint64_t interval, uint64_t size);

/*
 * What an event allocates of Python's allocators and of malloc(): one block, or those whose events are not in the trace
 * (WIRE_FREED). False: nothing.
 */
static inline bool estimate_event(uint64_t interval, uint32_t head, const uint64_t *extra, uint64_t *units,
				  uint64_t *bytes)
{
	unsigned kind = wire_head_kind(head);
	uint64_t size;

	if (kind == WIRE_FREED && !(head >> WIRE_VALUE_SHIFT & WIRE_FREED_MAPPED)) {
		*units = extra[0];
		*bytes = extra[1];
		return true;
	}
	if (!wire_is_memory(kind) || kind == WIRE_FREE || !wire_memory_address(extra[0]))
		return false;
	size = wire_memory_size(head, extra[0]);
	*units = estimate_blocks(interval, size);
	*bytes = estimate_bytes(interval, size);
	return true;
}

/* The number of allocations, rounded. */
static inline uint64_t estimate_whole(uint64_t units)
{
	return (units + ESTIMATE_UNIT / 2) / ESTIMATE_UNIT;
}

#endif
