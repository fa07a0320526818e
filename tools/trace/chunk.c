/*
 * chunk.c - bytes of a trace file, and its chunks. See chunk.h.
 */
#include "trace/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

uint32_t trace_crc(const void *bytes, size_t length)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)length);
}

/* --- bytes --- */

static size_t read_memory(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes)
{
	if (offset >= trace->size_bytes)
		return 0;
	if (bytes > trace->size_bytes - offset)
		bytes = (size_t)(trace->size_bytes - offset);
	memcpy(buffer, trace->memory + offset, bytes);
	return bytes;
}

size_t trace_read_at(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes)
{
	size_t done = 0;

	if (trace->fd < 0)
		return read_memory(trace, offset, buffer, bytes);
	while (done < bytes) {
		ssize_t count = pread(trace->fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break;
		done += (size_t)count;
	}
	return done;
}

/* Skips what the file system has no data for, however long it is. */
static uint64_t next_data(const struct trace *trace, uint64_t offset)
{
	off_t found = trace->fd >= 0 ? lseek(trace->fd, (off_t)offset, SEEK_DATA) : -1;

	if (trace->fd >= 0 && found < 0 && errno == ENXIO)
		return trace->size_bytes;
	return found > (off_t)offset ? (uint64_t)found & ~UINT64_C(7) : offset;
}

uint64_t trace_zeros_end(const struct trace *trace, uint64_t offset, uint64_t end)
{
	uint64_t words[512];

	while ((offset = next_data(trace, offset)) < end) {
		size_t count = trace_read_at(trace, offset, words, sizeof(words)) / sizeof(words[0]), i = 0;

		while (i < count && !words[i])
			i++;
		offset += i * sizeof(words[0]);
		if (i < count || !count)
			break;
	}
	return offset < end ? offset : end;
}

int trace_reserve(void **buffer, size_t *allocated, size_t bytes)
{
	void *grown;

	if (*buffer && bytes <= *allocated)
		return 0;
	grown = realloc(*buffer, bytes ? bytes : 1);
	if (!grown)
		return -ENOMEM;
	*buffer = grown;
	*allocated = bytes;
	return 0;
}

/* --- chunks --- */

static bool chunk_valid(const struct trace_chunk *chunk)
{
	return chunk->magic == TRACE_CHUNK_MAGIC && chunk->stored_bytes <= TRACE_PAYLOAD_MAX_BYTES &&
	       chunk->raw_bytes <= TRACE_PAYLOAD_MAX_BYTES && chunk->events <= TRACE_PAYLOAD_MAX_BYTES &&
	       chunk->crc == trace_crc(chunk, offsetof(struct trace_chunk, crc));
}

int trace_chunk_read(const struct trace *trace, uint64_t offset, struct trace_chunk *chunk)
{
	struct trace_chunk copy;

	if (trace_read_at(trace, offset, &copy, sizeof(copy)) != sizeof(copy) || !chunk_valid(&copy))
		return -EBADMSG;
	*chunk = copy;
	return 0;
}

static int unpack_stored(struct trace_payload *payload, void **unzstd)
{
	const struct trace_chunk *chunk = &payload->chunk;
	size_t unpacked;

	if (!*unzstd)
		*unzstd = ZSTD_createDCtx();
	if (!*unzstd)
		return -ENOMEM;
	unpacked = ZSTD_decompressDCtx(*unzstd, payload->raw, chunk->raw_bytes, payload->stored, chunk->stored_bytes);
	return ZSTD_isError(unpacked) || unpacked != chunk->raw_bytes ? -EBADMSG : 0;
}

int trace_payload_at(const struct trace *trace, uint64_t offset, struct trace_payload *payload, void **unzstd)
{
	const struct trace_chunk *chunk = &payload->chunk;
	bool plain = chunk->codec == TRACE_CODEC_NONE;
	uint8_t *stored;

	if (chunk->codec > TRACE_CODEC_ZSTD || (plain && chunk->stored_bytes != chunk->raw_bytes))
		return -EBADMSG;
	if (trace_reserve((void **)&payload->raw, &payload->raw_allocated, chunk->raw_bytes) < 0 ||
	    (!plain && trace_reserve((void **)&payload->stored, &payload->stored_allocated, chunk->stored_bytes) < 0))
		return -ENOMEM;
	stored = plain ? payload->raw : payload->stored;
	if (trace_read_at(trace, offset + sizeof(*chunk), stored, chunk->stored_bytes) != chunk->stored_bytes ||
	    trace_crc(stored, chunk->stored_bytes) != chunk->payload_crc)
		return -EBADMSG;
	return plain ? 0 : unpack_stored(payload, unzstd);
}

static bool chunk_is_at(const struct trace_place *place, const struct trace_chunk *chunk)
{
	return chunk->type == place->type && chunk->process == place->process && chunk->thread == place->thread &&
	       (chunk->type != TRACE_CHUNK_EVENTS || chunk->events == place->events);
}

void trace_note_damage(struct trace *trace, struct trace_place *place)
{
	if (place->damaged)
		return;
	place->damaged = true;
	trace->damage.chunks++;
	if (place->type == TRACE_CHUNK_EVENTS)
		trace->damage.events += place->events;
}

int trace_fetch(const struct trace *trace, const struct trace_place *place, struct trace_payload *payload,
		void **unzstd)
{
	if (trace_chunk_read(trace, place->offset, &payload->chunk) < 0 || !chunk_is_at(place, &payload->chunk))
		return -EBADMSG;
	return trace_payload_at(trace, place->offset, payload, unzstd);
}

void trace_unzstd_free(void *unzstd)
{
	ZSTD_freeDCtx(unzstd);
}

int trace_note_error(struct trace *trace, struct trace_place *place, int error)
{
	if (error == -EBADMSG)
		trace_note_damage(trace, place);
	if (error == -ENOMEM)
		trace->damage.out_of_memory = true;
	return error;
}

int trace_read_payload(struct trace *trace, struct trace_place *place, struct trace_payload *payload)
{
	int error = place->damaged ? -EBADMSG : trace_fetch(trace, place, payload, &trace->unzstd);

	return trace_note_error(trace, place, error);
}

void trace_payload_done(struct trace_payload *payload)
{
	free(payload->raw);
	free(payload->stored);
	free(payload->ticks);
	memset(payload, 0, sizeof(*payload));
}
