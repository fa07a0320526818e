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

/* Any number of calls of leaf. */
#define ANY (-1)

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
	if (leaves != ANY)
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
/* hooks_profile.c does not yet see that a call was refused, or that its beginning was not told. */
#define REFUSALS_FROM 12

SCENARIO(neighbours, bdb_module, SUPPORTED)
{
	expect_as_bare(python, "bdb_module", NULL, 300, python->minor >= REFUSALS_FROM);
}

SCENARIO(neighbours, settrace_raises, SUPPORTED)
{
	expect_as_bare(python, "settrace_raises", NULL, 300, python->minor >= REFUSALS_FROM);
}

/* 3.11: the return that the trace function refused has no event of its own; the call ends with the one around it. */
SCENARIO(neighbours, settrace_raises_at_return, SUPPORTED)
{
	expect_as_bare(python, "settrace_raises_at_return", NULL, 300, python->minor != 11);
}

SCENARIO(neighbours, setprofile_raises, SUPPORTED)
{
	expect_as_bare(python, "setprofile_raises", NULL, python->minor >= REFUSALS_FROM ? 300 : ANY,
		       python->minor >= REFUSALS_FROM);
}

SCENARIO(neighbours, handler_raises, SUPPORTED)
{
	expect_as_bare(python, "handler_raises", NULL, ANY, python->minor >= REFUSALS_FROM);
}

/* ---- sys.monitoring ---------------------------------------------------------------------------------------------- */

NEIGHBOUR(monitoring_each, 1800)
NEIGHBOUR(monitoring_looks, 300)
NEIGHBOUR(monitoring_disables, 300)

/* What a tool refuses that is told after evprof (0) is recorded, as what it is: a return and an exception. */
SCENARIO(neighbours, monitoring_raises, SUPPORTED)
{
	expect_as_bare(python, "monitoring_raises", NULL, ANY, python->minor < 12);
}

/* Where the program has all six ids, evprof says so and goes on when there is one again. */
SCENARIO(neighbours, monitoring_all, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@neighbours.py", "monitoring_all"});
	bool taken = python->minor >= 12;

	expect_as_bare(python, "monitoring_all", NULL, taken ? 200 : 300, true);
	expect(outcome, stderr_evprof_lines(outcome) == 1 + taken, "one line says that the ids are taken");
	expect(outcome, !taken || strstr(stderr_evprof_line(outcome, 0), "takes all ids of sys.monitoring"),
	       "the line says that the ids are taken");
}
