/*
 * ring_writer.c - see ring_writer.h. Called by the sampler.
 */
#include "ring_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "clock.h"

/* What a process of this version of evprof would make. */
static bool is_sound(const struct ring_header *header, uint64_t bytes)
{
	return header->magic == RING_MAGIC && header->version == RING_VERSION && header->size_bytes == bytes &&
	       header->slot_bytes == sizeof(struct ring_slot) && header->slot_count <= RING_SLOTS &&
	       header->slots_offset < bytes &&
	       bytes - header->slots_offset >= header->slot_count * sizeof(struct ring_slot) &&
	       header->definitions_offset < bytes && bytes - header->definitions_offset >= header->definitions_bytes &&
	       header->definitions_bytes && !(header->definitions_bytes & (header->definitions_bytes - 1)) &&
	       clock_known(header->clock_kind) && header->clock_shift < 64;
}

int ring_writer_open(struct ring_writer *writer, int fd)
{
	struct stat status;
	void *base;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (status.st_size < RING_PAGE_BYTES)
		return -EINVAL;
	base = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*writer = (struct ring_writer){.base = base, .bytes = (size_t)status.st_size, .header = base};
	if (is_sound(writer->header, writer->bytes))
		return 0;
	munmap(base, writer->bytes);
	return -EINVAL;
}

uint64_t ring_writer_now(const struct ring_writer *writer)
{
	return clock_ticks(writer->header->clock_kind) >> writer->header->clock_shift;
}

static struct ring_slot *free_slot(struct ring_writer *writer, uint32_t *number)
{
	struct ring_slot *slots = (struct ring_slot *)(writer->base + writer->header->slots_offset);

	for (uint32_t i = 0; i < writer->header->slot_count; i++) {
		uint32_t free = RING_SLOT_FREE, used;

		if (!atomic_compare_exchange_strong(&slots[i].state, &free, RING_SLOT_CLAIMED))
			continue;
		used = atomic_load(&writer->header->slots_used);
		while (used < i + 1 && !atomic_compare_exchange_weak(&writer->header->slots_used, &used, i + 1))
			;
		*number = i;
		return &slots[i];
	}
	return NULL;
}

bool ring_writer_claim(struct ring_writer *writer, struct ring_stream *stream, uint32_t tid, uint64_t ring_bytes,
		       uint64_t data_offset)
{
	uint32_t number;
	struct ring_slot *slot = free_slot(writer, &number);
	uint64_t size;

	*stream = (struct ring_stream){0};
	if (!slot)
		return false;
	for (uint32_t i = 0; i < number; i++)
		data_offset += ring_slot_bytes(i, ring_bytes);
	size = ring_slot_bytes(number, ring_bytes);
	if (data_offset > writer->bytes || writer->bytes - data_offset < size)
		return false;
	slot->tid = tid;
	slot->start_ticks = ring_writer_now(writer);
	slot->data_offset = data_offset;
	slot->data_words = size / sizeof(uint64_t);
	slot->start_position = 0;
	atomic_store(&slot->head_ticks, slot->start_ticks);
	*stream = (struct ring_stream){.slot = slot,
				       .words = (uint64_t *)(writer->base + data_offset),
				       .mask = slot->data_words - 1,
				       .last_ticks = slot->start_ticks};
	/* Release: the collector may read the rest once it sees LIVE. */
	atomic_store_explicit(&slot->state, RING_SLOT_LIVE, memory_order_release);
	return true;
}

uint64_t ring_stream_room(const struct ring_stream *stream)
{
	return stream->mask + 1 - (stream->head - ring_tail(stream->slot));
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
	atomic_store_explicit(&stream->slot->head_ticks, stream->last_ticks, memory_order_relaxed);
	ring_publish(stream->slot, stream->head);
}

void ring_stream_end(struct ring_stream *stream)
{
	ring_stream_publish(stream);
	atomic_store_explicit(&stream->slot->state, RING_SLOT_ENDED, memory_order_release);
	stream->slot = NULL;
}

static uint64_t copy_in(struct ring_writer *writer, uint64_t at, const void *bytes, size_t size)
{
	uint8_t *ring = writer->base + writer->header->definitions_offset;
	size_t place = at & (writer->header->definitions_bytes - 1), room = writer->header->definitions_bytes - place;
	size_t first = size < room ? size : room;

	memcpy(ring + place, bytes, first);
	memcpy(ring, (const char *)bytes + first, size - first);
	return at + size;
}

bool ring_writer_define(struct ring_writer *writer, struct wire_definition *record,
			const char *const strings[WIRE_DEFINITION_STRINGS],
			const size_t lengths[WIRE_DEFINITION_STRINGS])
{
	struct ring_header *header = writer->header;
	uint64_t begin = atomic_load(&header->definitions_head), at = begin, size = sizeof(*record);
	const uint64_t zeros = 0;

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		record->length[i] = (uint32_t)lengths[i];
		size += lengths[i];
	}
	record->size_bytes = (uint32_t)((size + 7) & ~UINT64_C(7));
	if (header->definitions_bytes - (begin - atomic_load(&header->definitions_tail)) < record->size_bytes)
		return false;
	at = copy_in(writer, at, record, sizeof(*record));
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		at = copy_in(writer, at, strings[i], lengths[i]);
	copy_in(writer, at, &zeros, begin + record->size_bytes - at);
	/* Release: the collector reads the bytes once it sees the head. */
	atomic_store_explicit(&header->definitions_head, begin + record->size_bytes, memory_order_release);
	return true;
}
