/*
 * test_greenlets.c - greenlets, each with a stack of its own, in one thread: whose calls are whose.
 *
 * The functions of programs/greenlets.py count themselves, and none of them is ever called within itself; but in one
 * thread they interleave. With one stack for all, ends take frames of others off, and calls look recursive.
 * Skipped where greenlet or gevent is missing (packages.h), and unless TEST_GREENLETS=1.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

static void expect_stacks(const struct python *python, const char *package, const char *part)
{
	const char *path, *wanted = getenv("TEST_GREENLETS");
	struct outcome *bare, *outcome;
	json_t *report;
	char *lines;

	if (!wanted || !*wanted)
		cr_skip_test("greenlets have no stacks of their own yet; TEST_GREENLETS=1 runs it");
	path = package_variable(python, package);
	bare = run(.python = python, .how = JOB_BARE, .args = {"@greenlets.py", part}, .env = {path});
	outcome = run(.python = python, .args = {"@greenlets.py", part}, .env = {path});
	expect(bare, bare->status == 0, "it runs");
	/* How often a greenlet ran before it was killed is chance: the counts are those of the same run. */
	expect(outcome, outcome->status == 0, "it runs under evprof");
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	lines = text("%s", outcome->out);
	for (char *at = lines, *line; (line = strsep(&at, "\n")) && *line;) {
		char *name = strsep(&line, " ");

		expect(outcome, report_calls(report, "/greenlets.py", name) == atol(line),
		       "%s was called %s times, not %ld", name, line, report_calls(report, "/greenlets.py", name));
		expect(outcome, report_primitive_calls(report, "/greenlets.py", name) == atol(line),
		       "%s was never called within itself: %s times, not %ld", name, line,
		       report_primitive_calls(report, "/greenlets.py", name));
	}
	expect_balanced(outcome, report);
	json_decref(report);
}

SCENARIO(greenlets, plain, SUPPORTED)
{
	expect_stacks(python, "greenlet", "plain");
}

SCENARIO(greenlets, with_generators, SUPPORTED)
{
	expect_stacks(python, "greenlet", "with_generators");
}

SCENARIO(greenlets, with_gevent, SUPPORTED)
{
	expect_stacks(python, "gevent", "with_gevent");
}
