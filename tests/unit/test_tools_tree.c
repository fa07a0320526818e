/*
 * test_tools_tree.c - the text of evprof tree, over traces of the fixture: order, shares, the threshold, depths.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "one_trace.h"

enum { MAIN = 1, WORK = 2, REST = 3, DOWN = 4, LEN = 1 };

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, MAIN, "/srv/main.py", 10, "main");
	fixture_code(fixture, process, WORK, "/srv/work.py", 2, "work");
	fixture_code(fixture, process, REST, "/srv/rest.py", 3, "rest");
	fixture_code(fixture, process, DOWN, "/srv/down.py", 4, "down");
	fixture_function(fixture, process, LEN, "", "len", "builtins");
	thread = fixture_thread(fixture, process, 10, 1000);
}

TestSuite(tree, .init = set_up, .fini = end_trace);

static void event_ms(unsigned kind, uint32_t argument, uint32_t ms)
{
	event(kind, argument, ms * 1000000);
}

/* main 1000 ms: of its own 100; rest 5; work 895 in two calls, with len 95 in the second. */
static void calls(void)
{
	event_ms(WIRE_CALL, MAIN, 0);
	event_ms(WIRE_CALL, REST, 50);
	event_ms(WIRE_RETURN, REST, 5);
	for (int i = 0; i < 2; i++) {
		event_ms(WIRE_CALL, WORK, 10);
		event_ms(WIRE_RETURN, WORK, 0);
	}
	event_ms(WIRE_CALL, WORK, 30);
	event_ms(WIRE_C_CALL, LEN, 800);
	event_ms(WIRE_C_RETURN, LEN, 95);
	event_ms(WIRE_RETURN, WORK, 0);
	event_ms(WIRE_RETURN, MAIN, 0);
}

static int tree(const char *words)
{
	return run(cmd_tree, words);
}

static void expect_tree(const char *words, const char *expected)
{
	cr_expect(tree(words) == 0, "tree %s: %s", words, ran.err);
	cr_expect_str_eq(ran.out, expected, "tree %s:\n%s", words, ran.out);
}

#define HEAD "1.00 s in 1 thread of 1 process\n\n   total       %      own     calls  function\n"
#define OWNERS                                                                                                         \
	"  1.00 s   100 %                     a (10)\n"                                                                \
	"  1.00 s   100 %                       thread (10)\n"
#define CALLS                                                                                                          \
	"  1.00 s   100 %   100 ms         1      main  /srv/main.py:10\n"                                             \
	"  895 ms  89.5 %   800 ms         3        work  /srv/work.py:2\n"                                            \
	" 95.0 ms   9.5 %  95.0 ms         1          builtins.len\n"

Test(tree, order_and_threshold)
{
	calls();
	expect_tree("TRACE", HEAD OWNERS CALLS "\n1 stack with less than 1 % is left out; --min-percent 0 shows it\n");
	expect_tree("--min-percent 0 TRACE",
		    HEAD OWNERS CALLS " 5.00 ms   0.5 %  5.00 ms         1        rest  /srv/rest.py:3\n");
	expect_tree("--min-percent 0.5 TRACE",
		    HEAD OWNERS CALLS " 5.00 ms   0.5 %  5.00 ms         1        rest  /srv/rest.py:3\n");
}

/* What is deeper counts for its caller; so does what is hidden. */
Test(tree, depth_and_filters)
{
	calls();
	expect_tree("--max-depth 1 TRACE",
		    HEAD OWNERS "  1.00 s   100 %   1.00 s         1      main  /srv/main.py:10\n");
	expect_tree("--exclude work --exclude rest TRACE",
		    HEAD OWNERS "  1.00 s   100 %   905 ms         1      main  /srv/main.py:10\n"
				" 95.0 ms   9.5 %  95.0 ms         1        builtins.len\n");
}

/* A stack of 100,000 calls is printed without recursion, in a text that does not grow with the square of it. */
Test(tree, deep)
{
	enum { DEPTH = 100000 };

	for (int i = 0; i < DEPTH; i++)
		fixture_event(fixture, thread, WIRE_CALL, DOWN, 0);
	fixture_flush(fixture, thread);
	event_ms(WIRE_RETURN, DOWN, 1);
	for (int i = 1; i < DEPTH; i++)
		fixture_event(fixture, thread, WIRE_RETURN, DOWN, 0);
	cr_expect(tree("TRACE") == 0, "%s", ran.err);
	cr_expect(strstr(ran.out, "down  /srv/down.py:4"));
	cr_expect(strstr(ran.out, " (100001) down  /srv/down.py:4\n"));
	cr_expect(ran.out_bytes < DEPTH * 300);
}

/* What is counted are samples then. */
Test(tree, sampled)
{
	calls();
	fixture_meta(fixture, process, "{\"type\":\"process\",\"process\":0,\"pid\":10,\"sample_rate\":100}");
	cr_expect(tree("TRACE") == 0, "%s", ran.err);
	cr_expect(strstr(ran.out, "\n   total       %      own   samples  function\n"), "%s", ran.out);
}

Test(tree, nothing)
{
	expect_tree("TRACE", "0 ns in 0 threads of 0 processes\n\n   total       %      own     calls  function\n");
}

Test(tree, mistakes)
{
	static const char *const wrong[][2] = {
	    {"", "a trace is missing"},
	    {"TRACE TRACE", "one trace at a time"},
	    {"--min-percent x TRACE", "--min-percent wants a number from 0 to 100, not \"x\""},
	    {"--min-percent nan TRACE", "from 0 to 100"},
	    {"--min-percent 101 TRACE", "from 0 to 100"},
	    {"--min-percent -1 TRACE", "from 0 to 100"},
	    {"/nonexistent.evp", "/nonexistent.evp"},
	};

	calls();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_expect(tree(wrong[i][0]) == 2 && !*ran.out, "tree %s", wrong[i][0]);
		cr_expect(strstr(ran.err, wrong[i][1]) && strchr(ran.err, '\n') == ran.err + strlen(ran.err) - 1,
			  "tree %s: %s", wrong[i][0], ran.err);
	}
}
