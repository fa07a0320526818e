/*
 * test_tools_perfetto.c - protocol buffers, and what a reader of Perfetto's format makes of an export.
 *
 * The reader here shares nothing with the writer: it resolves interned names and adds up times as Perfetto's documents
 * say (protos/perfetto/trace/trace_packet.proto), and writes a line for each thing that it learns.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/export/export.h"
#include "tools/export/protobuf.h"
#include "one_trace.h"

#define IIDS 64
#define SEQUENCES 16

/* --- a decoder --- */

struct field {
	uint32_t number;
	unsigned wire;
	uint64_t value;
	const uint8_t *at; /* of the contents, for messages and text */
	size_t length;
};

static uint64_t take_varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;
	unsigned shift = 0;

	do {
		cr_assert(*at < end && shift < 64, "a number has its end");
		value |= (uint64_t)(**at & 0x7f) << shift;
		shift += 7;
	} while (*(*at)++ & 0x80);
	return value;
}

/* The next field of a message; false at its end. */
static bool take_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
	uint64_t tag;

	if (*at == end)
		return false;
	tag = take_varint(at, end);
	*field = (struct field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
	cr_assert(field->number && field->wire <= 2, "wire type %u of field %u", field->wire, field->number);
	if (field->wire == 0) {
		field->value = take_varint(at, end);
		return true;
	}
	field->length = field->wire == 1 ? 8 : take_varint(at, end);
	cr_assert(field->length <= (size_t)(end - *at), "field %u is whole", field->number);
	field->at = *at;
	if (field->wire == 1)
		memcpy(&field->value, *at, 8);
	*at += field->length;
	return true;
}

#define EACH_FIELD(Message, Field)                                                                                     \
	for (const uint8_t *at_##Field = (Message).at, *end_##Field = at_##Field + (Message).length;                   \
	     take_field(&at_##Field, end_##Field, &(Field));)

/* --- a reader --- */

struct texts {
	char text[IIDS][64];
};

struct sequence {
	struct texts interned[32]; /* by the field of InternedData */
	uint64_t clock;
	uint64_t now, monotonic;
	uint64_t track;
	unsigned open;
	bool cleared;
};

static struct sequence sequences[SEQUENCES];
static uint64_t large_uuids[16];
static FILE *story;
static char *saw;
static size_t saw_bytes;

static void set_text(char text[64], const struct field *field)
{
	snprintf(text, 64, "%.*s", (int)field->length, (const char *)field->at);
}

static void read_interned(struct sequence *sequence, const struct field *message)
{
	struct field entry, field;

	EACH_FIELD(*message, entry)
	{
		uint64_t iid = 0;

		EACH_FIELD(entry, field)
		{
			if (field.number == 1)
				iid = field.value;
			cr_assert(iid && iid < IIDS);
			if (field.number == 2)
				set_text(sequence->interned[entry.number].text[iid], &field);
			if (field.number == 4)
				sprintf(strchr(sequence->interned[entry.number].text[iid], 0), ":%d", (int)field.value);
		}
	}
}

static void read_snapshot(struct sequence *sequence, const struct field *message)
{
	struct field clock, field;

	EACH_FIELD(*message, clock)
	{
		uint64_t id = 0, time = 0;

		if (clock.number == 2)
			fprintf(story, "primary clock %d\n", (int)clock.value);
		if (clock.number != 1)
			continue;
		EACH_FIELD(clock, field)
		{
			if (field.number == 1)
				id = field.value;
			if (field.number == 2)
				time = field.value;
			if (field.number == 3)
				cr_expect(id == 64 && field.value == 1,
					  "only the sequence's own clock counts differences");
		}
		if (id == 64)
			sequence->now = time;
		if (id == 3)
			sequence->monotonic = time;
	}
}

static void read_defaults(struct sequence *sequence, const struct field *message)
{
	struct field field, event;

	EACH_FIELD(*message, field)
	{
		if (field.number == 58)
			sequence->clock = field.value;
		if (field.number != 11)
			continue;
		EACH_FIELD(field, event)
		{
			if (event.number == 11)
				sequence->track = event.value;
		}
	}
}

/* Tracks of greenlets and tasks have numbers without an order: -1, -2, as they are met. */
static int short_uuid(uint64_t uuid)
{
	if (uuid < 1000)
		return (int)uuid;
	for (int i = 0; i < 16; i++) {
		if (!large_uuids[i])
			large_uuids[i] = uuid;
		if (large_uuids[i] == uuid)
			return -1 - i;
	}
	cr_assert_fail("there are too many tracks");
	return 0;
}

static void print_track(const struct field *message)
{
	struct field field, part;

	fprintf(story, "track");
	EACH_FIELD(*message, field)
	{
		if (field.number == 1)
			fprintf(story, " %d", short_uuid(field.value));
		if (field.number == 5)
			fprintf(story, " of %d", short_uuid(field.value));
		if (field.number == 2)
			fprintf(story, " %.*s", (int)field.length, field.at);
		if (field.number != 3 && field.number != 4 && field.number != 8)
			continue;
		EACH_FIELD(field, part)
		{
			if (part.wire == 0)
				fprintf(story, " %u=%d", part.number, (int)part.value);
			else
				fprintf(story, " %u=%.*s", part.number, (int)part.length, part.at);
		}
	}
	fprintf(story, "\n");
}

static void print_annotation(const struct sequence *sequence, const struct field *annotation)
{
	struct field field;

	EACH_FIELD(*annotation, field)
	{
		if (field.number == 1)
			fprintf(story, " %s", sequence->interned[3].text[field.value]);
		if (field.number == 3)
			fprintf(story, "=%d", (int)field.value);
		if (field.number == 17)
			fprintf(story, "=%s", sequence->interned[29].text[field.value]);
	}
}

static void print_event(struct sequence *sequence, uint64_t time, const struct field *message)
{
	static const char *const types[] = {"?", "begin", "end", "instant", "counter"};
	uint64_t track = sequence->track;
	struct field field;

	fprintf(story, "%d", (int)time - 1000);
	EACH_FIELD(*message, field)
	{
		if (field.number == 9) {
			fprintf(story, " %s", types[field.value]);
			sequence->open += field.value == 1;
			cr_expect(field.value != 2 || sequence->open > 0);
			sequence->open -= field.value == 2;
		}
		if (field.number == 3)
			fprintf(story, " %s", sequence->interned[1].text[field.value]);
		if (field.number == 10)
			fprintf(story, " %s", sequence->interned[2].text[field.value]);
		if (field.number == 34)
			fprintf(story, " %s", sequence->interned[4].text[field.value]);
		if (field.number == 4)
			print_annotation(sequence, &field);
		if (field.number == 11)
			track = field.value;
		if (field.number == 30)
			fprintf(story, " %d", (int)field.value);
		if (field.number == 47)
			fprintf(story, " flow %d", (int)field.value);
	}
	fprintf(story, " @%d\n", short_uuid(track));
}

static void read_packet(const struct field *packet)
{
	struct field fields[16], field, *event = NULL;
	struct sequence *sequence = NULL;
	uint64_t clock = 0, timestamp = 0, flags = 0;
	unsigned count = 0;

	EACH_FIELD(*packet, field)
	{
		cr_assert(count < 16);
		fields[count++] = field;
	}
	for (unsigned i = 0; i < count; i++) {
		if (fields[i].number == 10)
			sequence = &sequences[fields[i].value % SEQUENCES];
		if (fields[i].number == 13)
			flags = fields[i].value;
		if (fields[i].number == 8)
			timestamp = fields[i].value;
		if (fields[i].number == 58)
			clock = fields[i].value;
	}
	cr_assert(sequence, "each packet belongs to a sequence");
	if (flags & 1) {
		*sequence = (struct sequence){.cleared = true};
	}
	cr_assert(!(flags & 2) || sequence->cleared, "state is used after it was set");
	for (unsigned i = 0; i < count; i++) {
		if (fields[i].number == 59)
			read_defaults(sequence, &fields[i]);
		if (fields[i].number == 6)
			read_snapshot(sequence, &fields[i]);
		if (fields[i].number == 12)
			read_interned(sequence, &fields[i]);
		if (fields[i].number == 60)
			print_track(&fields[i]);
		if (fields[i].number == 11)
			event = &fields[i];
	}
	if (!event)
		return;
	cr_assert(flags & 2, "an event needs the state");
	clock = clock ? clock : sequence->clock;
	cr_assert(clock == 64 || clock == 3);
	sequence->now += clock == 64 ? timestamp : 0;
	print_event(sequence, clock == 64 ? sequence->now : timestamp, event);
}

/* --- traces --- */

static char *exported;
static struct filter filter;

static void set_up(void)
{
	static const char name[] = "/tmp/test_perfetto.XXXXXX";

	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, 1, "a.py", 7, "f");
	fixture_code(fixture, process, 2, "b\xff.py", 8, "\xed\xa0\x80g\xff\xc3\xa4");
	fixture_function(fixture, process, 1, "str", "join", "");
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, "", "KeyError", "KeyError", "builtins");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "half", "", "");
	thread = fixture_thread(fixture, process, 11, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 11, 0, "", "Main", "", "");
	story = open_memstream(&saw, &saw_bytes);
	exported = strdup(name);
	close(mkstemp(exported));
	filter = (struct filter){0};
	memset(sequences, 0, sizeof(sequences));
	memset(large_uuids, 0, sizeof(large_uuids));
}

static void tear_down(void)
{
	fclose(story);
	free(saw);
	unlink(exported);
	free(exported);
	filter_done(&filter);
	end_trace();
}

TestSuite(perfetto, .init = set_up, .fini = tear_down);

/* Exports the fixture and reads the file. */
static void export_and_read(void)
{
	struct progress progress = {0};
	struct export export = {.filter = &filter};
	struct output output;
	struct field file = {0}, packet;
	char error[200];
	long size;
	FILE *stream;
	uint8_t *bytes;

	fixture_end(fixture);
	cr_assert(trace_open_memory(&export.trace, fixture->bytes, fixture->size, "fixture", error, sizeof(error)) ==
		  0);
	cr_assert(output_open(&output, exported) == 0);
	cr_assert(export_perfetto(&export, &output, &progress) == 0);
	cr_assert(output_close(&output) == 0);
	trace_close(export.trace);
	stream = fopen(exported, "rb");
	fseek(stream, 0, SEEK_END);
	size = ftell(stream);
	rewind(stream);
	bytes = malloc((size_t)size);
	cr_assert(fread(bytes, 1, (size_t)size, stream) == (size_t)size);
	fclose(stream);
	file.at = bytes;
	file.length = (size_t)size;
	EACH_FIELD(file, packet)
	{
		cr_assert(packet.number == 1 && packet.wire == 2, "a trace is a list of packets");
		read_packet(&packet);
	}
	free(bytes);
	fflush(story);
}

static void expect_story(const char *expected)
{
	export_and_read();
	cr_expect(strcmp(saw, expected) == 0, "saw\n%s\nnot\n%s", saw, expected);
}

/* The fixture's session is 0: a track's uuid is (number + 1) * 4 and 0 for processes, 1 threads, 2 heap, 3 lost. */
#define BEGIN "primary clock 3\ntrack 4 1=10 2=python 2=a b.py 6=a 8=Python 3.11.2\ntrack 5 of 4 1=10 2=11 5=Main\n"

Test(perfetto, calls)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_C_CALL, 1, 10);
	event(WIRE_C_EXCEPTION, 1, 300);
	event(WIRE_RESUME, 2, 10);
	event(WIRE_YIELD, 2, 0);
	event(WIRE_THROW, 2, 70000);
	event(WIRE_UNWIND, 2, 5);
	event(WIRE_RETURN, 1, 5);
	expect_story(BEGIN "0 begin call f a.py:7 @5\n"
			   "10 begin c_call str.join @5\n"
			   "310 end end=exception @5\n"
			   "320 begin resume \xef\xbf\xbdg\xef\xbf\xbd\xc3\xa4 b\xef\xbf\xbd.py:8 @5\n"
			   "320 end end=yield @5\n"
			   "70320 begin throw \xef\xbf\xbdg\xef\xbf\xbd\xc3\xa4 b\xef\xbf\xbd.py:8 @5\n"
			   "70325 end end=unwind @5\n"
			   "70330 end @5\n");
}

static void step(uint64_t task, unsigned kind, uint32_t ticks)
{
	event(WIRE_TASK, 1, ticks);
	fixture_extra(fixture, thread, task);
	event(kind, 1, 0);
}

/* Each task's track is described once; its steps are there, and on the thread's track. */
Test(perfetto, tasks)
{
	step(0x10, WIRE_CALL, 0);
	event(WIRE_YIELD, 1, 10);
	step(0x20, WIRE_CALL, 0);
	event(WIRE_YIELD, 1, 10);
	step(0x10, WIRE_RESUME, 0);
	event(WIRE_UNWIND, 1, 10);
	expect_story(BEGIN "0 begin call f a.py:7 @5\n"
			   "track -1 of 5 task f #1\n"
			   "0 begin task f a.py:7 @-1\n"
			   "10 end end=yield @-1\n10 end end=yield @5\n"
			   "10 begin call f a.py:7 @5\n"
			   "track -2 of 5 task f #2\n"
			   "10 begin task f a.py:7 @-2\n"
			   "20 end end=yield @-2\n20 end end=yield @5\n"
			   "20 begin resume f a.py:7 @5\n"
			   "20 begin task f a.py:7 @-1\n"
			   "30 end end=unwind @-1\n30 end end=unwind @5\n");
}

static void switch_to(uint64_t target, uint64_t origin, uint32_t ticks)
{
	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

/* The thread's own stack stays on its track, and is not there while a greenlet runs. */
Test(perfetto, greenlets)
{
	event(WIRE_CALL, 1, 0);
	switch_to(0x20, 0x10, 10);
	event(WIRE_CALL, 1, 10);
	switch_to(0x10, 0x20, 10);
	switch_to(0x20, 0x10, 10);
	event(WIRE_RETURN, 1, 10);
	expect_story(BEGIN "0 begin call f a.py:7 @5\n"
			   "10 end end=yield @5\n"
			   "track -1 of 5 greenlet 1\n"
			   "20 begin call f a.py:7 @-1\n"
			   "30 end end=yield @-1\n"
			   "30 begin running f a.py:7 @5\n"
			   "40 end end=yield @5\n"
			   "40 begin running f a.py:7 @-1\n"
			   "50 end @-1\n");
}

Test(perfetto, instants)
{
	event(WIRE_PROCESS_START, WIRE_START_EXEC, 0);
	event(WIRE_EXCEPTION, 1, 1);
	event(WIRE_EXCEPTION, 9, 1);
	event(WIRE_MARK, 1, 1);
	event(WIRE_MARK, 1, 1);
	event(WIRE_FORK, 4711, 1);
	event(WIRE_EXEC, 0, 1);
	event(WIRE_EXEC_FAILED, 2, 1);
	event(WIRE_PAUSE, 1, 1);
	event(WIRE_PAUSE, 0, 1);
	event(WIRE_EXIT, WIRE_EXIT_KNOWN | 3, 1);
	event(WIRE_EXIT, 0, 1);
	expect_story(BEGIN "0 instant process process_start flow 1 @5\n"
			   "1 instant exception KeyError @5\n"
			   "2 instant exception exception @5\n"
			   "3 instant mark half @5\n"
			   "4 instant mark half @5\n"
			   "5 instant process fork child=4711 @5\n"
			   "6 instant process exec @5\n"
			   "7 instant process exec_failed errno=2 @5\n"
			   "8 instant process recording stops @5\n"
			   "9 instant process recording starts @5\n"
			   "10 instant process exit status=3 @5\n"
			   "11 instant process exit @5\n");
}

Test(perfetto, lost_events_are_counted)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_GAP, 0, 10);
	fixture_extra(fixture, thread, 5);
	event(WIRE_STACK, 1, 10);
	event(WIRE_FRAME, 1, 0);
	event(WIRE_GAP, 0, 10);
	fixture_extra(fixture, thread, 6);
	expect_story(BEGIN "0 begin call f a.py:7 @5\n"
			   "0 end @5\n"
			   "10 instant lost events lost events=5 @5\n"
			   "track 7 of 5 events lost 3=2\n"
			   "10 counter 5 @7\n"
			   "20 begin running f a.py:7 @5\n"
			   "20 end @5\n"
			   "30 instant lost events lost events=6 @5\n"
			   "30 counter 11 @7\n");
}

/* Frames that only allocations have, where calls are not recorded, are no slices: nobody knows how long they ran. */
Test(perfetto, heap)
{
	const uint64_t place = wire_place(1, 0);

	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 0, &place, 1, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0xabc0, 100, 0, 5);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0xdef0, 200000, 0, 200000);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_RAW, 0xabc0, 0, 0, 5);
	expect_story(BEGIN "track 6 of 4 Python heap 3=3\n"
			   "5 counter 100 @6\n"
			   "200005 counter 200100 @6\n"
			   "200010 counter 200000 @6\n");
}

/* The names of one thread mean nothing in another one. */
Test(perfetto, threads)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_RETURN, 1, 5);
	thread = fixture_thread(fixture, process, 12, 1100);
	event(WIRE_CALL, 1, 0);
	event(WIRE_RETURN, 1, 5);
	expect_story(BEGIN "0 begin call f a.py:7 @5\n5 end @5\n"
			   "track 9 of 4 1=10 2=12\n"
			   "100 begin call f a.py:7 @9\n105 end @9\n");
}

/* The child began before its parent came to record the fork: the fork's instant goes to that time. */
Test(perfetto, forks)
{
	uint32_t child;

	event(WIRE_CALL, 1, 0);
	event(WIRE_FORK, 20, 300);
	event(WIRE_RETURN, 1, 5);
	child = fixture_process(fixture, 20, 10);
	thread = fixture_thread(fixture, child, 20, 1200);
	event(WIRE_PROCESS_START, WIRE_START_FORK, 0);
	export_and_read();
	cr_expect(strstr(saw, " instant process fork child=20 flow 2 @5\n"), "%s", saw);
	cr_expect(strstr(saw, "200 instant process process_start flow 2 @9\n"), "%s", saw);
}

static void child_at(uint32_t ticks)
{
	thread = fixture_thread(fixture, fixture_process(fixture, 20, 10), 20, ticks);
	event(WIRE_PROCESS_START, WIRE_START_FORK, 0);
}

/* A pid comes again: a fork belongs to the image that began nearest to it. Fixtures' processes begin at 0. */
Test(perfetto, pids_come_again)
{
	static const char *const later =
	    "{\"type\":\"process\",\"process\":2,\"pid\":20,\"ppid\":10,\"start\":\"fork\",\"start_ticks\":3000}";

	event(WIRE_CALL, 1, 0);
	event(WIRE_FORK, 20, 10);
	event(WIRE_FORK, 20, 1980);
	child_at(1100);
	child_at(3100);
	fixture_meta(fixture, 2, "%s", later);
	export_and_read();
	cr_expect(strstr(saw, " instant process fork child=20 flow 2 @5\n"), "%s", saw);
	cr_expect(strstr(saw, " instant process fork child=20 flow 3 @5\n"), "%s", saw);
}

static void span(uint32_t of, uint64_t number, uint32_t ticks)
{
	fixture_extended(fixture, of, WIRE_SPAN_BEGIN, 0, (const uint64_t[]){1, number}, 2, ticks);
}

/*
 * Viewers end the innermost slice of a track. So spans that overlap have tracks of their own, also if their ends are
 * known when they begin, as another thread, which is read before, has ended them.
 */
Test(perfetto, spans_that_overlap)
{
	uint32_t other = fixture_thread(fixture, process, 12, 1000);

	event(WIRE_SPAN_END, 1, 40);
	event(WIRE_SPAN_END, 2, 20);
	span(other, 1, 10);
	span(other, 2, 10);
	span(other, 3, 20);
	fixture_event(fixture, other, WIRE_SPAN_END, 3, 5);
	span(other, 4, 5);
	fixture_event(fixture, other, WIRE_SPAN_END, 4, 5);
	span(other, 5, 5);
	expect_story(BEGIN "track 9 of 4 1=10 2=12\n"
			   "track -1 of 9 spans\n"
			   "10 begin span half @-1\n40 end @-1\n"
			   "track -2 of 9 spans\n"
			   "20 begin span half @-2\n60 end @-2\n"
			   "40 begin span half @-1\n45 end @-1\n"
			   "50 begin span half @-1\n55 end @-1\n"
			   "60 begin span half @-1\n60 end @-1\n");
}

/* The end in a thread that is not shown is the end all the same. */
Test(perfetto, spans_that_a_hidden_thread_ends)
{
	uint32_t other = fixture_thread(fixture, process, 12, 1000);

	span(thread, 1, 0);
	event(WIRE_MARK, 1, 90);
	fixture_event(fixture, other, WIRE_SPAN_END, 1, 30);
	filter.tid = 11;
	expect_story(BEGIN "track -1 of 5 spans\n0 begin span half @-1\n30 end @-1\n90 instant mark half @5\n");
}

/* With a shortest duration, the mark is written before the call around it; the call's time is the right one. */
Test(perfetto, time_goes_back)
{
	event(WIRE_CALL, 1, 10);
	event(WIRE_MARK, 1, 30);
	event(WIRE_RETURN, 1, 30);
	event(WIRE_MARK, 1, 30);
	filter.min_duration_ns = 60;
	expect_story(BEGIN "40 instant mark half @5\n"
			   "10 begin call f a.py:7 @5\n"
			   "70 end @5\n"
			   "100 instant mark half @5\n");
}

Test(perfetto, windows)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_MARK, 1, 30);
	event(WIRE_RETURN, 1, 30);
	filter.from_given = filter.to_given = true;
	filter.from_ns = 20;
	filter.to_ns = 40;
	expect_story(BEGIN "20 begin running f a.py:7 @5\n30 instant mark half @5\n40 end @5\n");
}

/* --- protocol buffers --- */

Test(protobuf, numbers)
{
	static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct protobuf protobuf = {0};
		struct field message, field;

		protobuf_number(&protobuf, 300, numbers[i]);
		message = (struct field){.at = protobuf.bytes, .length = protobuf.used};
		cr_assert(take_field(&message.at, message.at + message.length, &field));
		cr_expect(field.number == 300 && field.wire == 0 && field.value == numbers[i]);
		protobuf_done(&protobuf);
	}
}

/* The bytes of the documents' examples: 150 in field 1, "testing" in field 2, the first as a message in field 3. */
Test(protobuf, bytes_of_the_documents)
{
	static const uint8_t expected[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's', 't',
					   'i',	 'n',  'g',  0x1a, 0x03, 0x08, 0x96, 0x01};
	struct protobuf protobuf = {0};

	protobuf_number(&protobuf, 1, 150);
	protobuf_string(&protobuf, 2, "testing");
	protobuf_begin(&protobuf, 3);
	protobuf_number(&protobuf, 1, 150);
	protobuf_end(&protobuf);
	cr_expect(protobuf.used == sizeof(expected) && memcmp(protobuf.bytes, expected, sizeof(expected)) == 0);
	protobuf_done(&protobuf);
}

/* Lengths of one, two and three bytes, in one another. */
Test(protobuf, messages_in_messages)
{
	static const size_t sizes[] = {0, 100, 126, 127, 128, 1000, 16383, 16384, 100000};
	static char filler[100000];

	memset(filler, 'x', sizeof(filler));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct protobuf protobuf = {0};
		struct field outer, middle, inner, after;
		const uint8_t *at, *end;

		protobuf_begin(&protobuf, 1);
		protobuf_begin(&protobuf, 2);
		protobuf_text(&protobuf, 3, (struct text){filler, sizes[i]});
		protobuf_end(&protobuf);
		protobuf_number(&protobuf, 4, UINT64_C(0x0123456789abcdef));
		protobuf_end(&protobuf);
		at = protobuf.bytes;
		end = at + protobuf.used;
		cr_assert(take_field(&at, end, &outer) && at == end && outer.number == 1);
		at = outer.at;
		end = at + outer.length;
		cr_assert(take_field(&at, end, &middle) && middle.number == 2);
		cr_assert(take_field(&at, end, &after) && after.number == 4 && at == end);
		cr_expect(after.value == UINT64_C(0x0123456789abcdef));
		at = middle.at;
		cr_assert(take_field(&at, at + middle.length, &inner) && inner.number == 3);
		cr_expect(inner.length == sizes[i] && memcmp(inner.at, filler, sizes[i]) == 0);
		protobuf_done(&protobuf);
	}
}
