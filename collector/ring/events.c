/*
 * events.c - splits the words of a ring into the columns of a chunk, and counts them by kind.
 *
 * Called by drain.c with a private copy of the words. The target wrote the words: nothing here trusts them.
 */
#include "ring/events.h"

#include <string.h>

#include "evprof/invariant.h"

/* Alternates between two tables: otherwise, in a run of one kind, each increment would wait for the previous store. */
static void count_kinds(const uint32_t *heads, uint32_t count, uint32_t counts[WIRE_KINDS])
{
	uint32_t other[WIRE_EXTENDED_KIND] = {0};
	uint32_t i;

	memset(counts, 0, WIRE_KINDS * sizeof(counts[0]));
	for (i = 0; i + 1 < count; i += 2) {
		counts[wire_head_plain_kind(heads[i])]++;
		other[wire_head_plain_kind(heads[i + 1])]++;
	}
	if (i < count)
		counts[wire_head_plain_kind(heads[i])]++;
	for (i = 0; i < WIRE_EXTENDED_KIND; i++)
		counts[i] += other[i];
	for (i = 0; counts[WIRE_EXTENDED] > 0; i++)
		if (wire_head_plain_kind(heads[i]) == WIRE_EXTENDED) {
			counts[WIRE_EXTENDED]--;
			counts[wire_head_kind(heads[i])]++;
		}
}

/* Kinds that the loop in events_split() handles at once: one word, with nothing but a delta. */
#define PLAIN_KINDS                                                                                                    \
	(~(1u << WIRE_NONE | 1u << WIRE_MALLOC | 1u << WIRE_CALLOC | 1u << WIRE_REALLOC | 1u << WIRE_FREE |            \
	   1u << WIRE_TIME | 1u << WIRE_GAP | 1u << WIRE_EXTENDED | 1u << WIRE_CPU | 1u << 26 | 1u << 27 |             \
	   1u << WIRE_SWITCH | 1u << WIRE_TASK))

void events_split(struct events_buffer *buffer, size_t count, uint64_t start_ticks, struct events *result)
{
	const uint64_t *words = buffer->words;
	uint64_t now = start_ticks;
	uint64_t unknown = 0;
	uint32_t events = 0;
	uint32_t extras = 0;
	size_t i = 0;

	while (i < count) {
		uint64_t word = words[i];
		uint32_t head = (uint32_t)word;
		unsigned kind = wire_head_plain_kind(head);

		buffer->heads[events] = head;
		buffer->ticks[events] = (uint32_t)(word >> 32);
		now += word >> 32;
		if (!(PLAIN_KINDS >> kind & 1)) {
			unsigned extra = wire_extra_words(head);

			if (kind == WIRE_NONE) {
				now -= word >> 32;
				unknown++;
				i++;
				continue;
			}
			if (count - i <= extra) {
				now -= word >> 32;
				break;
			}
			for (unsigned k = 1; k <= extra; k++)
				buffer->extra[extras++] = words[i + k];
			if (wire_is_time(kind))
				now = words[i + 1];
			i += extra;
		}
		events++;
		i++;
	}
	*result = (struct events){.events = events,
				  .extras = extras,
				  .used_words = i,
				  .first_ticks = start_ticks,
				  .last_ticks = now,
				  .unknown = unknown,
				  .heads = buffer->heads,
				  .ticks = buffer->ticks,
				  .extra = buffer->extra};
	count_kinds(buffer->heads, events, result->counts);
	invariant(i <= count && count - i <= WIRE_EXTRA_MAX && events + extras + unknown == i);
}

/* Transposes eight words into eight bytes of each plane, in three rounds that swap blocks of 1, 2 and 4 bytes. */
static void transpose_8(const uint64_t in[8], uint64_t out[8])
{
	static const uint64_t masks[3] = {UINT64_C(0x00ff00ff00ff00ff), UINT64_C(0x0000ffff0000ffff),
					  UINT64_C(0x00000000ffffffff)};
	uint64_t rows[8];

	memcpy(rows, in, sizeof(rows));
	for (unsigned round = 0; round < 3; round++) {
		unsigned step = 1u << round;
		unsigned bits = 8u << round;

		for (unsigned pair = 0; pair < 4; pair++) {
			unsigned low = (pair & ~(step - 1)) * 2 + (pair & (step - 1));
			uint64_t swap = (rows[low] >> bits ^ rows[low + step]) & masks[round];

			rows[low] ^= swap << bits;
			rows[low + step] ^= swap;
		}
	}
	memcpy(out, rows, sizeof(rows));
}

static void extra_planes(const uint64_t *words, size_t count, uint8_t *out)
{
	uint64_t rows[8];
	size_t i = 0;

	for (; i + 8 <= count; i += 8) {
		transpose_8(words + i, rows);
		for (unsigned plane = 0; plane < 8; plane++)
			memcpy(out + plane * count + i, &rows[plane], 8);
	}
	for (; i < count; i++) {
		for (unsigned plane = 0; plane < 8; plane++)
			out[plane * count + i] = (uint8_t)(words[i] >> (8 * plane));
	}
}

static void ticks_plane(const uint32_t *restrict ticks, size_t count, unsigned plane, uint8_t *restrict out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)(ticks[i] >> (8 * plane));
}

/* Most events follow each other within microseconds, so the upper planes of most chunks are zero. */
static void ticks_planes(const uint32_t *ticks, size_t count, uint8_t *out)
{
	uint32_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= ticks[i];
	for (unsigned plane = 0; plane < 4; plane++, out += count) {
		if (all >> (8 * plane))
			ticks_plane(ticks, count, plane, out);
		else
			memset(out, 0, count);
	}
}

const void *events_payload(struct events_buffer *buffer, const struct events *events, size_t *bytes)
{
	size_t count = events->events;
	uint8_t *out = buffer->payload;

	memcpy(out, events->heads, count * 4);
	ticks_planes(events->ticks, count, out + count * 4);
	extra_planes(events->extra, events->extras, out + count * 8);
	*bytes = count * 8 + (size_t)events->extras * 8;
	return buffer->payload;
}
