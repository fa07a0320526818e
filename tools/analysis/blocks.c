/*
 * blocks.c - see blocks.h.
 */
#include "analysis/blocks.h"

#include <errno.h>
#include <stdlib.h>

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
	return (struct heap_block){address, bytes, (uint32_t)(value >> 32), ((uint32_t)value >> SIZE_BITS) - 1};
}

/* Removes the block at an address. False: none is known. */
static bool take(struct blocks *blocks, uint64_t address, uint64_t *value, uint64_t *bytes)
{
	if (!address || !u64_map_take(&blocks->at, address, value))
		return false;
	*bytes = *value & BLOCK_LARGE;
	if (*bytes == BLOCK_LARGE)
		u64_map_take(&blocks->large, address, bytes);
	return true;
}

static int put(struct blocks *blocks, uint64_t address, uint64_t value, uint64_t bytes)
{
	uint64_t *large = bytes < BLOCK_LARGE ? NULL : u64_map_make(&blocks->large, address), *block;

	if (bytes >= BLOCK_LARGE && !large)
		return -ENOMEM;
	block = u64_map_make(&blocks->at, address);
	if (!block)
		return -ENOMEM;
	*block = (value & ~(uint64_t)BLOCK_LARGE) | (large ? BLOCK_LARGE : bytes);
	if (large)
		*large = bytes;
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
	blocks->moves[thread] = (struct block_move){0};
	if (!move.known)
		return 0;
	if (!u64_map_value(&blocks->at, move.address))
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
		*move = (struct block_move){0};
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
	*made =
	    (struct heap_block){.address = address,
				.bytes = wire_memory_size(head, extra[0]),
				.source = wire_memory_domain(head) == WIRE_DOMAIN_NATIVE ? BLOCK_MALLOC : BLOCK_PYTHON};
	return 0;
}

struct unmapping {
	const struct blocks *blocks;
	bool freed;
};

static void range_gone(void *user, const struct mapped_range *part, int more)
{
	const struct unmapping *unmapping = user;
	const struct blocks *blocks = unmapping->blocks;
	const struct heap_block gone = {part->begin, part->end - part->begin, part->owner, BLOCK_MAPPED};

	blocks->gone(blocks->user, &gone, more, unmapping->freed);
}

static int pass_mapping(struct blocks *blocks, uint32_t head, const uint64_t *extra, struct heap_block *made)
{
	bool maps = wire_head_kind(head) == WIRE_MMAP;
	struct mapped_range range = mapped_range_of(head, extra);
	struct unmapping unmapping = {blocks, !maps};
	int error = mapped_ranges_remove(&blocks->ranges, range.begin, range.end, range_gone, &unmapping);

	if (!error && maps && range.begin != range.end)
		*made = (struct heap_block){.address = range.begin,
					    .bytes = range.end - range.begin,
					    .source = head >> WIRE_VALUE_SHIFT ? BLOCK_OF_FILE : BLOCK_MAPPED};
	return error;
}

int blocks_pass(struct blocks *blocks, uint32_t thread, uint32_t head, const uint64_t *extra, struct heap_block *made)
{
	unsigned kind = wire_head_kind(head);

	*made = (struct heap_block){0};
	if (wire_is_memory(kind))
		return pass_block(blocks, thread, head, extra, made);
	if (kind == WIRE_MMAP || kind == WIRE_MUNMAP)
		return pass_mapping(blocks, head, extra, made);
	if (kind == WIRE_REALLOC_BEGIN && wire_extra_words(head))
		return begin_move(blocks, thread, wire_memory_address(extra[0]));
	return kind == WIRE_REALLOC_BEGIN ? 0 : put_back(blocks, thread);
}

int blocks_add(struct blocks *blocks, const struct heap_block *made)
{
	const struct mapped_range range = {made->address, made->address + made->bytes, made->owner};

	if (made->source == BLOCK_MAPPED)
		return mapped_ranges_add(&blocks->ranges, &range);
	return put(blocks, made->address, value_of(made), made->bytes);
}

void blocks_done(struct blocks *blocks)
{
	u64_map_done(&blocks->at);
	u64_map_done(&blocks->large);
	mapped_ranges_done(&blocks->ranges);
	free(blocks->moves);
	*blocks = (struct blocks){0};
}
