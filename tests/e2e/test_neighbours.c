/*
 * test_neighbours.c - other tools at the interpreter's hooks behave as they do without evprof, and evprof goes on
 * recording beside them.
 *
 * Each scenario runs programs/neighbours.py with one of its tools, bare and under evprof: all that the tool was told,
 * the output and the exit status must be the same. That evprof goes on shows in the calls of known.leaf, whose number is
 * known whatever tool listens, and in ends that all have their calls.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static const char *const no_memory = "EVPROF_EVENTS=call,c_call,exception";

static void expect_leaves(const struct outcome *outcome, const json_t *report, long leaves)
{
	long got = report_calls(report, "/known.py", "leaf");

	expect(outcome, got == leaves, "leaf was called %ld times, not %ld", leaves, got);
}

/* One tool; variable NULL: none. Balanced: no end without its call. */
static void expect_as_bare(const struct python *python, const char *tool, const char *variable, long leaves,
			   bool balanced)
{
	struct outcome *bare =
	    run(.python = python, .how = JOB_BARE, .args = {"@neighbours.py", tool}, .env = {variable});
	struct outcome *outcome = run(.python = python, .args = {"@neighbours.py", tool}, .env = {variable});
	json_t *info, *report;

	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, NULL);
	expect_leaves(outcome, report, leaves);
	if (balanced)
		expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

#define NEIGHBOUR(Name, Leaves)                                                                                        \
	SCENARIO(neighbours, Name, SUPPORTED)                                                                          \
	{                                                                                                              \
		expect_as_bare(python, #Name, NULL, Leaves, true);                                                     \
		if (test_all())                                                                                        \
			expect_as_bare(python, #Name, no_memory, Leaves, true);                                        \
	}

/* ---- profile and trace functions -------------------------------------------------------------------------------- */

NEIGHBOUR(setprofile, 300)
NEIGHBOUR(setprofile_in_thread, 300)
NEIGHBOUR(setprofile_in_many, 2300)
NEIGHBOUR(setprofile_stays, 300)
NEIGHBOUR(settrace, 300)
NEIGHBOUR(both, 300)
NEIGHBOUR(threading_hooks, 300)
NEIGHBOUR(all_threads, 300)
NEIGHBOUR(replaced_within, 300)
NEIGHBOUR(cprofile, 300)
NEIGHBOUR(cprofile_in_thread, 300)
NEIGHBOUR(pure_profile, 300)
NEIGHBOUR(trace_module, 300)
NEIGHBOUR(audited, 400)
