/*
 * test_tools_annotate.c - the annotated sources of small traces: the table, the JSON, filters, missing files.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "one_trace.h"

static char source[] = "/tmp/annotate.XXXXXX.py";

static void set_up(void)
{
	FILE *file = fdopen(mkstemps(source, 3), "w");

	fputs("import os\r\n\tdef f(): return \"\\\\\"  \n\x1b[31m\xff\n", file);
	fclose(file);
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, 1, source, 1, "<module>");
	fixture_code(fixture, process, 2, source, 2, "f");
	fixture_code(fixture, process, 3, source, 6, "late");
	fixture_code(fixture, process, 4, "/nonexistent/gone.py", 40, "gone");
	fixture_code(fixture, process, 5, "<string>", 1, "<module>");
	fixture_function(fixture, process, 1, "", "len", "builtins");
	thread = fixture_thread(fixture, process, 11, 1000);
}

static void tear_down(void)
{
	unlink(source);
	end_trace();
}

TestSuite(annotate, .init = set_up, .fini = tear_down);

/* Runs the verb over the fixture's trace; "TRACE" in the arguments is its path. */
static int annotate(const char *arguments)
{
	return run(cmd_annotate, arguments);
}

/* <module> 1.5 s of its own, f 0.5 s and twice, len 1 s, gone 1 s: 4 s in all. */
static void four_seconds(void)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_CALL, 2, 500000000);
	event(WIRE_RETURN, 2, 250000000);
	event(WIRE_CALL, 2, 500000000);
	event(WIRE_RETURN, 2, 250000000);
	event(WIRE_C_CALL, 1, 0);
	event(WIRE_C_RETURN, 1, 1000000000);
	event(WIRE_RETURN, 1, 500000000);
	event(WIRE_CALL, 4, 0);
	event(WIRE_RETURN, 4, 1000000000);
}

#define HEADING                                                                                                        \
	"Line #|      Hits|         Time| Time per hit|      %%|Source code\n"                                         \
	"------+----------+-------------+-------------+-------+-----------\n"

static void expect_text(const char *format, const char *name)
{
	char *text = NULL;

	cr_assert(asprintf(&text, format, name) > 0);
	cr_expect(strstr(ran.out, text), "expected\n%s\nin\n%s", text, ran.out);
	free(text);
}

Test(annotate, says_that_short_calls_are_missing)
{
	four_seconds();
	fixture_meta(fixture, process, "{\"type\":\"process\",\"process\":0,\"pid\":10,\"budget\":5}");
	cr_expect(annotate("TRACE") == 0);
	cr_expect(strstr(ran.err, "within a budget of 5%: short calls that were not recorded are missing"), "%s",
		  ran.err);
}

Test(annotate, table)
{
	four_seconds();
	cr_expect(annotate("TRACE") == 0);
	expect_text("Command line: python 'a b.py'\nTotal duration: 4s\nBy function:%s", "");
	expect_text("File: %s\nFile duration: 2s (50.00%%)\n" HEADING
		    "     1|         1|          1.5|          1.5| 37.50%%|import os\n"
		    "(call)|         1|            1|            1| 25.00%%|# ~:0 <built-in method builtins.len>\n",
		    source);
	expect_text("(call)|         2|          0.5|         0.25| 12.50%%|# %s:2 f\n"
		    "     2|         2|          0.5|         0.25| 12.50%%|\tdef f(): return \"\\\\\"\n"
		    "     3|         0|            0|            0|  0.00%%|\\u001b[31m\\xff\n",
		    source);
	expect_text("File: %s\nFile duration: 1s (25.00%%)\n" HEADING
		    "    40|         1|            1|            1| 25.00%%|\n",
		    "/nonexistent/gone.py");
	cr_expect(strstr(ran.out, source) < strstr(ran.out, "gone.py"), "the longest comes first");
}

Test(annotate, missing_source_is_named)
{
	four_seconds();
	event(WIRE_CALL, 5, 1);
	cr_expect(annotate("TRACE") == 0);
	cr_expect_str_eq(ran.err,
			 "evprof annotate: the source /nonexistent/gone.py is not shown: No such file or directory\n");
	expect_text("File: %s\n", "<string>");
}

/* In a line for a terminal. */
Test(annotate, a_missing_source_with_control_characters)
{
	fixture_code(fixture, process, 9, "/nonexistent/a\n\x1b[31m.py", 1, "f");
	event(WIRE_CALL, 9, 0);
	event(WIRE_RETURN, 9, 1000);
	cr_expect(annotate("TRACE") == 0);
	cr_expect_str_eq(ran.err, "evprof annotate: the source /nonexistent/a\\n\\u001b[31m.py is not shown: "
				  "No such file or directory\n");
}

/* The source is shorter than it was. */
Test(annotate, lines_behind_the_end)
{
	event(WIRE_CALL, 3, 0);
	event(WIRE_RETURN, 3, 1000);
	cr_expect(annotate("TRACE") == 0);
	expect_text("|\\u001b[31m\\xff\n     6|         1|        1e-06|        1e-06|100.00%%|\n%s", "");
}

Test(annotate, files)
{
	four_seconds();
	cr_expect(annotate("TRACE gone.py") == 0);
	cr_expect(strstr(ran.out, "gone.py") && !strstr(ran.out, source));
	cr_expect(annotate("TRACE /tmp/annotate.*") == 0);
	cr_expect(!strstr(ran.out, "gone.py") && strstr(ran.out, source));
	cr_expect(annotate("TRACE one.py") == 0);
	cr_expect(!strstr(ran.out, "File:"), "the end of a name does not match");
}

static void line(uint32_t number)
{
	event(WIRE_LINE, number, 1000000);
}

static void switch_to(uint64_t target, uint64_t origin)
{
	event(WIRE_SWITCH, 0, 0);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

static void record_lines(void)
{
	fixture_meta(fixture, process, "{\"type\":\"events\",\"process\":%u,\"ticks\":1,\"events\":[\"line\"]}",
		     process);
}

/* Lines 41 and 42 are those of gone(), which is hidden; it runs inside <module>, whose lines are 1 and 3. */
static void expect_no_hidden_lines(const char *words)
{
	cr_expect(annotate(words) == 0, "%s", ran.err);
	cr_expect(!strstr(ran.out, "\n    41|") && !strstr(ran.out, "\n    42|"), "%s", ran.out);
	cr_expect(strstr(ran.out, "\n     3|         1|"), "%s", ran.out);
}

/* Nor after another greenlet ran, or where the shown stretch of time begins. */
Test(annotate, lines_of_hidden_functions_are_nobodys)
{
	record_lines();
	event(WIRE_CALL, 1, 0);
	line(1);
	event(WIRE_CALL, 4, 0);
	line(41);
	switch_to(0x2000, 0x1000);
	event(WIRE_CALL, 2, 0);
	line(2);
	switch_to(0x1000, 0x2000);
	line(42);
	event(WIRE_RETURN, 4, 0);
	line(3);
	event(WIRE_RETURN, 1, 1000000);
	expect_no_hidden_lines("--exclude *gone.py TRACE");
	expect_no_hidden_lines("--exclude *gone.py --from 1500us TRACE");
	expect_no_hidden_lines("--exclude *gone.py --from 2500us TRACE");
	expect_no_hidden_lines("--exclude *gone.py --from 3500us TRACE");
}

/* What is below the hidden function is known by its end. */
Test(annotate, lines_of_hidden_functions_after_a_gap)
{
	record_lines();
	event(WIRE_GAP, 0, 1000000);
	fixture_extra(fixture, thread, 7);
	event(WIRE_CALL, 4, 0);
	line(41);
	line(42);
	event(WIRE_RETURN, 4, 0);
	line(3);
	event(WIRE_RETURN, 1, 1000000);
	expect_no_hidden_lines("--exclude *gone.py --from 1500us TRACE");
}

Test(annotate, json)
{
	json_t *root, *file, *line;

	four_seconds();
	cr_expect(annotate("--format json TRACE") == 0);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(root, "%s", ran.out);
	cr_expect_str_eq(json_string_value(json_object_get(root, "by")), "function");
	cr_expect(json_integer_value(json_object_get(root, "duration_ns")) == 4000000000);
	file = json_array_get(json_object_get(root, "files"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(file, "file")), source);
	cr_expect(json_integer_value(json_object_get(file, "own_ns")) == 2000000000);
	line = json_array_get(json_object_get(file, "lines"), 1);
	cr_expect(json_integer_value(json_object_get(line, "line")) == 2);
	cr_expect(json_integer_value(json_object_get(line, "hits")) == 2);
	cr_expect_str_eq(json_string_value(json_object_get(line, "source")), "\tdef f(): return \"\\\\\"");
	line = json_array_get(json_object_get(file, "lines"), 0);
	line = json_array_get(json_object_get(line, "calls"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(line, "function")), "<built-in method builtins.len>");
	cr_expect(json_integer_value(json_object_get(line, "total_ns")) == 1000000000);
	file = json_array_get(json_object_get(root, "files"), 1);
	line = json_array_get(json_object_get(file, "lines"), 0);
	cr_expect(json_is_null(json_object_get(line, "source")));
	json_decref(root);
}

Test(annotate, by_thread)
{
	json_t *root, *threads;

	four_seconds();
	thread = fixture_thread(fixture, process, 12, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 12, 0, "", "second", "", "");
	event(WIRE_CALL, 2, 0);
	event(WIRE_RETURN, 2, 1000000000);
	fixture_thread(fixture, process, 13, 1000);
	cr_expect(annotate("--by thread TRACE") == 0);
	expect_text("Thread: 11 of process 10\nFile: %s\nFile duration: 2s (50.00%%)\n", source);
	expect_text("Thread: 12 of process 10, second\nFile: %s\nFile duration: 1s (25.00%%)\n", source);
	cr_expect(!strstr(ran.out, "Thread: 13"), "nothing ran there");
	cr_expect(annotate("--by thread --format json TRACE") == 0);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(root, "%s", ran.out);
	threads = json_object_get(root, "threads");
	cr_expect(json_array_size(threads) == 2);
	cr_expect(json_integer_value(json_object_get(json_array_get(threads, 1), "tid")) == 12);
	json_decref(root);
	cr_expect(annotate("--thread 12 TRACE") == 0);
	expect_text("File: %s\nFile duration: 1s (25.00%%)\n", source);
}

Test(annotate, nothing_ran)
{
	json_t *root;

	cr_expect(annotate("TRACE") == 0);
	expect_text("Total duration: 0s\n%s", "");
	cr_expect(annotate("--format json --by thread TRACE") == 0);
	root = json_loads(ran.out, 0, NULL);
	cr_expect(root && json_array_size(json_object_get(root, "threads")) == 0);
	json_decref(root);
}

Test(annotate, mistakes_end_with_2)
{
	static const char *const wrong[] = {"",
					    "--nonsense TRACE",
					    "/nonexistent",
					    "--by function TRACE",
					    "--format xml TRACE",
					    "-o /nonexistent/file TRACE"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect(annotate(wrong[i]) == 2, "annotate %s", wrong[i]);
}
