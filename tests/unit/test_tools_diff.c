/*
 * test_tools_diff.c - evprof diff: how functions are matched and counted, what counts as a change, and the outputs.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "two_traces.h"

TestSuite(diff, .init = begin_trace, .fini = tear_down);

static json_t *compared(const char *words)
{
	json_error_t error;
	json_t *root;

	cr_assert(run(cmd_diff, words) == 0, "%s", ran.err);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	cr_assert(root, "%s", error.text);
	return root;
}

static const json_t *row_of(const json_t *root, size_t number)
{
	return json_array_get(json_object_get(root, "functions"), number);
}

static long value(const json_t *row, const char *side, const char *key)
{
	const json_t *of_side = json_object_get(row, side);

	return json_is_null(of_side) ? -1 : (long)json_integer_value(json_object_get(of_side, key));
}

static const json_t *row_named(const json_t *root, const char *name, long line_b)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "function")), name) == 0 &&
		    value(row, "b", "line") == line_b)
			return row;
	}
	cr_assert(false, "no %s in line %ld of b: %s", name, line_b, ran.out);
	return NULL;
}

Test(diff, functions_are_matched)
{
	const json_t *row;
	json_t *root;

	code(1, "/old/m.py", 1, "same", "same");
	code(2, "/old/m.py", 10, "moved", "K.moved");
	code(3, "/old/m.py", 20, "<lambda>", "<lambda>");
	code(4, "/old/m.py", 30, "<lambda>", "<lambda>");
	code(5, "/old/m.py", 40, "gone", "gone");
	for (uint32_t id = 1; id <= 5; id++)
		called(id, (int)id, 10);
	save(0);
	begin_trace();
	code(1, "/old/m.py", 1, "same", "same");
	code(2, "/old/m.py", 12, "moved", "K.moved");
	code(3, "/new/m.py", 22, "<lambda>", "<lambda>");
	code(4, "/new/m.py", 32, "<lambda>", "<lambda>");
	code(5, "/new/m.py", 40, "fresh", "fresh");
	code(6, "/old/m.py", 13, "moved", "L.moved");
	for (uint32_t id = 1; id <= 6; id++)
		called(id, 10, 10);
	save(1);
	root = compared("--json TRACE OTHER");
	cr_expect(json_array_size(json_object_get(root, "functions")) == 7);
	cr_expect(value(row_named(root, "same", 1), "change", "ncalls") == 9);
	cr_expect(value(row_named(root, "K.moved", 12), "a", "line") == 10);
	cr_expect(value(row_named(root, "<lambda>", 22), "a", "ncalls") == 3, "the first with the first");
	cr_expect(value(row_named(root, "<lambda>", 32), "a", "ncalls") == 4);
	row = row_named(root, "fresh", 40);
	cr_expect(value(row, "a", "ncalls") == -1 && value(row, "change", "tottime_ns") == 100);
	row = row_named(root, "gone", -1);
	cr_expect(value(row, "a", "ncalls") == 5 && value(row, "change", "ncalls") == -5);
	row_named(root, "L.moved", 13);
	json_decref(root);
	cr_assert(run(cmd_diff, "-n 1 TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, "List reduced from 7 to 1"));
}

/* A trace of Python 3.10 has no qualified names. */
Test(diff, plain_names_where_one_side_has_no_others)
{
	json_t *root;

	code(1, "/old/m.py", 10, "f", "");
	called(1, 1, 10);
	save(0);
	begin_trace();
	code(1, "/new/m.py", 12, "f", "K.f");
	called(1, 2, 10);
	save(1);
	root = compared("--json TRACE OTHER");
	cr_expect(json_array_size(json_object_get(root, "functions")) == 1);
	cr_expect(value(row_named(root, "K.f", 12), "change", "ncalls") == 1);
	json_decref(root);
}

static void allocate(unsigned kind, uint64_t address, uint64_t size)
{
	fixture_memory(fixture, thread, kind, WIRE_DOMAIN_OBJ, address, size, 0x10, 0);
}

Test(diff, allocations_belong_to_what_runs)
{
	const json_t *row;
	json_t *root;

	code(1, "m.py", 1, "f", "f");
	code(2, "m.py", 2, "g", "g");
	allocate(WIRE_MALLOC, 0x100, 7); /* outside of any function */
	event(WIRE_CALL, 1, 1);
	allocate(WIRE_MALLOC, 0x200, 100);
	event(WIRE_CALL, 2, 1);
	allocate(WIRE_CALLOC, 0x300, 20);
	allocate(WIRE_REALLOC, 0x400, 50);
	allocate(WIRE_MALLOC, 0, 1000); /* failed */
	allocate(WIRE_FREE, 0x300, 0);
	event(WIRE_RETURN, 2, 1);
	allocate(WIRE_MALLOC, 0x300, 3);
	event(WIRE_RETURN, 1, 1);
	save(0);
	begin_trace();
	code(1, "m.py", 1, "f", "f");
	called(1, 1, 1);
	allocate(WIRE_MALLOC, 0x100, 1);
	save(1);
	root = compared("--json --sort allocs TRACE OTHER");
	row = row_of(root, 0);
	cr_expect_str_eq(json_string_value(json_object_get(row, "function")), "f");
	cr_expect(value(row, "a", "allocs") == 2 && value(row, "a", "bytes") == 103);
	cr_expect(value(row, "b", "allocs") == 0 && value(row, "change", "bytes") == -103);
	row = row_of(root, 1);
	cr_expect(value(row, "a", "allocs") == 2 && value(row, "a", "bytes") == 70 && value(row, "b", "allocs") == -1);
	cr_expect(value(root, "a", "allocs") == 5 && value(root, "a", "bytes") == 180);
	json_decref(root);
	cr_assert(run(cmd_diff, "--exclude g --json TRACE OTHER") == 0);
	root = compared("--exclude g --json TRACE OTHER");
	cr_expect(value(row_named(root, "f", 1), "a", "bytes") == 173, "what g asked for is f's");
	json_decref(root);
}

/* What one trace does not know of is no saving. */
Test(diff, memory_in_one_trace_only)
{
	json_t *root;

	code(1, "m.py", 1, "f", "f");
	event(WIRE_CALL, 1, 1);
	allocate(WIRE_MALLOC, 0x200, 100);
	event(WIRE_RETURN, 1, 1);
	save(0);
	begin_trace();
	code(1, "m.py", 1, "f", "f");
	called(1, 1, 2);
	save(1);
	cr_assert(run(cmd_diff, "TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, ", 1 allocations of 100 bytes\n") &&
		      strstr(ran.out, ", allocations not recorded\n") && !strstr(ran.out, "allocs") &&
		      !strstr(ran.out, "-100"),
		  "%s", ran.out);
	root = compared("--json TRACE OTHER");
	cr_expect(value(row_named(root, "f", 1), "a", "bytes") == 100);
	cr_expect(json_is_null(json_object_get(json_object_get(row_of(root, 0), "b"), "bytes")));
	cr_expect(json_is_null(json_object_get(json_object_get(row_of(root, 0), "change"), "bytes")));
	json_decref(root);
	cr_assert(run(cmd_diff, "--csv TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, ",1,,,100,,\r\n"), "%s", ran.out);
}

Test(diff, order_table_and_csv)
{
	code(1, "m.py", 1, "slow", "slow");
	code(2, "m,\"n\".py", 2, "often", "often");
	called(1, 1, 3000000);
	called(2, 1, 1);
	save(0);
	begin_trace();
	code(1, "m.py", 1, "slow", "slow");
	code(2, "m,\"n\".py", 4, "often", "often");
	called(1, 1, 1000000);
	called(2, 50, 1);
	save(1);
	cr_assert(run(cmd_diff, "TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, " ncalls change  tottime change  cumtime change filename:lineno(function)\n"
				  "      1      0    0.003 -0.002    0.003 -0.002 m.py:1(slow)\n"
				  "      1    +49    0.000 +0.000    0.000 +0.000 m,\"n\".py:4(often) "
				  "(was m,\"n\".py:2(often))\n"),
		  "%s", ran.out);
	cr_assert(run(cmd_diff, "TRACE TRACE") == 0);
	cr_expect(strstr(ran.out, "   2 functions did not change and are not listed; --all lists them\n\n") &&
		      !strstr(ran.out, "m.py"),
		  "%s", ran.out);
	cr_assert(run(cmd_diff, "-s calls -n 1 --csv TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, "\r\n\"often\",\"m,\"\"n\"\".py\",4,both,1,50,49,1,50,49,1,50,49,,,,,,\r\n"), "%s",
		  ran.out);
}

/* f: 10 calls of 1 ms, then of b; g: 2 calls in both. */
static void two_runs(int calls, uint32_t ticks)
{
	code(1, "/src/m.py", 1, "f", "f");
	code(2, "/src/m.py", 2, "g", "g");
	called(1, 10, 1000000);
	called(2, 2, 1);
	save(0);
	begin_trace();
	code(1, "/src/m.py", 1, "f", "f");
	code(2, "/src/m.py", 2, "g", "g");
	called(1, calls, ticks);
	called(2, 2, 1);
	save(1);
}

static void expect_listed(const char *words, int status, const char *function, bool listed)
{
	cr_expect(run(cmd_diff, words) == status, "%s: status %d\n%s%s", words, ran.status, ran.out, ran.err);
	cr_expect(!strstr(ran.out, function) == !listed, "%s: %s\n%s", words, function, ran.out);
}

/* --fail-on with this, whichever trace comes first: an error whose line says so, and names the trace. */
static void expect_refused(const char *key, const char *line, const char *named)
{
	char words[80];

	for (unsigned turned = 0; turned < 2; turned++) {
		snprintf(words, sizeof(words), "--fail-on %s %s", key, turned ? "OTHER TRACE" : "TRACE OTHER");
		expect_listed(words, 2, "(f)", false);
		cr_expect(strstr(ran.err, line) && strstr(ran.err, named), "%s", ran.err);
	}
}

/* 10.9 ms are 9 % more than 10 ms, 11.2 ms are 12 %. */
Test(diff, noise_is_not_listed)
{
	two_runs(10, 1090000);
	expect_listed("TRACE OTHER", 0, "(f)", false);
	expect_listed("--all TRACE OTHER", 0, "(f)", true);
	expect_listed("--all TRACE OTHER", 0, "(g)", true);
	expect_listed("--threshold time=8% TRACE OTHER", 0, "(f)", true);
	expect_listed("--threshold time=800us TRACE OTHER", 0, "(f)", true);
	expect_listed("--threshold time=800us,10% TRACE OTHER", 0, "(f)", false);
	expect_listed("--threshold time=0 TRACE OTHER", 0, "(g)", false);
}

Test(diff, change_of_time)
{
	two_runs(10, 1120000);
	expect_listed("TRACE OTHER", 0, "m.py:1(f)\n", true);
	expect_listed("TRACE OTHER", 0, "(g)", false);
	expect_listed("--threshold time=2ms --threshold cumtime=2ms TRACE OTHER", 0, "(f)", false);
}

Test(diff, regressions_set_the_status)
{
	two_runs(12, 1000000);
	expect_listed("--fail-on calls TRACE OTHER", 4, "m.py:1(f) (regression: calls)\n", true);
	expect_listed("--fail-on calls OTHER TRACE", 0, "regression", false);
	expect_listed("--fail-on calls --threshold calls=20% TRACE OTHER", 0, "regression", false);
	expect_listed("--fail-on calls --threshold calls=19.9% TRACE OTHER", 4, "(f)", true);
	expect_listed("--fail-on calls --threshold calls=2 TRACE OTHER", 0, "(f)", true);
	expect_listed("--fail-on calls,time,cumtime TRACE OTHER", 4, "(regression: calls, time, cumtime)", true);
	expect_listed("--fail-on total-calls TRACE OTHER", 4, "   Regressions in the sum of all functions: calls\n",
		      true);
	expect_listed("--fail-on total-calls --threshold calls=17% TRACE OTHER", 0, "Regression", false);
	expect_listed("--fail-on total-calls --threshold calls=16% TRACE OTHER", 4, "Regression", true);
	expect_listed("--fail-on calls --csv TRACE OTHER", 4, "\"f\"", true);
}

Test(diff, regressions_come_first_and_in_json)
{
	const json_t *row;
	json_t *root;

	code(1, "m.py", 1, "faster", "faster");
	code(2, "m.py", 2, "fresh", "fresh");
	called(1, 9, 1000);
	save(0);
	begin_trace();
	code(1, "m.py", 1, "faster", "faster");
	code(2, "m.py", 2, "fresh", "fresh");
	called(1, 1, 1000);
	called(2, 2, 1000);
	save(1);
	cr_assert(run(cmd_diff, "--json --sort calls --fail-on calls,total-calls TRACE OTHER") == 4, "%s", ran.err);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(root, "%s", ran.out);
	row = row_of(root, 0);
	cr_expect_str_eq(json_string_value(json_object_get(row, "function")), "fresh");
	cr_expect(json_is_true(json_object_get(row, "changed")));
	cr_expect_str_eq(json_string_value(json_array_get(json_object_get(row, "regressions"), 0)), "ncalls");
	cr_expect(json_array_size(json_object_get(row_of(root, 1), "regressions")) == 0);
	cr_expect(json_array_size(json_object_get(root, "total_regressions")) == 0, "the sum is less");
	json_decref(root);
}

/* What cannot be compared fails, and is named. */
Test(diff, regressions_that_would_not_show)
{
	code(1, "a.py", 1, "f", "f");
	called(1, 1, 1);
	event(WIRE_GAP, 0, 5);
	fixture_extra(fixture, thread, 3);
	fixture_flush(fixture, thread); /* no end: losses are counted by reading */
	paths[0] = fixture_save(fixture);
	fixture_free(fixture);
	begin_trace();
	code(1, "a.py", 1, "f", "f");
	called(1, 2, 1);
	save(1);
	expect_listed("--fail-on bytes TRACE OTHER", 2, "(f)", false);
	cr_expect(strstr(ran.err, "has no memory events"), "%s", ran.err);
	expect_listed("TRACE TRACE", 1, "(f)", false);
	expect_listed("--fail-on calls TRACE TRACE", 2, "(f)", false);
	cr_expect(strstr(ran.err, "events were lost"), "%s", ran.err);
	expect_listed("--fail-on calls TRACE OTHER", 4, "(f)", true);
	expect_listed("--fail-on calls --include nonsense OTHER OTHER", 2, "(f)", false);
	cr_expect(strstr(ran.err, "compares nothing"), "%s", ran.err);
}

static const char *const recorded[] = {
    "{\"type\":\"process\",\"process\":0,\"pid\":10,\"start_ticks\":0,\"events\":[\"mem\"]}",
    "{\"type\":\"process\",\"process\":0,\"pid\":10,\"start_ticks\":0,\"events\":[\"call\",\"c_call\"]}",
};

/* Calls that one trace has no events of are no improvement. */
Test(diff, calls_that_were_not_recorded)
{
	static const char *const lines[] = {"has no events of calls", "has no calls of C functions (c_call)"};
	static const char *const keys[] = {"calls", "time", "total-cumtime"};

	for (size_t i = 0; i < 2; i++) {
		code(1, "a.py", 1, "f", "f");
		called(1, 1, 1);
		save(0);
		begin_trace();
		fixture_meta(fixture, 0, "%s", recorded[i]);
		code(1, "a.py", 1, "f", "f");
		if (i)
			called(1, 1, 1);
		save(1);
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			expect_refused(keys[k], lines[i], paths[!i]);
		expect_listed("TRACE OTHER", 0, "nonsense", false);
		tear_down();
		begin_trace();
	}
}

/* In either trace. The sum of allocations does not depend on it. */
Test(diff, budget_hides_calls)
{
	static const char *const refused[] = {"calls", "total-time", "cumtime", "bytes"};

	for (int side = 0; side < 2; side++) {
		fixture_meta(fixture, 0,
			     "{\"type\":\"process\",\"process\":0,\"pid\":10,\"start_ticks\":0,\"events\":[\"call\","
			     "\"c_call\",\"mem\"]%s}",
			     side ? ",\"budget\":5" : "");
		code(1, "a.py", 1, "f", "f");
		called(1, 1 + side, 1);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, 0x1000, 1000, 0, 0);
		save(side);
		begin_trace();
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		expect_refused(refused[i], "record without --budget", paths[1]);
	expect_listed("--fail-on total-bytes TRACE OTHER", 0, "(f)", true);
	expect_listed("TRACE OTHER", 0, "(f)", true);
	expect_listed("--fail-on calls TRACE TRACE", 0, "(f)", false);
}

/* Where the beginning has left a trace (EVPROF_KEEP), it shows neither growth nor that there is none. */
Test(diff, last_stretch)
{
	static const char *const refused[] = {"calls", "total-time", "total-bytes"};

	for (int side = 0; side < 2; side++) {
		fixture_meta(fixture, 0,
			     "{\"type\":\"process\",\"process\":0,\"pid\":10,\"start_ticks\":0,\"events\":[\"call\","
			     "\"mem\"],\"keep_ns\":9%s}",
			     side ? ",\"since_ns\":5" : "");
		code(1, "a.py", 1, "f", "f");
		called(1, 2 - side, 1);
		save(side);
		begin_trace();
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		expect_refused(refused[i], "has only its last stretch", paths[1]);
	expect_listed("--fail-on calls --from 0 TRACE OTHER", 0, "(f)", true);
	expect_listed("TRACE OTHER", 0, "(f)", true);
	expect_listed("--fail-on calls TRACE TRACE", 0, "(f)", false);
}

/* No name ends a cell or becomes markup; a regression is bold. */
Test(diff, markdown)
{
	code(1, "/src/m.py", 1, "f", "f");
	code(2, "/src/a|b.py", 2, "<b>`x`|y", "<b>`x`|y");
	called(1, 10, 1000000);
	save(0);
	begin_trace();
	code(1, "/src/m.py", 1, "f", "f");
	code(2, "/src/a|b.py", 2, "<b>`x`|y", "<b>`x`|y");
	called(1, 15, 1000000);
	called(2, 1, 2000000);
	save(1);
	cr_expect(run(cmd_diff, "--markdown --fail-on calls TRACE OTHER") == 4, "%s", ran.err);
	cr_expect_str_eq(ran.out,
			 "2 of 2 functions changed, **regressions in 2 of them**.\n"
			 "\n"
			 "| function | calls | time (s) | cumtime (s) |\n"
			 "|---|--:|--:|--:|\n"
			 "| all functions | 10 → 16 (+60 %) | 0.010 → 0.017 (+70 %) | 0.010 → 0.017 (+70 %) |\n"
			 "| `f` `/src/m.py:1` | **10 → 15 (+50 %)** | 0.010 → 0.015 (+50 %) | "
			 "0.010 → 0.015 (+50 %) |\n"
			 "| `<b>'x'\\|y` `/src/a\\|b.py:2` (new) | **0 → 1** | 0.000 → 0.002 | "
			 "0.000 → 0.002 |\n");
	cr_expect(run(cmd_diff, "--markdown --threshold time=100% --threshold calls=5 TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, "| `f` `/src/m.py:1` | 15 | 0.015 | 0.010 → 0.015 (+50 %) |\n"), "%s", ran.out);
	cr_expect(run(cmd_diff, "--markdown --limit 1 TRACE OTHER") == 0);
	cr_expect(strstr(ran.out, "\n1 more functions are not listed.\n"), "%s", ran.out);
}

/* --- memory by site --- */

/* A process that records these events: main() begins at that line, and allocates where it stands and below. */
static void begin_memory(const char *events, uint32_t begins)
{
	char members[200];

	snprintf(members, sizeof(members), "\"events\":[%s]", events);
	if (fixture)
		fixture_free(fixture);
	fixture = fixture_new();
	process = fixture_process_with(fixture, members);
	thread = fixture_thread(fixture, process, 10, 1000);
	code(1, "/src/m.py", begins, "main", "main");
	event(WIRE_CALL, 1, 1);
}

static void made_at(uint32_t line, uint64_t address, uint64_t bytes)
{
	event(WIRE_LINE, line, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, address, bytes, 0, 1);
}

static void freed(uint64_t address)
{
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, address, 0, 0, 1);
}

#define WITH_LINES "\"call\",\"mem\",\"line\",\"malloc\""

/* main() moves by three lines. Its second line allocates more, its third one is gone, its fifth one is new. */
static void two_heaps(void)
{
	begin_memory(WITH_LINES, 10);
	made_at(11, 0x100, 1000);
	made_at(12, 0x200, 30);
	freed(0x200);
	save(0);
	begin_memory(WITH_LINES, 13);
	made_at(14, 0x100, 1500);
	made_at(17, 0x300, 70);
	save(1);
}

Test(diff, memory_by_line)
{
	const json_t *row;
	json_t *root;

	two_heaps();
	root = compared("--memory --json TRACE OTHER");
	cr_expect(json_array_size(json_object_get(root, "sites")) == 3, "%s", ran.out);
	cr_expect(value(root, "a", "peak_bytes") == 1030 && value(root, "b", "peak_bytes") == 1570);
	cr_expect(value(root, "a", "end_bytes") == 1000 && value(root, "a", "temporary") == 1);
	row = json_array_get(json_object_get(root, "sites"), 0);
	cr_expect(value(row, "a", "line") == 11 && value(row, "b", "line") == 14, "the function moved: %s", ran.out);
	cr_expect(value(row, "change", "peak_bytes") == 500 && value(row, "change", "end_bytes") == 500);
	row = json_array_get(json_object_get(root, "sites"), 1);
	cr_expect(value(row, "a", "line") == -1 && value(row, "b", "line") == 17, "new: %s", ran.out);
	row = json_array_get(json_object_get(root, "sites"), 2);
	cr_expect(value(row, "a", "line") == 12 && value(row, "b", "line") == -1, "gone: %s", ran.out);
	cr_expect(value(row, "change", "end_bytes") == 0 && value(row, "change", "temporary") == -1);
	cr_expect(!json_object_get(json_object_get(row, "a"), "ncalls"), "calls are not compared");
	json_decref(root);
}

Test(diff, memory_regressions)
{
	two_heaps();
	expect_listed("--memory TRACE OTHER", 0, "/src/m.py:14(main) (was /src/m.py:11(main))\n", true);
	expect_listed("--memory TRACE OTHER", 0, "/src/m.py:17(main) (new)\n", true);
	expect_listed("--memory TRACE OTHER", 0, "/src/m.py:12(main) (gone)\n", true);
	expect_listed("--memory --fail-on peak TRACE OTHER", 4, "(new) (regression: peak)\n", true);
	expect_listed("--memory --fail-on total-peak,total-end TRACE OTHER", 4,
		      "   Regressions in the sum of all sites: peak, end\n", true);
	expect_listed("--memory --fail-on total-peak --threshold peak=53% TRACE OTHER", 0, "Regression", false);
	expect_listed("--memory --fail-on total-peak --threshold peak=52% TRACE OTHER", 4, "Regression", true);
	expect_listed("--memory --fail-on peak --threshold peak=1K TRACE OTHER", 0, "Regression", false);
	expect_listed("--memory --fail-on temporary TRACE OTHER", 0, "Regression", false);
	expect_listed("--memory --by function --fail-on end TRACE OTHER", 4, "/src/m.py:13(main) (was", true);
	expect_listed("--memory --by module --all TRACE OTHER", 0, " /src/m.py\n", true);
	expect_listed("--memory --by thread --all TRACE OTHER", 0, "thread (10)\n", true);
	expect_listed("--memory --markdown TRACE OTHER", 0, "| `main` `/src/m.py:14` | 1000 → 1500 (+50 %) |", true);
	expect_listed("--memory --markdown TRACE OTHER", 0, "| `main` `/src/m.py:17` (new) | 0 → 70 |", true);
}

/* Where one trace lacks what the other one has, growth shows nothing. */
Test(diff, memory_that_was_not_recorded)
{
	begin_memory("\"call\",\"mem\"", 1);
	made_at(2, 0x100, 10);
	save(0);
	begin_memory(WITH_LINES, 1);
	made_at(2, 0x100, 10);
	save(1);
	expect_listed("--memory TRACE OTHER", 0, "without native memory", true);
	cr_expect(run(cmd_diff, "--memory --fail-on peak TRACE OTHER") == 2);
	cr_expect(strstr(ran.err, "has no native memory (malloc), which"), "%s", ran.err);
}

Test(diff, sampled_memory_is_an_estimate)
{
	begin_memory(WITH_LINES "],\"memory_interval\":524288,\"rest\":[", 1);
	made_at(2, 0x100, 1000000);
	save(0);
	begin_memory(WITH_LINES, 1);
	made_at(2, 0x100, 1000000);
	save(1);
	expect_listed("--memory TRACE OTHER", 0, "; estimates, as memory was sampled\nB ", true);
}

/* A with everything, B with that meta: it does not have the measure, so that is not compared, and null. */
static void expect_unknown(const char *meta, const char *key, const char *json, const char *said, const char *order)
{
	char words[128];

	for (int side = 0; side < 2; side++) {
		begin_memory(side ? meta : WITH_LINES, 1);
		made_at(2, 0x100, side ? 5000000 : 1000000);
		freed(0x100);
		made_at(2, 0x200, 1000000);
		save(side);
	}
	for (int total = 0; total < 2; total++) {
		snprintf(words, sizeof(words), "--memory --fail-on %s%s TRACE OTHER", total ? "total-" : "", key);
		cr_expect(run(cmd_diff, words) == 2 && strstr(ran.err, " compares nothing, as "), "%s: %s", words,
			  ran.err);
	}
	snprintf(words, sizeof(words), "--memory --sort %s TRACE OTHER", key);
	cr_expect(run(cmd_diff, words) == 2 && strstr(ran.err, " does not have that\n"), "%s", ran.err);
	expect_listed("--memory --json TRACE OTHER", 0, json, true);
	expect_listed("--memory --all TRACE OTHER", 0, order, true);
	cr_expect(strstr(ran.out, said) && !strstr(strstr(ran.out, "\nB "), said), "A has it: %s", ran.out);
	expect_listed("--memory --all --markdown TRACE OTHER", 0, key, false);
}

Test(diff, samples_show_no_temporary_allocations)
{
	expect_unknown(WITH_LINES "],\"memory_interval\":524288,\"rest\":[", "temporary", "\"temporary\": null",
		       " of them temporary", "Ordered by: change of bytes at the peak\n");
}

Test(diff, what_is_alive_shows_no_peak)
{
	expect_unknown("\"mem\",\"line\",\"malloc\"],\"alive_only\":true,\"rest\":[", "peak", "\"peak_bytes\": null",
		       " bytes at the peak, ", "Ordered by: change of bytes at the end\n");
}

Test(diff, memory_without_events)
{
	begin_memory("\"call\"", 1);
	save(0);
	begin_memory(WITH_LINES, 1);
	made_at(2, 0x100, 10);
	save(1);
	cr_expect(run(cmd_diff, "--memory TRACE OTHER") == 2 && strstr(ran.err, "has no memory events"), "%s", ran.err);
}

Test(diff, mistakes)
{
	static const char *const wrong[] = {"",
					    "TRACE",
					    "TRACE TRACE TRACE",
					    "--sort nonsense TRACE TRACE",
					    "--limit x TRACE TRACE",
					    "--min-duration 5 TRACE TRACE",
					    "--threshold calls TRACE TRACE",
					    "--threshold calls= TRACE TRACE",
					    "--threshold calls=5ms TRACE TRACE",
					    "--threshold time=5K TRACE TRACE",
					    "--threshold nonsense=5 TRACE TRACE",
					    "--threshold total-calls=5 TRACE TRACE",
					    "--fail-on nonsense TRACE TRACE",
					    "--fail-on calls, TRACE TRACE",
					    "--fail-on peak TRACE TRACE",
					    "--sort end TRACE TRACE",
					    "--memory --sort calls TRACE TRACE",
					    "--memory --fail-on time TRACE TRACE",
					    "--memory --by nonsense TRACE TRACE",
					    "--memory --clock cpu TRACE TRACE",
					    "--by line TRACE TRACE",
					    "TRACE /nonexistent",
					    "/nonexistent TRACE"};

	save(0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_expect(run(cmd_diff, wrong[i]) == 2, "%s", wrong[i]);
		cr_expect(*ran.err && !*ran.out, "%s", wrong[i]);
	}
}
