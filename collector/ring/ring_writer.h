/*
 * ring_writer.h - writes to the ring of a process from outside (evprof/ring.h), next to its own threads.
 *
 * Slots are claimed as its threads claim them. The library and the sampler take turns at writing definitions
 * (ring_definitions_take()). Nothing here waits for room.
 */
#ifndef COLLECTOR_RING_WRITER_H
#define COLLECTOR_RING_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/ring.h"

struct ring_writer {
	struct ring_layout layout; /* checked when the ring was mapped */
	uint8_t *base;
	struct ring_header *header;
	struct ring_slot *slots;
};

/* The event ring of one thread. */
struct ring_stream {
	struct ring_slot *slot; /* NULL: none */
	uint64_t *words;
	uint64_t mask, head, last_ticks;
};

/* Maps the ring. fd remains the caller's. 0 or -errno. */
int ring_writer_open(struct ring_writer *writer, int fd);

/* The time in ticks of the ring's events. */
uint64_t ring_writer_now(const struct ring_writer *writer);

/* Claims a slot for a thread that begins at start_ticks. False: all are taken. */
bool ring_writer_claim(struct ring_writer *writer, struct ring_stream *stream, uint32_t tid, uint64_t start_ticks);

/* Words that may be written. */
uint64_t ring_stream_room(const struct ring_stream *stream);

/*
 * Writes an event; visible once published. now: not before the previous event. Up to three words, with the time after a
 * long pause.
 */
void ring_stream_put(struct ring_stream *stream, uint32_t head, uint64_t now);

/* Writes the CPU time of the thread (wire.h: WIRE_TIME). Two words. */
void ring_stream_put_cpu(struct ring_stream *stream, uint64_t cpu_ns, uint64_t now);

void ring_stream_publish(struct ring_stream *stream);

/* Publishes the last events and ends the slot: the thread has ended. */
void ring_stream_end(struct ring_stream *stream);

/* Writes a definition. record: complete except the lengths and the size. False: there is no room for it yet. */
bool ring_writer_define(struct ring_writer *writer, struct wire_definition *record,
			const char *const strings[WIRE_DEFINITION_STRINGS],
			const size_t lengths[WIRE_DEFINITION_STRINGS]);

#endif
