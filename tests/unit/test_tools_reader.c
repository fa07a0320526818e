/*
 * test_tools_reader.c - the trace reader over traces of the fixture: whole, without end, cut at each byte, with each
 * byte damaged, and with lies in them.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/replay/merge.h"
#include "tools/analysis/profile.h"
#include "tools/trace/chunk.h"
#include "tools/trace/reader.h"
#include "trace_fixture.h"

static struct trace *open_bytes(const void *bytes, size_t size)
{
	struct trace *trace = NULL;
	char error[256];

	if (trace_open_memory(&trace, bytes, size, "test", error, sizeof(error)) < 0)
		return NULL;
	return trace;
}

static struct trace *open_fixture(const struct fixture *fixture)
{
	struct trace *trace = open_bytes(fixture->bytes, fixture->size);

	cr_assert(trace);
	return trace;
}

/* Two processes, three threads, several chunks each. */
static struct fixture *sample(bool plain, bool whole)
{
	struct fixture *fixture = fixture_new();

	fixture->plain = plain;
	for (int pid = 10; pid < 12; pid++) {
		uint32_t process = fixture_process(fixture, pid, 1);

		fixture_code(fixture, process, 1, "a.py", 1, "f");
		fixture_function(fixture, process, 1, "", "len", "builtins");
		for (uint32_t tid = 0; tid < 2; tid++) {
			uint32_t thread = fixture_thread(fixture, process, (uint32_t)pid * 10 + tid, 1000);

			for (int chunk = 0; chunk < 3; chunk++) {
				fixture_event(fixture, thread, WIRE_CALL, 1, 10);
				fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x1000, 40, 0, 5);
				fixture_event(fixture, thread, WIRE_RETURN, 1, 10);
				fixture_flush(fixture, thread);
			}
		}
		fixture_index(fixture);
	}
	if (whole)
		fixture_end(fixture);
	return fixture;
}

/* Reads all events of all threads. Returns how many, bookkeeping and gaps included. */
static uint64_t read_all(struct trace *trace)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < trace->thread_count; i++) {
		struct trace_stream stream;
		struct trace_events events;

		if (!trace->threads[i])
			continue;
		trace_stream_open(&stream, trace, trace->threads[i]);
		while (trace_stream_next(&stream, &events))
			count += events.count;
		trace_stream_close(&stream);
	}
	return count;
}

static int verdict(const struct trace *trace)
{
	char text[1024];
	int status = trace_verdict(trace, text, sizeof(text));

	cr_assert((status != 0) == (text[0] != 0));
	return status;
}

Test(reader, whole)
{
	for (int plain = 0; plain < 2; plain++) {
		struct fixture *fixture = sample(plain, true);
		struct trace *trace = open_fixture(fixture);

		cr_expect(trace->complete && trace->end.events == 36);
		cr_expect(trace->processes[0]->pid == 10 && trace->processes[1]->pid == 11);
		cr_expect(trace->processes[1]->thread_count == 2);
		cr_expect(trace->threads[3]->tid == 111 && trace->threads[3]->process == 1);
		cr_expect(read_all(trace) == 36);
		cr_expect(trace->start_ns == 1010 && trace->end_ns == 1075);
		trace_check(trace, NULL, NULL);
		cr_expect(verdict(trace) == CLI_FINE);
		trace_close(trace);
		fixture_free(fixture);
	}
}

/* What a reader gets to know of all threads, as one number. */
static uint64_t digest(struct trace *trace)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < trace->thread_count; i++) {
		struct trace_stream stream;
		struct trace_events events;

		trace_stream_open(&stream, trace, trace->threads[i]);
		while (trace->threads[i] && trace_stream_next(&stream, &events)) {
			sum = sum * 31 + events.hole + 2 * events.missing + events.first_ticks;
			for (uint32_t k = 0; k < events.count; k++)
				sum = sum * 31 + events.heads[k] + 7 * events.ticks[k];
			for (uint32_t k = 0; k < events.extra_count; k++)
				sum = sum * 31 + events.extras[k];
		}
		trace_stream_close(&stream);
	}
	return sum;
}

/* Two threads with enough chunks that some are read ahead. */
static struct fixture *long_sample(void)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1);

	fixture_code(fixture, process, 1, "a.py", 1, "f");
	for (uint32_t thread = 0; thread < 2; thread++)
		fixture_thread(fixture, process, 10 + thread, 1000);
	for (uint32_t chunk = 0; chunk < 20; chunk++) {
		fixture_event(fixture, chunk % 2, WIRE_CALL, 1, 10 + chunk);
		fixture_memory(fixture, chunk % 2, WIRE_REALLOC, WIRE_DOMAIN_OBJ, 0x1000, 40, 0x2000 + chunk, 5);
		fixture_event(fixture, chunk % 2, WIRE_RETURN, 1, 10);
		fixture_flush(fixture, chunk % 2);
	}
	fixture_end(fixture);
	return fixture;
}

/* The same events, and the same words about what is missing, with the thread that reads ahead and without. */
Test(reader, ahead, .timeout = 120)
{
	struct fixture *fixture = long_sample();
	unsigned damaged = 0, ahead = 0;

	for (size_t at = 64; at <= fixture->size; at += 13) {
		uint64_t digests[2] = {0};
		char words[2][1024] = {"", ""};

		if (at < fixture->size)
			fixture->bytes[at] ^= 0x40;
		for (int without = 0; without < 2; without++) {
			struct trace *trace = open_bytes(fixture->bytes, fixture->size);

			if (!trace)
				continue;
			trace->no_ahead = without;
			digests[without] = digest(trace);
			damaged += trace_verdict(trace, words[without], sizeof(words[without])) != 0;
			ahead += trace->ahead != NULL;
			cr_expect(!without || !trace->ahead);
			trace_close(trace);
		}
		cr_expect(digests[0] == digests[1], "byte %zu", at);
		cr_expect_str_eq(words[0], words[1], "byte %zu", at);
		if (at < fixture->size)
			fixture->bytes[at] ^= 0x40;
	}
	cr_expect(damaged > 100);
	cr_expect(ahead > 20 || sysconf(_SC_NPROCESSORS_ONLN) < 2);
	fixture_free(fixture);
}

static int unpack_one(uint32_t head, uint32_t extras)
{
	struct trace_payload payload = {.chunk = {.events = 1, .extras = extras, .raw_bytes = 8 + 8 * extras}};
	uint32_t raw[2 + 2 * WIRE_EXTRA_MAX] = {head};
	struct trace_events events;
	int error;

	payload.raw = (uint8_t *)raw;
	error = trace_unpack_events(&payload, &events);
	payload.raw = NULL;
	trace_payload_done(&payload);
	return error;
}

/* How many extra words an event has is known in two places, one of which is vector code. */
Test(reader, extra_words)
{
	for (uint32_t low = 0; low < 1u << 14; low++) {
		uint32_t head = 1u << 14 | low, words = wire_extra_words(head);

		cr_expect(unpack_one(head, words) == 0, "head %#x", head);
		cr_expect(unpack_one(head, words ? words - 1 : 1) == -EBADMSG, "head %#x", head);
	}
}

Test(reader, without_end)
{
	struct fixture *fixture = sample(false, false);
	struct trace *trace = open_fixture(fixture);

	cr_expect(!trace->complete);
	cr_expect(read_all(trace) == 36);
	cr_expect(verdict(trace) == CLI_DAMAGED);
	trace_close(trace);
	fixture_free(fixture);
}

Test(reader, cut_at_each_byte)
{
	struct fixture *fixture = sample(false, true);
	uint64_t before = 0;

	for (size_t size = 0; size < fixture->size; size++) {
		struct trace *trace = open_bytes(fixture->bytes, size);
		uint64_t events;

		cr_assert((trace != NULL) == (size >= sizeof(struct trace_header)), "cut at %zu", size);
		if (!trace)
			continue;
		events = read_all(trace);
		cr_assert(!trace->complete && verdict(trace) == CLI_DAMAGED, "cut at %zu", size);
		cr_assert(events >= before, "cut at %zu", size);
		before = events;
		trace_close(trace);
	}
	cr_expect(before == 36);
	fixture_free(fixture);
}

/* Each byte is under a checksum. At most the chunk it is in is lost. */
Test(reader, each_byte_damaged)
{
	struct fixture *fixture = sample(false, true);

	for (size_t at = 0; at < fixture->size; at++) {
		struct trace *trace;

		fixture->bytes[at] ^= 0x10;
		trace = open_bytes(fixture->bytes, fixture->size);
		cr_assert(trace || at < sizeof(struct trace_header), "byte %zu", at);
		if (trace) {
			uint64_t events = read_all(trace);

			trace_check(trace, NULL, NULL);
			cr_assert(verdict(trace) == CLI_DAMAGED, "byte %zu is not missed", at);
			cr_assert(events >= 33, "byte %zu costs all but %d events", at, (int)events);
		}
		trace_close(trace);
		fixture->bytes[at] ^= 0x10;
	}
	fixture_free(fixture);
}

/* Bytes are missing in the middle: reading goes on at the next chunk, wherever it stands. */
Test(reader, bytes_missing)
{
	for (size_t missing = 1; missing < 400; missing += 13) {
		struct fixture *fixture = sample(false, true);
		size_t at = fixture->size / 2;
		struct trace *trace;

		memmove(fixture->bytes + at, fixture->bytes + at + missing, fixture->size - at - missing);
		trace = open_bytes(fixture->bytes, fixture->size - missing);
		cr_assert(trace);
		cr_expect(read_all(trace) >= 36 - 3 * (missing / 64 + 2), "%zu bytes: %d events", missing,
			  (int)read_all(trace));
		cr_expect(verdict(trace) == CLI_DAMAGED);
		trace_close(trace);
		fixture_free(fixture);
	}
}

Test(reader, damaged_chunk_is_a_gap)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 1, 0);
	uint32_t thread = fixture_thread(fixture, process, 1, 0);
	struct merge_event event;
	struct trace *trace;
	struct merge merge;
	size_t begin, end;
	int i;

	for (i = 0; i < 3; i++) {
		fixture_event(fixture, thread, WIRE_CALL, 1, 10);
		begin = fixture->size;
		fixture_flush(fixture, thread);
		end = fixture->size;
		if (i == 1)
			fixture->bytes[begin + 64 + (end - begin - 64) / 2] ^= 1;
	}
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_assert(merge_open(&merge, trace, NULL, NULL) == 0);
	cr_expect(merge_next(&merge, &event) && wire_head_kind(event.head) == WIRE_CALL && event.ns == 10);
	cr_expect(merge_next(&merge, &event) && wire_head_kind(event.head) == WIRE_GAP && *event.extra == 1);
	cr_expect(merge_next(&merge, &event) && wire_head_kind(event.head) == WIRE_CALL && event.ns == 30);
	cr_expect(!merge_next(&merge, &event));
	cr_expect(trace->damage.chunks == 1 && trace->damage.events == 1);
	merge_close(&merge);
	trace_close(trace);
	fixture_free(fixture);
}

static void expect_refused(const char *what, struct fixture *fixture, int error)
{
	struct trace *trace = NULL;
	char text[256] = "";

	cr_expect(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", text, sizeof(text)) == error, "%s",
		  what);
	cr_expect(text[0] && !trace, "%s", what);
	fixture_free(fixture);
}

Test(reader, later_versions_are_refused)
{
	struct fixture *fixture = sample(false, true);
	struct trace_header *header = (struct trace_header *)fixture->bytes;

	header->incompatible = 1;
	header->crc = (uint32_t)0;
	expect_refused("a header without its checksum", fixture, -EINVAL);
}

/* Numbers in the file that would cost memory or lead out of it. */
Test(reader, lies)
{
	struct fixture *fixture = fixture_new();
	struct trace_chunk chunk = {
	    .type = TRACE_CHUNK_EVENTS, .process = 4000000000u, .thread = 4000000000u, .events = 1};
	struct trace *trace;
	uint64_t words[4] = {0};

	fixture->plain = true;
	fixture_meta(fixture, 0, "{\"type\":\"process\",\"process\":-1,\"pid\":1}");
	fixture_meta(fixture, 0, "{\"type\":\"process\",\"process\":4294967295,\"pid\":1}");
	fixture_meta(fixture, 0, "{\"type\":\"thread\",\"process\":0,\"thread\":16000000,\"tid\":1}");
	fixture_meta(fixture, 0, "{\"type\":\"thread_end\",\"thread\":0}");
	fixture_meta(fixture, 0, "[]");
	fixture_meta(fixture, 0, "{\"type\":7}");
	fixture_meta(fixture, 0, "nonsense");
	fixture_chunk(fixture, chunk, words, 8);
	chunk.process = chunk.thread = 0;
	chunk.events = 2; /* but one in the payload */
	fixture_chunk(fixture, chunk, words, 8);
	chunk.events = 1;
	chunk.extras = 1; /* but its kind has none */
	fixture_chunk(fixture, chunk, words, 16);
	fixture_define(fixture, 0, WIRE_DEFINE_CODE, 100000000, 1, "f", "n", "", "");
	fixture_end(fixture);
	trace = open_fixture(fixture);
	read_all(trace);
	cr_expect(trace->damage.chunks == 11, "%u chunks", trace->damage.chunks);
	cr_expect(verdict(trace) == CLI_DAMAGED);
	trace_close(trace);
	fixture_free(fixture);
}

/* As many records of one long name as fill a chunk; they pack to a few kilobytes. */
static void define_much(struct fixture *fixture, uint32_t process, uint32_t id)
{
	struct wire_definition record = {.size_bytes = sizeof(record) + WIRE_STRING_MAX_BYTES,
					 .type = WIRE_DEFINE_CODE,
					 .length = {WIRE_STRING_MAX_BYTES}};
	size_t count = TRACE_PAYLOAD_MAX_BYTES / record.size_bytes;
	uint8_t *bytes = malloc(count * record.size_bytes);

	cr_assert(bytes);
	memset(bytes, 'a', count * record.size_bytes);
	for (size_t i = 0; i < count; i++) {
		record.id = id + (uint32_t)i;
		memcpy(bytes + i * record.size_bytes, &record, sizeof(record));
	}
	fixture_chunk(fixture, (struct trace_chunk){.type = TRACE_CHUNK_DEFINITIONS, .process = process}, bytes,
		      count * record.size_bytes);
	free(bytes);
}

/* What unpacks to gigabytes is damage: memory is bounded by the size of the file. */
Test(reader, names_without_end)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 1, 0);
	struct trace *trace;
	char text[256];

	fixture_code(fixture, process, 1, "a.py", 1, "f");
	for (uint32_t chunk = 0; chunk < 20; chunk++)
		define_much(fixture, process, 2 + chunk * 1024);
	fixture_end(fixture);
	cr_assert_lt(fixture->size, 4 << 20);
	trace = open_fixture(fixture);
	cr_assert_geq(trace->damage.chunks, 4, "320 MiB of names in a file of %zu bytes", fixture->size);
	cr_assert_lt(trace->definition_count, 17);
	cr_assert_eq(trace_verdict(trace, text, sizeof(text)), CLI_DAMAGED);
	cr_assert(trace_name(&trace->processes[0]->codes, 1), "what came before stays");
	trace_close(trace);
	fixture_free(fixture);
}

/* Tables by id grow with the highest: a few ids that are far apart must not cost gigabytes. */
Test(reader, ids_far_apart)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 1, 0);
	struct trace *trace;

	for (uint32_t i = 0; i < 100; i++)
		fixture_code(fixture, process, 1 + i * 1000000, "a.py", 1, "f");
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_assert_lt(trace->processes[0]->codes.count, 3000000);
	cr_assert(trace_name(&trace->processes[0]->codes, 1000001));
	cr_assert_gt(trace->damage.chunks, 90);
	trace_close(trace);
	fixture_free(fixture);
}

Test(reader, strings_longer_than_their_record)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 1, 0);
	struct wire_definition definition = {
	    .size_bytes = sizeof(definition), .type = WIRE_DEFINE_CODE, .id = 1, .length = {UINT32_MAX, UINT32_MAX}};
	struct trace_chunk chunk = {.type = TRACE_CHUNK_DEFINITIONS, .process = process, .thread = TRACE_NOBODY};
	struct trace *trace;

	fixture_chunk(fixture, chunk, &definition, sizeof(definition));
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_expect(trace->damage.chunks == 1);
	cr_expect(!trace_name(&trace->processes[0]->codes, 1));
	trace_close(trace);
	fixture_free(fixture);
}

Test(reader, unknown_chunk_types_are_skipped)
{
	struct fixture *fixture = fixture_new();
	struct trace_chunk chunk = {.type = 77};
	struct trace *trace;

	fixture_chunk(fixture, chunk, "later", 5);
	fixture_process(fixture, 5, 1);
	fixture_end(fixture);
	trace = open_fixture(fixture);
	trace_check(trace, NULL, NULL);
	cr_expect(verdict(trace) == CLI_FINE && trace->processes[0]->pid == 5);
	trace_close(trace);
	fixture_free(fixture);
}

Test(reader, clock_is_a_line)
{
	struct fixture *fixture = fixture_new();
	struct trace *trace;
	const struct trace_process *process;

	fixture_meta(fixture, 0, "{\"type\":\"process\",\"process\":0,\"pid\":1,\"clock_kind\":1,\"clock_shift\":3}");
	fixture_clock(fixture, 1, 3, 1000, 500000);
	fixture_clock(fixture, 1, 2, 5000, 1); /* of another clock */
	fixture_clock(fixture, 1, 3, 2000, 501000);
	fixture_clock(fixture, 1, 3, 4001000, 500000 + 10000000);
	fixture_end(fixture);
	trace = open_fixture(fixture);
	process = trace->processes[0];
	cr_expect(trace_ns(process, 1000) == 500000);
	cr_expect(llabs(trace_ns(process, 4001000) - 10500000) <= 1);
	cr_expect(llabs(trace_ns(process, 400000001000) - (500000 + 1000000000000)) <= 1, "far away, no ns is lost");
	cr_expect(trace_ns(process, 0) == 500000 - 2500, "before the first pair: %lld",
		  (long long)trace_ns(process, 0));
	cr_expect(trace_span_ns(process, 4000) >= 9999 && trace_span_ns(process, 4000) <= 10000);
	cr_expect(trace_ns(process, trace_ticks(process, 777777)) >= 777777);
	cr_expect(trace_ns(process, trace_ticks(process, 777777) - 1) < 777777);
	cr_expect(!trace->damage.no_clock);
	trace_close(trace);
	fixture_free(fixture);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state ^ *state >> 29;
}

/* Time goes on by steps of any size, sometimes back, and sometimes anywhere. */
static void expect_near_is_exact(const struct trace_process *process, uint64_t *state)
{
	struct trace_near near = {0};
	uint64_t ticks = next_random(state) >> next_random(state) % 64;

	for (int i = 0; i < 300; i++) {
		uint64_t step = next_random(state) >> (i % 8 ? 30 + next_random(state) % 34 : next_random(state) % 64);

		ticks = next_random(state) % 16 ? ticks + step : ticks - step;
		cr_assert(trace_near_ns(&near, process, ticks) == trace_ns(process, ticks),
			  "%llu ticks, on a line through %llu, %lld with %llu >> %u", (unsigned long long)ticks,
			  (unsigned long long)process->line.ticks, (long long)process->line.ns,
			  (unsigned long long)process->line.factor, process->line.shift);
	}
}

Test(reader, near_times_are_exact)
{
	uint64_t state = 1;

	for (int i = 0; i < 3000; i++) {
		struct trace_process process = {
		    .line = {.ticks = next_random(&state) >> next_random(&state) % 64,
			     .ns = (int64_t)(next_random(&state) % TRACE_NS_FAR),
			     .shift = (unsigned)(next_random(&state) % 64),
			     .factor = next_random(&state) >> 1 >> next_random(&state) % 63}};

		if (i % 2)
			process.line.factor |= UINT64_C(1) << process.line.shift >> next_random(&state) % 4;
		expect_near_is_exact(&process, &state);
	}
}

static bool records(const struct trace *trace, const char *kind)
{
	return trace_process_records(trace->processes[0], kind);
}

/* Other events are recorded from a moment on; what is damaged, or earlier than the one before, is left out. */
Test(reader, changes_of_events)
{
	struct fixture *fixture = fixture_new();
	struct trace *trace;

	fixture_process(fixture, 1, 0);
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":100,\"events\":[\"call\",\"line\"]}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":99,\"events\":[\"earlier\"]}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":-1,\"events\":[\"negative\"]}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":\"200\",\"events\":[\"text\"]}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"events\":[\"timeless\"]}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":200}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":200,\"events\":\"word\"}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":0,\"ticks\":200,\"events\":{\"0\":\"member\"}}");
	fixture_meta(fixture, 0, "{\"type\":\"events\",\"process\":77,\"ticks\":200,\"events\":[\"nobody\"]}");
	fixture_meta(fixture, 0,
		     "{\"type\":\"events\",\"process\":0,\"ticks\":200,\"events\":[7,null,{\"a\":1},[],\"free\"]}");
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_expect(trace->damage.chunks == 1, "the process that nobody knows, not %u", trace->damage.chunks);
	cr_expect(json_array_size(trace->processes[0]->changes) == 2);
	cr_expect(records(trace, "call") && records(trace, "line") && records(trace, "free"));
	cr_expect(!records(trace, "earlier") && !records(trace, "negative") && !records(trace, "text"));
	cr_expect(!records(trace, "timeless") && !records(trace, "word") && !records(trace, "member"));
	trace_close(trace);
	fixture_free(fixture);
}

Test(reader, names_of_threads)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 1, 0);
	struct trace *trace;

	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 7, 0, "", "early", "", "");
	fixture_thread(fixture, process, 7, 0);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 7, 0, "", "renamed", "", "");
	fixture_meta(fixture, process,
		     "{\"type\":\"thread_end\",\"thread\":0,\"events\":{\"call\":3},\"lost\":{\"free\":2}}");
	fixture_thread(fixture, process, 7, 50); /* the tid is used again */
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 7, 0, "", "second", "", "");
	fixture_thread(fixture, process, 8, 50);
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_expect_str_eq(trace->threads[0]->name, "renamed");
	cr_expect_str_eq(trace->threads[1]->name, "second");
	cr_expect_null(trace->threads[2]->name);
	cr_expect(trace->threads[0]->events[WIRE_CALL] == 3 && trace->threads[0]->lost[WIRE_FREE] == 2);
	trace_close(trace);
	fixture_free(fixture);
}

#define FAR UINT64_C(5000000000) /* more than the ticks of one event */

/* A thread that wrote events itself, and its sampler's thread, which is returned. */
static uint32_t add_sampled_thread(struct fixture *fixture, uint32_t process)
{
	uint32_t own, sampled;

	fixture_meta(fixture, process, "{\"type\":\"process\",\"process\":0,\"pid\":7,\"sample_rate\":100}");
	own = fixture_thread(fixture, process, 7, 0);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 7, 0, "", "its name", "", "");
	fixture_event(fixture, own, WIRE_THREAD_START, 0, 10);
	fixture_event(fixture, own, WIRE_PROCESS_START, 0, 10);
	fixture_event(fixture, own, WIRE_TIME, 0, 0);
	fixture_extra(fixture, own, FAR + 20);
	fixture_event(fixture, own, WIRE_FORK, 99, 0);
	fixture_event(fixture, own, WIRE_EXIT, 0, 15);
	fixture_event(fixture, own, WIRE_THREAD_END, 0, 5);
	sampled = fixture_thread(fixture, process, 7, FAR);
	fixture_meta(fixture, process,
		     "{\"type\":\"thread\",\"process\":0,\"thread\":1,\"tid\":7,\"start_ticks\":%llu,\"sampled\":true}",
		     (unsigned long long)FAR);
	fixture_event(fixture, sampled, WIRE_THREAD_START, 0, 0);
	fixture_event(fixture, sampled, WIRE_CALL, 1, 10);
	fixture_flush(fixture, sampled);
	fixture_event(fixture, sampled, WIRE_LINE, 5, 20);
	fixture_event(fixture, sampled, WIRE_RETURN, 1, 20);
	fixture_event(fixture, sampled, WIRE_THREAD_END, 0, 0);
	return sampled;
}

/* What a thread wrote itself is among its sampler's events, where it belongs; its end is the last of all. */
Test(reader, sampled_thread_is_one)
{
	static const struct {
		unsigned kind;
		uint64_t time;
	} expected[] = {{WIRE_THREAD_START, 10},    {WIRE_PROCESS_START, 20}, {WIRE_THREAD_START, FAR},
			{WIRE_CALL, FAR + 10},	    {WIRE_FORK, FAR + 20},    {WIRE_LINE, FAR + 30},
			{WIRE_EXIT, FAR + 35},	    {WIRE_RETURN, FAR + 50},  {WIRE_THREAD_END, FAR + 50},
			{WIRE_THREAD_END, FAR + 50}};
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 7, 0), sampled, i = 0;
	struct trace_events events;
	struct trace_stream stream;
	struct trace *trace;

	sampled = add_sampled_thread(fixture, process);
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_assert(trace->processes[0]->thread_count == 1 && trace->processes[0]->threads[0] == sampled);
	cr_expect_str_eq(trace->threads[sampled]->name, "its name");
	trace_stream_open(&stream, trace, trace->threads[sampled]);
	while (trace_stream_next(&stream, &events)) {
		const uint64_t *extra = events.extras;
		uint64_t now = events.first_ticks;

		for (uint32_t k = 0; k < events.count; k++) {
			unsigned kind = wire_head_kind(events.heads[k]);

			now = wire_time_of(kind, now, events.ticks[k], extra);
			extra += wire_extra_words(events.heads[k]);
			if (kind == WIRE_TIME)
				continue;
			cr_expect(kind == expected[i].kind && now == expected[i].time, "event %u: kind %u at %llu", i,
				  kind, (unsigned long long)now);
			i += i + 1 < sizeof(expected) / sizeof(expected[0]);
		}
	}
	trace_stream_close(&stream);
	cr_expect(i == 9, "%u events", i);
	cr_expect(trace_count_events(trace, trace->threads[sampled]) == 0 &&
		  trace->threads[sampled]->events[WIRE_FORK] == 1 && trace->threads[sampled]->events[WIRE_CALL] == 1);
	trace_close(trace);
	fixture_free(fixture);
}

/* A sampled thread that sets marks while it waits has waited all the same. */
Test(reader, own_events_keep_the_cpu_time)
{
	static const enum cpu_clock clocks[] = {CPU_CLOCK_RAN, CPU_CLOCK_WAITED};
	static const uint64_t expected[] = {510, 99500};
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 7, 0), own, sampled;

	fixture_meta(fixture, process, "{\"type\":\"process\",\"process\":0,\"pid\":7,\"sample_rate\":100}");
	own = fixture_thread(fixture, process, 7, 0);
	fixture_event(fixture, own, WIRE_MARK, 1, 30000);
	fixture_event(fixture, own, WIRE_MARK, 1, 30000);
	sampled = fixture_thread(fixture, process, 7, 0);
	fixture_meta(fixture, process,
		     "{\"type\":\"thread\",\"process\":0,\"thread\":1,\"tid\":7,\"start_ticks\":0,\"sampled\":true}");
	fixture_event(fixture, sampled, WIRE_CPU, 0, 1000);
	fixture_extra(fixture, sampled, 0);
	fixture_event(fixture, sampled, WIRE_CALL, 1, 10);
	fixture_event(fixture, sampled, WIRE_CPU, 0, 1510);
	fixture_extra(fixture, sampled, 100010);
	fixture_event(fixture, sampled, WIRE_RETURN, 1, 0);
	fixture_end(fixture);
	for (size_t i = 0; i < 2; i++) {
		struct trace *trace = open_fixture(fixture);
		struct trace_stream stream;
		struct trace_events events;
		uint64_t now = 0;
		int marks = 0;

		trace->clock = clocks[i];
		trace_stream_open(&stream, trace, trace->threads[sampled]);
		while (trace_stream_next(&stream, &events)) {
			const uint64_t *extra = events.extras;

			now = events.first_ticks;
			for (uint32_t k = 0; k < events.count; k++) {
				unsigned kind = wire_head_kind(events.heads[k]);

				now = wire_time_of(kind, now, events.ticks[k], extra);
				extra += wire_extra_words(events.heads[k]);
				marks += kind == WIRE_MARK;
			}
		}
		trace_stream_close(&stream);
		cr_expect(marks == 2 && now == expected[i], "%d marks, %llu ticks", marks, (unsigned long long)now);
		trace_close(trace);
	}
	fixture_free(fixture);
}

Test(reader, merge_is_in_order_of_time)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 1, 0);
	uint64_t delta[3] = {7, 11, 13};
	struct merge_event event;
	struct merge merge;
	struct trace *trace;
	int64_t last = 0;
	int count = 0;

	for (uint32_t i = 0; i < 3; i++)
		fixture_thread(fixture, process, i + 1, 100 * i);
	for (int round = 0; round < 500; round++)
		for (uint32_t i = 0; i < 3; i++) {
			fixture_event(fixture, i, WIRE_MARK, i, (uint32_t)delta[i]);
			if (round % 50 == 49)
				fixture_flush(fixture, i);
		}
	fixture_end(fixture);
	trace = open_fixture(fixture);
	cr_assert(merge_open(&merge, trace, NULL, NULL) == 0);
	while (merge_next(&merge, &event)) {
		cr_assert(event.ns >= last);
		cr_assert(
		    (event.ns - (int64_t)(100 * (event.thread->tid - 1))) % (int64_t)delta[event.thread->tid - 1] == 0);
		last = event.ns;
		count++;
	}
	cr_expect(count == 1500);
	merge_close(&merge);
	trace_close(trace);
	fixture_free(fixture);
}

/* Follows a file that grows by `step` bytes each time. Returns the number of events that came. */
static uint64_t follow(const struct fixture *fixture, size_t step)
{
	char path[] = "/tmp/evprof-follow-XXXXXX", error[256];
	size_t done = sizeof(struct trace_header);
	struct trace *trace = NULL;
	uint64_t events = 0;
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && write(fd, fixture->bytes, done) == (ssize_t)done);
	cr_assert(trace_open(&trace, path, error, sizeof(error)) == 0, "%s", error);
	while (done < fixture->size) {
		size_t next = step < fixture->size - done ? step : fixture->size - done;

		cr_assert(write(fd, fixture->bytes + done, next) == (ssize_t)next);
		done += next;
		cr_assert(trace_follow(trace) == 0);
		events += read_all(trace);
	}
	cr_expect(trace->process_count == 2 && trace->processes[1]->pid == 11 && trace->thread_count == 4);
	cr_expect(trace->threads[3]->tid == 111 && trace->processes[1]->thread_count == 2);
	cr_expect(trace->processes[0]->codes.count == 2 && trace->damage.holes == 0 && trace->damage.chunks == 0);
	cr_assert(trace_follow(trace) == 0 && read_all(trace) == 0, "nothing comes twice");
	trace_close(trace);
	close(fd);
	unlink(path);
	return events;
}

Test(reader, followed, .timeout = 60)
{
	static const size_t steps[] = {1, 7, 64, 777, 1 << 20};

	for (int plain = 0; plain < 2; plain++) {
		for (int whole = 0; whole < 2; whole++) {
			struct fixture *fixture = sample(plain, whole);

			for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
				cr_expect_eq(follow(fixture, steps[i]), 36, "steps of %zu bytes", steps[i]);
			fixture_free(fixture);
		}
	}
}

Test(reader, files)
{
	struct fixture *fixture = sample(false, true);
	char *path = fixture_save(fixture);
	struct trace *trace = NULL;
	char error[256];

	cr_assert(trace_open(&trace, path, error, sizeof(error)) == 0);
	cr_expect(read_all(trace) == 36);
	trace_close(trace);
	unlink(path);
	cr_expect(trace_open(&trace, path, error, sizeof(error)) == -ENOENT && strstr(error, path));
	cr_expect(trace_open(&trace, "/", error, sizeof(error)) < 0 && error[0] == '/');
	cr_expect(trace_open(&trace, "/dev/null", error, sizeof(error)) == -EINVAL);
	free(path);
	fixture_free(fixture);
}
