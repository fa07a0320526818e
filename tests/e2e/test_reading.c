/*
 * test_reading.c - the table of report, the options of report, info and run, as a user types them.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static struct outcome *a_trace(const struct python *python)
{
	struct outcome *outcome = run(.python = python, .args = {"@processes.py", "forks"});

	json_decref(expect_trace(outcome, 4));
	return outcome;
}

/* Lines of the table from its heading on; NULL where there is no heading. */
static const char *table_of(const struct outcome *report)
{
	return strstr(report->out, "ncalls");
}

static size_t lines_of(const char *lines)
{
	size_t count = 0;

	for (; *lines; lines++)
		count += *lines == '\n';
	return count;
}

SCENARIO(reading, table, SUPPORTED)
{
	struct outcome *outcome = a_trace(python), *report = tool("report", outcome->trace);
	const char *table = table_of(report);

	expect(report, report->status == 0 && !*report->err, "report ends with 0 and complains of nothing");
	expect(report,
	       table && strstr(table, "tottime") && strstr(table, "percall") && strstr(table, "cumtime") &&
		   strstr(table, "filename:lineno(function)"),
	       "the heading is that of cProfile");
	expect(report, strstr(table, "known.py:5(leaf)"), "functions stand as file:line(name)");
	expect(report, strstr(table, "{built-in method posix.fork}"), "C functions stand in braces");
	report = tool("report", "--sort", "ncalls", "--limit", "3", outcome->trace);
	table = table_of(report);
	expect(report, table && lines_of(table) <= 6, "--limit 3 leaves three functions");
	expect(report, strstr(table, "\n"), "there are functions");
	report = tool("report", "--sort", "nonsense", outcome->trace);
	expect(report, report->status > 0 && strstr(report->err, "cumulative"), "a wrong key names the right ones");
}

/* The rows of --json are in the order that was asked for, and times add up. */
SCENARIO(reading, order_and_times, SUPPORTED)
{
	struct outcome *outcome = a_trace(python), *told = tool("report", "--json", "--sort", "ncalls", outcome->trace);
	json_t *report = json_loads(told->out, 0, NULL);
	size_t count = report_functions(report);
	long long calls = 0;

	expect(told, count > 50, "there are functions: %zu", count);
	for (size_t i = 0; i < count; i++) {
		struct function function = report_function(report, i);

		calls += function.total;
		expect(told, i == 0 || function.total <= report_function(report, i - 1).total, "row %zu has more calls",
		       i);
		expect(told, function.primitive <= function.total && function.primitive > 0,
		       "primitive calls of %s are %ld of %ld", function.name, function.primitive, function.total);
	}
	expect(told, calls == json_integer_value(json_object_get(report, "calls")), "calls add up to %lld", calls);
	json_decref(report);
}

/* Calls that the report counts are those that info counts as events. */
SCENARIO(reading, report_and_info_agree, SUPPORTED)
{
	struct outcome *outcome = a_trace(python);
	json_t *info = trace_info(outcome->trace), *report = trace_report(outcome->trace, NULL);
	long events = info_events(info, "call") + info_events(info, "resume") + info_events(info, "throw") +
		      info_events(info, "c_call");

	expect(outcome, events == json_integer_value(json_object_get(report, "calls")), "%ld events, %lld calls",
	       events, (long long)json_integer_value(json_object_get(report, "calls")));
	json_decref(report);
	json_decref(info);
}

SCENARIO(reading, window_and_process, SUPPORTED)
{
	struct outcome *outcome = a_trace(python), *told;
	char *pid = text("%d", outcome->pid);
	json_t *report;

	told = tool("report", "--json", "--process", pid, outcome->trace);
	report = json_loads(told->out, 0, NULL);
	expect(told, report_calls(report, "processes.py", "in_parent") == 3,
	       "the parent's calls are in its own report");
	expect(told, report_calls(report, "processes.py", "in_child") == 0, "those of its children are not");
	json_decref(report);
	told = tool("report", "--json", "--between", "nothing,there", outcome->trace);
	expect(told, strstr(told->err, "nothing"), "a mark that is not there is named");
	told = tool("report", "--json", "--from", "0", "--to", "1", outcome->trace);
	report = json_loads(told->out, 0, NULL);
	expect(told, report && report_calls(report, "known.py", "leaf") == 0, "the first nanosecond holds no call");
	json_decref(report);
}

/* Each option of run is the same as its variable. */
SCENARIO(reading, run_options, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@processes.py", "subprocesses"},
				      .options = {"--no-children", "--events", "call", "-o", "named %n.evp"});
	json_t *info = expect_trace(outcome, 1);

	expect(outcome, strstr(outcome->trace, "/named processes"), "the trace is called %s", outcome->trace);
	expect(outcome, info_events(info, "c_call") == 0 && info_events(info, "call") > 0, "calls only");
	json_decref(info);
	outcome = run(.python = python, .how = JOB_RUN, .args = {"@known.py"}, .options = {"--quiet"});
	expect(outcome, stderr_evprof_lines(outcome) == 0, "--quiet says nothing");
	json_decref(expect_trace(outcome, 1));
	outcome = run(.python = python, .how = JOB_RUN, .args = {"@known.py"}, .options = {"--events", "nonsense"});
	expect(outcome, strstr(outcome->err, "nonsense") && strstr(outcome->err, "c_call"),
	       "a wrong value is named, with the allowed ones");
}
