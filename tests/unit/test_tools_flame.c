/*
 * test_tools_flame.c - the tree of stacks, and the exporters that are made of it: folded, speedscope, pprof, firefox.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/analysis/stacks.h"
#include "tools/cmd/verbs.h"
#include "one_trace.h"

enum { MAIN = 1, F = 2, G = 3, ODD = 4, LEN = 1 };

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, MAIN, "/x/app.py", 1, "main");
	fixture_define(fixture, process, WIRE_DEFINE_CODE, F, 7, "/x/app.py", "f", "K.f", "app");
	fixture_code(fixture, process, G, "/x/app.py", 9, "g");
	fixture_code(fixture, process, ODD, "o\n;.py", 3, "a;b\nc\xff\xed\xa0\x80");
	fixture_function(fixture, process, LEN, "", "len", "builtins");
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, "", "KeyError", "KeyError", "builtins");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 10, 0, "", "Main;Thread", "", "");
}

TestSuite(flame, .init = set_up, .fini = end_trace);

/* main(f(g) g f(g len)): own times main 10 + 2 + 3 + 5, f 2 + 4 + 1 + 1 + 1, g 3 + 6 + 7, len 8. */
static void calls(void)
{
	event(WIRE_CALL, MAIN, 0);
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, G, 2);
	event(WIRE_RETURN, G, 3);
	event(WIRE_RETURN, F, 4);
	event(WIRE_CALL, G, 2);
	event(WIRE_EXCEPTION, 1, 2);
	event(WIRE_UNWIND, G, 4);
	event(WIRE_CALL, F, 3);
	event(WIRE_CALL, G, 1);
	event(WIRE_RETURN, G, 7);
	event(WIRE_C_CALL, LEN, 1);
	event(WIRE_C_RETURN, LEN, 8);
	event(WIRE_RETURN, F, 1);
	event(WIRE_RETURN, MAIN, 5);
}

static void export(const char *words)
{
	run(cmd_export, words);
	cr_assert(ran.status == 0, "%s: %s", words, ran.err);
}

/* Another verb's output of the same trace has that text. */
static void show(int (*verb)(int argc, char **argv), const char *words, const char *wanted)
{
	run(verb, words);
	cr_expect(strstr(ran.out, wanted), "%s: %s", words, ran.out);
}

Test(flame, folded)
{
	calls();
	export("-f folded TRACE -o -");
	cr_expect_str_eq(ran.out, "a (10);Main:Thread (10);main (app.py:1) 20\n"
				  "a (10);Main:Thread (10);main (app.py:1);K.f (app.py:7) 9\n"
				  "a (10);Main:Thread (10);main (app.py:1);K.f (app.py:7);g (app.py:9) 10\n"
				  "a (10);Main:Thread (10);main (app.py:1);g (app.py:9) 6\n"
				  "a (10);Main:Thread (10);main (app.py:1);K.f (app.py:7);builtins.len 8\n");
}

/* A recursion 10,000 deep: the lines are bounded, and add up to the program's time. */
Test(flame, folded_deep_recursion)
{
	unsigned long long sum = 0, lines = 0;
	size_t longest = 0;

	for (int i = 0; i < 10000; i++)
		event(WIRE_CALL, 1, 3);
	for (int i = 0; i < 10000; i++)
		event(WIRE_RETURN, 1, 2);
	export("-f folded TRACE -o -");
	for (const char *line = ran.out, *end; (end = strchr(line, '\n')); line = end + 1) {
		const char *number = end;

		while (number[-1] != ' ')
			number--;
		sum += strtoull(number, NULL, 10);
		longest = (size_t)(end - line) > longest ? (size_t)(end - line) : longest;
		lines++;
	}
	cr_expect(sum == 10000 * 3 + 9999 * 2 + 2 - 3, "%llu ns", sum);
	cr_expect(lines == 1025 && longest < 1025 * 20, "%llu lines, the longest of %zu bytes", lines, longest);
	cr_expect(strstr(ran.out, ";[8976 deeper stacks] 44877\n"));
	export("-f folded --max-stack 2 TRACE -o -");
	cr_expect(strstr(ran.out, "main (app.py:1);main (app.py:1);[9998 deeper stacks] 49987\n"), "%s", ran.out);
	cr_expect(tools_verb_run(cmd_export, "-f folded --max-stack x TRACE -o -", path, NULL).status == 2);
}

/* An allocation with its native stack: its time comes first. */
static void allocation(uint32_t native, uint64_t size)
{
	event(WIRE_TIME, 0, 0);
	fixture_extra(fixture, thread, 2000);
	event(WIRE_NATIVE_STACK, native, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x1000, size, 0, 0);
}

/* inner, inlined into middle, called by outer; and a frame without a symbol. */
static void native_frames(void)
{
	fixture_module(fixture, process, 1, 0x7000, 4, "/lib/lib.so");
	fixture_native(fixture, process, 1, 0, 0x7100, 0);
	fixture_native(fixture, process, 2, 1, 0x7200, 0);
	fixture_native(fixture, process, 3, 0, 0x7300, WIRE_CUT);
	fixture_symbol(fixture, process, 1, 0x7100, 0, "outer", "o.c", 5, "lib.so");
	fixture_symbol(fixture, process, 1, 0x7200, WIRE_INLINED, "inner", "i.c", 1, "lib.so");
	fixture_symbol(fixture, process, 1, 0x7200, 0, "middle", "i.c", 2, "lib.so");
}

Test(flame, folded_by_bytes_has_native_functions_on_top)
{
	native_frames();
	event(WIRE_CALL, MAIN, 0);
	allocation(2, 100);
	allocation(2, 10);
	allocation(3, 7);
	fixture_memory(fixture, thread, WIRE_CALLOC, WIRE_DOMAIN_MEM, 0x2000, 3, 0, 1);
	event(WIRE_RETURN, MAIN, 5);
	export("-f folded --weight bytes TRACE -o -");
	cr_expect_str_eq(ran.out,
			 "a (10);Main:Thread (10);main (app.py:1) 3\n"
			 "a (10);Main:Thread (10);main (app.py:1);outer (lib.so);middle (lib.so);inner (lib.so) 110\n"
			 "a (10);Main:Thread (10);main (app.py:1);lib.so+0x300 (lib.so) 7\n");
	export("-f folded --weight allocations TRACE -o -");
	cr_expect(strstr(ran.out, "inner (lib.so) 2\n"), "%s", ran.out);
	export("-f folded TRACE -o -");
	cr_expect_null(strstr(ran.out, "lib.so"), "time is Python's functions' only");
}

/* Of a process that recorded native stacks, what has none is counted, and said. */
Test(flame, allocations_without_a_native_stack)
{
	fixture_meta(fixture, process,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":10,\"ppid\":1,\"clock_kind\":0,\"clock_shift\":0,"
		     "\"start_ticks\":0,\"argv\":[\"a\"],\"events\":[\"call\",\"mem\"],\"native\":true}",
		     process);
	native_frames();
	event(WIRE_CALL, MAIN, 0);
	allocation(2, 100);
	fixture_memory(fixture, thread, WIRE_CALLOC, WIRE_DOMAIN_MEM, 0x2000, 3, 0, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_MEM, 0x2000, 0, 0, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, 0x3000, 3, 0, 1);
	event(WIRE_RETURN, MAIN, 5);
	export("-f folded --weight bytes TRACE -o -");
	cr_expect(strstr(ran.err, "evprof: 2 allocations have no native stack"), "%s", ran.err);
	export("-f folded --weight live TRACE -o -");
	cr_expect(strstr(ran.err, "evprof: 2 allocations have no native stack"), "%s", ran.err);
	export("-f pprof TRACE -o /dev/null");
	cr_expect(strstr(ran.err, "evprof: 2 allocations have no native stack"), "%s", ran.err);
	export("-f html TRACE -o -");
	cr_expect(strstr(ran.out, "\"without_native\":2,"), "the page knows");
	export("-f folded TRACE -o -");
	cr_expect(!strstr(ran.err, "native"), "%s", ran.err);
	show(cmd_report, "TRACE", "   2 of 3 allocations have no native stack\n");
	show(cmd_report, "--by thread TRACE", "   2 of 3 allocations have no native stack\n");
	show(cmd_report, "--by module --callers TRACE", "   2 of 3 allocations have no native stack\n");
	show(cmd_report, "--from 1001 TRACE", "   2 of 2 allocations have no native stack\n");
	show(cmd_report, "--json TRACE", "\"native_stacks\": {\"allocations\": 3, \"without\": 2}, \"calls\"");
	show(cmd_info, "TRACE", "; with native stacks, which 2 of 3 allocations lack\n");
	show(cmd_info, "--quick TRACE", "; with native stacks\n");
	show(cmd_info, "--json TRACE", "\"native_stacks\": {\n    \"allocations\": 3,\n    \"without\": 2\n   }");
}

static void expect_dump(const char *lines)
{
	const char *found;

	run(cmd_dump, "TRACE");
	found = strstr(ran.out, "\tmalloc\t");
	cr_assert(ran.status == 0 && found, "%s", ran.err);
	cr_expect_str_eq(found, lines);
}

Test(flame, dump_shows_native_stacks)
{
	native_frames();
	allocation(2, 100);
	allocation(3, 7);
	expect_dump("\tmalloc\t0x1000\t100\tobj\tinner (i.c:1) < middle (i.c:2) < outer (o.c:5)\n"
		    "0\t10\t10\tmalloc\t0x1000\t7\tobj\tlib.so+0x300 < ...\n");
}

/* A library at the address of one that was unloaded: earlier names stay as they were. */
Test(flame, an_address_that_is_used_again)
{
	native_frames();
	fixture_module(fixture, process, 2, 0x7000, 4, "/lib/other.so");
	fixture_native(fixture, process, 4, 0, 0x7100, 0);
	fixture_native(fixture, process, 5, 0, 0x7300, 0);
	fixture_symbol(fixture, process, 4, 0x7100, 0, "another", "a.c", 9, "other.so");
	allocation(1, 1);
	allocation(4, 2);
	allocation(5, 3);
	expect_dump("\tmalloc\t0x1000\t1\tobj\touter (o.c:5)\n"
		    "0\t10\t10\tmalloc\t0x1000\t2\tobj\tanother (a.c:9)\n"
		    "0\t10\t10\tmalloc\t0x1000\t3\tobj\tother.so+0x300\n");
}

/* Nonsense ends a stack; it neither goes round in circles nor is read beyond the table. */
Test(flame, native_frames_that_lead_nowhere)
{
	fixture_native(fixture, process, 1, 2, 0x10, 0);
	fixture_native(fixture, process, 2, 1, 0x20, 0);
	fixture_native(fixture, process, 3, 3, 0x30, 0);
	allocation(2, 1);
	allocation(3, 2);
	allocation(999, 3);
	expect_dump("\tmalloc\t0x1000\t1\tobj\t0x20 < 0x10\n"
		    "0\t10\t10\tmalloc\t0x1000\t2\tobj\t0x30\n"
		    "0\t10\t10\tmalloc\t0x1000\t3\tobj\n");
}

Test(flame, the_interpreter_ends_a_native_stack)
{
	fixture_native(fixture, process, 1, 0, 0x10, 0);
	fixture_native(fixture, process, 2, 1, 0x20, 0);
	fixture_native(fixture, process, 3, 2, 0x30, 0);
	fixture_symbol(fixture, process, 1, 0x20, 0, "_PyEval_EvalFrameDefault.cold", "", 0, "python");
	fixture_symbol(fixture, process, 1, 0x30, 0, "PyList_New", "", 0, "python");
	event(WIRE_CALL, MAIN, 0);
	allocation(3, 8);
	event(WIRE_RETURN, MAIN, 0);
	export("-f folded --weight bytes TRACE -o -");
	cr_expect_str_eq(ran.out, "a (10);Main:Thread (10);main (app.py:1);PyList_New (python) 8\n");
}

Test(flame, folded_replaces_what_would_break_a_line)
{
	event(WIRE_CALL, ODD, 1);
	event(WIRE_RETURN, ODD, 5);
	event(WIRE_CALL, 77, 1); /* has no definition */
	event(WIRE_RETURN, 77, 2);
	export("-f folded TRACE -o -");
	cr_expect_str_eq(ran.out, "a (10);Main:Thread (10);a:b c\xef\xbf\xbd\xef\xbf\xbd (o :.py:3) 5\n"
				  "a (10);Main:Thread (10);<unknown function 0> (?) 2\n");
}

Test(flame, folded_leaves_out_filtered_functions)
{
	calls();
	export("-f folded --exclude K.f --max-depth 2 TRACE -o -");
	cr_expect_str_eq(ran.out, "a (10);Main:Thread (10);main (app.py:1) 29\n"
				  "a (10);Main:Thread (10);main (app.py:1);g (app.py:9) 16\n"
				  "a (10);Main:Thread (10);main (app.py:1);builtins.len 8\n");
	export("-f folded --from 100s TRACE -o -");
	cr_expect_str_eq(ran.out, "");
}

/* A stack that goes on after a gap, and calls that are open at the end. */
Test(flame, folded_after_a_gap)
{
	event(WIRE_CALL, MAIN, 1);
	event(WIRE_CALL, F, 2);
	event(WIRE_GAP, 0, 3);
	fixture_extra(fixture, thread, 5);
	event(WIRE_STACK, 2, 100);
	event(WIRE_FRAME, MAIN, 0);
	event(WIRE_FRAME, G, 0);
	event(WIRE_RETURN, G, 4);
	event(WIRE_CALL, F, 6);
	event(WIRE_CALL, F, 7);
	export("-f folded TRACE -o -");
	cr_expect_str_eq(ran.out, "a (10);Main:Thread (10);main (app.py:1) 8\n"
				  "a (10);Main:Thread (10);main (app.py:1);K.f (app.py:7) 7\n"
				  "a (10);Main:Thread (10);main (app.py:1);g (app.py:9) 4\n");
}

static json_t *exported_json(const char *words)
{
	json_error_t error;
	json_t *root;

	export(words);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	cr_assert(root, "%s: %s at line %d", words, error.text, error.line);
	return root;
}

static const char *frame_name(const json_t *root, const json_t *number)
{
	const json_t *frames = json_object_get(json_object_get(root, "shared"), "frames");

	return json_string_value(json_object_get(json_array_get(frames, (size_t)json_integer_value(number)), "name"));
}

/* A second process with the same function under another id. */
static void second_process(void)
{
	uint32_t second = fixture_process(fixture, 20, 10), its;

	fixture_define(fixture, second, WIRE_DEFINE_CODE, 9, 7, "/x/app.py", "f", "K.f", "app");
	its = fixture_thread(fixture, second, 20, 5000);
	fixture_event(fixture, its, WIRE_CALL, 9, 1);
	fixture_event(fixture, its, WIRE_RETURN, 9, 3);
	fixture_thread(fixture, second, 21, 5000); /* calls nothing */
}

Test(flame, speedscope)
{
	const json_t *profiles, *events, *one;
	json_t *root;
	size_t i;
	long depth = 0, last = 0;

	calls();
	second_process();
	root = exported_json("-f speedscope TRACE -o -");
	profiles = json_object_get(root, "profiles");
	cr_assert(json_array_size(profiles) == 2, "a thread without calls has no profile");
	cr_expect(json_array_size(json_object_get(json_object_get(root, "shared"), "frames")) == 4,
		  "both processes share K.f");
	one = json_array_get(profiles, 0);
	cr_expect_str_eq(json_string_value(json_object_get(one, "type")), "evented");
	cr_expect_str_eq(json_string_value(json_object_get(one, "name")), "a (10) Main;Thread (10)");
	cr_expect(json_integer_value(json_object_get(one, "startValue")) == 0);
	cr_expect(json_integer_value(json_object_get(one, "endValue")) == 53);
	events = json_object_get(one, "events");
	cr_assert(json_array_size(events) == 14);
	json_array_foreach(events, i, one)
	{
		long at = (long)json_integer_value(json_object_get(one, "at"));

		depth += *json_string_value(json_object_get(one, "type")) == 'O' ? 1 : -1;
		cr_expect(depth >= 0 && at >= last);
		last = at;
	}
	cr_expect(depth == 0);
	one = json_array_get(events, 1);
	cr_expect_str_eq(frame_name(root, json_object_get(one, "frame")), "K.f");
	cr_expect(json_integer_value(json_object_get(one, "at")) == 10);
	json_decref(root);
}

static void switch_to(uint64_t target, uint64_t origin, uint32_t ticks)
{
	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

/* A greenlet without shown calls takes time, too: main has run 5 when it goes on. */
Test(flame, speedscope_of_greenlets)
{
	const json_t *profiles, *one;
	json_t *root;

	event(WIRE_CALL, MAIN, 10);
	switch_to(0x20, 0x10, 5);
	switch_to(0x10, 0x20, 100);
	event(WIRE_CALL, G, 2);
	event(WIRE_RETURN, G, 3);
	switch_to(0x30, 0x10, 0);
	event(WIRE_CALL, F, 7);
	event(WIRE_RETURN, F, 4);
	root = exported_json("-f speedscope TRACE -o -");
	profiles = json_object_get(root, "profiles");
	cr_assert_eq(json_array_size(profiles), 2);
	one = json_array_get(profiles, 0);
	cr_expect_eq(json_integer_value(json_object_get(one, "startValue")), 0);
	cr_expect_eq(json_integer_value(json_object_get(one, "endValue")), 10, "%s", ran.out);
	one = json_array_get(profiles, 1);
	cr_expect_str_eq(json_string_value(json_object_get(one, "name")), "a (10) Main;Thread (10) greenlet 2");
	cr_expect_eq(json_integer_value(json_object_get(one, "startValue")), 7, "%s", ran.out);
	cr_expect_eq(json_integer_value(json_object_get(one, "endValue")), 11);
	json_decref(root);
}

Test(flame, speedscope_sampled)
{
	const json_t *profile, *samples, *weights;
	json_t *root;

	calls();
	second_process();
	root = exported_json("-f speedscope-sampled TRACE -o -");
	cr_assert(json_array_size(json_object_get(root, "profiles")) == 2);
	profile = json_array_get(json_object_get(root, "profiles"), 0);
	samples = json_object_get(profile, "samples");
	weights = json_object_get(profile, "weights");
	cr_expect(json_integer_value(json_object_get(profile, "endValue")) == 53);
	cr_assert(json_array_size(samples) == 5 && json_array_size(weights) == 5);
	cr_expect(json_integer_value(json_array_get(weights, 4)) == 8);
	cr_assert(json_array_size(json_array_get(samples, 4)) == 3);
	cr_expect_str_eq(frame_name(root, json_array_get(json_array_get(samples, 4), 2)), "builtins.len");
	json_decref(root);
}

Test(flame, firefox)
{
	static const struct {
		int stack;
		double time, weight;
	} wanted[] = {{0, 0, 10e-6},	{1, 10e-6, 2e-6}, {2, 12e-6, 3e-6}, {1, 15e-6, 4e-6}, {0, 19e-6, 2e-6},
		      {3, 21e-6, 6e-6}, {0, 27e-6, 3e-6}, {1, 30e-6, 1e-6}, {2, 31e-6, 7e-6}, {1, 38e-6, 1e-6},
		      {4, 39e-6, 8e-6}, {1, 47e-6, 1e-6}, {0, 48e-6, 5e-6}, {-1, 53e-6, 0}};
	const json_t *one, *samples, *markers, *data;
	json_t *root;

	calls();
	root = exported_json("-f firefox TRACE -o -");
	one = json_array_get(json_object_get(root, "threads"), 0);
	samples = json_object_get(one, "samples");
	cr_assert(json_integer_value(json_object_get(samples, "length")) == 14, "%s", ran.out);
	for (size_t i = 0; i < 14; i++) {
		const json_t *stack = json_array_get(json_object_get(samples, "stack"), i);

		cr_expect(wanted[i].stack < 0 ? json_is_null(stack) : json_integer_value(stack) == wanted[i].stack,
			  "%zu", i);
		cr_expect(json_number_value(json_array_get(json_object_get(samples, "time"), i)) == wanted[i].time);
		cr_expect(json_number_value(json_array_get(json_object_get(samples, "weight"), i)) == wanted[i].weight);
	}
	markers = json_object_get(one, "markers");
	cr_assert(json_integer_value(json_object_get(markers, "length")) == 1);
	data = json_array_get(json_object_get(markers, "data"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(data, "text")), "builtins.KeyError");
	cr_expect(json_integer_value(json_object_get(json_object_get(data, "cause"), "stack")) == 3,
		  "raised in main;g");
	json_decref(root);
}

/* --- pprof, with a reader of protobuf of our own: tests/e2e has go's --- */

struct field {
	uint64_t number;
	uint64_t value; /* or length */
	const uint8_t *bytes;
};

static uint64_t varint(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned shift = 0;

	do
		value |= (uint64_t)(**at & 0x7f) << shift;
	while (shift += 7, *(*at)++ & 0x80);
	return value;
}

static bool next_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
	uint64_t tag;

	if (*at >= end)
		return false;
	tag = varint(at);
	*field = (struct field){.number = tag >> 3, .value = varint(at)};
	cr_assert((tag & 7) == 0 || (tag & 7) == 2);
	if ((tag & 7) == 2) {
		field->bytes = *at;
		*at += field->value;
	}
	cr_assert(*at <= end);
	return true;
}

static uint8_t *unzipped(size_t *size)
{
	z_stream stream = {.next_in = (uint8_t *)ran.out, .avail_in = (uInt)ran.out_bytes};
	uint8_t *bytes = malloc(1 << 16);

	stream.next_out = bytes;
	stream.avail_out = 1 << 16;
	cr_assert(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
	cr_assert(inflate(&stream, Z_FINISH) == Z_STREAM_END);
	*size = stream.total_out;
	inflateEnd(&stream);
	return bytes;
}

Test(flame, pprof)
{
	size_t size, counts[16] = {0};
	const uint8_t *at, *end, *inner;
	uint64_t calls_sum = 0, time_sum = 0;
	struct field field, part;
	uint8_t *bytes;

	calls();
	second_process();
	export("-f pprof TRACE -o -");
	bytes = unzipped(&size);
	for (at = bytes, end = bytes + size; next_field(&at, end, &field);) {
		cr_assert(field.number < 16);
		counts[field.number]++;
		if (field.number != 2)
			continue;
		for (inner = field.bytes; next_field(&inner, field.bytes + field.value, &part);) {
			const uint8_t *value = part.bytes;

			if (part.number != 2)
				continue;
			calls_sum += varint(&value);
			time_sum += varint(&value);
		}
	}
	cr_expect(counts[1] == 2 && counts[2] == 6, "two types, six stacks: %zu", counts[2]);
	cr_expect(counts[4] == 4 && counts[5] == 4, "four functions, each one location: %zu", counts[5]);
	cr_expect(calls_sum == 8 && time_sum == 56, "%llu calls, %llu ns", (unsigned long long)calls_sum,
		  (unsigned long long)time_sum);
	free(bytes);
}

/* The times of the profile are those of the shown stretch. */
Test(flame, pprof_of_a_stretch)
{
	static const struct {
		const char *words;
		uint64_t time, duration;
	} stretches[] = {{"-f pprof TRACE -o -", 1000, 53},
			 {"-f pprof --from 20ns --to 40ns TRACE -o -", 1020, 20},
			 {"-f pprof --from 20ns --to 1h TRACE -o -", 1020, 33},
			 {"-f pprof --from 1h TRACE -o -", 1053, 0}};

	fixture_clock(fixture, 0, 0, 1000, 1000);
	calls();
	for (size_t i = 0; i < sizeof(stretches) / sizeof(*stretches); i++) {
		uint64_t times[2] = {0};
		struct field field;
		uint8_t *bytes;
		size_t size;

		export(stretches[i].words);
		bytes = unzipped(&size);
		for (const uint8_t *at = bytes; next_field(&at, bytes + size, &field);)
			if (field.number == 9 || field.number == 10)
				times[field.number - 9] = field.value;
		cr_expect(times[0] == stretches[i].time && times[1] == stretches[i].duration, "%s: %lu, %lu ns",
			  stretches[i].words, times[0], times[1]);
		free(bytes);
	}
}

/* The sum of the values of all samples with that number of locations. Returns how many there are. */
static unsigned sum_samples(const uint8_t *at, size_t size, unsigned locations, uint64_t sums[6])
{
	const uint8_t *end = at + size, *inner;
	struct field field, part;
	unsigned samples = 0;

	memset(sums, 0, 6 * sizeof(*sums));
	while (next_field(&at, end, &field)) {
		bool wanted = false;

		if (field.number != 2)
			continue;
		for (inner = field.bytes; next_field(&inner, field.bytes + field.value, &part);) {
			const uint8_t *value = part.bytes;

			if (part.number == 1) /* numbers below 128 are a byte each */
				wanted = part.value == locations;
			for (unsigned i = 0; part.number == 2 && wanted && i < 6; i++)
				sums[i] += varint(&value);
		}
		samples += wanted;
	}
	return samples;
}

/* A process that records these events, instead of the other. */
static void begin_memory(const char *events)
{
	fixture_free(fixture);
	fixture = fixture_new();
	fixture_meta(fixture, fixture->processes,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":30,\"ppid\":1,\"start\":\"exec\",\"clock_kind\":0,"
		     "\"clock_shift\":0,\"start_ticks\":0,\"events\":[%s]}",
		     fixture->processes, events);
	process = fixture->processes++;
	fixture_code(fixture, process, MAIN, "/x/app.py", 1, "main");
	thread = fixture_thread(fixture, process, 30, 1000);
}

/* Where memory events are recorded: what was allocated, and what is alive; also where no function is known. */
Test(flame, pprof_of_memory)
{
	const uint64_t nowhere[6] = {0, 0, 2, 70, 1, 30}, in_main[6] = {1, 4, 1, 500, 0, 0};
	uint64_t sums[6];
	uint8_t *bytes;
	size_t size;

	begin_memory("\"call\",\"mem\"");
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x100, 30, 0, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x200, 40, 0, 0);
	event(WIRE_CALL, MAIN, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 500, 0, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x300, 0, 0, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x200, 0, 0, 1);
	event(WIRE_RETURN, MAIN, 1);
	export("-f pprof TRACE -o -");
	bytes = unzipped(&size);
	cr_expect_eq(sum_samples(bytes, size, 0, sums), 1);
	cr_expect_arr_eq(sums, nowhere, sizeof(sums));
	cr_expect_eq(sum_samples(bytes, size, 1, sums), 1);
	cr_expect_arr_eq(sums, in_main, sizeof(sums));
	cr_expect(memmem(bytes, size, "inuse_space", 11) && memmem(bytes, size, "alloc_objects", 13),
		  "the types' names");
	free(bytes);
}

/* The sum of a value of all samples whose innermost location has that line; *functions: how many there are. */
static uint64_t sum_at_line(const uint8_t *at, size_t size, uint64_t line, unsigned value, unsigned *functions)
{
	const uint8_t *end = at + size, *inner, *last;
	uint64_t lines[16] = {0}, sum = 0;
	struct field field, part, number;

	*functions = 0;
	while (next_field(&at, end, &field)) {
		uint64_t id = 0, found = 0;

		last = field.bytes + field.value;
		*functions += field.number == 5;
		for (inner = field.bytes;
		     (field.number == 4 || field.number == 2) && next_field(&inner, last, &part);) {
			const uint8_t *values = part.bytes;

			if (part.number == 1)
				id = field.number == 4 ? part.value : varint(&values);
			else if (part.number == 2 && field.number == 2 && lines[id] == line)
				for (unsigned i = 0; i <= value; i++)
					found = varint(&values);
			for (const uint8_t *in = part.bytes; part.number == 4 && next_field(&in, last, &number);)
				lines[id] = number.number == 2 ? number.value : lines[id];
			cr_assert_lt(id, 16);
		}
		sum += found;
	}
	return sum;
}

/* Where lines are recorded, allocations have the line at which they are made, and calls go on without. */
Test(flame, pprof_of_memory_by_line)
{
	uint8_t *bytes;
	unsigned functions;
	size_t size;

	begin_memory("\"call\",\"mem\",\"line\",\"malloc\"");
	event(WIRE_CALL, MAIN, 0);
	event(WIRE_LINE, 3, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 500, 0, 1);
	event(WIRE_LINE, 4, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x600, 20, 0, 1);
	fixture_extended(fixture, thread, WIRE_MMAP, 0, (uint64_t[]){0x10000, 0x3000}, 2, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x300, 0, 0, 1);
	event(WIRE_RETURN, MAIN, 1);
	export("-f pprof TRACE -o -");
	bytes = unzipped(&size);
	cr_expect_eq(sum_at_line(bytes, size, 3, 3, &functions), 500, "alloc_space");
	cr_expect_eq(sum_at_line(bytes, size, 4, 3, &functions), 20 + 0x3000);
	cr_expect_eq(sum_at_line(bytes, size, 3, 5, &functions), 0, "inuse_space");
	cr_expect_eq(sum_at_line(bytes, size, 4, 5, &functions), 20 + 0x3000);
	cr_expect_eq(sum_at_line(bytes, size, 1, 0, &functions), 1, "main is called once");
	cr_expect_eq(functions, 1, "it is one function at three lines");
	free(bytes);
}

/* As with --memory: nothing but the heap's types. */
Test(flame, pprof_of_memory_alone)
{
	const uint64_t nowhere[6] = {2, 50, 1, 20};
	uint64_t sums[6];
	uint8_t *bytes;
	size_t size;

	begin_memory("\"mem\",\"malloc\"");
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 30, 0, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x600, 20, 0, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x300, 0, 0, 1);
	export("-f pprof TRACE -o -");
	bytes = unzipped(&size);
	cr_expect_eq(sum_samples(bytes, size, 0, sums), 1);
	cr_expect_arr_eq(sums, nowhere, 4 * sizeof(*sums));
	free(bytes);
}

/* The stack of each allocation is known, and not how long a function ran: nobody is charged with the time between. */
Test(flame, memory_alone_has_no_times)
{
	static const char *const formats[] = {"folded", "pstats", "callgrind", "speedscope", "speedscope-sampled",
					      "firefox"};
	const uint64_t main_place = wire_place(MAIN, 0);
	json_t *root, *files;

	begin_memory("\"mem\"");
	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 0, &main_place, 1, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 30, 0, 100);
	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 0, NULL, 0, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x400, 30, 0, 100);
	root = exported_json("-f speedscope TRACE -o -");
	cr_expect_eq(json_array_size(json_object_get(root, "profiles")), 0, "%s", ran.out);
	json_decref(root);
	show(cmd_export, "-f firefox TRACE -o -", "\"samples\":{\"stack\":[null],");
	root = exported_json("-f chrome TRACE -o -");
	cr_expect(!strstr(ran.out, "\"ph\":\"B\"") && strstr(ran.out, "\"bytes\":60"), "%s", ran.out);
	json_decref(root);
	show(cmd_export, "-f callgrind TRACE -o -", "\n1 0 0\n");
	run(cmd_annotate, "--format json TRACE");
	root = json_loads(ran.out, 0, NULL);
	files = json_object_get(root, "files");
	cr_expect(json_array_size(files) == 1 &&
		      !json_integer_value(json_object_get(json_array_get(files, 0), "own_ns")),
		  "%s", ran.out);
	json_decref(root);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char words[64];

		snprintf(words, sizeof(words), "-f %s TRACE -o -", formats[i]);
		export(words);
		cr_expect(strstr(ran.err, "has no events of calls, so there are no times"), "%s: %s", words, ran.err);
	}
	export("-f folded --weight live TRACE -o -");
	cr_expect_str_eq(ran.err, "");
}

/* --- the tree itself --- */

Test(flame, one_number_for_each_stack)
{
	struct stacks stacks = {0};
	const uint32_t *found;
	uint32_t length, deep = 0, a, b;

	a = stacks_find(&stacks, 0, 5);
	b = stacks_find(&stacks, a, 5);
	cr_expect(a == 1 && b == 2);
	cr_expect(stacks_find(&stacks, 0, 6) == 3 && stacks_find(&stacks, 0, 5) == a &&
		  stacks_find(&stacks, a, 5) == b);
	for (uint32_t i = 0; i < 100000; i++)
		deep = stacks_find(&stacks, deep, 7);
	found = stacks_path(&stacks, deep, &length);
	cr_expect(length == 100000 && stacks.at[found[0]].parent == 0 && found[99999] == deep);
	stacks_clear(&stacks);
	cr_expect(stacks_find(&stacks, 0, 6) == 1);
	stacks_done(&stacks);
}

Test(flame, no_calls_at_all)
{
	static const char *const formats[] = {"folded", "speedscope", "speedscope-sampled", "firefox", "pprof"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char words[64];

		snprintf(words, sizeof(words), "-f %s TRACE -o -", formats[i]);
		export(words);
		if (strcmp(formats[i], "folded") != 0 && strcmp(formats[i], "pprof") != 0)
			json_decref(exported_json(words));
	}
}
