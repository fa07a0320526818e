/*
 * test_orders.c - processes that fork, execute themselves and die are stopped, started, marked, copied, attached to and
 * detached from, and record other events, in any order: no trace has a wrong stack or a call too many or too few, and
 * nothing is left behind (programs/orders.py).
 */
#include <stdio.h>
#include <time.h>

#include "harness.h"

/* At length with one interpreter of each hook in make check-all. */
SCENARIO_SOME(orders, at_random, SUPPORTED)
{
	const char *seconds = test_at_length(python) ? "75" : "10", *processes = test_at_length(python) ? "50" : "9";
	/* A running Python cannot load a library that needs the address sanitizer. */
	const char *kinds = built_with_asan() ? "whole,kept" : "whole,kept,bare";
	char *seed = text("%ld", (long)time(NULL));
	struct outcome *outcome;
	json_error_t error;
	json_t *found;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE,
		      .args = {"@orders.py", build_path(""), seconds, processes, seed, kinds}, .timeout_s = 600);
	found = json_loads(outcome->out, 0, &error);
	expect(outcome, outcome->status == 0 && found, "seed %s: it ends well and prints JSON: %s", seed, error.text);
	expect(outcome, json_array_size(json_object_get(found, "wrong")) == 0, "seed %s: nothing is wrong", seed);
	expect(outcome, json_integer_value(json_object_get(found, "requests")) > 100, "seed %s: requests are recorded",
	       seed);
	expect(outcome, json_integer_value(json_object_get(found, "traces")) >= 6,
	       "seed %s: each of the first workers has a trace", seed);
	json_decref(found);
}
