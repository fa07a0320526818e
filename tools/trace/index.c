/*
 * index.c - the index of a trace file, and the scan that replaces it. See chunk.h.
 */
#include "trace/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

#define SCAN_BLOCK_BYTES 65536

static int add_place(struct trace *trace, const struct trace_place *place)
{
	if (grow_by_one(&trace->places, &trace->place_allocated, trace->place_count, sizeof(*trace->places)))
		return -ENOMEM;
	trace->places[trace->place_count++] = *place;
	return 0;
}

static int add_chunk(struct trace *trace, uint64_t offset, const struct trace_chunk *chunk)
{
	struct trace_place place = {
	    .offset = offset,
	    .first_ticks = chunk->first_ticks,
	    .last_ticks = chunk->last_ticks,
	    .process = chunk->process,
	    .thread = chunk->thread,
	    .events = chunk->events,
	    .type = (uint8_t)chunk->type,
	    .holes = (uint16_t)trace->damage.holes,
	};

	if (chunk->type < TRACE_CHUNK_META || chunk->type > TRACE_CHUNK_CLOCK)
		return 0;
	return add_place(trace, &place);
}

uint64_t trace_find_chunk(const struct trace *trace, uint64_t offset, uint64_t end, struct trace_chunk *chunk)
{
	static const uint32_t magic = TRACE_CHUNK_MAGIC;
	char *block = malloc(SCAN_BLOCK_BYTES);

	while (block && offset < end) {
		size_t bytes = trace_read_at(trace, offset, block, SCAN_BLOCK_BYTES);
		char *at = block;

		while ((at = memmem(at, bytes - (size_t)(at - block), &magic, sizeof(magic)))) {
			uint64_t found = offset + (uint64_t)(at - block);

			if (found < end && trace_chunk_read(trace, found, chunk) == 0) {
				free(block);
				return found;
			}
			at++;
		}
		if (bytes < SCAN_BLOCK_BYTES)
			break;
		offset += bytes - sizeof(magic) + 1;
	}
	free(block);
	return end;
}

/* There is no valid chunk at offset: finds the next one after `from`, and counts the bytes between. */
static uint64_t skip_hole(struct trace *trace, uint64_t from, uint64_t offset, uint64_t end, struct trace_chunk *chunk)
{
	uint64_t found = trace_find_chunk(trace, from, end, chunk);

	if (found == end) {
		trace->damage.cut_bytes = end > offset ? end - offset : 0;
		return end;
	}
	trace->damage.holes++;
	trace->damage.hole_bytes += found > offset ? found - offset : 0;
	return found;
}

/* Whether there are only zeros up to a chunk, or up to the end. They are no damage. */
static bool skip_zeros(const struct trace *trace, uint64_t *offset, uint64_t end, struct trace_chunk *chunk)
{
	uint64_t found = trace_zeros_end(trace, *offset, end);

	if (found == *offset || (found < end && trace_chunk_read(trace, found, chunk) < 0))
		return false;
	*offset = found;
	return true;
}

/*
 * Finds the chunks from offset on without an index. If no chunk follows the last one, the search begins after its
 * header, not after its payload: bytes of the payload may be missing.
 */
static int scan(struct trace *trace, uint64_t offset)
{
	uint64_t end = trace->size_bytes - (trace->damage.bad_end ? 0 : sizeof(struct trace_end));
	uint64_t search = offset;
	struct trace_chunk chunk;

	trace->place_count = 0;
	trace->scanned_bytes = offset;
	while (offset < end) {
		uint64_t next;
		int error;

		if (trace_chunk_read(trace, offset, &chunk) < 0 && !skip_zeros(trace, &offset, end, &chunk))
			offset = skip_hole(trace, search, offset, end, &chunk);
		if (offset >= end)
			break;
		search = offset + sizeof(chunk);
		next = search + trace_padded(chunk.stored_bytes);
		if (search + chunk.stored_bytes > end) {
			uint64_t start = offset;

			offset = skip_hole(trace, search, offset, end, &chunk);
			if (offset < end)
				continue;
			trace->damage.cut_bytes = end - start;
			break;
		}
		error = add_chunk(trace, offset, &chunk);
		if (error)
			return error;
		offset = next;
		trace->scanned_bytes = next;
	}
	return 0;
}

static bool end_valid(const struct trace *trace, const struct trace_end *end)
{
	return end->magic == TRACE_END_MAGIC && end->crc == trace_crc(end, offsetof(struct trace_end, crc)) &&
	       end->index_offset >= trace->header.header_bytes && end->index_offset < trace->size_bytes;
}

static void read_end(struct trace *trace)
{
	struct trace_end end;

	trace->damage.bad_end = true;
	if (trace->size_bytes < trace->header.header_bytes + sizeof(end))
		return;
	if (trace_read_at(trace, trace->size_bytes - sizeof(end), &end, sizeof(end)) != sizeof(end))
		return;
	if (!end_valid(trace, &end))
		return;
	trace->end = end;
	trace->complete = true;
	trace->damage.bad_end = trace->damage.growing = false;
}

static int add_entry(struct trace *trace, const struct trace_index_entry *entry)
{
	uint64_t before = trace->place_count ? trace->places[trace->place_count - 1].offset : 0;
	struct trace_place place = {
	    .offset = entry->offset,
	    .first_ticks = entry->first_ticks,
	    .last_ticks = entry->last_ticks,
	    .process = entry->process,
	    .thread = entry->thread,
	    .events = entry->events,
	    .type = (uint8_t)entry->type,
	};

	if (entry->type < TRACE_CHUNK_META || entry->type > TRACE_CHUNK_CLOCK)
		return 0;
	if (entry->offset <= before || entry->offset >= trace->size_bytes)
		return -EBADMSG;
	if (entry->type == TRACE_CHUNK_EVENTS && entry->events > TRACE_CHUNK_EVENTS_MAX)
		return -EBADMSG;
	return add_place(trace, &place);
}

static int read_index_chunk(struct trace *trace, uint64_t offset, struct trace_payload *payload)
{
	const struct trace_index_entry *entries;
	uint32_t i;
	int error = trace_chunk_read(trace, offset, &payload->chunk);

	if (!error)
		error = trace_payload_at(trace, offset, payload, &trace->unzstd);
	if (error)
		return error;
	if (payload->chunk.raw_bytes != (uint64_t)payload->chunk.events * sizeof(*entries))
		return -EBADMSG;
	entries = (const struct trace_index_entry *)payload->raw;
	for (i = 0; i < payload->chunk.events && !error; i++)
		error = add_entry(trace, &entries[i]);
	return error;
}

/* Follows the chain of index chunks from the last to the first. Offsets must fall, so it ends. */
static int index_offsets(const struct trace *trace, uint64_t **offsets, size_t *count)
{
	uint64_t offset = trace->end.index_offset;
	size_t allocated = 0;

	while (offset) {
		struct trace_chunk chunk;

		if (trace_chunk_read(trace, offset, &chunk) < 0 || chunk.type != TRACE_CHUNK_INDEX ||
		    chunk.previous >= offset)
			return -EBADMSG;
		if (grow_by_one(offsets, &allocated, *count, sizeof(**offsets)))
			return -ENOMEM;
		(*offsets)[(*count)++] = offset;
		offset = chunk.previous;
	}
	return 0;
}

static int read_index(struct trace *trace)
{
	struct trace_payload payload = {0};
	uint64_t *offsets = NULL;
	size_t count = 0;
	int error = index_offsets(trace, &offsets, &count);

	while (count && !error)
		error = read_index_chunk(trace, offsets[--count], &payload);
	free(offsets);
	trace_payload_done(&payload);
	return error;
}

int trace_find_places(struct trace *trace)
{
	int error;

	read_end(trace);
	if (trace->complete) {
		error = read_index(trace);
		if (error != -EBADMSG)
			return error;
		trace->damage.bad_index = true;
	}
	return scan(trace, trace->header.header_bytes);
}

int trace_find_more_places(struct trace *trace)
{
	trace->damage.cut_bytes = 0; /* it may have been completed since */
	return scan(trace, trace->scanned_bytes);
}
