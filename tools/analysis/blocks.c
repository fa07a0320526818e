/*
 * blocks.c - see blocks.h.
 */
#include "analysis/blocks.h"

#include <errno.h>
#include <stdlib.h>

#include "evprof/invariant.h"
#include "util/grow.h"

#define SIZE_BITS 30
#define BLOCK_LARGE ((UINT32_C(1) << SIZE_BITS) - 1) /* the size is in blocks->large */

/* --- by address --- */

/* No value of a block is 0. */
static uint64_t value_of(const struct heap_block *block)
{
	return (uint64_t)block->owner << 32 | (uint64_t)(block->source + 1) << SIZE_BITS;
}

static struct heap_block block_of(uint64_t address, uint64_t value, uint64_t bytes)
{
	return (struct heap_block){.address = address,
				   .bytes = bytes,
				   .owner = (uint32_t)(value >> 32),
				   .source = ((uint32_t)value >> SIZE_BITS) - 1};
}

/* The slot of an address, or the one that it would get. There is at least one slot. */
static inline struct block_slot *slot_of(const struct blocks *blocks, uint64_t address)
{
	uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
	size_t slot = (size_t)(hash ^ hash >> 29) & blocks->mask;

	while (blocks->slots[slot].address && blocks->slots[slot].address != address)
		slot = (slot + 1) & blocks->mask;
	return &blocks->slots[slot];
}

/* Makes the table anew, without the addresses where no block is; twice as large if that would free too few slots. */
static int renew_slots(struct blocks *blocks)
{
	size_t size = !blocks->slots ? 1024 : (blocks->mask + 1) << (blocks->alive * 8 > blocks->mask * 3);
	struct blocks grown = {.slots = calloc(size, sizeof(*grown.slots)), .mask = size - 1};

	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; blocks->slots && i <= blocks->mask; i++)
		if (blocks->slots[i].value)
			*slot_of(&grown, blocks->slots[i].address) = blocks->slots[i];
	free(blocks->slots);
	blocks->slots = grown.slots;
	blocks->mask = grown.mask;
	blocks->taken = blocks->alive;
	return 0;
}

/* Removes the block at an address. False: none is known. */
static inline bool take(struct blocks *blocks, uint64_t address, uint64_t *value, uint64_t *bytes)
{
	struct block_slot *slot;

	if (!address || !blocks->slots)
		return false;
	slot = slot_of(blocks, address);
	if (!slot->value)
		return false;
	*value = slot->value;
	slot->value = 0;
	invariant(blocks->alive);
	blocks->alive--;
	*bytes = *value & BLOCK_LARGE;
	if (__builtin_expect(*bytes == BLOCK_LARGE, 0))
		u64_map_take(&blocks->large, address, bytes);
	return true;
}

static int put_large(struct blocks *blocks, uint64_t address, uint64_t bytes)
{
	uint64_t *large = u64_map_make(&blocks->large, address);

	if (!large)
		return -ENOMEM;
	*large = bytes;
	return 0;
}

/* Puts a block at an address; one that was there is forgotten. */
static inline int put(struct blocks *blocks, uint64_t address, uint64_t value, uint64_t bytes)
{
	struct block_slot *slot;

	if (__builtin_expect(!blocks->slots || blocks->taken * 2 > blocks->mask, 0) && renew_slots(blocks) < 0)
		return -ENOMEM;
	if (__builtin_expect(bytes >= BLOCK_LARGE, 0) && put_large(blocks, address, bytes) < 0)
		return -ENOMEM;
	slot = slot_of(blocks, address);
	blocks->taken += !slot->address;
	blocks->alive += !slot->value;
	invariant(blocks->alive <= blocks->taken && blocks->taken * 2 <= blocks->mask + 1);
	slot->address = address;
	slot->value = (value & ~(uint64_t)BLOCK_LARGE) | (bytes < BLOCK_LARGE ? bytes : BLOCK_LARGE);
	return 0;
}

static void end(const struct blocks *blocks, uint64_t address, uint64_t value, uint64_t bytes, bool freed)
{
	const struct heap_block gone = block_of(address, value, bytes);

	blocks->gone(blocks->user, &gone, -1, freed);
}

static void end_at(struct blocks *blocks, uint64_t address, bool freed)
{
	uint64_t value, bytes;

	if (take(blocks, address, &value, &bytes))
		end(blocks, address, value, bytes, freed);
}

/* --- moves --- */

/* Ends a move whose block lives on. */
static int put_back(struct blocks *blocks, uint32_t thread)
{
	struct block_move move;

	if (!blocks->moves || thread >= blocks->move_count || !blocks->moves[thread].address)
		return 0;
	move = blocks->moves[thread];
	blocks->moves[thread].address = 0;
	if (!move.known)
		return 0;
	if (!blocks->slots || !slot_of(blocks, move.address)->value)
		return put(blocks, move.address, move.value, move.bytes);
	end(blocks, move.address, move.value, move.bytes, false);
	return 0;
}

static int begin_move(struct blocks *blocks, uint32_t thread, uint64_t address)
{
	struct block_move *move;
	int error = put_back(blocks, thread);

	if (!error)
		error = grow_for(&blocks->moves, &blocks->move_count, thread, sizeof(*blocks->moves));
	if (error)
		return error;
	move = &blocks->moves[thread];
	move->address = address;
	move->known = take(blocks, address, &move->value, &move->bytes);
	return 0;
}

/* A successful realloc ends its old block: the one that has begun to move, if it is from there. */
static int end_old(struct blocks *blocks, uint32_t thread, uint64_t old)
{
	struct block_move *move = thread < blocks->move_count ? &blocks->moves[thread] : NULL;
	int error;

	if (move && move->address && move->address == old) {
		if (move->known)
			end(blocks, old, move->value, move->bytes, true);
		move->address = 0;
		return 0;
	}
	error = put_back(blocks, thread);
	end_at(blocks, old, true);
	return error;
}

/* --- events --- */

static int pass_block(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra,
		      struct heap_block *made)
{
	uint64_t address = wire_memory_address(extra[0]);
	unsigned kind = wire_head_kind(head);
	int error = 0;

	if (kind == WIRE_FREE) {
		end_at(blocks, address, true);
		return 0;
	}
	if (kind == WIRE_REALLOC)
		error = address ? end_old(blocks, thread, wire_memory_address(extra[1])) : put_back(blocks, thread);
	if (error || !address)
		return error;
	end_at(blocks, address, false);
	*made = (struct heap_block){
	    .address = address, .bytes = wire_memory_size(head, extra[0]), .source = blocks_source_of(head)};
	return 0;
}

struct unmapping {
	const struct blocks *blocks;
	bool freed;
	struct mapped_range first; /* empty: none */
};

static void range_gone(void *user, const struct mapped_range *part, int more)
{
	struct unmapping *unmapping = user;
	const struct blocks *blocks = unmapping->blocks;
	const struct heap_block gone = {part->begin, part->end - part->begin, part->owner, BLOCK_MAPPED, false,
					part->shared};

	if (unmapping->first.begin == unmapping->first.end)
		unmapping->first = *part;
	blocks->gone(blocks->user, &gone, more, unmapping->freed);
}

/* What the thread has unmapped last is at that range: of a file, a block at its new place, or the block back. */
static void set_moved(const struct blocks *blocks, uint32_t thread, const struct mapped_range *range,
		      struct heap_block *made)
{
	const struct block_move *move = thread < blocks->move_count ? &blocks->moves[thread] : NULL;

	if (!move || move->part.begin == move->part.end)
		return;
	made->source = BLOCK_MAPPED;
	made->shared = move->part.shared;
	if (range->begin != move->unmapped.begin || range->end != move->unmapped.end)
		return;
	made->address = move->part.begin;
	made->bytes = move->part.end - move->part.begin;
	made->owner = move->part.owner;
	made->back = true;
}

static int pass_mapping(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra,
			struct heap_block *made)
{
	bool maps = wire_head_kind(head) == WIRE_MMAP;
	unsigned value = head >> WIRE_VALUE_SHIFT;
	struct mapped_range range = mapped_range_of(head, extra);
	struct unmapping unmapping = {blocks, !maps, {0}};
	int error = maps ? 0 : grow_for(&blocks->moves, &blocks->move_count, thread, sizeof(*blocks->moves));

	if (!error)
		error = mapped_ranges_remove(&blocks->ranges, range.begin, range.end, range_gone, &unmapping);
	if (error)
		return error;
	if (!maps) {
		blocks->moves[thread].unmapped = range;
		blocks->moves[thread].part = unmapping.first;
	} else if (range.begin != range.end) {
		*made = (struct heap_block){.address = range.begin,
					    .bytes = range.end - range.begin,
					    .source = value == WIRE_MMAP_ANONYMOUS || range.shared ? BLOCK_MAPPED
												   : BLOCK_OF_FILE,
					    .shared = range.shared};
		if (value == WIRE_MMAP_MOVED)
			set_moved(blocks, thread, &range, made);
	}
	return 0;
}

int blocks_pass(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra, struct heap_block *made)
{
	unsigned kind = wire_head_kind(head);

	*made = (struct heap_block){0};
	if (wire_is_memory(kind))
		return pass_block(blocks, thread, head, extra, made);
	if (kind == WIRE_MMAP || kind == WIRE_MUNMAP)
		return pass_mapping(blocks, thread, head, extra, made);
	if (kind == WIRE_REALLOC_BEGIN && wire_extra_words(head))
		return begin_move(blocks, thread, wire_memory_address(extra[0]));
	return kind == WIRE_REALLOC_BEGIN ? 0 : put_back(blocks, thread);
}

int blocks_add(struct blocks *blocks, const struct heap_block *made)
{
	const struct mapped_range range = {made->address, made->address + made->bytes, made->owner, made->shared};

	if (made->source == BLOCK_MAPPED)
		return mapped_ranges_add(&blocks->ranges, &range);
	return put(blocks, made->address, value_of(made), made->bytes);
}

static void note_freed(void *user, const struct heap_block *gone, int more, bool freed)
{
	uint64_t *bytes = user;

	(void)more;
	if (freed)
		*bytes = gone->bytes;
}

static int follow_rare(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra, uint64_t *freed)
{
	struct heap_block made;
	int error;

	blocks->gone = note_freed;
	/* cppcheck-suppress autoVariables ; for this call */
	blocks->user = freed;
	error = blocks_pass(blocks, thread, head, extra, &made);
	if (!error && made.address && made.source != BLOCK_OF_FILE)
		error = blocks_add(blocks, &made);
	blocks->user = NULL;
	return error;
}

int blocks_follow(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra, uint64_t *freed)
{
	unsigned kind = wire_head_plain_kind(head);
	uint64_t address, value;

	*freed = 0;
	if (kind != WIRE_FREE && kind != WIRE_MALLOC && kind != WIRE_CALLOC)
		return follow_rare(blocks, thread, head, extra, freed);
	address = wire_memory_address(extra[0]);
	if (kind == WIRE_FREE) {
		take(blocks, address, &value, freed);
		return 0;
	}
	value = UINT64_C(1) << SIZE_BITS; /* of nobody; the source does not matter */
	return address ? put(blocks, address, value, wire_memory_size(head, extra[0])) : 0;
}

void blocks_done(struct blocks *blocks)
{
	free(blocks->slots);
	u64_map_done(&blocks->large);
	mapped_ranges_done(&blocks->ranges);
	free(blocks->moves);
	*blocks = (struct blocks){0};
}
