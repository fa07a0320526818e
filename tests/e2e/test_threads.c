/*
 * test_threads.c - every thread of every making is in the trace, with its events and its name.
 */
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "harness.h"

static void expect_calls(const struct outcome *outcome, const json_t *report, const char *function, long calls)
{
	long got = report_calls(report, "", function);

	expect(outcome, got == calls, "%s was called %ld times, not %ld", function, calls, got);
}

SCENARIO(threads, all_kinds, SUPPORTED)
{
	struct outcome *bare, *outcome;
	json_t *info, *report;

	python_needs(python, "ctypes");
	bare = run(.python = python, .how = JOB_BARE, .args = {"@threads.py"});
	outcome = run(.python = python, .args = {"@threads.py"});
	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, NULL);
	expect_calls(outcome, report, "by_threading", 5);
	expect_calls(outcome, report, "by_raw_thread", 3);
	expect_calls(outcome, report, "by_c_thread", 4);
	expect_calls(outcome, report, "by_executor", 10);
	expect_calls(outcome, report, "leaf", 4 * 100 + 40 + 3 * 200 + 4 * 300 + 10 * 50);
	expect_balanced(outcome, report);
	for (int i = 0; i < 4; i++)
		expect(outcome, info_thread_named(info, text("named-%d", i)), "a thread is called named-%d", i);
	expect(outcome, info_thread_named(info, "inner") && info_thread_named(info, "outer"),
	       "threads inner and outer");
	expect(outcome, info_threads(info) >= 14, "there are %zu threads", info_threads(info));
	json_decref(report);
	json_decref(info);
}
ALSO_CALLS_ONLY(threads, all_kinds)

/* Frozen programs (PyInstaller) have threading.py without a folder. */
SCENARIO(threads, names_in_frozen_programs, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@frozen.py"});
	json_t *info = expect_trace(outcome, 1);

	expect(outcome, strncmp(outcome->out, "threading.py ", 13) == 0, "it looks frozen");
	for (int i = 0; i < 3; i++)
		expect(outcome, info_thread_named(info, text("frozen-%d", i)), "a thread is called frozen-%d", i);
	json_decref(info);
}

/* The thread of a forked child is called what the one that forked it is called. */
SCENARIO(threads, names_of_forked_children, SUPPORTED)
{
	static const char program[] = "import os, threading\n"
				      "def child():\n"
				      "    pid = os.fork()\n"
				      "    if pid == 0:\n"
				      "        print(threading.current_thread().name, flush=True)\n"
				      "        os._exit(0)\n"
				      "    os.waitpid(pid, 0)\n"
				      "child()\n"
				      "for name in ('forks', 'long \\u00e9' * 40):\n"
				      "    thread = threading.Thread(target=child, name=name)\n"
				      "    thread.start()\n"
				      "    thread.join()\n";
	struct outcome *outcome = run(.python = python, .args = {"-W", "ignore", "-X", "utf8", "-c", program});
	json_t *info = expect_trace(outcome, 4), *process;
	const char *line = outcome->out;
	size_t i;

	json_array_foreach(json_object_get(info, "processes"), i, process)
	{
		const char *name =
		    json_string_value(json_object_get(json_array_get(json_object_get(process, "threads"), 0), "name"));
		size_t length = strcspn(line, "\n");

		if (i == 0)
			continue;
		if (length > 120) /* names are kept up to 127 bytes */
			expect(outcome, name && strlen(name) > 120 && !strncmp(line, name, strlen(name)),
			       "it is cut: %s", name);
		else
			expect(outcome, name && strlen(name) == length && !strncmp(line, name, length),
			       "it is called %.*s, not %s", (int)length, line, name ? name : "nothing");
		line += length + (line[length] == '\n');
	}
	json_decref(info);
}

/* Each thread's start and end is there once. */
SCENARIO(threads, start_and_end, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	json_t *info = expect_trace(outcome, 1);

	expect(outcome, info_events(info, "thread_start") == (long)info_threads(info), "each of %zu starts: %ld",
	       info_threads(info), info_events(info, "thread_start"));
	expect(outcome, info_events(info, "thread_end") >= (long)info_threads(info) - 1, "each of %zu ends: %ld",
	       info_threads(info), info_events(info, "thread_end"));
	json_decref(info);
}
ALSO_CALLS_ONLY(threads, start_and_end)

SCENARIO(threads, many_short_ones, SUPPORTED)
{
	const char *count = test_all() ? "10000" : "800";
	struct outcome *outcome = run(.python = python, .args = {"@many_threads.py", count}, .timeout_s = 200,
				      .env = {"EVPROF_ON_FULL=wait:60000"}); /* whatever else the machine does */
	json_t *info = expect_trace(outcome, 1), *report = trace_report(outcome->trace, NULL);

	expect_calls(outcome, report, "one", atol(count));
	expect_calls(outcome, report, "leaf", 10 * atol(count));
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}
ALSO_CALLS_ONLY(threads, many_short_ones)

/* sys.setprofile, cProfile and sys.settrace of the program work as without evprof. */
SCENARIO(threads, other_profilers, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@other_profilers.py"});
	struct outcome *outcome = run(.python = python, .args = {"@other_profilers.py"});
	json_t *info, *report;

	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, NULL);
	expect_calls(outcome, report, "leaf", 6 * 100);
	/*
	 * Up to 3.11 the interpreter reports the end of a C call to the hook that is set then: not of the one that sets
	 * it.
	 */
	if (python->minor >= 12)
		expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

/* Without a free thread-specific key the end of threads is not recorded, and nothing else changes. */
SCENARIO(threads, no_free_key, SUPPORTED)
{
	struct outcome *bare = NULL, *outcome;
	const char *library;
	char *left = NULL;
	json_t *report;

	if (built_with_asan())
		cr_skip_test("the sanitizer takes keys itself");
	library = compile("no_keys.c", "no_keys.so", COMPILE_PLAIN);
	for (int n = 1; n < 8 && !(bare && bare->status == 0); n++) { /* Python needs some itself */
		left = text("KEYS_LEFT=%d", n);
		bare = run(.python = python, .how = JOB_BARE, .args = {"@known.py"},
			   .env = {left, text("LD_PRELOAD=%s", library)});
	}
	expect(bare, strstr(bare->out, " kept\n"), "the library keeps its key");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"@known.py"},
		      .env = {left, text("LD_PRELOAD=%s %s", build_path("libevprof.so"), library)});
	expect_same(bare, outcome);
	expect(outcome, strstr(outcome->err, "no thread-specific key is free"), "a line says what is missing");
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "1000 calls of leaf, not %ld",
	       report_calls(report, "known.py", "leaf"));
	json_decref(report);
}
