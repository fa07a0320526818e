/*
 * events.c - splits the words of a ring into the columns of a chunk, and counts them by kind.
 *
 * Called by drain.c with a private copy of the words. The target wrote the words: nothing here trusts them.
 */
#include "ring/events.h"

#include <string.h>

#include "evprof/invariant.h"
#include "file/columns.h"

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

const void *events_payload(struct events_buffer *buffer, const struct events *events, size_t *bytes)
{
	*bytes =
	    columns_pack(buffer->payload, events->heads, events->ticks, events->events, events->extra, events->extras);
	return buffer->payload;
}
