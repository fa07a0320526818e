/*
 * test_collector_events.c - splitting words into the parts of a chunk, and back with the tools' unpacker.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collector/ring/events.h"
#include "tools/trace/chunk.h"
#include "tools/trace/reader.h"
#include "tools/shared/file/columns.h"

/* What machines without SSE2 have. */
#undef __SSE2__
#define columns_pack plain_columns_pack
#define columns_parts plain_columns_parts
#include "tools/shared/file/columns.c"
#undef columns_pack
#undef columns_parts

static struct events_buffer *buffer;

static void set_up(void)
{
	buffer = malloc(sizeof(struct events_buffer));
	cr_assert(buffer);
}

static void tear_down(void)
{
	free(buffer);
}

TestSuite(collector_events, .init = set_up, .fini = tear_down, .timeout = 60);

/* Puts words where the drain puts them. */
static void split(const uint64_t *words, size_t count, uint64_t start, struct events *events)
{
	memcpy(buffer->words, words, count * sizeof(words[0]));
	events_split(buffer, count, start, events);
}

Test(collector_events, times_add_up)
{
	const uint64_t words[] = {wire_word(wire_head(WIRE_CALL, 1), 10), wire_word(wire_head(WIRE_TIME, 0), 0), 5000,
				  wire_word(wire_head(WIRE_RETURN, 1), 7)};
	struct events events;

	split(words, 4, 100, &events);
	cr_assert_eq(events.events, 3);
	cr_assert_eq(events.extras, 1);
	cr_assert_eq(events.first_ticks, 100);
	cr_assert_eq(events.last_ticks, 5007);
	cr_assert_eq(events.counts[WIRE_TIME], 1);
}

Test(collector_events, an_event_that_is_not_whole_stays)
{
	const uint64_t words[] = {wire_word(wire_head(WIRE_CALL, 1), 10),
				  wire_word(wire_memory_head(WIRE_REALLOC, 0, 8), 3), 1, 2};
	struct events events;

	for (size_t count = 2; count <= 3; count++) {
		split(words, count, 0, &events);
		cr_assert_eq(events.used_words, 1, "of %zu", count);
		cr_assert_eq(events.events, 1);
		cr_assert_eq(events.last_ticks, 10, "the time of the rest comes with the rest");
	}
	split(words, 4, 0, &events);
	cr_assert_eq(events.used_words, 4);
	cr_assert_eq(events.extras, 2);
}

Test(collector_events, unwritten_words_are_dropped_and_counted)
{
	const uint64_t words[] = {0, wire_word(wire_head(WIRE_CALL, 1), 1), wire_word(WIRE_NONE | 5 << 5, 1000)};
	struct events events;

	split(words, 3, 0, &events);
	cr_assert_eq(events.events, 1);
	cr_assert_eq(events.unknown, 2);
	cr_assert_eq(events.used_words, 3);
	cr_assert_eq(events.last_ticks, 1);
}

/* What nothing writes yet is passed on with its extra words, and counted by its kind. */
Test(collector_events, reserved_kinds_are_kept_and_counted)
{
	uint64_t words[200];
	size_t count = 0, extras = 0;
	struct events events;

	for (unsigned kind = 24; kind < 28; kind++) {
		words[count++] = wire_word(wire_head(kind, 5), 10);
		for (unsigned i = 0; i < kind / 26; i++, extras++)
			words[count++] = 77;
	}
	for (unsigned kind = WIRE_EXTENDED_KIND; kind < WIRE_KINDS; kind++) {
		words[count++] = wire_word(wire_extended(kind, kind % 4, WIRE_VALUE_MAX), 1);
		for (unsigned i = 0; i < kind % 4; i++, extras++)
			words[count++] = kind;
	}
	split(words, count, 0, &events);
	cr_assert_eq(events.events, 4 + 32);
	cr_assert_eq(events.extras, extras);
	cr_assert_eq(events.used_words, count);
	cr_assert_eq(events.last_ticks, 40 + 32);
	cr_assert_eq(events.counts[WIRE_EXTENDED], 0);
	for (unsigned kind = WIRE_EXTENDED_KIND; kind < WIRE_KINDS; kind++)
		cr_assert_eq(events.counts[kind], 1, "%u", kind);
}

/* What is known of words without splitting them. */
struct expected {
	uint32_t counts[WIRE_KINDS];
	uint64_t last_ticks;
};

/* Fills words with whole events of every kind, in runs of one kind, too; gives their number of words. */
static size_t make_words(uint64_t *words, size_t max, struct expected *expected)
{
	size_t count = 0;
	unsigned kind = 0, run = 0;

	while (count + 1 + WIRE_EXTRA_MAX <= max) {
		if (!run) {
			kind = 1 + (unsigned)rand() % 31;
			run = rand() % 4 ? 1 : 1 + (unsigned)rand() % 40;
		}
		run--;
		uint32_t head = wire_head(kind, (uint32_t)rand() & WIRE_ARG_MAX);
		uint32_t ticks = rand() % 4 ? (uint32_t)rand() % 300 : (uint32_t)rand() * 3u;

		words[count++] = wire_word(head, ticks);
		for (unsigned i = wire_extra_words(head); i > 0; i--)
			words[count++] = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 17 ^ (uint64_t)rand();
		expected->counts[wire_head_kind(head)]++;
		expected->last_ticks = wire_time_of(wire_head_kind(head), expected->last_ticks, ticks,
						    words + count - wire_extra_words(head));
	}
	return count;
}

/* Words, as the reader of the tools gives the payload back. */
static size_t join_words(const struct trace_events *events, uint64_t *words)
{
	size_t count = 0;
	size_t extra = 0;

	for (uint32_t i = 0; i < events->count; i++) {
		words[count++] = wire_word(events->heads[i], events->ticks[i]);
		for (unsigned k = wire_extra_words(events->heads[i]); k > 0; k--)
			words[count++] = events->extras[extra++];
	}
	return count;
}

Test(collector_events, what_the_reader_unpacks_is_what_was_split)
{
	static uint64_t words[EVENTS_WORDS_MAX];
	static uint64_t again[EVENTS_WORDS_MAX];
	const size_t sizes[] = {3, 4, 17, 100, 1001, 8192, EVENTS_WORDS_MAX};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct trace_payload payload = {0};
		struct trace_events unpacked;
		struct events events;
		struct expected expected = {.last_ticks = 7};
		size_t count = make_words(words, sizes[i], &expected);
		uint32_t sum = 0;

		split(words, count, 7, &events);
		cr_assert_eq(events.used_words, count);
		cr_assert_eq(events.last_ticks, expected.last_ticks);
		for (unsigned kind = 0; kind < WIRE_KINDS; kind++) {
			cr_assert_eq(events.counts[kind], expected.counts[kind], "%u", kind);
			sum += events.counts[kind];
		}
		cr_assert_eq(sum, events.events);
		size_t bytes;
		const void *raw = events_payload(buffer, &events, &bytes);

		cr_assert(bytes <= EVENTS_PAYLOAD_MAX_BYTES);
		payload.raw = malloc(bytes);
		memcpy(payload.raw, raw, bytes);
		payload.chunk.events = events.events;
		payload.chunk.extras = events.extras;
		payload.chunk.raw_bytes = (uint32_t)bytes;
		cr_assert_eq(trace_unpack_events(&payload, &unpacked), 0);
		cr_assert_eq(join_words(&unpacked, again), count);
		cr_assert_eq(memcmp(words, again, count * sizeof(words[0])), 0);
		trace_payload_done(&payload);
	}
}

/* Every number that is left after registers are full, with ticks of one byte and of four. */
Test(collector_events, columns_are_the_same_on_all_machines)
{
	static uint32_t heads[1000], ticks[1000];
	static uint64_t extra[1000];
	static uint8_t fast[16 * 1000], plain[16 * 1000];

	for (unsigned turn = 0; turn < 2000; turn++) {
		size_t events = turn < 100 ? turn : (size_t)rand() % 1000, extras = (size_t)rand() % 1000;
		size_t bytes = (events + extras) * 8;

		for (size_t i = 0; i < 1000; i++) {
			heads[i] = (uint32_t)rand() * 3u;
			ticks[i] = turn % 2 ? (uint32_t)rand() * 3u : (uint32_t)rand() % 256;
			extra[i] = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 17 ^ (uint64_t)rand();
		}
		memset(fast, 1, sizeof(fast));
		memset(plain, 1, sizeof(plain));
		cr_assert_eq(columns_pack(fast, heads, ticks, events, extra, extras), bytes);
		cr_assert_eq(plain_columns_pack(plain, heads, ticks, events, extra, extras), bytes);
		cr_assert_eq(memcmp(fast, plain, sizeof(fast)), 0, "%zu events, %zu extra words", events, extras);
	}
}
