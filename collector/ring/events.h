/* events.h - converts the words of a ring into the payload of an EVENTS chunk. */
#ifndef COLLECTOR_EVENTS_H
#define COLLECTOR_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "evprof/trace.h"
#include "evprof/wire.h"

/* Limit of words in one split. They contain at most as many events. */
#define EVENTS_WORDS_MAX TRACE_CHUNK_EVENTS_MAX
#define EVENTS_PAYLOAD_MAX_BYTES ((size_t)EVENTS_WORDS_MAX * 8)

/*
 * The result of one split.
 *
 * invariant: events + extras <= used_words. The other used_words - events - extras words were of unknown kind (counted
 * in `unknown`).
 */
struct events {
	uint32_t events;
	uint32_t extras;
	size_t used_words; /* the remaining words are the beginning of an incomplete event */
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint64_t unknown;
	uint32_t counts[WIRE_KINDS]; /* by kind, bookkeeping included */
	/* The columns, in the memory of the events_buffer. */
	const uint32_t *heads;
	const uint32_t *ticks;
	const uint64_t *extra;
};

/* words: copied from a ring by the caller; the rest is for the functions below. */
struct events_buffer {
	uint64_t words[EVENTS_WORDS_MAX];
	uint64_t extra[EVENTS_WORDS_MAX];
	uint32_t ticks[EVENTS_WORDS_MAX];
	union {
		uint32_t heads[EVENTS_WORDS_MAX]; /* the first column of the payload: they stay in their place */
		uint8_t payload[EVENTS_PAYLOAD_MAX_BYTES];
	};
};

/* Splits the first `count` words of the buffer. start_ticks: time before the first. */
void events_split(struct events_buffer *buffer, size_t count, uint64_t start_ticks, struct events *result);

/* Builds the payload of trace.h; returns its address and size. Valid until the next split. */
const void *events_payload(struct events_buffer *buffer, const struct events *events, size_t *bytes);

#endif
