/*
 * test_greenlets.c - greenlets, each with a stack of its own, in one thread: whose calls are whose.
 *
 * The functions of programs/greenlets.py count themselves, and none of them is ever called within itself; but in one
 * thread they interleave. With one stack for all, ends take frames of others off, and calls look recursive.
 * programs/hub.py knows who calls whom. Skipped where greenlet or gevent is missing (packages.h).
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

static void expect_stacks(const struct python *python, const char *package, const char *part)
{
	const char *path;
	struct outcome *bare, *outcome;
	json_t *report;
	char *lines;

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

SCENARIO(greenlets, plain, 6)
{
	expect_stacks(python, "greenlet", "plain");
}
ALSO_CALLS_ONLY(greenlets, plain)

SCENARIO(greenlets, with_generators, 6)
{
	expect_stacks(python, "greenlet", "with_generators");
}
ALSO_CALLS_ONLY(greenlets, with_generators)

SCENARIO(greenlets, with_gevent, 6)
{
	expect_stacks(python, "gevent", "with_gevent");
}
ALSO_CALLS_ONLY(greenlets, with_gevent)

SCENARIO(greenlets, with_subscripts, SUPPORTED)
{
	expect_stacks(python, "greenlet", "with_subscripts");
}
ALSO_CALLS_ONLY(greenlets, with_subscripts)

SCENARIO(greenlets, imported_late, SUPPORTED)
{
	expect_stacks(python, "greenlet", "imported_late");
}

static long calls_between(const struct outcome *outcome, const char *file, const char *caller, const char *callee)
{
	struct outcome *printed = tool("report", "--format", "csv", "--callers", "--restrict", text("\\(%s\\)", callee),
				       "--include", file, outcome->trace);
	const char *column = text(",\"%s\",", caller), *found;
	char *state = NULL;
	long calls = 0;

	for (char *line = strtok_r(printed->out, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		if ((found = strstr(line, column)))
			calls += atol(found + strlen(column));
	return calls;
}

SCENARIO(greenlets, each_has_its_stack, 6)
{
	static const char *const names[] = {"work", "outer", "inner", "leaf"};
	const char *variable;
	struct outcome *bare, *outcome;
	json_t *counts, *report, *info;

	variable = package_variable(python, "greenlet");
	bare = run(.python = python, .how = JOB_BARE, .args = {"@hub.py"}, .env = {variable});
	outcome = run(.python = python, .args = {"@hub.py"}, .env = {variable});
	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, NULL);
	counts = json_loads(outcome->out, 0, NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long want = (long)json_integer_value(json_object_get(counts, names[i]));
		long got = report_calls(report, "hub.py", names[i]);
		long primitive = report_primitive_calls(report, "hub.py", names[i]);

		expect(outcome, want > 0 && got == want, "%s was called %ld times, not %ld", names[i], want, got);
		expect(outcome, primitive == want, "no %s was called by another: %ld of %ld", names[i], primitive,
		       want);
	}
	expect(outcome, info_events(info, "switch") > 1000, "switches are there: %ld", info_events(info, "switch"));
	expect(outcome, calls_between(outcome, "*/hub.py", "inner", "leaf") > 0, "inner calls leaf");
	expect(outcome, calls_between(outcome, "*/hub.py", "run", "leaf") == 0, "run does not call leaf");
	expect(outcome, calls_between(outcome, "*/hub.py", "outer", "leaf") == 0, "outer does not call leaf");
	expect_balanced(outcome, report);
	json_decref(counts);
	json_decref(report);
	json_decref(info);
}
ALSO_CALLS_ONLY(greenlets, each_has_its_stack)

/* part: a trace of the part, the outcome's or one that was cut. */
static void expect_suspended(const struct outcome *outcome, const char *part)
{
	json_t *said = json_loads(outcome->out, 0, NULL), *report = trace_report(part, NULL);
	double want = json_real_value(json_object_get(said, "seconds"));
	double seconds = report_seconds(report, "suspended_greenlets.py", "held");
	struct outcome of_part = *outcome;
	long held, new;

	snprintf(of_part.trace, sizeof(of_part.trace), "%s", part);
	held = calls_between(&of_part, "*/suspended_greenlets.py", "held", "leaf");
	new = calls_between(&of_part, "*/suspended_greenlets.py", "new", "leaf");
	expect(outcome, held == json_integer_value(json_object_get(said, "held")), "held calls leaf %ld times", held);
	expect(outcome, new == json_integer_value(json_object_get(said, "new")), "new calls leaf %ld times", new);
	expect(outcome, seconds > 0.9 * want && seconds < 1.5 * want, "held runs for %f s of %f", seconds, want);
	json_decref(report);
	json_decref(said);
}

/* They are suspended before the recording, before what is kept, and before the last stack at a part. */
SCENARIO(greenlets, suspended_before, 6)
{
	const char *variable = package_variable(python, "greenlet");
	struct outcome *outcome;
	char *part;

	python_needs(python, "ctypes");
	outcome =
	    run(.python = python, .args = {"@suspended_greenlets.py", "started"}, .env = {variable, "EVPROF_START=0"});
	expect_suspended(outcome, outcome->trace);
	outcome = run(.python = python, .args = {"@suspended_greenlets.py"},
		      .env = {variable, "EVPROF_KEEP=64K", "EVPROF_EVENTS=call"});
	expect_suspended(outcome, outcome->trace);
	outcome = run(.python = python, .args = {"@suspended_greenlets.py"}, .env = {variable});
	part = text("%s/part", outcome->directory);
	expect(outcome, tool("cut", "--between", "resumed,done", "-o", part, outcome->trace)->status == 0, "it is cut");
	expect_suspended(outcome, part);
}
ALSO_CALLS_ONLY(greenlets, suspended_before)

/* A program's own trace functions are called and returned as without evprof. */
SCENARIO(greenlets, with_trace_functions, SUPPORTED)
{
	const char *variable = package_variable(python, "greenlet"), *last;
	struct outcome *bare, *outcome;
	json_t *report, *info;

	bare = run(.python = python, .how = JOB_BARE, .args = {"@greenlet_trace.py"}, .env = {variable});
	outcome = run(.python = python, .args = {"@greenlet_trace.py"}, .env = {variable});
	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, NULL);
	outcome->out[strlen(outcome->out) - 1] = '\0';
	last = strrchr(outcome->out, '\n');
	expect(outcome, last && info_events(info, "switch") == atol(last), "%ld switches, not %s",
	       info_events(info, "switch"), last);
	expect(outcome, calls_between(outcome, "*/greenlet_trace.py", "raising", "taken_off") == 1,
	       "the stack is right where a trace function was taken off");
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}
ALSO_CALLS_ONLY(greenlets, with_trace_functions)

/* A release whose functions are not those that are known is watched by what it has. */
SCENARIO(greenlets, with_other_functions, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@own_greenlet/main.py"});
	struct outcome *outcome = run(.python = python, .args = {"@own_greenlet/main.py"});
	json_t *info;

	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "switch") == atol(outcome->out), "%ld switches, not %s",
	       info_events(info, "switch"), outcome->out);
	json_decref(info);
}
