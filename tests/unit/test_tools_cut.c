/*
 * test_tools_cut.c - stretches of a trace as traces of their own (tools/cut), over traces of the fixture.
 *
 * A trace is listed as text: each event of each thread with its time, its names, and the Python functions on the stack.
 * The lists of pieces that follow each other, put together, are the list of the whole.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "tools/replay/replay.h"
#include "one_trace.h"

enum { A = 1, B = 2, C = 3, X = 1, ERROR = 1, FAR = 1500000 };
enum { MARK_ONE = 1, MARK_TWO = 2, SPAN = 3, COUNTER = 4, KEY = 5, TASK_NAME = 6, RARE = 300000 };

#define START UINT64_C(1000)
#define THREADS 4

static char *piece;

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, A, "a.py", 1, "a");
	fixture_code(fixture, process, B, "b.py", 2, "b");
	fixture_code(fixture, process, C, "c.py", 3, "c");
	fixture_function(fixture, process, X, "", "x", "m");
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, ERROR, 0, "", "Error", "Error", "m");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, MARK_ONE, 0, "", "one", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, MARK_TWO, 0, "", "two", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, SPAN, 0, "", "span", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, COUNTER, 0, "", "counter", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, KEY, 0, "", "key", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, TASK_NAME, 0, "", "job", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, RARE, 0, "", "rare", "", "");
	thread = fixture_thread(fixture, process, 11, START);
	if (asprintf(&piece, "/tmp/evprof-cut-%d.evp", (int)getpid()) < 0)
		abort();
}

static void tear_down(void)
{
	unlink(piece);
	free(piece);
	end_trace();
}

TestSuite(cut, .init = set_up, .fini = tear_down, .timeout = 120);

static void extended(unsigned kind, uint32_t value, uint64_t first, uint64_t second, uint32_t ticks)
{
	const uint64_t words[2] = {first, second};

	fixture_extended(fixture, thread, kind, value, words, 2, ticks);
}

/* words: of evprof cut, without the trace and the output. */
static int cut(const char *words)
{
	char line[256];

	snprintf(line, sizeof(line), "%s -o OTHER TRACE", words);
	return run_on(cmd_cut, line, path, piece);
}

/* --- the list of a trace --- */

/* The list of a thread, by its tid - 11. */
struct list {
	char *text[THREADS];
	size_t bytes[THREADS];
	FILE *streams[THREADS];
};

static void list_open(struct list *list)
{
	for (int i = 0; i < THREADS; i++)
		list->streams[i] = open_memstream(&list->text[i], &list->bytes[i]);
}

static void list_close(struct list *list)
{
	for (int i = 0; i < THREADS; i++)
		fclose(list->streams[i]);
}

static void list_free(struct list *list)
{
	for (int i = 0; i < THREADS; i++)
		free(list->text[i]);
}

static const struct replay_sink quiet = {0};

static void print_name(FILE *stream, const struct trace_names *names, uint64_t id)
{
	const struct wire_definition *definition = id < names->count ? names->at[id] : NULL;
	struct text name = definition ? trace_string(definition, 1) : text_of("?");

	fprintf(stream, " %.*s", (int)name.length, name.at);
}

static void print_event(FILE *stream, const struct trace_process *of, uint32_t head, const uint64_t *extra,
			uint64_t now)
{
	unsigned kind = wire_head_kind(head), words = wire_extra_words(head), first = 0;

	/* What describes the next event begins with it, at the beginning of a piece. */
	if (kind != WIRE_TASK && kind != WIRE_ARGUMENT)
		fprintf(stream, "%llu ", (unsigned long long)now);
	fprintf(stream, "%u", kind);
	if (kind >= WIRE_CALL && kind <= WIRE_UNWIND) {
		print_name(stream, &of->codes, wire_head_arg(head));
	} else if (kind >= WIRE_C_CALL && kind <= WIRE_C_EXCEPTION) {
		print_name(stream, &of->functions, wire_head_arg(head));
	} else if (kind == WIRE_EXCEPTION) {
		print_name(stream, &of->types, wire_head_arg(head));
	} else if (kind == WIRE_MARK) {
		print_name(stream, &of->marks, wire_number(head, extra));
		return;
	} else if (kind == WIRE_SPAN_BEGIN || kind == WIRE_COUNTER || kind == WIRE_ARGUMENT) {
		print_name(stream, &of->marks, extra[0]);
		first = 1;
	} else if (kind == WIRE_TASK) {
		print_name(stream, &of->codes, wire_head_arg(head));
		print_name(stream, &of->marks, wire_task_name(extra[0]));
		fprintf(stream, " %llx", (unsigned long long)wire_task_address(extra[0]));
		return;
	} else {
		fprintf(stream, " %u", wire_head_arg(head));
	}
	for (unsigned i = first; i < words; i++)
		fprintf(stream, " %llx", (unsigned long long)extra[i]);
}

/* The Python functions that run, each with its line. */
static void print_stack(FILE *stream, const struct replay *replay, const struct trace_process *of)
{
	fprintf(stream, " [");
	for (uint32_t i = 0; i < replay->depth; i++) {
		if (replay->frames[i].key & 1)
			continue;
		print_name(stream, &of->codes, replay->frames[i].key / 2);
		fprintf(stream, ":%u", replay->frames[i].line);
	}
	fprintf(stream, " ]\n");
}

static bool is_listed(unsigned kind)
{
	return !wire_is_bookkeeping(kind) || kind == WIRE_ARGUMENT;
}

static void list_thread(FILE *stream, struct trace *trace, const struct trace_thread *of)
{
	const struct trace_process *owner = trace_process_of(trace, of);
	struct trace_stream events_of;
	struct trace_events events;
	struct replay replay;

	cr_assert(replay_init(&replay, owner) == 0);
	replay_begin_thread(&replay);
	trace_stream_open(&events_of, trace, of);
	while (trace_stream_next(&events_of, &events)) {
		const uint64_t *extra = events.extras;

		replay.now = events.first_ticks;
		for (uint32_t i = 0; i < events.count; i++) {
			uint32_t head = events.heads[i];
			unsigned kind = wire_head_kind(head);

			replay.now = wire_time_of(kind, replay.now, events.ticks[i], extra);
			if (kind >= WIRE_CALL && kind <= WIRE_C_EXCEPTION)
				replay_call(&replay, head, &quiet, NULL);
			else
				replay_other(&replay, head, extra, &quiet, NULL);
			if (is_listed(kind)) {
				print_event(stream, owner, head, extra, replay.now);
				/* In a piece the stack of a greenlet is recorded behind the switch to it. */
				if (kind == WIRE_SWITCH)
					fprintf(stream, "\n");
				else
					print_stack(stream, &replay, owner);
			}
			extra += wire_extra_words(head);
		}
	}
	trace_stream_close(&events_of);
	cr_assert(!replay.unmatched, "%llu ends without a call", (unsigned long long)replay.unmatched);
	replay_done(&replay);
}

/* Adds the events of a trace, which is whole and counts right. */
static void list_add(struct list *list, const char *from)
{
	struct trace *trace = NULL;
	struct trace_totals totals;
	uint64_t counted = 0;
	char text[512];

	cr_assert(trace_open(&trace, from, text, sizeof(text)) == 0, "%s", text);
	for (uint32_t i = 0; i < trace->thread_count; i++) {
		cr_assert(trace->threads[i] && trace->threads[i]->tid >= 11 && trace->threads[i]->tid < 11 + THREADS);
		list_thread(list->streams[trace->threads[i]->tid - 11], trace, trace->threads[i]);
		cr_assert(trace_count_events(trace, trace->threads[i]) == 0);
		counted += trace_sum(trace->threads[i]->events);
	}
	cr_assert(trace_verdict(trace, text, sizeof(text)) == CLI_FINE, "%s", text);
	cr_assert(trace_count_totals(trace, &totals) == 0 && totals.events == counted);
	trace_check(trace, NULL, NULL);
	cr_assert(trace_verdict(trace, text, sizeof(text)) == CLI_FINE, "%s", text);
	trace_close(trace);
}

static void expect_same(const struct list *whole, const struct list *pieces)
{
	for (int i = 0; i < THREADS; i++) {
		size_t at = 0;

		while (whole->text[i][at] && whole->text[i][at] == pieces->text[i][at])
			at++;
		while (at && whole->text[i][at - 1] != '\n')
			at--;
		cr_assert_str_eq(pieces->text[i], whole->text[i],
				 "thread %d differs from \"%.100s\", which is \"%.100s\"", 11 + i, whole->text[i] + at,
				 pieces->text[i] + at);
	}
}

/* The kinds of the events of the piece's only thread, with their arguments. */
static char *kinds_of_piece(void)
{
	struct trace *trace = NULL;
	struct trace_stream stream;
	struct trace_events events;
	char *text = NULL, error[200];
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	cr_assert(trace_open(&trace, piece, error, sizeof(error)) == 0, "%s", error);
	cr_assert(trace->thread_count == 1);
	trace_stream_open(&stream, trace, trace->threads[0]);
	while (trace_stream_next(&stream, &events))
		for (uint32_t i = 0; i < events.count; i++)
			fprintf(out, "%u:%u ", wire_head_kind(events.heads[i]),
				wire_head_arg(events.heads[i]) & 0xffff);
	trace_stream_close(&stream);
	trace_close(trace);
	fclose(out);
	return text;
}

/* --- pieces that follow each other --- */

/* What a random program has on its stacks. */
struct program {
	uint32_t number; /* of the thread in the fixture */
	uint32_t stacks[3][40];
	uint32_t depths[3];
	unsigned running;
	uint64_t spans[4];
	uint64_t task;
};

static uint64_t span_numbers;

static void random_named(struct program *program, uint32_t ticks)
{
	unsigned place = (unsigned)rand() % 4;

	thread = program->number;
	switch (rand() % 4) {
	case 0:
		event(WIRE_MARK, rand() % 2 ? MARK_ONE : RARE, ticks);
		break;
	case 1:
		extended(WIRE_COUNTER, 0, COUNTER, 0x4000000000000000, ticks);
		break;
	case 2:
		extended(WIRE_ARGUMENT, WIRE_ARGUMENT_INT, KEY, 77, ticks);
		extended(WIRE_SPAN_BEGIN, 0, SPAN, program->spans[place] = ++span_numbers, (uint32_t)rand() % 3);
		break;
	default:
		if (program->spans[place])
			event(WIRE_SPAN_END, (uint32_t)program->spans[place], ticks);
		program->spans[place] = 0;
	}
}

static void random_call(struct program *program, uint32_t ticks)
{
	uint32_t *stack = program->stacks[program->running], *depth = &program->depths[program->running];
	uint32_t code = 1 + (uint32_t)rand() % 3;

	if (rand() % 5 == 0 && *depth < 40) {
		event(WIRE_TASK, C, ticks);
		fixture_extra(fixture, thread, wire_task_word(0x1000 + 16 * ++program->task, TASK_NAME));
		event(WIRE_CALL, C, (uint32_t)rand() % 3);
		stack[(*depth)++] = C;
	} else if (rand() % 4 && *depth < 40) {
		event(WIRE_CALL, code, ticks);
		stack[(*depth)++] = code;
		if (rand() % 3 == 0)
			event(WIRE_LINE, 100 + (uint32_t)rand() % 9, 0);
	} else if (*depth) {
		event(rand() % 3 ? WIRE_RETURN : WIRE_UNWIND, stack[--*depth], ticks);
	}
}

static void random_switch(struct program *program, uint32_t ticks)
{
	unsigned target = (program->running + 1 + (unsigned)rand() % 2) % 3;

	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, 0x100 + 0x10 * target);
	fixture_extra(fixture, thread, 0x100 + 0x10 * program->running);
	program->running = target;
}

static void random_step(struct program *program)
{
	uint32_t ticks = rand() % 3 ? (uint32_t)rand() % 20 : 0;

	thread = program->number;
	switch (rand() % 10) {
	case 0:
		random_named(program, ticks);
		break;
	case 1:
		event(WIRE_C_CALL, X, ticks);
		event(WIRE_C_RETURN, X, (uint32_t)rand() % 9);
		break;
	case 2:
		fixture_memory(fixture, thread, rand() % 2 ? WIRE_MALLOC : WIRE_FREE, 2, 0x5000, 48, 0, ticks);
		break;
	case 3:
		event(WIRE_EXCEPTION, ERROR, ticks);
		break;
	case 4:
		if (rand() % 8 == 0)
			random_switch(program, ticks);
		break;
	case 5:
		if (rand() % 30 == 0)
			fixture_flush(fixture, thread);
		break;
	default:
		random_call(program, ticks);
	}
}

static uint64_t make_random(void)
{
	static struct program programs[THREADS];
	uint32_t child = fixture_process(fixture, 20, 10), owners[THREADS] = {process, process, process, child};
	uint64_t end = 0;

	fixture_code(fixture, child, A, "a.py", 1, "a");
	fixture_code(fixture, child, B, "b.py", 2, "b");
	fixture_code(fixture, child, C, "c.py", 3, "c");
	fixture_function(fixture, child, X, "", "x", "m");
	fixture_define(fixture, child, WIRE_DEFINE_MARK, TASK_NAME, 0, "", "job", "", "");
	fixture_define(fixture, child, WIRE_DEFINE_MARK, KEY, 0, "", "key", "", "");
	for (uint32_t i = 0; i < THREADS; i++) {
		programs[i] = (struct program){.number = i ? fixture_thread(fixture, owners[i], 11 + i, START + 300 * i)
							   : thread};
		for (int steps = 200 + rand() % 2000; steps > 0; steps--)
			random_step(&programs[i]);
		if (fixture->threads[programs[i].number].now > end)
			end = fixture->threads[programs[i].number].now;
	}
	return end - START;
}

Test(cut, pieces_have_each_event_once)
{
	struct list whole, pieces;
	uint64_t from = 0, end;
	char words[80];

	srand(20);
	end = make_random();
	save();
	list_open(&whole);
	list_add(&whole, path);
	list_close(&whole);
	list_open(&pieces);
	while (from <= end) {
		uint64_t to = from + 1 + (uint64_t)rand() % 900;

		snprintf(words, sizeof(words), "--from %llu --to %llu", (unsigned long long)from,
			 (unsigned long long)to);
		cr_assert(cut(words) == 0, "%s", ran.err);
		list_add(&pieces, piece);
		from = to;
	}
	list_close(&pieces);
	expect_same(&whole, &pieces);
	list_free(&whole);
	list_free(&pieces);
}

/*
 * Edges at bytes of the file. The fixture writes one thread after the other, so the events behind a byte are earlier
 * than its time in one thread and later in another: as where a thread publishes late.
 */
Test(cut, pieces_by_bytes_have_each_event_once)
{
	struct list whole, pieces;
	uint64_t byte = 0, at = 0, end;
	struct stat status;
	char words[160];

	srand(22);
	end = START + make_random();
	save();
	cr_assert(stat(path, &status) == 0);
	list_open(&whole);
	list_add(&whole, path);
	list_close(&whole);
	list_open(&pieces);
	while (byte < (uint64_t)status.st_size) {
		int length = byte ? snprintf(words, sizeof(words), "--since %llu --since-byte %llu ",
					     (unsigned long long)at, (unsigned long long)byte)
				  : 0;

		byte += 1 + (uint64_t)rand() % (uint64_t)(status.st_size / 12);
		at += 1 + (uint64_t)rand() % (end / 8);
		snprintf(words + length, sizeof(words) - (size_t)length, "--until %llu --until-byte %llu",
			 (unsigned long long)at, (unsigned long long)byte);
		cr_assert(cut(words) == 0, "%s: %s", words, ran.err);
		list_add(&pieces, piece);
	}
	list_close(&pieces);
	expect_same(&whole, &pieces);
	list_free(&whole);
	list_free(&pieces);
}

/* Every verb reads a piece; what it counts is what it counts in that stretch of the whole. */
Test(cut, verbs_count_the_same)
{
	static const char *const formats[] = {"-f folded --weight bytes -o -", "-f folded --weight allocations -o -"};
	struct tools_verb of_whole, of_piece;
	char words[120];

	srand(21);
	make_random();
	save();
	cr_assert(cut("--from 2000 --to 6000") == 0);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		snprintf(words, sizeof(words), "%s --from 2000 --to 6000 TRACE", formats[i]);
		of_whole = tools_verb_run(cmd_export, words, path, NULL);
		snprintf(words, sizeof(words), "%s TRACE", formats[i]);
		of_piece = tools_verb_run(cmd_export, words, piece, NULL);
		cr_expect(of_whole.status == 0 && of_whole.out_bytes > 100);
		cr_expect_str_eq(of_piece.out, of_whole.out, "%s", formats[i]);
		tools_verb_done(&of_whole);
		tools_verb_done(&of_piece);
	}
}

/* --- the beginning and the end --- */

Test(cut, what_runs_is_a_recorded_stack)
{
	char *kinds;

	event(WIRE_CALL, A, 0);
	event(WIRE_LINE, 7, 1);
	event(WIRE_C_CALL, X, 1);
	event(WIRE_CALL, B, 1);
	event(WIRE_CALL, C, 100);
	event(WIRE_RETURN, C, 1);
	event(WIRE_RETURN, B, 1);
	event(WIRE_C_RETURN, X, 1);
	event(WIRE_RETURN, A, 100);
	save();
	cr_assert(cut("--from 50 --to 150") == 0, "%s", ran.err);
	kinds = kinds_of_piece();
	/* Two frames, a at its line; b gets a new id where it first comes; the time ends it. */
	cr_expect_str_eq(kinds, "17:2 18:1 22:7 18:2 1:3 4:3 4:2 8:1 15:0 ");
	free(kinds);
	run_on(cmd_info, "--json TRACE", piece, NULL);
	cr_expect(ran.status == 0 && strstr(ran.out, "\"rejoin\"") && strstr(ran.out, "\"detached\""), "%s", ran.out);
	run_on(cmd_report, "--json TRACE", piece, NULL);
	cr_expect(ran.status == 0 && strstr(ran.out, "\"calls\": 1") && !strstr(ran.out, "\"calls\": 2"), "%s",
		  ran.out);
}

/* The piece of these times has a process that was started so. */
static void expect_start(const char *words, const char *start)
{
	cr_assert_eq(cut(words), 0, "%s: %s", words, ran.err);
	run_on(cmd_info, "--json TRACE", piece, NULL);
	cr_expect(strstr(ran.out, start), "%s: not %s: %s", words, start, ran.out);
}

/* A process joins some time before its first event: it had begun where the piece has not that one. */
Test(cut, begins_with_the_first_event)
{
	uint32_t first = thread;

	thread = fixture_thread(fixture, process, 12, START);
	event(WIRE_CALL, B, 50);
	event(WIRE_RETURN, B, 10);
	thread = first;
	event(WIRE_CALL, A, 5);
	event(WIRE_RETURN, A, 10);
	fixture_flush(fixture, thread);
	event(WIRE_CALL, A, 100);
	save();
	expect_start("--from 0", "\"exec\"");
	expect_start("--to 10", "\"exec\"");
	expect_start("--from 1", "\"rejoin\"");
	expect_start("--from 20", "\"rejoin\"");
	expect_start("--from 1 --thread 12", "\"rejoin\"");
	expect_start("--from 0 --thread 12", "\"exec\"");
}

/* An allocation of that many bytes, at the instruction at which its stack stands. */
static void allocate(uint32_t bytes)
{
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x10000 * (uint64_t)bytes, bytes, 0, 10);
}

static void expect_bytes(const char *words, const char *folded)
{
	cr_assert_eq(cut(words), 0, "%s: %s", words, ran.err);
	run_on(cmd_export, "-f folded TRACE -o - --weight bytes", piece, NULL);
	cr_expect_str_eq(ran.out, folded, "%s: %s", words, ran.out);
}

#define THREAD_11 "a (10);thread (11);"

/* Where calls are not recorded, allocations have stacks of their own, with lines. */
Test(cut, stacks_of_allocations)
{
	const uint64_t both[] = {wire_place(A, wire_instruction(4)), wire_place(B, wire_instruction(0))};
	const uint64_t third[] = {wire_place(C, 0)};

	fixture_define(fixture, process, WIRE_DEFINE_LINES, A, 0, "\x04\x01", "\x04\x01", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_LINES, B, 0, "\x04\x01", "\x04\x01", "", "");
	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 0, both, 2, 0);
	allocate(1);
	event(WIRE_AT_INSTRUCTION, wire_instruction(8), 0);
	allocate(2);
	allocate(4);
	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 1, third, 1, 0);
	allocate(8);
	save();
	expect_bytes("--to 25", THREAD_11 "a (a.py:2);b (b.py:2) 1\n" THREAD_11 "a (a.py:2);b (b.py:4) 2\n");
	expect_bytes("--from 25", THREAD_11 "a (a.py:2);b (b.py:4) 4\n" THREAD_11 "a (a.py:2);c (c.py:3) 8\n");
}

/* Where they are, the place of the allocation before the stretch counts for those in it. */
Test(cut, lines_with_calls)
{
	fixture_define(fixture, process, WIRE_DEFINE_LINES, A, 0, "\x04\x01", "\x04\x01", "", "");
	event(WIRE_CALL, A, 0);
	event(WIRE_AT_INSTRUCTION, wire_instruction(4), 0);
	allocate(1);
	allocate(2);
	allocate(4);
	save();
	cr_assert_eq(cut("--from 15"), 0, "%s", ran.err);
	run_on(cmd_export, "-f folded TRACE -o - --weight live", piece, NULL);
	cr_expect_str_eq(ran.out, THREAD_11 "a (a.py:2) 6\n", "%s", ran.out);
}

/* A thread that waits all the time is in the piece; one that has ended or not begun is not. */
Test(cut, who_is_in_it)
{
	struct trace *trace = NULL;
	uint32_t before = fixture_thread(fixture, process, 12, START),
		 after = fixture_thread(fixture, process, 13, 1800);
	char text[200];

	event(WIRE_CALL, A, 0);
	event(WIRE_RETURN, A, 1000);
	fixture_event(fixture, before, WIRE_CALL, B, 10);
	fixture_event(fixture, before, WIRE_RETURN, B, 10);
	fixture_event(fixture, after, WIRE_CALL, C, 10);
	save();
	cr_assert(cut("--from 100 --to 200") == 0, "%s", ran.err);
	cr_assert(trace_open(&trace, piece, text, sizeof(text)) == 0);
	cr_expect(trace->thread_count == 1 && trace->threads[0]->tid == 11 && trace->end.events == 0);
	cr_expect(trace->end_ns - trace->start_ns == 100 && trace->start_ns == (int64_t)START + 100);
	trace_close(trace);
}

/* A function that allocates in a loop without calls: only these record the stack. */
Test(cut, stack_before_millions_of_allocations)
{
	const uint32_t count = 5000000;
	char words[40], *kinds;

	event(WIRE_CALL, A, 0);
	for (uint32_t i = 1; i <= count; i++) {
		fixture_memory(fixture, thread, i % 2 ? WIRE_MALLOC : WIRE_FREE, WIRE_DOMAIN_OBJ, 0x1000, 16, 0, 1);
		if (i % 65536 == 0)
			fixture_flush(fixture, thread);
	}
	save();
	snprintf(words, sizeof(words), "--from %u", count - 9);
	cr_assert(cut(words) == 0, "%s", ran.err);
	kinds = kinds_of_piece();
	cr_expect(strncmp(kinds, "17:1 18:1 11:66 ", 16) == 0, "%s", kinds);
	free(kinds);
}

/* Ids are counted anew: a reader takes an id far above all others for damage. */
Test(cut, ids_are_counted_anew)
{
	char *kinds;

	for (uint32_t id = 4; id < FAR; id += 1000000)
		fixture_code(fixture, process, id, "far.py", id, "far");
	fixture_code(fixture, process, FAR, "far.py", 9, "last");
	event(WIRE_CALL, A, 0);
	event(WIRE_CALL, FAR, 100);
	event(WIRE_RETURN, FAR, 1);
	event(WIRE_MARK, RARE, 1);
	save();
	cr_assert(cut("--from 50") == 0, "%s", ran.err);
	kinds = kinds_of_piece();
	cr_expect(strncmp(kinds, "17:1 18:1 1:2 4:2 ", 18) == 0, "%s", kinds);
	free(kinds);
	run_on(cmd_dump, "TRACE", piece, NULL);
	cr_expect(ran.status == 0 && strstr(ran.out, "last") && strstr(ran.out, "rare"), "%s", ran.out);
}

/* A newer evprof's events may have ids, which a cut counts anew. */
Test(cut, unknown_kinds_are_left_out)
{
	char *kinds;

	event(WIRE_CALL, A, 0);
	event(26, B, 10);
	fixture_extra(fixture, thread, 7);
	extended(62, 0, 1, 2, 10);
	event(WIRE_CALL, B, 100);
	event(26, B, 10);
	fixture_extra(fixture, thread, 7);
	extended(62, 0, 1, 2, 10);
	event(WIRE_RETURN, B, 10);
	save();
	cr_assert(cut("--from 50") == 0, "%s", ran.err);
	kinds = kinds_of_piece();
	cr_expect(strncmp(kinds, "17:1 18:1 1:2 4:2 ", 18) == 0, "%s", kinds);
	free(kinds);
	cr_assert(cut("--to 150") == 0, "%s", ran.err);
	run_on(cmd_info, "TRACE", piece, NULL);
	cr_expect(ran.status == 0 && !strstr(ran.out, "kind "), "%s", ran.out);
}

/* CPU times: a thread that sleeps over the edge ran in neither piece. */
Test(cut, cpu_times_are_split)
{
	static const uint64_t waits[][2] = {{0, 0}, {100, 1100}, {100, 2100}, {300, 4000}};
	uint64_t ran_ns = 0;
	char words[80];

	fixture_meta(fixture, process,
		     "{\"type\":\"process\",\"process\":0,\"pid\":10,\"ppid\":1,\"start\":\"exec\",\"clock_kind\":0,"
		     "\"clock_shift\":0,\"start_ticks\":0,\"events\":[\"call\",\"cpu\"]}");
	event(WIRE_CALL, A, 0);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		uint64_t word = wire_cpu_word(waits[i][0]);

		event(WIRE_CPU, (uint32_t)word >> 5, (uint32_t)(word >> 32));
		fixture_extra(fixture, thread, START + waits[i][1]);
	}
	event(WIRE_RETURN, A, 50);
	save();
	for (int from = 0; from < 4050; from += 450) {
		const char *own;

		snprintf(words, sizeof(words), "--from %d --to %d", from, from + 450);
		cr_assert(cut(words) == 0, "%s", ran.err);
		run_on(cmd_export, "-f folded --clock cpu -o - TRACE", piece, NULL);
		own = strrchr(ran.out, ' ');
		ran_ns += own ? strtoull(own + 1, NULL, 10) : 0;
	}
	run(cmd_export, "-f folded --clock cpu -o - TRACE");
	cr_expect(ran_ns == strtoull(strrchr(ran.out, ' ') + 1, NULL, 10), "%llu in pieces, %s",
		  (unsigned long long)ran_ns, ran.out);
}

/* --- marks and spans --- */

static void make_marks(void)
{
	event(WIRE_CALL, A, 0);
	for (int i = 0; i < 3; i++) {
		event(WIRE_CALL, B, 10);
		event(WIRE_RETURN, B, 10);
		event(WIRE_MARK, MARK_ONE, 0);
		event(WIRE_CALL, C, 0);
		event(WIRE_RETURN, C, 10);
		extended(WIRE_ARGUMENT, WIRE_ARGUMENT_INT, KEY, 77, 0);
		extended(WIRE_SPAN_BEGIN, 0, SPAN, 5 + (uint64_t)i, 0);
		event(WIRE_C_CALL, X, 0);
		event(WIRE_C_RETURN, X, 10);
		event(WIRE_SPAN_END, 5 + (uint32_t)i, 0);
		event(WIRE_MARK, MARK_TWO, 0);
		event(WIRE_CALL, B, 0);
		event(WIRE_RETURN, B, 10);
	}
	event(WIRE_RETURN, A, 10);
	save();
}

/* The order of events decides, not their times: both marks are in it; what comes outside at the same tick is not. */
Test(cut, between_marks)
{
	char *kinds;

	make_marks();
	cr_assert(cut("--between one,two --number 2") == 0, "%s", ran.err);
	kinds = kinds_of_piece();
	cr_expect_str_eq(kinds, "17:1 18:1 39:519 1:2 4:2 52:1108 43:75 7:1 8:1 44:3084 39:2055 ");
	free(kinds);
}

/* Of a trace that keeps its last stretch: by time its beginning is gone, but a span is all of what it is. */
Test(cut, of_a_last_stretch)
{
	static const struct {
		const char *words;
		bool lacks;
	} cuts[] = {{"--until 100000", false},
		    {"--since 1015 --since-byte 1", true},
		    {"--from 15", true},
		    {"--span span --number 3", false},
		    {"--between one,two --number 1", false}};

	fixture_meta(fixture, process,
		     "{\"type\":\"process\",\"process\":0,\"pid\":10,\"ppid\":1,\"start\":\"exec\",\"clock_kind\":0,"
		     "\"clock_shift\":0,\"start_ticks\":0,\"events\":[\"call\",\"c_call\"],\"keep_ns\":100}");
	make_marks();
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		cr_assert(cut(cuts[i].words) == 0, "%s: %s", cuts[i].words, ran.err);
		run_on(cmd_check, "--max-calls TOTAL=1000 TRACE", piece, NULL);
		cr_expect(ran.status == (cuts[i].lacks ? 2 : 0) &&
			      !strstr(ran.out, "only the last stretch") == !cuts[i].lacks,
			  "%s: %s%s", cuts[i].words, ran.out, ran.err);
	}
}

Test(cut, span)
{
	char *kinds;

	make_marks();
	cr_assert(cut("--span span --number 3") == 0, "%s", ran.err);
	kinds = kinds_of_piece();
	cr_expect(strncmp(kinds, "17:1 18:1 52:", 13) == 0 && strstr(kinds, " 7:1 8:1 44:") && !strstr(kinds, " 39:"),
		  "%s", kinds);
	free(kinds);
}

Test(cut, each)
{
	char *other = strdup(piece);

	make_marks();
	cr_assert(cut("--span span --each") == 0, "%s", ran.err);
	for (int number = 2; number <= 3; number++) {
		free(other);
		cr_assert(asprintf(&other, "%.*s-%d.evp", (int)strlen(piece) - 4, piece, number) > 0);
		cr_expect(unlink(other) == 0, "%s is there", other);
	}
	free(other);
}

/* The second of the stretches would be the trace: nothing is written. */
Test(cut, each_leaves_the_trace)
{
	struct stat before, after;
	char *own;

	make_marks();
	cr_assert(asprintf(&own, "%.*s-2.evp", (int)strlen(piece) - 4, piece) > 0);
	cr_assert_eq(rename(path, own), 0);
	free(path);
	path = own;
	cr_assert_eq(stat(path, &before), 0);
	cr_expect(cut("--span span --each") == 2 && strstr(ran.err, "-2.evp is the trace itself"), "%s", ran.err);
	cr_expect(stat(path, &after) == 0 && after.st_ino == before.st_ino && after.st_size == before.st_size);
	cr_expect(access(piece, F_OK) < 0, "no file");
}

Test(cut, refuses)
{
	static const char *const wrong[][2] = {
	    {"--span span", "there are 3 spans \"span\": give the number of one, or cut each"},
	    {"--span other", "there are no spans \"other\""},
	    {"--span span --number 4", "there are only 3 spans \"span\""},
	    {"--between one,two", "there are 3 stretches between the marks \"one,two\""},
	    {"--between one", "--between wants two marks with a comma between, not \"one\""},
	    {"--span span --from 3", "times, marks and a span exclude each other"},
	    {"--number 0", "--number"},
	    {"--since-byte 7", "--since-byte goes with --since"},
	    {"--until-byte 7 --since 7", "--until-byte with --until"},
	};

	make_marks();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_expect(cut(wrong[i][0]) == 2 && strstr(ran.err, wrong[i][1]), "%s: %s", wrong[i][0], ran.err);
		cr_expect(access(piece, F_OK) < 0, "no file");
	}
	run(cmd_cut, "-o TRACE TRACE");
	cr_expect(ran.status == 2 && strstr(ran.err, "is the trace itself"));
}
