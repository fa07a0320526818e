/*
 * events.h - from the words of a ring to the payload of an EVENTS chunk.
 */
#ifndef COLLECTOR_EVENTS_H
#define COLLECTOR_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/trace.h"
#include "evprof/wire.h"

/* Words looked at in one go: never more than EVENTS_WORDS_MAX events come of them. */
#define EVENTS_WORDS_MAX TRACE_CHUNK_EVENTS_MAX
#define EVENTS_PAYLOAD_MAX_BYTES ((size_t)EVENTS_WORDS_MAX * 8)

/*
 * The result of one split. invariant: events + extras <= used_words, and used_words - events - extras words were of an
 * unknown kind (counted in `unknown`).
 */
struct events {
	uint32_t events;
	uint32_t extras;
	size_t used_words; /* the rest is the beginning of an event that is not whole yet */
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint64_t unknown;
	uint32_t counts[WIRE_KIND_SLOTS]; /* by kind, bookkeeping included */
	/* The parts, in memory of the events_buffer. */
	const uint32_t *heads;
	const uint32_t *ticks;
	const uint64_t *extra;
};

struct events_buffer;

/* NULL when there is no memory. */
struct events_buffer *events_buffer_new(void);
void events_buffer_free(struct events_buffer *buffer);

/* Room for EVENTS_WORDS_MAX words, to copy a ring's into. */
uint64_t *events_words(struct events_buffer *buffer);

/* Splits the first `count` of events_words(); start_ticks is the time before the first. */
void events_split(struct events_buffer *buffer, size_t count, uint64_t start_ticks, struct events *result);

/* Lays the payload of trace.h out, and gives its address and size. Valid until the next split. */
const void *events_payload(struct events_buffer *buffer, const struct events *events, size_t *bytes);

/* The argument of the last event that is of one of these kinds (a mask of 1 << kind); false if there is none. */
bool events_last_of(const struct events *events, uint32_t kinds, unsigned *kind, uint32_t *argument);

#endif
