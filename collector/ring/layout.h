/*
 * layout.h - the constant part of a process's shared memory (evprof/ring.h), read once and checked. Used by its
 * mappers: process.c for the collector, ring_writer.c for the sampler.
 */
#ifndef COLLECTOR_LAYOUT_H
#define COLLECTOR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/ring.h"

/* Checks that the memory may be mapped. Returns NULL or the error. */
const char *layout_check_memfd(int memfd, uint64_t *size);

/* Reads and checks the layout of such memory. Returns NULL or the error, in one line. */
const char *layout_read(int memfd, struct ring_layout *layout);

/* Whether a ring may be at the offset: inside the file, and after header, definitions and slots. */
bool layout_may_hold_ring(const struct ring_layout *layout, uint64_t offset, uint64_t bytes);

/* Whether the rings of all slots are at such offsets. For producers. */
bool layout_has_rings(const struct ring_layout *layout);

#endif
