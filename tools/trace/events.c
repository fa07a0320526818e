/*
 * events.c - unpacks the events of a chunk from its payload. See chunk.h.
 *
 * Every event of a trace passes through these loops. Each is a function without a branch, so that the compiler
 * vectorizes it; the Makefile sets the flags for that.
 */
#include "trace/chunk.h"

#include <errno.h>

/*
 * The extra words of all events, as wire_extra_words(). Uses comparisons: without AVX2 there is no shift by a vector.
 */
static uint64_t extras_of(const uint32_t *restrict heads, uint32_t count)
{
	uint32_t extras = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t kind = wire_head_plain_kind(heads[i]);
		uint32_t own = heads[i] >> WIRE_WORDS_SHIFT & WIRE_EXTRA_MAX;

		extras += (uint32_t)(kind == WIRE_MALLOC) + (kind == WIRE_CALLOC) + (kind == WIRE_FREE) +
			  (kind == WIRE_TIME) + (kind == WIRE_GAP) + (kind == WIRE_CPU) + (kind == 26) + (kind == 27) +
			  (kind == WIRE_TASK) + 2 * (uint32_t)(kind == WIRE_REALLOC) +
			  2 * (uint32_t)(kind == WIRE_SWITCH) + (kind == WIRE_EXTENDED ? own : 0);
	}
	return extras;
}

/* Joins the ticks from their four byte planes. */
static void gather_ticks(uint32_t *restrict ticks, const uint8_t *restrict planes, uint32_t count)
{
	const uint8_t *restrict plane1 = planes + count;
	const uint8_t *restrict plane2 = plane1 + count;
	const uint8_t *restrict plane3 = plane2 + count;
	uint32_t i;

	for (i = 0; i < count; i++)
		ticks[i] = (uint32_t)planes[i] | (uint32_t)plane1[i] << 8 | (uint32_t)plane2[i] << 16 |
			   (uint32_t)plane3[i] << 24;
}

/* Joins the extra words from their eight byte planes. */
static void gather_extras(uint64_t *restrict extras, const uint8_t *restrict planes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		extras[i] = planes[i];
	for (unsigned plane = 1; plane < 8; plane++) {
		const uint8_t *restrict bytes = planes + (size_t)plane * count;

		for (uint32_t i = 0; i < count; i++)
			extras[i] |= (uint64_t)bytes[i] << (8 * plane);
	}
}

int trace_unpack_events(struct trace_payload *payload, struct trace_events *events)
{
	const struct trace_chunk *chunk = &payload->chunk;
	const uint32_t *heads = (const uint32_t *)payload->raw;
	uint32_t count = chunk->events;
	size_t ticks_bytes = ((size_t)count * sizeof(uint32_t) + 7) & ~(size_t)7;
	uint64_t *extras;

	if (count > TRACE_CHUNK_EVENTS_MAX || chunk->raw_bytes != (uint64_t)count * 8 + (uint64_t)chunk->extras * 8)
		return -EBADMSG;
	if (extras_of(heads, count) != chunk->extras)
		return -EBADMSG;
	/* One buffer for both: first the ticks, then the extra words. */
	if (trace_reserve((void **)&payload->ticks, &payload->ticks_allocated,
			  ticks_bytes + (size_t)chunk->extras * sizeof(uint64_t)) < 0)
		return -ENOMEM;
	gather_ticks(payload->ticks, payload->raw + (size_t)count * 4, count);
	extras = (uint64_t *)(void *)((uint8_t *)payload->ticks + ticks_bytes);
	gather_extras(extras, payload->raw + (size_t)count * 8, chunk->extras);
	*events = (struct trace_events){
	    .heads = heads,
	    .ticks = payload->ticks,
	    .extras = extras,
	    .count = count,
	    .extra_count = chunk->extras,
	    .first_ticks = chunk->first_ticks,
	};
	return 0;
}
