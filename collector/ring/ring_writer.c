/*
 * ring_writer.c - see ring_writer.h. Called by the sampler.
 */
#include "ring/ring_writer.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "ring/layout.h"

#define DEFINE_STEP_NS 20000 /* between checks whether the process has finished its definition */
#define DEFINE_STEPS 50

int ring_writer_open(struct ring_writer *writer, int fd)
{
	struct ring_layout layout;
	void *base;

	if (layout_read(fd, &layout) || !layout_has_rings(&layout))
		return -EINVAL;
	base = mmap(NULL, (size_t)layout.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*writer = (struct ring_writer){.layout = layout, .base = base, .header = base};
	writer->slots = (struct ring_slot *)(writer->base + layout.slots_offset);
	return 0;
}

uint64_t ring_writer_now(const struct ring_writer *writer)
{
	return clock_ticks(writer->layout.clock_kind) >> writer->layout.clock_shift;
}

/* The process may have decreased slot_count meanwhile (memory_shrink()): slots above it must not be claimed. */
static void follow_slot_count(struct ring_writer *writer)
{
	uint32_t count = *(volatile uint32_t *)&writer->header->layout.slot_count;

	if (count < writer->layout.slot_count)
		writer->layout.slot_count = count;
}

bool ring_writer_claim(struct ring_writer *writer, struct ring_stream *stream, uint32_t tid, uint64_t start_ticks)
{
	struct ring_extent extent;
	struct ring_slot *slot;

	*stream = (struct ring_stream){0};
	follow_slot_count(writer);
	slot = ring_claim(&writer->layout, writer->header, writer->slots, 0);
	if (!slot)
		return false;
	extent = ring_extent(&writer->layout, (uint32_t)(slot - writer->slots));
	ring_place(slot, extent);
	slot->tid = tid;
	slot->start_ticks = start_ticks;
	slot->start_position = 0;
	atomic_store(&slot->sampled, 1);
	*stream = (struct ring_stream){.slot = slot,
				       .words = (uint64_t *)(writer->base + extent.offset),
				       .mask = extent.words - 1,
				       .last_ticks = start_ticks};
	/* Release: pairs with the collector's acquire of the state. The rest is visible before LIVE. */
	atomic_store_explicit(&slot->state, RING_SLOT_LIVE, memory_order_release);
	return true;
}

uint64_t ring_stream_room(const struct ring_stream *stream)
{
	return ring_room(stream->mask + 1, stream->head, ring_tail(stream->slot));
}

static void put_word(struct ring_stream *stream, uint64_t word)
{
	stream->words[stream->head++ & stream->mask] = word;
}

void ring_stream_put(struct ring_stream *stream, uint32_t head, uint64_t now)
{
	uint64_t ticks = now > stream->last_ticks ? now - stream->last_ticks : 0;

	if (ticks > UINT32_MAX) {
		put_word(stream, wire_word(wire_head(WIRE_TIME, 0), 0));
		put_word(stream, now);
		stream->last_ticks = now;
		ticks = 0;
	}
	put_word(stream, wire_word(head, (uint32_t)ticks));
	stream->last_ticks += ticks;
}

void ring_stream_put_cpu(struct ring_stream *stream, uint64_t cpu_ns, uint64_t now)
{
	if (now > stream->last_ticks)
		stream->last_ticks = now;
	put_word(stream, wire_cpu_word(cpu_ns));
	put_word(stream, stream->last_ticks);
}

void ring_stream_publish(struct ring_stream *stream)
{
	ring_publish(stream->slot, stream->head);
}

void ring_stream_end(struct ring_stream *stream)
{
	ring_stream_publish(stream);
	atomic_store_explicit(&stream->slot->state, RING_SLOT_ENDED, memory_order_release);
	stream->slot = NULL;
}

/* The process holds the turn while it copies one definition, or for longer if it is stopped then. */
static bool take_definitions(struct ring_header *header)
{
	const struct timespec step = {.tv_nsec = DEFINE_STEP_NS};

	for (int i = 0; i < DEFINE_STEPS; i++) {
		if (ring_definitions_take(header, RING_DEFINES_SAMPLER))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

bool ring_writer_define(struct ring_writer *writer, struct wire_definition *record,
			const char *const strings[WIRE_DEFINITION_STRINGS],
			const size_t lengths[WIRE_DEFINITION_STRINGS])
{
	bool room;

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		record->length[i] = (uint32_t)lengths[i];
	record->size_bytes = wire_definition_bytes(record);
	if (!take_definitions(writer->header))
		return false;
	room = ring_definitions_room(&writer->layout, writer->header) >= record->size_bytes;
	if (room)
		ring_define(&writer->layout, writer->base, record, strings);
	ring_definitions_give(writer->header);
	return room;
}
