/*
 * test_superinstructions.c - pairs of instructions that 3.12 runs as one, which its own instrumentation splits, are
 * joined again (preload/python/superinstructions.h); and other tools get their events all the same.
 *
 * programs/superinstructions.py compares with those that Python gives a copy of the same code that never ran.
 */
#include "harness.h"

static void expect_joined(const struct python *python, const char *setting)
{
	struct outcome *outcome = run(.python = python, .args = {"@superinstructions.py", "1.5"}, .env = {setting});
	json_t *said = json_loads(outcome->out, 0, NULL), *debugger = json_object_get(said, "debugger");

	expect(outcome, outcome->status == 0, "it runs");
	json_decref(expect_trace(outcome, 1));
	expect(outcome,
	       json_array_size(json_object_get(said, "joined")) == 7 &&
		   json_integer_value(json_object_get(said, "of")) == 7,
	       "all functions have their superinstructions");
	expect(outcome, json_array_size(json_array_get(debugger, 0)) == 5, "a debugger sees each line once");
	expect(outcome, json_integer_value(json_array_get(debugger, 1)) == 10, "the result is right");
	json_decref(said);
}

SCENARIO_RANGE(superinstructions, are_joined, 12, 12)
{
	expect_joined(python, "EVPROF_EVENTS=call,c_call");
	expect_joined(python, "EVPROF_EVENTS=call,c_call,exception,mem");
}

SCENARIO_RANGE(superinstructions, are_joined_after_bursts, 12, 12)
{
	expect_joined(python, "EVPROF_BUDGET=5%");
	expect_joined(python, "EVPROF_BUDGET=1%");
}
