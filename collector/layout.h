/*
 * layout.h - the constant part of the shared memory of a process (evprof/ring.h), read once and checked. Used by
 * whoever maps it: process.c for the collector, ring_writer.c for the sampler.
 */
#ifndef COLLECTOR_LAYOUT_H
#define COLLECTOR_LAYOUT_H

#include <stdint.h>

/* The constant part of ring_header: copied once, checked, then used. */
struct layout {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t size_bytes;
	uint64_t definitions_offset;
	uint64_t definitions_bytes;
	uint64_t slots_offset;
	uint32_t slot_count;
	uint32_t slot_bytes;
	uint32_t clock_kind;
	uint32_t clock_shift;
	uint64_t start_ticks;
};

/* Whether the memory may be mapped at all. Returns NULL, or what is wrong with it. */
const char *layout_check_memfd(int memfd, uint64_t *size);

/* Reads the layout of such memory. Returns NULL, or in one line what is wrong with the memory. */
const char *layout_read(int memfd, struct layout *layout);

#endif
