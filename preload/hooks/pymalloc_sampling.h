/*
 * pymalloc_sampling.h - sampled allocations of the domains that pymalloc serves (mem and object).
 *
 * pymalloc takes a block of more than 512 bytes from the raw domain, and frees it there. So a small block in the sample
 * is asked for as one of 513: the hook of the raw domain sees its free, and the free of these domains stays pymalloc's
 * own function. A small block that is not in the sample costs the countdown of its bytes and a jump.
 *
 * After that jump nothing says that an allocator of Python's runs. So the arenas, whose mappings are none of the
 * program's, have an allocator of their own that says it. pymalloc's tables of arenas, some KiB in a process, count as
 * blocks of the raw domain.
 *
 * Not for other allocators (debug, mimalloc), nor where a hook needs a look at each allocation (calls, until 3.11).
 */
#ifndef PRELOAD_PYMALLOC_SAMPLING_H
#define PRELOAD_PYMALLOC_SAMPLING_H

#include "python/python.h"

/*
 * If memory is sampled: sets the allocator of arenas, and learns whether Python uses pymalloc. Before evprof's
 * allocators are set. Further calls do nothing. GIL held.
 */
void pymalloc_sampling_begin(void);

/* Whether that allocator of that domain is pymalloc, and its allocations are sampled in this way. */
bool pymalloc_sampling_serves(int domain, const struct python_allocator *present);

/* The allocator over pymalloc. domain: not the raw one. */
struct python_allocator pymalloc_sampling_allocator(int domain);

/* Whether that allocator is one of these. */
bool pymalloc_sampling_is(const struct python_allocator *allocator);

#endif
