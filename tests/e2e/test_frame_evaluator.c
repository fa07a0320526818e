/*
 * test_frame_evaluator.c - calls recorded by a frame evaluator (PEP 523), from 3.9 to 3.11: other evaluators, and
 * little stack, whereupon the profile function goes on.
 *
 * programs/evaluated.py counts the calls of its leaf() and its __getitem__() itself, and looks in the interpreter for
 * whose evaluator is set. That the calls of all other programs are right by it is shown by the scenarios of
 * ALSO_CALLS_ONLY (harness.h), and by test_counts.c.
 */
#include <string.h>

#include "compile.h"
#include "harness.h"

#define DEEP "100000" /* calls, on a stack of 1 MiB: more than it has room for */

/* Whether evprof's evaluator was set before what the part does, and thereafter. */
static void expect_part(const struct python *python, const char *part, const char *argument, const char *events,
			bool before, bool after)
{
	static const char *const counted[] = {"leaf", "__getitem__"};
	struct outcome *outcome;
	json_t *said, *report;

	python_needs(python, "ctypes");
	outcome = run(.python = python,
		      .args = {"@evaluated.py", part, compile("evaluator.c", "evaluator.so", COMPILE_PLAIN), argument},
		      .env = {events});
	expect(outcome, outcome->status == 0, "it runs");
	json_decref(expect_trace(outcome, 1));
	said = json_loads(outcome->out, 0, NULL);
	report = trace_report(outcome->trace, NULL);
	for (size_t i = 0; i < sizeof(counted) / sizeof(*counted); i++) {
		long calls = (long)json_integer_value(json_object_get(said, counted[i]));

		expect(outcome, i > 0 || calls >= 2000, "leaf was called");
		expect(outcome, report_calls(report, "/evaluated.py", counted[i]) == calls,
		       "%s was called %ld times, not %ld", counted[i],
		       report_calls(report, "/evaluated.py", counted[i]), calls);
	}
	expect_balanced(outcome, report);
	expect(outcome, json_is_true(json_array_get(json_object_get(said, "ours"), 0)) == before,
	       "evprof's evaluator is %s before", before ? "set" : "not set");
	expect(outcome, json_is_true(json_array_get(json_object_get(said, "ours"), 1)) == after,
	       "evprof's evaluator is %s after", after ? "set" : "not set");
	json_decref(report);
	json_decref(said);
}

SCENARIO_RANGE(frame_evaluator, stays, 9, 11)
{
	expect_part(python, "small_stack", "100", "EVPROF_EVENTS=call", true, true);
	/* 3.11 makes a frame object for each reported call, see preload/hooks/event_blocks.h. */
	expect_part(python, "small_stack", "100", "EVPROF_EVENTS=call,mem", python->minor < 11, python->minor < 11);
}

/* In loops that run once, too, which 3.11 adapts while they run. */
SCENARIO_RANGE(frame_evaluator, subscripts, 9, 11)
{
	expect_part(python, "subscripts", NULL, "EVPROF_EVENTS=call", true, true);
	expect_part(python, "subscripts", NULL, "EVPROF_EVENTS=call,cpu", true, true);
}

SCENARIO_RANGE(frame_evaluator, on_a_small_stack, 9, 11)
{
	expect_part(python, "small_stack", DEEP, "EVPROF_EVENTS=call", true, false);
}

SCENARIO_RANGE(frame_evaluator, under_another_one, 9, 11)
{
	expect_part(python, "chained", NULL, "EVPROF_EVENTS=call", true, false);
}

SCENARIO_RANGE(frame_evaluator, without_being_called, 9, 11)
{
	expect_part(python, "alone", NULL, "EVPROF_EVENTS=call", true, false);
}

/* C functions, lines and a budget need the profile function. */
SCENARIO_RANGE(frame_evaluator, is_not_for_all, 9, 11)
{
	expect_part(python, "chained", NULL, "EVPROF_EVENTS=call,c_call", false, false);
	expect_part(python, "chained", NULL, "EVPROF_EVENTS=call,line", false, false);
}
