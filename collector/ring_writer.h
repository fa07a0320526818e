/*
 * ring_writer.h - writing into the ring of a process from outside (evprof/ring.h), next to its own threads.
 *
 * Slots are claimed as its threads claim them. Definitions have one writer: a process that is sampled leaves them to
 * the sampler once its ring is made. Nothing here waits for room.
 */
#ifndef COLLECTOR_RING_WRITER_H
#define COLLECTOR_RING_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/ring.h"

struct ring_writer {
	struct ring_layout layout; /* as it was checked when the ring was mapped */
	uint8_t *base;
	struct ring_header *header;
	struct ring_slot *slots;
};

/* One thread's events. */
struct ring_stream {
	struct ring_slot *slot; /* NULL: none */
	uint64_t *words;
	uint64_t mask, head, last_ticks;
};

/* Maps the ring. fd stays the caller's. 0 or -errno. */
int ring_writer_open(struct ring_writer *writer, int fd);

/* The time as the ring's events have it. */
uint64_t ring_writer_now(const struct ring_writer *writer);

/* Claims a slot for a thread that begins at a time. False: all are taken. */
bool ring_writer_claim(struct ring_writer *writer, struct ring_stream *stream, uint32_t tid, uint64_t start_ticks);

/* Words that may be written. */
uint64_t ring_stream_room(const struct ring_stream *stream);

/*
 * Writes an event; it is seen once published. now may not go back; up to three words, with the time that a pause takes.
 */
void ring_stream_put(struct ring_stream *stream, uint32_t head, uint64_t now);

/* Tells the CPU time of the thread (wire.h: WIRE_TIME). Two words. */
void ring_stream_put_cpu(struct ring_stream *stream, uint64_t cpu_ns, uint64_t now);

void ring_stream_publish(struct ring_stream *stream);

/* The thread has ended, and what was put is all. */
void ring_stream_end(struct ring_stream *stream);

/* Writes a definition; record has everything but the lengths and the size. False: there is no room for it yet. */
bool ring_writer_define(struct ring_writer *writer, struct wire_definition *record,
			const char *const strings[WIRE_DEFINITION_STRINGS],
			const size_t lengths[WIRE_DEFINITION_STRINGS]);

#endif
