/*
 * test_control_flow.c - whatever way the interpreter goes, each end has its call, and the program does what it does
 * bare.
 *
 * Each scenario runs a part of programs/control_flow.py or interpreters.py, bare and under evprof: the same output and
 * exit status. The program counts the calls of its leaf() itself and prints the number last: evprof has the same.
 */
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "harness.h"
#include "packages.h"

/* The number on the last line. */
static long last_number(const struct outcome *outcome)
{
	const char *at = outcome->out + outcome->out_bytes;

	while (at > outcome->out && (at == outcome->out + outcome->out_bytes || at[-1] != '\n'))
		at--;
	return atol(at);
}

/* The report of a trace without loss, whose every end has its call; and as many calls of leaf. */
static json_t *expect_whole(const struct outcome *outcome, const char *file, long leaves)
{
	json_t *report;

	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, file, "leaf") == leaves, "leaf was called %ld times, not %ld", leaves,
	       report_calls(report, file, "leaf"));
	expect_balanced(outcome, report);
	return report;
}

static void expect_followed(const struct python *python, const char *part, const char *argument, const char *variable)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@control_flow.py", part, argument},
				   .env = {variable}, .timeout_s = 200);
	struct outcome *outcome =
	    run(.python = python, .args = {"@control_flow.py", part, argument}, .env = {variable}, .timeout_s = 200);

	expect_same(bare, outcome);
	expect(bare, last_number(bare) > 0, "leaf was called");
	json_decref(expect_whole(outcome, "/control_flow.py", last_number(bare)));
}

#define PART(Name)                                                                                                     \
	SCENARIO(control_flow, Name, SUPPORTED)                                                                        \
	{                                                                                                              \
		expect_followed(python, #Name, NULL, NULL);                                                            \
	}                                                                                                              \
	ALSO_CALLS_ONLY(control_flow, Name)

PART(generators)
PART(left_over)
PART(through_c)
PART(destructors)
PART(recursion)
PART(exits)
PART(with_asyncio)
PART(replaced)
PART(answers_itself)
PART(named_like)

SCENARIO(control_flow, callbacks, SUPPORTED)
{
	python_needs(python, "ctypes");
	expect_followed(python, "callbacks", NULL, NULL);
}
ALSO_CALLS_ONLY(control_flow, callbacks)

SCENARIO(control_flow, with_uvloop, SUPPORTED)
{
	expect_followed(python, "with_uvloop", NULL, package_variable(python, "uvloop"));
}
ALSO_CALLS_ONLY(control_flow, with_uvloop)

SCENARIO(control_flow, with_trio, SUPPORTED)
{
	expect_followed(python, "with_trio", NULL, package_variable(python, "trio"));
}
ALSO_CALLS_ONLY(control_flow, with_trio)

/*
 * How often the threads' function ran is chance. 3.11: hooks_profile.c misses that a beginning was not reported.
 */
SCENARIO(control_flow, raised_in_threads, SUPPORTED)
{
	struct outcome *outcome;
	json_t *report;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@control_flow.py", "raised_in_threads"});
	expect(outcome, outcome->status == 0 && strncmp(outcome->out, "10\n", 3) == 0, "ten threads were stopped");
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "/control_flow.py", "forever") == 10, "forever was called ten times");
	expect_balanced(outcome, report);
	json_decref(report);
}
ALSO_CALLS_ONLY(control_flow, raised_in_threads)

/* Every one of them has its own id; none has the name of one whose memory it got; the program does not grow by them. */
SCENARIO(control_flow, made_and_freed, SUPPORTED)
{
	char *n = text("%d", test_at_length(python) ? 1000000 : 10000);
	struct outcome *outcome = run(.python = python, .args = {"@control_flow.py", "made_and_freed", n},
				      .env = {"EVPROF_EVENTS=call,c_call"}, .timeout_s = 200);
	json_t *report = expect_whole(outcome, "/control_flow.py", atol(n));

	expect(outcome, strstr(outcome->out, "not grown"), "the program's memory stays as it is");
	for (int i = 0; i < 1000; i++)
		expect(outcome, report_calls(report, "<string>", text("f%d", i)) == atol(n) / 1000,
		       "f%d was called %ld times, not %ld", i, atol(n) / 1000,
		       report_calls(report, "<string>", text("f%d", i)));
	json_decref(report);
}

/* ---- sub-interpreters -------------------------------------------------------------------------------------------- */

static void expect_interpreters(const struct python *python, const char *part, long leaves)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@interpreters.py", part});
	struct outcome *outcome = run(.python = python, .args = {"@interpreters.py", part});

	expect(bare, bare->status == 0, "it runs");
	expect_same(bare, outcome);
	json_decref(expect_whole(outcome, "/known.py", leaves));
}

/* Own: with a GIL of its own from 3.12 on, where those of 3.12 are left alone, with one line. */
#define INTERPRETERS(Name, Leaves)                                                                                     \
	SCENARIO(interpreters, Name, SUPPORTED)                                                                        \
	{                                                                                                              \
		expect_interpreters(python, #Name, Leaves);                                                            \
	}                                                                                                              \
	SCENARIO(interpreters, Name##_own, 13)                                                                         \
	{                                                                                                              \
		expect_interpreters(python, #Name "_own", Leaves);                                                     \
	}

INTERPRETERS(one, 200 + 5 * 100)
INTERPRETERS(many, 20 * 100 + 100)
INTERPRETERS(threads, 4 * 3 * 21 * 50)

SCENARIO(interpreters, inner_threads, SUPPORTED)
{
	expect_interpreters(python, "inner_threads", 550);
}
ALSO_CALLS_ONLY(interpreters, inner_threads)

SCENARIO(interpreters, pool, 14)
{
	expect_interpreters(python, "pool", 900);
}

/* Code that has a state, as what a profiler keeps at it, cannot be given to another interpreter. */
SCENARIO(interpreters, call, 14)
{
	expect_interpreters(python, "call", 2 * (50 + 60 + 70));
}

#define DEFINERS 4

/* Each function of fNUMBER_I() is there once, with two calls or, where it was kept, three. */
static void expect_defined(const struct outcome *outcome, const json_t *report, long n)
{
	bool *seen = calloc((size_t)(DEFINERS * n), sizeof(*seen));
	long calls = 0, names = 0;

	for (size_t i = 0; i < report_functions(report); i++) {
		struct function function = report_function(report, i);
		long number, which;

		if (strcmp(function.file, "<string>") != 0 || sscanf(function.name, "f%ld_%ld", &number, &which) != 2)
			continue;
		expect(outcome, number < DEFINERS && which < n && !seen[number * n + which], "%s is there once",
		       function.name);
		expect(outcome, function.total == 2 || function.total == 3, "%s was called %ld times", function.name,
		       function.total);
		seen[number * n + which] = true;
		calls += function.total;
		names++;
	}
	expect(outcome, names == DEFINERS * n, "%ld functions, not %ld", names, DEFINERS * n);
	expect(outcome, calls == DEFINERS * (2 * n + n / 2), "%ld calls, not %ld", calls, DEFINERS * (2 * n + n / 2));
	free(seen);
}

/* Interpreters with a GIL each give ids at the same time, for code objects at addresses of what died in another. */
SCENARIO(interpreters, defining_own, 13)
{
	long n = test_all() ? 10000 : 1000;
	struct outcome *outcome =
	    run(.python = python, .args = {"@interpreters.py", "defining_own", text("%d", DEFINERS), text("%ld", n)},
		.env = {"EVPROF_EVENTS=call,c_call,exception"}, .timeout_s = 200);
	json_t *info, *report;

	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "done\n"), "it runs");
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "exception") >= DEFINERS * n, "each exception is there");
	report = trace_report(outcome->trace, NULL);
	expect_defined(outcome, report, n);
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

SCENARIO_RANGE(interpreters, own_of_3_12, 12, 12)
{
	struct outcome *outcome = run(.python = python, .args = {"@interpreters.py", "threads_own"});

	expect(outcome, outcome->status == 0, "it runs");
	expect(outcome, strstr(stderr_evprof_line(outcome, 0), "GIL of their own are not recorded"), "it is said");
	expect(outcome, stderr_evprof_lines(outcome) == 2, "once");
	json_decref(expect_whole(outcome, "/known.py", 0));
}

/* ---- threads of C code ------------------------------------------------------------------------------------------- */

/* They leave Python and come again, each time with a thread state that may stand where the one before stood. */
SCENARIO(control_flow, entering, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@entering.py", compile("entering.c", "entering.so", COMPILE_PLAIN)});
	expect(outcome, outcome->status == 0, "its threads run Python code");
	json_decref(expect_whole(outcome, "/known.py", 4 * 100 * 5));
}
ALSO_CALLS_ONLY(control_flow, entering)

/* Each state of one thread, whichever thread made it, from its first call on. The program counts its calls. */
SCENARIO(control_flow, one_thread_many_interpreters, SUPPORTED)
{
	static const char *const events[] = {"EVPROF_EVENTS=call,c_call", "EVPROF_EVENTS=call,c_call,exception,mem"};
	const char *library = compile("turns.c", "turns.so", COMPILE_PLAIN);

	python_needs(python, "ctypes");
	for (int i = 0; i < 4; i++) {
		struct outcome *outcome =
		    run(.python = python, .env = {events[i / 2]}, .args = {"@turns.py", library, i % 2 ? "1" : "0"});
		json_t *report = trace_report(outcome->trace, NULL);
		long calls = atol(outcome->out), app = report_calls(report, "<string>", "app"),
		     leaf = report_calls(report, "<string>", "leaf");

		expect(outcome, calls == 60, "it made 60 calls");
		expect(outcome, app == calls, "%ld of %ld calls of app are recorded", app, calls);
		expect(outcome, leaf == 2 * calls, "%ld of %ld calls of leaf are recorded", leaf, 2 * calls);
		expect_balanced(outcome, report);
		json_decref(report);
	}
}
