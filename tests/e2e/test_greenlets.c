/*
 * test_greenlets.c - each greenlet has its own stack: callers are right, and no end is without its beginning.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

static long calls_between(const struct outcome *outcome, const char *caller, const char *callee)
{
	struct outcome *printed = tool("report", "--format", "csv", "--callers", "--restrict", text("\\(%s\\)", callee),
				       "--include", "*/greenlets.py", outcome->trace);
	long calls = 0;
	char *state = NULL;

	for (char *line = strtok_r(printed->out, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		if (strstr(line, text(",\"%s\",", caller)))
			calls++;
	return calls;
}

SCENARIO(greenlets, each_has_its_stack, SUPPORTED)
{
	static const char *const names[] = {"work", "outer", "inner", "leaf"};
	const char *variable;
	struct outcome *bare, *outcome;
	json_t *counts, *report, *info;

	variable = package_variable(python, "greenlet");
	bare = run(.python = python, .how = JOB_BARE, .args = {"@greenlets.py"}, .env = {variable});
	outcome = run(.python = python, .args = {"@greenlets.py"}, .env = {variable});
	expect_same(bare, outcome);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, NULL);
	counts = json_loads(outcome->out, 0, NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long want = (long)json_integer_value(json_object_get(counts, names[i]));
		long got = report_calls(report, "greenlets.py", names[i]);
		long primitive = report_primitive_calls(report, "greenlets.py", names[i]);

		expect(outcome, want > 0 && got == want, "%s was called %ld times, not %ld", names[i], want, got);
		expect(outcome, primitive == want, "no %s was called by another: %ld of %ld", names[i], primitive,
		       want);
	}
	expect(outcome, info_events(info, "switch") > 1000, "switches are there: %ld", info_events(info, "switch"));
	expect(outcome, calls_between(outcome, "inner", "leaf") > 0, "inner calls leaf");
	expect(outcome, calls_between(outcome, "run", "leaf") == 0, "run does not call leaf");
	expect(outcome, calls_between(outcome, "outer", "leaf") == 0, "outer does not call leaf");
	expect_balanced(outcome, report);
	json_decref(counts);
	json_decref(report);
	json_decref(info);
}
