/*
 * memory_estimate.h - what a sampled allocation stands for (EVPROF_MEMORY_INTERVAL).
 *
 * An allocation of s bytes is recorded with the probability p = 1 - exp(-s / interval), so it stands for 1 / p
 * allocations, of s bytes each. Sums of these are unbiased. An estimate depends on the size alone: what a block adds
 * is what its free takes away. Mapped ranges are all recorded.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_MEMORY_ESTIMATE_H
#define EVPROF_TOOLS_ANALYSIS_MEMORY_ESTIMATE_H

#include <stdint.h>

#define ESTIMATE_UNIT 1024u /* numbers of allocations are kept in 1024ths, as most stand for no whole number */

/* interval: 0 if every allocation was recorded, then the estimates are exact. */
uint64_t estimate_blocks(uint64_t interval, uint64_t size); /* in ESTIMATE_UNIT */
uint64_t estimate_bytes(uint64_t interval, uint64_t size);

/* The number of allocations, rounded. */
static inline uint64_t estimate_whole(uint64_t units)
{
	return (units + ESTIMATE_UNIT / 2) / ESTIMATE_UNIT;
}

#endif
