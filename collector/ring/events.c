/*
 * events.c - splits the words of a ring into the columns of a chunk, and counts them by kind.
 *
 * Called by drain.c with a private copy of the words. The target wrote the words: nothing here trusts them.
 */
#include "ring/events.h"

#include "evprof/invariant.h"
#include "file/columns.h"

/* One word, with nothing but a delta. */
#define PLAIN_KINDS                                                                                                    \
	(~(1u << WIRE_NONE | 1u << WIRE_MALLOC | 1u << WIRE_CALLOC | 1u << WIRE_REALLOC | 1u << WIRE_FREE |            \
	   1u << WIRE_TIME | 1u << WIRE_GAP | 1u << WIRE_EXTENDED | 1u << WIRE_CPU | 1u << 26 | 1u << 27 |             \
	   1u << WIRE_SWITCH | 1u << WIRE_TASK))

/* One word with a delta, and an address. */
#define ADDRESS_KINDS (1u << WIRE_MALLOC | 1u << WIRE_CALLOC | 1u << WIRE_FREE)

#define AT_ONCE 4   /* plain events */
#define IN_A_ROW 16 /* events with addresses, and plain ones between them */

/* For the events of each place of AT_ONCE: in a run of one kind, each increment would wait for the store before. */
typedef uint32_t kind_counts[AT_ONCE][WIRE_KINDS];

/* How far a split is. */
struct progress {
	size_t at; /* in the words */
	uint64_t now, unknown;
	uint32_t events, extras;
};

/* Takes AT_ONCE events at a time while all of them are plain. */
static inline struct progress split_plain(struct events_buffer *buffer, size_t count, struct progress progress,
					  kind_counts counts)
{
	for (; count - progress.at >= AT_ONCE; progress.at += AT_ONCE, progress.events += AT_ONCE) {
		const uint64_t *words = buffer->words + progress.at;
		unsigned kinds[AT_ONCE], seen = 0;

#pragma GCC unroll 4
		for (unsigned i = 0; i < AT_ONCE; i++) {
			kinds[i] = wire_head_plain_kind((uint32_t)words[i]);
			seen |= 1u << kinds[i];
		}
		if (seen & ~PLAIN_KINDS)
			break;
#pragma GCC unroll 4
		for (unsigned i = 0; i < AT_ONCE; i++) {
			buffer->heads[progress.events + i] = (uint32_t)words[i];
			buffer->ticks[progress.events + i] = (uint32_t)(words[i] >> 32);
			progress.now += words[i] >> 32;
			counts[i][kinds[i]]++;
		}
	}
	return progress;
}

/* Takes events that are plain or have an address. After IN_A_ROW of them the faster split_plain() is tried again. */
static inline struct progress split_addresses(struct events_buffer *buffer, size_t count, struct progress progress,
					      kind_counts counts)
{
	for (unsigned i = 0; i < IN_A_ROW && count - progress.at >= 2; i++) {
		const uint64_t *words = buffer->words + progress.at;
		unsigned kind = wire_head_plain_kind((uint32_t)words[0]);

		if (!((PLAIN_KINDS | ADDRESS_KINDS) >> kind & 1))
			break;
		buffer->heads[progress.events] = (uint32_t)words[0];
		buffer->ticks[progress.events++] = (uint32_t)(words[0] >> 32);
		progress.now += words[0] >> 32;
		counts[i % AT_ONCE][kind]++;
		progress.at++;
		if (ADDRESS_KINDS >> kind & 1) {
			buffer->extra[progress.extras++] = words[1];
			progress.at++;
		}
	}
	return progress;
}

/* Takes one event of any kind; nothing where it is not whole. */
static inline struct progress split_any(struct events_buffer *buffer, size_t count, struct progress progress,
					uint32_t counts[WIRE_KINDS])
{
	const uint64_t *words = buffer->words + progress.at;
	uint32_t head = (uint32_t)words[0], ticks = (uint32_t)(words[0] >> 32);
	unsigned extra = wire_extra_words(head), kind = wire_head_kind(head);

	if (kind == WIRE_NONE) {
		progress.unknown++;
		progress.at++;
		return progress;
	}
	if (count - progress.at <= extra)
		return progress;
	for (unsigned i = 1; i <= extra; i++)
		buffer->extra[progress.extras++] = words[i];
	buffer->heads[progress.events] = head;
	buffer->ticks[progress.events++] = ticks;
	progress.now = wire_time_of(kind, progress.now, ticks, words + 1);
	counts[kind]++;
	progress.at += 1 + extra;
	return progress;
}

void events_split(struct events_buffer *buffer, size_t count, uint64_t start_ticks, struct events *result)
{
	struct progress progress = {.now = start_ticks};
	kind_counts counts = {0};
	size_t before = 1;

	while (progress.at < count && progress.at != before) {
		progress = split_plain(buffer, count, progress, counts);
		before = progress.at;
		progress = split_addresses(buffer, count, progress, counts);
		if (progress.at < count)
			progress = split_any(buffer, count, progress, counts[0]);
	}
	*result = (struct events){.events = progress.events,
				  .extras = progress.extras,
				  .used_words = progress.at,
				  .first_ticks = start_ticks,
				  .last_ticks = progress.now,
				  .unknown = progress.unknown,
				  .heads = buffer->heads,
				  .ticks = buffer->ticks,
				  .extra = buffer->extra};
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		for (unsigned i = 0; i < AT_ONCE; i++)
			result->counts[kind] += counts[i][kind];
	invariant(result->used_words <= count && count - result->used_words <= WIRE_EXTRA_MAX &&
		  result->events + result->extras + result->unknown == result->used_words);
}

const void *events_payload(struct events_buffer *buffer, const struct events *events, size_t *bytes)
{
	*bytes =
	    columns_pack(buffer->payload, events->heads, events->ticks, events->events, events->extra, events->extras);
	return buffer->payload;
}
