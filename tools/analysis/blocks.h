/*
 * blocks.h - the blocks and mapped ranges of a process that are alive, followed event by event.
 *
 * Used by whatever needs to know which block an event ends: live.c, heap_curve.c, and the tables of events. The owner
 * passes the memory events of all threads of the process in order of time.
 *
 *   ends     a free ends the block at its address, a successful realloc the old one. A block is known by its address
 *            alone: it may be freed in another domain than it was allocated in
 *   moves    from a WIRE_REALLOC_BEGIN to the thread's next realloc the old block has no address, because another
 *            thread may get it meanwhile. If the realloc failed, or its event is missing, the block is back at its
 *            address, unless that is another block's by then: then the block is gone
 *   missing  a block at the address of a new one has ended, and its free was not recorded. Blocks from before the
 *            recording are unknown, and end nothing
 *   mapped   a range of mmap() without a file is a block; each part that munmap() leaves of it is one. What is mapped
 *            over a range ends it there. What mremap() moves is a new block if the old range had one; where it or
 *            munmap() failed, the block is back (the first, if there were several)
 *
 * Memory: 32 to 86 bytes a block, at their maximum.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_BLOCKS_H
#define EVPROF_TOOLS_ANALYSIS_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/mapped_ranges.h"
#include "evprof/wire.h"
#include "util/u64_map.h"

/* What allocated a block: Python's allocators, malloc() and its kin, mmap(). */
enum block_source {
	BLOCK_PYTHON,
	BLOCK_MALLOC,
	BLOCK_MAPPED,
	BLOCK_SOURCES,
	BLOCK_OF_FILE = BLOCK_SOURCES, /* a mapping of a file, which is no memory of the program's: never added */
};

struct heap_block {
	uint64_t address;
	uint64_t bytes;
	uint32_t owner; /* the caller's */
	enum block_source source;
	bool back;   /* a mapped range that has not ended, with its owner: the call failed */
	bool shared; /* as in struct mapped_range */
};

/*
 * Called for a block that ended, or a part of a mapped range. more: how many blocks more there are than before: -1;
 * of a part of a range also 0 or 1. freed: by the event that was passed; else its end was not recorded, or something
 * was mapped over it.
 */
typedef void block_gone(void *user, const struct heap_block *gone, int more, bool freed);

/* The old block of a realloc that has begun, and what was unmapped: it may have moved. */
struct block_move {
	uint64_t address; /* 0: none has begun */
	bool known;
	uint64_t value; /* as in struct block_slot */
	uint64_t bytes;
	struct mapped_range unmapped; /* by the thread's last munmap() */
	struct mapped_range part;     /* the first of it that was a block; empty: none was */
};

/*
 * A slot of the table by address. An address that was freed keeps its slot, because allocators use it again soon: then
 * neither event moves a slot. It loses the slot where the table is made anew.
 */
struct block_slot {
	uint64_t address; /* 0: free */
	uint64_t value;	  /* owner << 32 | (source + 1) << 30 | size, or BLOCK_LARGE; 0: no block */
};

/* All zeros but what the owner sets: no block. */
struct blocks {
	block_gone *gone;
	void *user;
	/* Internal. */
	struct block_slot *slots; /* open addressing, at most half of them taken */
	size_t mask;		  /* their number - 1 */
	size_t taken;		  /* slots with an address */
	size_t alive;		  /* slots with a block */
	struct u64_map large;	  /* address: size */
	struct mapped_ranges ranges;
	struct block_move *moves; /* by thread */
	uint32_t move_count;
};

/* Whether it is a memory event: of an allocation, a free or a mapping. */
static inline bool blocks_is_event(unsigned kind)
{
	return wire_is_memory(kind) || kind == WIRE_MMAP || kind == WIRE_MUNMAP;
}

/* What allocates or frees by such an event. */
static inline enum block_source blocks_source_of(uint32_t head)
{
	if (!wire_is_memory(wire_head_kind(head)))
		return BLOCK_MAPPED;
	return wire_memory_domain(head) == WIRE_DOMAIN_NATIVE ? BLOCK_MALLOC : BLOCK_PYTHON;
}

/* Whether blocks_pass() wants events of that kind: memory events, and the bookkeeping of moves. */
static inline bool blocks_want(unsigned kind)
{
	return blocks_is_event(kind) || kind == WIRE_REALLOC_BEGIN || kind == WIRE_GAP || kind == WIRE_PAUSE;
}

/*
 * Passes an event of such a kind; thread is its number in the trace. Sets *made to the block that the event makes, with
 * owner 0 if it is not back; its address is 0 if there is none. The block is followed from blocks_add() on.
 * Returns 0 or -ENOMEM.
 */
int blocks_pass(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra, struct heap_block *made);
int blocks_add(struct blocks *blocks, const struct heap_block *made);
/*
 * Both in one, for owners that want only the size of the block that the event frees: sets *freed to it, or to 0. The
 * owner sets no gone().
 */
int blocks_follow(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra, uint64_t *freed);
void blocks_done(struct blocks *blocks);

#endif
