/*
 * test_calibrate.c - the cost of the hooks is measured when asked for, and taken out of the times and of nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static double number_of(const json_t *report, const char *member)
{
	return json_number_value(json_object_get(report, member));
}

static json_t *report_of(const char *trace, bool calibrate)
{
	struct outcome *outcome =
	    calibrate ? tool("report", "--json", "--calibrate", trace) : tool("report", "--json", trace);
	json_t *report = json_loads(outcome->out, 0, NULL);

	expect(outcome, report && outcome->status == 0, "a report");
	return report;
}

SCENARIO(calibrate, takes_the_cost_out_of_the_times, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@generators.py"});
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"}, .env = {"EVPROF_CALIBRATE=1"});
	struct outcome *other = run(.python = python, .args = {"@generators.py"});
	json_t *info = expect_trace(outcome, 1), *raw = report_of(outcome->trace, false);
	json_t *calibrated = report_of(outcome->trace, true), *plain = report_of(other->trace, false);

	expect_same(bare, outcome);
	expect(outcome, number_of(calibrated, "tottime") > 0, "time is left");
	expect(outcome, number_of(calibrated, "tottime") < number_of(raw, "tottime"), "%f s are less than %f s",
	       number_of(calibrated, "tottime"), number_of(raw, "tottime"));
	expect(outcome, number_of(calibrated, "calls") == number_of(raw, "calls"), "the same calls");
	expect(outcome,
	       report_calls(raw, "generators.py", "<module>") == 1 && report_functions(raw) == report_functions(plain),
	       "what was measured is not in the trace: %zu functions, %zu without", report_functions(raw),
	       report_functions(plain));
	for (size_t i = 0; i < report_functions(raw); i++)
		expect(outcome, !strstr(report_function(raw, i).name, "natives"), "no function of ours");
	json_decref(info);
	json_decref(raw);
	json_decref(calibrated);
	json_decref(plain);
}

SCENARIO(calibrate, says_how_to_measure, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", "pass"});
	struct outcome *report = tool("report", "--calibrate", outcome->trace);

	(void)python;
	expect(report, report->status == 2 && strstr(report->err, "EVPROF_CALIBRATE=1"), "one line says what to do");
	expect(report, report->out_bytes == 0, "and nothing is printed");
}
