/*
 * layout.h - the constant part of the shared memory of a process (evprof/ring.h), read once and checked. Used by
 * whoever maps it: process.c for the collector, ring_writer.c for the sampler.
 */
#ifndef COLLECTOR_LAYOUT_H
#define COLLECTOR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/ring.h"

/* Whether the memory may be mapped at all. Returns NULL, or what is wrong with it. */
const char *layout_check_memfd(int memfd, uint64_t *size);

/* Reads the layout of such memory. Returns NULL, or in one line what is wrong with the memory. */
const char *layout_read(int memfd, struct ring_layout *layout);

/* Whether a ring may be there: in the file, and behind all that is no ring. */
bool layout_may_hold_ring(const struct ring_layout *layout, uint64_t offset, uint64_t bytes);

/* Whether the rings of all slots are at such places. For who writes them. */
bool layout_has_rings(const struct ring_layout *layout);

#endif
