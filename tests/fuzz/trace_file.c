/*
 * trace_file.c - takes traces apart and puts them together. See trace_file.h.
 */
#include "trace_file.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "collector/ring/events.h"

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

static uint32_t checksum(const void *bytes, size_t count)
{
	return (uint32_t)crc32_z(0, bytes, count);
}

static struct events_buffer *events_buffer(void)
{
	static struct events_buffer *buffer;

	if (!buffer)
		buffer = malloc(sizeof(struct events_buffer));
	if (!buffer)
		abort();
	return buffer;
}

/* --- apart --- */

static uint64_t from_planes(const uint8_t *planes, size_t count, size_t index, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned plane = 0; plane < bytes; plane++)
		value |= (uint64_t)planes[plane * count + index] << (8 * plane);
	return value;
}

/* The payload of an EVENTS chunk as words of a ring. It stays as it is where it is not well formed. */
static void to_words(struct trace_piece *piece)
{
	size_t events = piece->chunk.events;
	size_t extras = piece->chunk.extras;
	uint64_t words[TRACE_FILE_PIECE_BYTES / sizeof(uint64_t)];
	size_t used = 0;
	size_t extra = 0;

	if (piece->chunk.type != TRACE_CHUNK_EVENTS || events > sizeof(words) / sizeof(words[0]) ||
	    extras > sizeof(words) / sizeof(words[0]) || piece->count != (events + extras) * sizeof(uint64_t))
		return;
	for (size_t i = 0; i < events; i++) {
		uint32_t head;

		memcpy(&head, piece->bytes + i * sizeof(head), sizeof(head));
		if (extra + wire_extra_words(head) > extras)
			return;
		words[used++] = wire_word(head, (uint32_t)from_planes(piece->bytes + events * 4, events, i, 4));
		for (unsigned more = wire_extra_words(head); more > 0; more--)
			words[used++] = from_planes(piece->bytes + events * 8, extras, extra++, 8);
	}
	memcpy(piece->bytes, words, used * sizeof(words[0]));
	piece->count = used * sizeof(words[0]);
	piece->words = true;
}

static bool unpack(struct trace_piece *piece, const uint8_t *stored)
{
	size_t count = piece->chunk.stored_bytes;

	if (piece->chunk.codec == TRACE_CODEC_ZSTD)
		count = ZSTD_decompress(piece->bytes, TRACE_FILE_PIECE_BYTES, stored, count);
	else if (count <= TRACE_FILE_PIECE_BYTES)
		memcpy(piece->bytes, stored, count);
	if (ZSTD_isError(count) || count > TRACE_FILE_PIECE_BYTES)
		return false;
	piece->count = count;
	to_words(piece);
	return true;
}

bool trace_file_parse(struct trace_file *file, const uint8_t *bytes, size_t count)
{
	size_t at = sizeof(file->header);

	file->count = 0;
	if (count < sizeof(file->header))
		return false;
	memcpy(&file->header, bytes, sizeof(file->header));
	while (at + sizeof(struct trace_chunk) <= count && file->count < TRACE_FILE_PIECES) {
		struct trace_piece *piece = &file->pieces[file->count];
		size_t left = count - at - sizeof(piece->chunk);

		*piece = (struct trace_piece){.bytes = NULL};
		memcpy(&piece->chunk, bytes + at, sizeof(piece->chunk));
		if (piece->chunk.magic != TRACE_CHUNK_MAGIC || piece->chunk.stored_bytes > left) {
			at += 8;
			continue;
		}
		piece->bytes = malloc(TRACE_FILE_PIECE_BYTES);
		if (piece->bytes && piece->chunk.type != TRACE_CHUNK_INDEX &&
		    unpack(piece, bytes + at + sizeof(piece->chunk)))
			file->count++;
		else
			free(piece->bytes);
		at += sizeof(piece->chunk) + padded(piece->chunk.stored_bytes);
	}
	return true;
}

void trace_piece_done(struct trace_piece *piece)
{
	free(piece->bytes);
	piece->bytes = NULL;
}

void trace_file_done(struct trace_file *file)
{
	for (unsigned i = 0; i < file->count; i++)
		trace_piece_done(&file->pieces[i]);
	file->count = 0;
}

bool trace_piece_copy(struct trace_piece *copy, const struct trace_piece *piece)
{
	uint8_t *bytes = malloc(TRACE_FILE_PIECE_BYTES);

	if (!bytes)
		return false;
	*copy = *piece;
	copy->bytes = bytes;
	memcpy(bytes, piece->bytes, piece->count);
	return true;
}

/* --- together --- */

struct builder {
	uint8_t *bytes;
	size_t used;
	size_t room;
	struct trace_index_entry entries[TRACE_FILE_PIECES];
	unsigned entry_count;
	uint64_t events;
	bool full;
};

static void add(struct builder *builder, const void *bytes, size_t count)
{
	static const uint8_t zeros[8];
	size_t padding = padded(count) - count;

	if (builder->full || count + padding > builder->room - builder->used) {
		builder->full = true;
		return;
	}
	if (count > 0)
		memcpy(builder->bytes + builder->used, bytes, count);
	memcpy(builder->bytes + builder->used + count, zeros, padding);
	builder->used += count + padding;
}

void trace_chunk_seal(uint8_t *bytes)
{
	struct trace_chunk chunk;

	memcpy(&chunk, bytes, sizeof(chunk));
	chunk.crc = checksum(&chunk, offsetof(struct trace_chunk, crc));
	memcpy(bytes, &chunk, sizeof(chunk));
}

static void add_chunk(struct builder *builder, struct trace_chunk chunk, const void *raw, size_t count)
{
	uint8_t packed[ZSTD_COMPRESSBOUND(TRACE_FILE_PIECE_BYTES)];
	const void *stored = raw;

	chunk.magic = TRACE_CHUNK_MAGIC;
	chunk.raw_bytes = (uint32_t)count;
	if (chunk.codec == TRACE_CODEC_ZSTD) {
		count = ZSTD_compress(packed, sizeof(packed), raw, count, 1);
		stored = packed;
	}
	chunk.stored_bytes = (uint32_t)count;
	chunk.payload_crc = checksum(stored, count);
	chunk.crc = checksum(&chunk, offsetof(struct trace_chunk, crc));
	add(builder, &chunk, sizeof(chunk));
	add(builder, stored, count);
}

static void add_piece(struct builder *builder, const struct trace_piece *piece)
{
	struct trace_chunk chunk = piece->chunk;
	const void *raw = piece->bytes;
	size_t count = piece->count;
	uint64_t at = builder->used;

	if (piece->words) {
		struct events events;

		memcpy(events_buffer()->words, piece->bytes, count & ~(size_t)7);
		events_split(events_buffer(), count / sizeof(uint64_t), chunk.first_ticks, &events);
		raw = events_payload(events_buffer(), &events, &count);
		chunk.events = events.events;
		chunk.extras = events.extras;
		builder->events += events.events;
	}
	add_chunk(builder, chunk, raw, count);
	builder->entries[builder->entry_count++] = (struct trace_index_entry){.offset = at,
									      .first_ticks = chunk.first_ticks,
									      .last_ticks = chunk.last_ticks,
									      .process = chunk.process,
									      .thread = chunk.thread,
									      .events = chunk.events,
									      .type = chunk.type};
}

static void add_end(struct builder *builder)
{
	struct trace_chunk chunk = {
	    .type = TRACE_CHUNK_INDEX, .process = TRACE_NOBODY, .thread = TRACE_NOBODY, .events = builder->entry_count};
	struct trace_end end = {
	    .magic = TRACE_END_MAGIC, .index_offset = builder->used, .events = builder->events, .processes = 1};

	add_chunk(builder, chunk, builder->entries, builder->entry_count * sizeof(builder->entries[0]));
	end.crc = checksum(&end, offsetof(struct trace_end, crc));
	add(builder, &end, sizeof(end));
}

size_t trace_file_build(const struct trace_file *file, bool whole, uint8_t *bytes, size_t room)
{
	struct builder builder = {.bytes = bytes, .room = room};
	struct trace_header header = file->header;

	memcpy(header.magic, TRACE_MAGIC, sizeof(header.magic));
	header.version = TRACE_VERSION;
	header.header_bytes = sizeof(header);
	header.incompatible = 0;
	header.crc = checksum(&header, offsetof(struct trace_header, crc));
	add(&builder, &header, sizeof(header));
	for (unsigned i = 0; i < file->count; i++)
		add_piece(&builder, &file->pieces[i]);
	if (whole)
		add_end(&builder);
	return builder.full ? 0 : builder.used;
}
