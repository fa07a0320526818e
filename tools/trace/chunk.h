/*
 * chunk.h - the chunks of a trace file: bytes that were checked and unpacked. For the files of this room.
 *
 * The only unit of the tools that uses zstd.
 */
#ifndef EVPROF_TOOLS_TRACE_CHUNK_H
#define EVPROF_TOOLS_TRACE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/* The payload of a chunk. */
struct trace_payload {
	uint8_t *raw;
	size_t raw_allocated;
	uint8_t *stored;
	size_t stored_allocated;
	uint32_t *ticks;
	size_t ticks_allocated;
	struct trace_chunk chunk;
};

/*
 * Reads the chunk at place, checks and unpacks it into payload->raw. Returns 0, -EBADMSG (damaged; counted), or
 * -ENOMEM.
 */
int trace_read_payload(struct trace *trace, struct trace_place *place, struct trace_payload *payload);
void trace_payload_done(struct trace_payload *payload);

/* pread() of the file or the memory. Returns the bytes read. */
size_t trace_read_at(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes);
/* Counts what the chunk at place held as missing, once. */
void trace_note_damage(struct trace *trace, struct trace_place *place);
/* realloc() where *allocated is less than bytes. Returns 0 or -ENOMEM. */
int trace_reserve(void **buffer, size_t *allocated, size_t bytes);
/*
 * What trace_read_payload() does to the bytes. Changes nothing but payload and *unzstd, which is made
 * here and belongs to the calling thread.
 */
int trace_fetch(const struct trace *trace, const struct trace_place *place, struct trace_payload *payload,
		void **unzstd);
void trace_unzstd_free(void *unzstd);
/* Counts what trace_fetch() found, and returns it. */
int trace_note_error(struct trace *trace, struct trace_place *place, int error);

/* Of a header or payload, as include/evprof/trace.h has it. */
uint32_t trace_crc(const void *bytes, size_t length);

/* What follows a payload begins at a multiple of 8. */
static inline uint64_t trace_padded(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/* The header of the chunk at offset, checked. Returns 0 or -EBADMSG; then *chunk is as it was. */
int trace_chunk_read(const struct trace *trace, uint64_t offset, struct trace_chunk *chunk);
/* The payload of payload->chunk, which stands at that offset, into payload->raw. Returns as trace_read_payload(). */
int trace_payload_at(const struct trace *trace, uint64_t offset, struct trace_payload *payload, void **unzstd);

#endif
