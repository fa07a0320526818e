/*
 * test_reading.c - the table of report, the options of report, info and run, as a user types them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "strike.h"

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
	struct outcome *outcome = a_trace(python),
		       *result = tool("report", "--json", "--sort", "ncalls", outcome->trace);
	json_t *report = json_loads(result->out, 0, NULL);
	size_t count = report_functions(report);
	long long calls = 0;

	expect(result, count > 50, "there are functions: %zu", count);
	for (size_t i = 0; i < count; i++) {
		struct function function = report_function(report, i);

		calls += function.total;
		expect(result, i == 0 || function.total <= report_function(report, i - 1).total,
		       "row %zu has more calls", i);
		expect(result, function.primitive <= function.total && function.primitive > 0,
		       "primitive calls of %s are %ld of %ld", function.name, function.primitive, function.total);
	}
	expect(result, calls == json_integer_value(json_object_get(report, "calls")), "calls add up to %lld", calls);
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
	struct outcome *outcome = a_trace(python), *result;
	char *pid = text("%d", outcome->pid);
	json_t *report;

	result = tool("report", "--json", "--process", pid, outcome->trace);
	report = json_loads(result->out, 0, NULL);
	expect(result, report_calls(report, "processes.py", "in_parent") == 3,
	       "the parent's calls are in its own report");
	expect(result, report_calls(report, "processes.py", "in_child") == 0, "those of its children are not");
	json_decref(report);
	result = tool("report", "--json", "--between", "nothing,there", outcome->trace);
	expect(result, strstr(result->err, "nothing"), "a mark that is not there is named");
	result = tool("report", "--json", "--from", "0", "--to", "1", outcome->trace);
	report = json_loads(result->out, 0, NULL);
	expect(result, report && report_calls(report, "known.py", "leaf") == 0, "the first nanosecond holds no call");
	json_decref(report);
}

/* A reader that reads no further, with SIGPIPE as it was inherited: default, or ignored. */
SCENARIO(reading, quiet_where_nobody_reads_on, SCENARIO_ONCE)
{
	static const char *const code =
	    "import signal, subprocess, sys\n"
	    "signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
	    "for restored in True, False:\n"
	    "    for verb in ['export', '--format', 'csv', '-o', '-'], ['dump']:\n"
	    "        tool = subprocess.Popen([sys.argv[1], *verb, sys.argv[2]], stdout=subprocess.PIPE,\n"
	    "                                stderr=subprocess.PIPE, restore_signals=restored)\n"
	    "        tool.stdout.readline()\n"
	    "        tool.stdout.close()\n"
	    "        print(tool.wait(), tool.stderr.read())\n";
	struct outcome *outcome = run(.python = python_any(), .args = {"@compared.py", "1000"}), *result;

	(void)python;
	result = run(.python = python_any(), .how = JOB_BARE, .args = {"-c", code, "%B/evprof", outcome->trace});
	expect(result, strcmp(result->out, "-13 b''\n-13 b''\n-13 b''\n-13 b''\n") == 0,
	       "it ends by SIGPIPE, without a line");
}

/* Rows that Python's pty sees, and those that a pipe gets. */
SCENARIO(reading, rows_on_a_terminal, SCENARIO_ONCE)
{
	static const char *const code = "import pty, sys; pty.spawn(sys.argv[1:])";
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", "import json, subprocess"});
	struct outcome *piped = tool("report", outcome->trace), *result;
	unsigned rows = 0;

	(void)python;
	for (const char *at = strstr(piped->out, "percall filename"); (at = strchr(at, '\n')) && at[1] != '\n'; at++)
		rows++;
	expect(piped, rows > 30 && !strstr(piped->out, "rows;"), "a pipe gets all %u rows", rows);
	result =
	    run(.python = python_any(), .how = JOB_BARE, .args = {"-c", code, "%B/evprof", "report", outcome->trace});
	expect(result, strstr(result->out, text("   30 of %u rows; --limit all", rows)), "the last line");
	result = run(.python = python_any(), .how = JOB_BARE,
		     .args = {"-c", code, "%B/evprof", "report", "--limit", "all", outcome->trace});
	expect(result, !strstr(result->out, "rows;"), "all are asked for");
}

/* Each option of run is the same as its variable. */
SCENARIO(reading, run_options, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@processes.py", "subprocesses"},
				      .options = {"--no-children", "--events", "call", "-o", "named %n.evp"});
	json_t *info = expect_trace(outcome, 1);

	expect(outcome, strstr(outcome->trace, "/named processes"), "the trace is called %s", outcome->trace);
	expect(outcome,
	       info_events(info, "c_call") == 0 && info_events(info, "malloc") == 0 &&
		   report_calls(trace_report(outcome->trace, NULL), "processes.py", "in_parent") == 2,
	       "calls only, and all of them");
	json_decref(info);
	outcome = run(.python = python, .how = JOB_RUN, .args = {"@known.py"}, .options = {"--quiet"});
	expect(outcome, stderr_evprof_lines(outcome) == 0, "--quiet says nothing");
	json_decref(expect_trace(outcome, 1));
	outcome = run(.python = python, .how = JOB_RUN, .args = {"@known.py"}, .options = {"--events", "nonsense"});
	expect(outcome, strstr(outcome->err, "nonsense") && strstr(outcome->err, "c_call"),
	       "a wrong value is named, with the allowed ones");
}

/* ---- while it is written --------------------------------------------------------------------------------------- */

struct writing {
	const char *directory; /* of the program */
	struct oracle *oracle;
	struct background *program;
	const char *traces; /* the folder of the trace */
	char *trace;
};

static void expect_growing(const struct outcome *result)
{
	const char *line = strstr(result->err, "evprof: ");

	expect(result, result->status == 3, "what still grows ends with 3, not %d", result->status);
	expect(result, line && strstr(line, "it is still being written, and this is what it holds so far\n"),
	       "that it is still being written is said");
	expect(result, lines_of(result->err) == 1, "in one line");
}

static long calls_in_report(const char *trace)
{
	struct outcome *result = tool("report", "--json", trace);
	json_t *report = json_loads(result->out, 0, NULL);
	long calls = report_calls(report, "steady.py", "leaf");

	expect_growing(result);
	expect(result, report, "what there is makes a whole report");
	json_decref(report);
	return calls;
}

static long calls_in_dump(const char *trace)
{
	struct outcome *result = tool("dump", trace);
	long calls = 0;

	expect_growing(result);
	for (const char *at = result->out; (at = strstr(at, "\tcall\tleaf")); at++)
		calls++;
	return calls;
}

static long calls_in_chrome(const char *trace)
{
	struct outcome *result = tool("export", "-f", "chrome", trace, "-o", "-");
	json_t *chrome = json_loads(result->out, 0, NULL);
	long calls = 0;

	expect_growing(result);
	expect(result, chrome, "what there is makes a whole file");
	for (const char *at = result->out; (at = strstr(at, "\"name\":\"leaf")); at++)
		calls++;
	json_decref(chrome);
	return calls;
}

/* Of all functions, but nothing else calls as steadily. */
static long calls_in_info(const char *trace)
{
	struct outcome *result = tool("info", "--json", trace);
	json_t *info = json_loads(result->out, 0, NULL);
	long calls = info_events(info, "call");

	expect_growing(result);
	expect(result, json_is_false(json_object_get(info, "complete")), "the trace is not complete");
	json_decref(info);
	return calls;
}

static void expect_package_reports(const struct python *python, const char *trace, const char *damage)
{
	struct outcome *result;

	if (built_with_asan())
		return;
	result = run_with_package(python, "import evprof, sys; print(evprof.load(sys.argv[1]).damage)", trace, NULL);
	expect(result, result->status == 0 && strcmp(result->out, damage) == 0, "the package says of it: %s", damage);
}

/* What was called two seconds before is there, and nothing that was not called. */
static void expect_calls(const struct writing *writing, const char *verb, long (*count)(const char *trace), long more)
{
	long before = oracle_ended(writing->oracle), calls, after;

	sleep(2);
	calls = count(writing->trace);
	after = oracle_begun(writing->oracle);
	cr_assert(before < after, "the program went on calling meanwhile");
	cr_assert(calls >= before && calls <= after + more, "%s has %ld calls; there were %ld, then %ld", verb, calls,
		  before, after);
}

/* In the end all is there, and nothing is missing. */
static void expect_whole(const struct writing *writing)
{
	struct outcome *report = tool("report", "--json", writing->trace);
	json_t *rows = json_loads(report->out, 0, NULL);

	expect(report, report->status == 0 && !*report->err, "the trace is complete");
	expect(report, report_calls(rows, "steady.py", "leaf") == oracle_ended(writing->oracle),
	       "%ld calls are in it, of %ld", report_calls(rows, "steady.py", "leaf"), oracle_ended(writing->oracle));
	json_decref(rows);
}

static void start_writing(struct writing *writing, const struct python *python, const char *variable)
{
	struct outcome found = {.pid = 0};

	writing->oracle = oracle_new(writing->directory);
	writing->program = background_start(&(struct job){
	    .python = python, .args = {"@steady.py", "50"}, .env = {variable}, .directory = writing->directory});
	for (int i = 0; i < 300 && !(oracle_ended(writing->oracle) && found.traces); i++) {
		usleep(100000);
		outcome_find_traces(&found, writing->traces);
	}
	cr_assert(found.traces == 1, "there is a trace in %s: %s", writing->traces,
		  file_read(writing->program->log, NULL));
	writing->trace = text("%s", found.trace);
}

/* The calls of the program itself and of its start are in info's, too: more than a few thousand are none of theirs. */
static void read_while_written(const struct writing *writing, const struct python *python)
{
	expect_calls(writing, "report", calls_in_report, 0);
	expect_package_reports(python, writing->trace, "it is still being written, and this is what it holds so far\n");
	expect_calls(writing, "dump", calls_in_dump, 0);
	expect_calls(writing, "chrome", calls_in_chrome, 0);
	expect_calls(writing, "info", calls_in_info, 50000);
	writing->oracle->stop = 1;
	cr_assert(background_wait(writing->program) == 0, "%s", file_read(writing->program->log, NULL));
}

SCENARIO_SOME(reading, while_it_is_written, SUPPORTED)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct writing writing = {.directory = directory, .traces = directory};

	start_writing(&writing, python, NULL);
	read_while_written(&writing, python);
	expect_whole(&writing);
	expect_package_reports(python, writing.trace, "\n");
}

SCENARIO_SOME(reading, while_the_daemon_writes_it, SUPPORTED)
{
	struct writing writing = {.directory = run(.how = JOB_BARE, .args = {"true"})->directory,
				  .traces = run(.how = JOB_BARE, .args = {"true"})->directory};
	char *socket = text("%s/socket", writing.directory);
	struct background *daemon = background_start(&(struct job){
	    .how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", socket, "--output-dir", writing.traces}});

	background_listens(daemon, socket);
	start_writing(&writing, python, text("EVPROF_SOCKET=%s", socket));
	read_while_written(&writing, python);
	cr_assert(background_stop(daemon) == 0, "%s", file_read(daemon->log, NULL));
	expect_whole(&writing);
	expect_package_reports(python, writing.trace, "\n");
}
