/*
 * mapped_ranges.h - the mapped ranges of a process: what mmap() gave and munmap() has not taken back.
 *
 * Used by blocks.c. A range is sorted in by its begin and may be unmapped in parts: a part in the middle
 * leaves two. The kernel allows a process 65,530 ranges (vm.max_map_count); an insertion moves those behind it.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_MAPPED_RANGES_H
#define EVPROF_TOOLS_ANALYSIS_MAPPED_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_range {
	uint64_t begin;
	uint64_t end;	/* the first byte after it */
	uint32_t owner; /* the caller's */
	bool shared;	/* WIRE_MMAP_SHARED: no anonymous memory for the kernel */
};

/* All zeros: none. */
struct mapped_ranges {
	struct mapped_range *at; /* sorted; they do not overlap */
	size_t count;
	size_t allocated;
};

/* For a part of a range that is gone. more: how many ranges more are left than before: -1, 0 or 1. */
typedef void mapped_gone(void *user, const struct mapped_range *gone, int more);

/* Removes what is mapped from begin to end, part by part. Returns 0, or -ENOMEM, which changes nothing. */
int mapped_ranges_remove(struct mapped_ranges *ranges, uint64_t begin, uint64_t end, mapped_gone *gone, void *user);
/* Adds a range where nothing is mapped. Returns 0 or -ENOMEM. */
int mapped_ranges_add(struct mapped_ranges *ranges, const struct mapped_range *range);
void mapped_ranges_done(struct mapped_ranges *ranges);

/*
 * The range of a WIRE_MMAP or WIRE_MUNMAP. The kernel maps whole pages, so it ends at a multiple of 4 KiB. Without
 * one, as in a damaged trace, begin is end.
 */
struct mapped_range mapped_range_of(uint32_t head, const uint64_t *extra);

#endif
