/*
 * chunk.h - the chunks of a trace file: checked and unpacked bytes. For the files of this room.
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
 * The unpacked events of a chunk. The arrays stay valid until the next chunk is read into the same buffer.
 *
 * invariant: wire_extra_words() over the kinds of heads adds up to extra_count
 */
struct trace_events {
	const uint32_t *heads;
	const uint32_t *ticks;	/* since the previous event */
	const uint64_t *extras; /* in the order of the events */
	uint32_t count;
	uint32_t extra_count;
	uint64_t first_ticks; /* time before the first event */
	bool hole;	      /* events are missing before the first: the call stack is unknown */
	uint64_t missing;     /* the number of missing events, if known */
};

/* The time of the first event; without one, that before it. */
static inline uint64_t trace_first_event(const struct trace_events *events)
{
	if (events->count == 0)
		return events->first_ticks;
	return wire_time_of(wire_head_kind(events->heads[0]), events->first_ticks, events->ticks[0], events->extras);
}

/*
 * Unpacks the events of the chunk that was read. The only function that knows their layout. Returns 0, -EBADMSG if the
 * payload is inconsistent, or -ENOMEM.
 */
int trace_unpack_events(struct trace_payload *payload, struct trace_events *events);

/*
 * Reads the chunk at place, checks and unpacks it into payload->raw. Returns 0, -EBADMSG (damaged; counted), or
 * -ENOMEM.
 */
int trace_read_payload(struct trace *trace, struct trace_place *place, struct trace_payload *payload);
void trace_payload_done(struct trace_payload *payload);

/* pread() of the file or the memory. Returns the bytes read. */
size_t trace_read_at(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes);
/*
 * The offset, a multiple of 8 from `offset` on, behind the zeros that begin there; at most end. A trace that keeps its
 * last stretch has zeros where chunks have left it.
 */
uint64_t trace_zeros_end(const struct trace *trace, uint64_t offset, uint64_t end);
/* Counts the contents of the chunk at place as missing, once. */
void trace_note_damage(struct trace *trace, struct trace_place *place);
/* Grows the buffer if *allocated is less than bytes. Returns 0 or -ENOMEM. */
int trace_reserve(void **buffer, size_t *allocated, size_t bytes);
/*
 * Reads, checks and unpacks a payload, as trace_read_payload() does, without counting damage. Changes nothing but
 * payload and *unzstd, which it creates and which belongs to the calling thread.
 */
int trace_fetch(const struct trace *trace, const struct trace_place *place, struct trace_payload *payload,
		void **unzstd);
void trace_unzstd_free(void *unzstd);
/* Counts the error that trace_fetch() returned as damage, and returns it. */
int trace_note_error(struct trace *trace, struct trace_place *place, int error);

/* The checksum of a header or payload, as defined in include/evprof/trace.h. */
uint32_t trace_crc(const void *bytes, size_t length);

/* The size with padding: data after a payload begins at a multiple of 8. */
static inline uint64_t trace_padded(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/* Reads and checks the header of the chunk at offset. Returns 0 or -EBADMSG, which leaves *chunk unchanged. */
int trace_chunk_read(const struct trace *trace, uint64_t offset, struct trace_chunk *chunk);
/* Reads the payload of payload->chunk at that offset into payload->raw. Returns as trace_read_payload(). */
int trace_payload_at(const struct trace *trace, uint64_t offset, struct trace_payload *payload, void **unzstd);

/* --- index.c: finds the chunks by the index, or by a scan if the index is missing or damaged --- */

/* Fills trace->places. Returns 0, -ENOMEM, or -EBADMSG. */
int trace_find_places(struct trace *trace);
/* Fills it with the chunks that a trace without an end has got since. Returns as above. */
int trace_find_more_places(struct trace *trace);
/*
 * Finds the next valid chunk at offset or later, at any byte, because a damaged file may have lost some. Returns its
 * offset, or end.
 */
uint64_t trace_find_chunk(const struct trace *trace, uint64_t offset, uint64_t end, struct trace_chunk *chunk);

#endif
