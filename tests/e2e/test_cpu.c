/*
 * test_cpu.c - with the kind cpu, each function's time splits into what its thread ran and what it waited, as the
 * program itself measures with the clocks of the system.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static double time_of(const json_t *report, const char *name)
{
	return report_seconds(report, "cpu.py", name);
}

/*
 * On a busy machine a thread may have to wait between the program's look at the clock and the call. What it ran does
 * not depend on that.
 */
#define SLACK_WALL 0.040
#define SLACK_CPU 0.004

static bool is_about(double measured, double expected, double slack)
{
	return fabs(measured - expected) < slack + 0.05 * expected;
}

SCENARIO(cpu, running_and_waiting_are_distinguished, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@cpu.py"}, .env = {"EVPROF_EVENTS=call,c_call,exception,mem,cpu"});
	json_t *info = expect_trace(outcome, 1);
	json_t *wall = trace_report_by(outcome->trace, "wall"), *cpu = trace_report_by(outcome->trace, "cpu"),
	       *waited = trace_report_by(outcome->trace, "off-cpu");
	char *rest = outcome->out;
	int functions = 0;

	for (char *line; (line = strsep(&rest, "\n")) && *line; functions++) {
		char name[64];
		double took, ran;

		expect(outcome, sscanf(line, "%63s %lf %lf", name, &took, &ran) == 3, "the program says: %s", line);
		expect(outcome, is_about(time_of(wall, name), took, SLACK_WALL), "%s took %f s, reported %f", name,
		       took, time_of(wall, name));
		expect(outcome, is_about(time_of(cpu, name), ran, SLACK_CPU), "%s ran %f s, reported %f", name, ran,
		       time_of(cpu, name));
		expect(outcome, is_about(time_of(waited, name), took - ran, SLACK_WALL), "%s waited %f s, reported %f",
		       name, took - ran, time_of(waited, name));
	}
	expect(outcome, functions == 4, "%d functions", functions);
	expect(outcome, time_of(cpu, "other") > 0.015 && time_of(waited, "other") > 0.02,
	       "a thread has a clock of its own: %f, %f", time_of(cpu, "other"), time_of(waited, "other"));
	json_decref(info);
	json_decref(wall);
	json_decref(cpu);
	json_decref(waited);
}

SCENARIO(cpu, stacks_of_waiting, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"@cpu.py"}, .env = {"EVPROF_EVENTS=call,c_call,cpu"});
	struct outcome *folded = tool("export", "--format", "folded", "--clock", "off-cpu", outcome->trace, "-o", "-");
	double slept = 0, all = 0;
	char *rest = folded->out;

	(void)python;
	expect(folded, folded->status == 0, "folded stacks");
	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		double ns = strtod(strrchr(line, ' '), NULL);

		all += ns;
		if (strstr(line, ";waits") && strstr(line, "sleep"))
			slept += ns;
	}
	expect(folded, slept > 0.1e9 && slept < all, "slept %f of %f s", slept / 1e9, all / 1e9);
}

SCENARIO(cpu, says_what_is_wrong, SCENARIO_ONCE)
{
	struct outcome *without = run(.python = python_any(), .args = {"-c", "pass"});
	struct outcome *outcome = tool("report", "--clock", "cpu", without->trace);

	(void)python;
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "EVPROF_EVENTS=") && !outcome->out_bytes,
	       "there are no CPU times");
	without = run(.python = python_any(), .args = {"-c", "pass"}, .env = {"EVPROF_EVENTS=sample"});
	outcome = tool("report", "--clock", "cpu", without->trace);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "EVPROF_EVENTS=sample,cpu") && !outcome->out_bytes,
	       "there are none of a sampled program, which says how there would be");
	outcome = tool("report", "--clock", "gpu", without->trace);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "wall, cpu or off-cpu"), "the clocks are listed");
	outcome = tool("export", "--format", "chrome", "--clock", "cpu", without->trace, "-o", "-");
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "folded") && !outcome->out_bytes,
	       "the formats are listed");
	outcome = tool("report", "--clock", "cpu", "--from", "1ms", without->trace);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "--from"), "not both");
}
