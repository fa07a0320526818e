/*
 * test_table.c - the table of events, evprof export --format csv and the Python package evprof, against oracles that are not
 * ours: Python's csv module, sys.setprofile(), tracemalloc and sys.getsizeof(), a plain replay (table/slow.py), and the C
 * library's patterns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define SETS 24 /* of arguments of judge.py in one run */

/* What judge.py is to compare: traces, their tables, stretches of time. */
struct case_list {
	const char *args[2 + 4 * SETS];
	size_t count;
};

static char *beside(const struct outcome *outcome, const char *name)
{
	return text("%s/%s", outcome->directory, name);
}

/* Writes the table of a stretch ("-": no bound) as a file of its own. The trace may be damaged, not more. */
static void add_case(struct case_list *list, const char *trace, const char *start, const char *end)
{
	char *table = text("%s.%s.%s.csv", trace, start, end);
	const char *words[12] = {"export", "--format", "csv", "--since-start", trace, "-o", table};
	size_t count = 7;
	struct outcome *export;

	if (strcmp(start, "-") != 0) {
		words[count++] = "--from";
		words[count++] = start;
	}
	if (strcmp(end, "-") != 0) {
		words[count++] = "--to";
		words[count++] = end;
	}
	export = tool_run(words);
	expect(export, export->status == 0 || export->status == 1, "the export of %s ends with %d", trace,
	       export->status);
	cr_assert(list->count + 4 <= sizeof(list->args) / sizeof(*list->args) - 1);
	list->args[list->count++] = trace;
	list->args[list->count++] = table;
	list->args[list->count++] = start;
	list->args[list->count++] = end;
}

static void package_path(struct job *job)
{
	job->env[0] = text("PYTHONPATH=%s:%s", program_path("../../../tools/python"), program_path("../table"));
	job->env[1] = "PYTHONDONTWRITEBYTECODE=1";
}

/*
 * The judge's arguments go through a file: there are more than a job takes. Returns what it said. Where the interpreter
 * cannot unpack zstd the test is skipped.
 */
static struct outcome *judge(const struct python *python, const struct outcome *place, const struct case_list *list)
{
	static const char *const code = "import sys, judge; judge.main(open(sys.argv[1]).read().split('\\n')[:-1])";
	struct job job = {
	    .python = python, .how = JOB_BARE, .args = {"-c", code, beside(place, "cases")}, .timeout_s = 200};
	char *cases = calloc(1, 1);
	struct outcome *outcome;

	for (size_t i = 0; i < list->count; i++)
		cases = text("%s%s\n", cases, list->args[i]);
	file_write(beside(place, "cases"), cases, strlen(cases));
	package_path(&job);
	outcome = job_run(&job);
	if (strstr(outcome->err, "packed with zstd"))
		cr_skip_test("%s cannot unpack zstd: it has neither compression.zstd nor zstandard nor libzstd.so.1",
			     python->name);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, " rows are the same"), "the tables are the same");
	return outcome;
}

static void name_what_is_missing(const struct python *python, const struct outcome *outcome)
{
	if (!strstr(outcome->out, ", numpy"))
		cr_skip_test("%s has no numpy: only the csv was compared", python->name);
}

/* ---- with Python's own modules --------------------------------------------------------------------------------- */

SCENARIO(table, as_setprofile_tells, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@table.py"});
	struct outcome *log = run(.python = python, .how = JOB_BARE, .args = {"@table.py", "log"});
	struct outcome *traced = run(.python = python, .how = JOB_BARE, .args = {"@table.py", "traced"});
	char *table = beside(outcome, "table.csv");
	struct outcome *export, *verdict;

	json_decref(expect_trace(outcome, 1));
	export = tool("export", "-f", "csv", outcome->trace, "-o", table);
	expect(export, export->status == 0 && !*export->err, "the export ends with 0");
	file_write(beside(outcome, "log"), log->out, log->out_bytes);
	file_write(beside(outcome, "blocks"), outcome->out, outcome->out_bytes);
	file_write(beside(outcome, "traced"), traced->out, traced->out_bytes);
	verdict = run(.python = python_any(), .how = JOB_BARE,
		      .args = {"@../table/calls.py", table, beside(outcome, "log"), beside(outcome, "blocks"),
			       beside(outcome, "traced")});
	expect(verdict, verdict->status == 0, "the table is as Python's own modules tell");
}

/* ---- the three tables are one ---------------------------------------------------------------------------------- */

SCENARIO_SOME(table, package_and_csv, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	struct outcome *threads =
	    run(.python = python, .args = {"@threads.py"}, .env = {"EVPROF_EVENTS=call,c_call,exception"});
	struct outcome *forks = run(.python = python, .args = {"@processes.py", "forks"});
	struct outcome *names = run(.python = python, .args = {"@names.py"});
	struct case_list list = {0};

	add_case(&list, outcome->trace, "-", "-");
	add_case(&list, outcome->trace, "5000000", "9000000");
	add_case(&list, outcome->trace, "7000000", "-");
	add_case(&list, outcome->trace, "-", "4000000");
	add_case(&list, threads->trace, "-", "-");
	add_case(&list, threads->trace, "9000000", "60000000");
	add_case(&list, forks->trace, "-", "-");
	add_case(&list, names->trace, "-", "-");
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* Cut short, bits flipped, killed: what is whole is the same in all three. */
SCENARIO_SOME(table, damaged, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	struct outcome *killed = run(.python = python, .args = {"@ends.py", "SIGKILL"});
	struct case_list list = {0};
	size_t bytes;
	char *data = file_read(outcome->trace, &bytes);

	for (size_t i = 1; i < 4; i++) {
		char *path = text("%s/cut%zu", outcome->directory, i);

		file_write(path, data, bytes * i / 4);
		add_case(&list, path, "-", "-");
	}
	for (size_t i = 1; i < 4; i++) {
		char *path = text("%s/flipped%zu", outcome->directory, i);

		data[bytes * i / 4 + i] ^= 4;
		file_write(path, data, bytes);
		add_case(&list, path, "-", "-");
		add_case(&list, path, "5000000", "-");
	}
	add_case(&list, killed->trace, "-", "-");
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* Events that no Python tells, written by a writer of its own. */
SCENARIO_SOME(table, random_traces, SUPPORTED)
{
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"});
	struct outcome *writer = run(.python = python, .how = JOB_BARE,
				     .args = {"@../table/random_traces.py", place->directory, test_all() ? "80" : "8"});
	size_t count = test_all() ? 80 : 8;

	expect(writer, writer->status == 0, "the traces are written");
	for (size_t i = 0; i < count; i += 8) {
		struct case_list list = {0};
		struct outcome *outcome;

		for (size_t k = i; k < i + 8; k++) {
			char *trace = text("%s/random%zu.trace", place->directory, k);

			add_case(&list, trace, "-", "-");
			add_case(&list, trace, "3000", "20000");
			add_case(&list, trace, "8000", "-");
		}
		outcome = judge(python, place, &list);
		if (i + 8 >= count)
			name_what_is_missing(python, outcome);
	}
}

/* Globs and expressions mean what they mean to evprof, which leaves them to the C library. */
SCENARIO_SOME(table, patterns, SUPPORTED)
{
	struct job job = {
	    .python = python, .how = JOB_BARE, .args = {"@../table/matching.py", test_all() ? "40000" : "4000"}};
	struct outcome *verdict;

	package_path(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strstr(verdict->out, " mean the same"), "the patterns mean the same");
}

/* ---- a stretch is a part of the whole --------------------------------------------------------------------------- */

/* In deep calls that began long before, in a forked child that began with them, and over its end. */
SCENARIO_SOME(table, stretch_of_deep_calls, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@deep.py"}, .env = {"EVPROF_EVENTS=call,c_call,exception"});
	struct outcome *verdict;

	json_decref(expect_trace(outcome, 2));
	verdict =
	    run(.python = python_any(), .how = JOB_BARE, .args = {"@../table/stretch.py", "%B/evprof", outcome->trace});
	expect(verdict, verdict->status == 0 && strstr(verdict->out, " rows are the same"),
	       "the rows of each stretch are those of the whole");
}

/* ---- the package by itself ------------------------------------------------------------------------------------- */

SCENARIO_SOME(table, summary, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-m", "evprof", outcome->trace}};
	json_t *info = expect_trace(outcome, 1);
	struct outcome *summary, *table;
	size_t bytes;
	char *data = file_read(outcome->trace, &bytes);

	package_path(&job);
	summary = job_run(&job);
	if (strstr(summary->err, "packed with zstd"))
		cr_skip_test("%s cannot unpack zstd", python->name);
	expect(summary, summary->status == 0 && !*summary->err, "the summary ends with 0");
	expect(summary,
	       strstr(summary->out, text(": %lld events of 1 processes",
					 (long long)json_integer_value(json_object_get(info, "events")))),
	       "the summary counts as evprof info does");
	expect(summary, strstr(summary->out, text("call %ld", info_events(info, "call"))) || info_threads(info) > 1,
	       "the summary tells of kinds");
	file_write(beside(outcome, "cut"), data, bytes / 2);
	job.args[2] = beside(outcome, "cut");
	summary = job_run(&job);
	table = tool("export", "-f", "csv", job.args[2], "-o", "/dev/null");
	expect(summary, summary->status == 1 && strcmp(summary->err, table->err) == 0,
	       "what is missing is told as evprof tells it: %s", table->err);
	job.args[2] = program_path("table.py");
	summary = job_run(&job);
	expect(summary,
	       summary->status == 2 && strstr(summary->err, "no evprof trace") && !strstr(summary->err, "Traceback"),
	       "what is no trace is refused in a line");
	json_decref(info);
}

/* What pandas and pyarrow read of what the package wrote. */
SCENARIO(table, data_frame, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	char *table = beside(outcome, "table.csv");
	struct outcome *export = tool("export", "-f", "csv", outcome->trace, "-o", table), *verdict;
	struct job job = {.python = python, .how = JOB_BARE, .args = {"@../table/frame.py", outcome->trace, table}};

	expect(export, export->status == 0, "the export ends with 0");
	package_path(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0, "pandas has the same rows");
	if (strcmp(verdict->out, "read\n") != 0)
		cr_skip_test("%s has %.12s", python->name, verdict->out);
}
