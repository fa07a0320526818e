/*
 * test_table.c - the table of events, evprof export --format csv and the Python package evprof, against oracles that
 * are not ours: Python's csv module, sys.setprofile(), tracemalloc and sys.getsizeof(), and a plain reader and
 * replay in Python (table/plain.py, table/slow.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

#define CASES 64 /* of judge.py in one run */
#define WORDS 24

/* What judge.py is to compare: traces, their tables, the filters. */
struct case_list {
	const char *args[3 * CASES];
	size_t count;
};

/*
 * Writes the table that options leave, words with spaces between, as a file of its own. The trace may be damaged,
 * not more.
 */
static void add_case(struct case_list *list, const char *trace, const char *options)
{
	char *table = text("%s.%zu.csv", trace, list->count), *rest = text("%s", options), *word;
	const char *words[WORDS] = {"export", "--format", "csv", "--since-start", trace, "-o", table};
	size_t count = 7;
	struct outcome *export;

	while ((word = strsep(&rest, " ")))
		if (*word && count < WORDS - 1)
			words[count++] = word;
	export = tool_run(words);
	expect(export, export->status == 0 || export->status == 1, "the export of %s with %s ends with %d", trace,
	       options, export->status);
	cr_assert(list->count + 3 <= sizeof(list->args) / sizeof(*list->args));
	list->args[list->count++] = trace;
	list->args[list->count++] = table;
	list->args[list->count++] = options;
}

static void set_paths(struct job *job)
{
	if (built_with_asan())
		cr_skip_test("Python cannot load a library with the address sanitizer in it");
	job->env[0] = text("PYTHONPATH=%s:%s:%s", program_path("../../../tools/python"), program_path("../table"),
			   package_path(job->python));
	job->env[1] = "PYTHONDONTWRITEBYTECODE=1";
	job->env[2] = text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so"));
}

/*
 * The judge's arguments go through a file: there are more than a job takes. Returns what it said. Where the interpreter
 * cannot unpack zstd the test is skipped.
 */
static struct outcome *judge(const struct python *python, const struct outcome *place, const struct case_list *list)
{
	static const char *const code = "import sys, judge; judge.main(open(sys.argv[1]).read().split('\\n')[:-1])";
	struct job job = {
	    .python = python, .how = JOB_BARE, .args = {"-c", code, path_in(place, "cases")}, .timeout_s = 400};
	char *cases = calloc(1, 1);
	struct outcome *outcome;

	for (size_t i = 0; i < list->count; i++)
		cases = text("%s%s\n", cases, list->args[i]);
	file_write(path_in(place, "cases"), cases, strlen(cases));
	set_paths(&job);
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

SCENARIO(table, as_setprofile_reports, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@table.py"});
	struct outcome *log = run(.python = python, .how = JOB_BARE, .args = {"@table.py", "log"});
	struct outcome *traced = run(.python = python, .how = JOB_BARE, .args = {"@table.py", "traced"});
	char *table = path_in(outcome, "table.csv");
	struct outcome *export, *verdict;

	json_decref(expect_trace(outcome, 1));
	export = tool("export", "-f", "csv", outcome->trace, "-o", table);
	expect(export, export->status == 0 && !*export->err, "the export ends with 0");
	file_write(path_in(outcome, "log"), log->out, log->out_bytes);
	file_write(path_in(outcome, "blocks"), outcome->out, outcome->out_bytes);
	file_write(path_in(outcome, "traced"), traced->out, traced->out_bytes);
	verdict = run(.python = python_any(), .how = JOB_BARE,
		      .args = {"@../table/calls.py", table, path_in(outcome, "log"), path_in(outcome, "blocks"),
			       path_in(outcome, "traced")});
	expect(verdict, verdict->status == 0, "the table is as Python's own modules report");
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

	add_case(&list, outcome->trace, "");
	add_case(&list, outcome->trace, "--from 5000000 --to 9000000");
	add_case(&list, outcome->trace, "--from 7000000");
	add_case(&list, outcome->trace, "--to 4000000");
	add_case(&list, threads->trace, "");
	add_case(&list, threads->trace, "--from 9000000 --to 60000000");
	add_case(&list, forks->trace, "");
	add_case(&list, names->trace, "");
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* Spans, marks and counters. */
SCENARIO_SOME(table, named_events, SUPPORTED)
{
	struct job job = {.python = python, .args = {"@named.py"}};
	struct outcome *outcome, *dump;
	struct case_list list = {0};

	set_paths(&job);
	python_needs(python, "ctypes");
	job.env[2] = "EVPROF_EVENTS=call,c_call";
	outcome = job_run(&job);
	dump = tool("export", "-f", "csv", outcome->trace, "-o-");
	expect(dump, strstr(dump->out, ",span_begin,in the child,,"), "the child's spans are in the table");
	expect(dump, strstr(dump->out, ",counter,\"queue, \"\"in front\"\"\",,"), "counters are in the table");
	add_case(&list, outcome->trace, "");
	add_case(&list, outcome->trace, "--include work");
	add_case(&list, outcome->trace, "--from 20000000 --to 60000000");
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* Filters, one by one and together. */
static const char *const filters[] = {
    "--include */tests/*",
    "--include re:^[a-m] --include builtins.*",
    "--exclude re:[st]$ --from 3ms",
    "--exclude-syspath",
    "--exclude-syspath --max-depth 3",
    "--max-depth 2 --from 4ms --to 40ms",
    "--min-duration 20us",
    "--min-duration 3us --max-depth 6 --exclude *[[:upper:]]*",
    "--min-duration 0.1ms --from 2.5ms --to 30ms --exclude ~",
};

static void add_choices(struct case_list *list, const char *trace)
{
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		add_case(list, trace, filters[i]);
}

/* The last thread of the trace, and its process. */
static const char *last_thread(const struct outcome *outcome)
{
	json_t *info = trace_info(outcome->trace), *processes = json_object_get(info, "processes");
	json_t *process = json_array_get(processes, json_array_size(processes) - 1);
	json_t *threads = json_object_get(process, "threads");
	json_t *thread = json_array_get(threads, json_array_size(threads) - 1);
	char *options =
	    text("--process %lld --thread %lld", (long long)json_integer_value(json_object_get(process, "pid")),
		 (long long)json_integer_value(json_object_get(thread, "tid")));

	json_decref(info);
	return options;
}

SCENARIO_SOME(table, filters, SUPPORTED)
{
	struct outcome *calls = run(.python = python, .args = {"@generators.py"}, .env = {"EVPROF_EVENTS=call,c_call"});
	struct outcome *memory = run(.python = python, .args = {"@table.py"});
	struct outcome *threads =
	    run(.python = python, .args = {"@threads.py"}, .env = {"EVPROF_EVENTS=call,c_call,exception"});
	struct outcome *forks = run(.python = python, .args = {"@processes.py", "forks"});
	struct case_list list = {0};

	add_choices(&list, calls->trace);
	add_choices(&list, memory->trace);
	add_choices(&list, threads->trace);
	add_case(&list, threads->trace, last_thread(threads));
	add_case(&list, forks->trace, last_thread(forks));
	add_case(&list, forks->trace, "--min-duration 50us --max-depth 9 --from 1ms");
	name_what_is_missing(python, judge(python, calls, &list));
}

/* Each with a stack of its own. */
SCENARIO_SOME(table, greenlets, SUPPORTED)
{
	const char *variable = package_variable(python, "greenlet");
	struct outcome *plain = run(.python = python, .args = {"@greenlets.py", "plain"},
				    .env = {variable, "EVPROF_EVENTS=call,c_call,exception"});
	struct outcome *hub =
	    run(.python = python, .args = {"@hub.py"}, .env = {variable, "EVPROF_EVENTS=call,c_call,exception"});
	struct case_list list = {0};
	json_t *info = expect_trace(hub, 1);
	const char *middle =
	    text("--from %lld", (long long)json_integer_value(json_object_get(info, "duration_ns")) / 2);

	add_case(&list, plain->trace, "");
	add_choices(&list, plain->trace);
	add_case(&list, hub->trace, "");
	add_case(&list, hub->trace, middle);
	add_case(&list, hub->trace, text("%s --max-depth 4", middle));
	add_case(&list, hub->trace, text("%s --min-duration 20us", middle));
	add_case(&list, hub->trace, "--include */hub.py");
	json_decref(info);
	name_what_is_missing(python, judge(python, plain, &list));
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
		add_case(&list, path, "");
	}
	for (size_t i = 1; i < 4; i++) {
		char *path = text("%s/flipped%zu", outcome->directory, i);

		data[bytes * i / 4 + i] ^= 4;
		file_write(path, data, bytes);
		add_case(&list, path, "");
		add_case(&list, path, "--from 5000000");
		add_case(&list, path, "--min-duration 5us --max-depth 5");
	}
	add_case(&list, killed->trace, "");
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* A stretch that begins in a damaged chunk: what ran before it says nothing of what runs behind it. */
SCENARIO_SOME(table, begins_in_damage, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@flood.py", "250000"}, .env = {"EVPROF_EVENTS=call"});
	char *spoilt = path_in(outcome, "spoilt"), *from;
	struct job job = {.python = python,
			  .how = JOB_BARE,
			  .args = {"@../table/spoil.py", outcome->trace, spoilt},
			  .timeout_s = 200};
	struct job summary = {.python = python, .how = JOB_BARE, .args = {"-m", "evprof", spoilt}};
	struct outcome *spoil, *said;
	struct case_list list = {0};

	set_paths(&job);
	spoil = job_run(&job);
	if (strstr(spoil->err, "packed with zstd"))
		cr_skip_test("%s cannot unpack zstd", python->name);
	expect(spoil, spoil->status == 0, "a chunk is damaged");
	from = text("--from %ld", atol(spoil->out));
	add_case(&list, spoilt, from);
	add_case(&list, spoilt, text("%s --max-depth 3", from));
	add_case(&list, spoilt, text("%s --min-duration 1us --exclude leaf", from));
	set_paths(&summary);
	said = job_run(&summary);
	expect(said, said->status == 1 && strstr(said->err, "1 damaged chunk"), "the summary names it: %s", said->err);
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* Where nothing waited for the collector: events are missing, and stacks are recorded anew after the gaps. */
SCENARIO_SOME(table, losses, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@flood.py", "60000"},
				      .env = {"EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K", "EVPROF_EVENTS=call"});
	json_t *info = trace_info(outcome->trace);
	struct case_list list = {0};

	expect(outcome, info_lost(info, "call") > 0, "events are missing");
	json_decref(info);
	add_case(&list, outcome->trace, "");
	add_case(&list, outcome->trace, "--from 5000000");
	add_case(&list, outcome->trace, "--from 5ms --max-depth 3");
	add_case(&list, outcome->trace, "--min-duration 1ms");
	add_case(&list, outcome->trace, "--exclude flood --min-duration 500 --from 8ms");
	name_what_is_missing(python, judge(python, outcome, &list));
}

/* Events that no Python reports, from a separate writer. */
static const char *const random_choices[] = {
    "--max-depth 3",
    "--min-duration 300",
    "--min-duration 1us --from 8000",
    "--include f3 --include c* --max-depth 4",
    "--exclude re:[12]$ --from 5000 --to 30000",
    "--include re:^(f|c)[1-6] --min-duration 200 --max-depth 5 --from 3000",
    "--process 101 --from 20000",
    "--thread 201 --exclude *3*",
    "--max-depth 2 --from 9000",
};

SCENARIO_SOME(table, random_traces, SUPPORTED)
{
	const size_t kinds = sizeof(random_choices) / sizeof(random_choices[0]);
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"});
	struct outcome *writer =
	    run(.python = python, .how = JOB_BARE,
		.args = {"@../table/random_traces.py", place->directory, test_at_length(python) ? "80" : "8"});
	size_t count = test_at_length(python) ? 80 : 8;

	expect(writer, writer->status == 0, "the traces are written");
	for (size_t i = 0; i < count; i += 8) {
		struct case_list list = {0};
		struct outcome *outcome;

		for (size_t k = i; k < i + 8; k++) {
			char *trace = text("%s/random%zu.trace", place->directory, k);

			add_case(&list, trace, "");
			add_case(&list, trace, "--from 3000 --to 20000");
			add_case(&list, trace, "--from 8000");
			add_case(&list, trace, random_choices[k % kinds]);
			add_case(&list, trace, random_choices[(k + 4) % kinds]);
		}
		outcome = judge(python, place, &list);
		if (i + 8 >= count)
			name_what_is_missing(python, outcome);
	}
}

/* ---- the parts are the whole ------------------------------------------------------------------------------------ */

/* Of traces that no Python writes, some of them damaged, and of a long thread whose calls go over the parts. */
SCENARIO_SOME(table, calls_in_parts, SUPPORTED)
{
	struct outcome *flood = run(.python = python, .args = {"@flood.py", "250000"}, .env = {"EVPROF_EVENTS=call"});
	struct job job = {
	    .python = python, .how = JOB_BARE, .timeout_s = 300, .args = {"@../table/parts.py", "4", flood->trace}};
	struct outcome *verdict;

	package_variable(python, "pyarrow");
	set_paths(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && !strcmp(verdict->out, "1 traces, 1 divided\n"), "of a recorded trace");
	run(.python = python, .how = JOB_BARE, .args = {"@../table/random_traces.py", flood->directory, "8"});
	job.args[1] = "2";
	for (size_t i = 0; i < 8; i++)
		job.args[2 + i] = text("%s/random%zu.trace", flood->directory, i);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && !strncmp(verdict->out, "8 traces, ", 10) && atoi(verdict->out + 10) > 4,
	       "of random traces");
}

/* A program ends at once, and as it would, with more calls to read. */
SCENARIO_SOME(table, calls_left_open, SUPPORTED)
{
	static const char *const ends[][2] = {
	    {"kept", "1000\n"},
	    {"closed", "1000\n"},
	    {"raised", "1000\n"},
	    {"forked", "1000\n1000\n"},
	    {"at exit", "1000\n1000\n"},
	    {"at exit, too late", "1000\nevprof: the program ends: there are no more batches\n"},
	};
	struct outcome *flood = run(.python = python, .args = {"@flood.py", "20000"}, .env = {"EVPROF_EVENTS=call"});
	struct job job = {
	    .python = python, .how = JOB_BARE, .timeout_s = 60, .args = {"@../table/left_open.py", flood->trace}};
	struct outcome *outcome;

	package_variable(python, "pyarrow");
	set_paths(&job);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		bool raised = strcmp(ends[i][0], "raised") == 0;

		job.args[2] = ends[i][0];
		outcome = job_run(&job);
		expect(outcome, outcome->status == raised && strcmp(outcome->out, ends[i][1]) == 0, "%s: it ends",
		       ends[i][0]);
		expect(outcome, !strstr(outcome->err, "Error") == !raised, "%s: with its own error only", ends[i][0]);
	}
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

/* python -m evprof with a trace, or something else. */
static struct outcome *run_package(const struct python *python, const char *argument)
{
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-m", "evprof", argument}};

	set_paths(&job);
	return job_run(&job);
}

SCENARIO_SOME(table, summary, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	json_t *info = expect_trace(outcome, 1);
	struct outcome *summary, *table;
	size_t bytes;
	char *data = file_read(outcome->trace, &bytes), *cut = path_in(outcome, "cut");

	summary = run_package(python, outcome->trace);
	if (strstr(summary->err, "packed with zstd"))
		cr_skip_test("%s cannot unpack zstd", python->name);
	expect(summary, summary->status == 0 && !*summary->err, "the summary ends with 0");
	expect(summary,
	       strstr(summary->out, text(": %lld events of 1 process in",
					 (long long)json_integer_value(json_object_get(info, "events")))),
	       "the summary counts as evprof info does");
	expect(summary, strstr(summary->out, text("call %ld", info_events(info, "call"))) || info_threads(info) > 1,
	       "the summary has the kinds");
	file_write(cut, data, bytes / 2);
	summary = run_package(python, cut);
	table = tool("export", "-f", "csv", cut, "-o", "/dev/null");
	expect(summary, summary->status == 1 && strcmp(summary->err, table->err) == 0,
	       "missing events are reported as evprof reports them: %s", table->err);
	json_decref(info);
}

SCENARIO_SOME(table, summary_of_what_is_no_trace, SUPPORTED)
{
	struct job version = {
	    .python = python, .how = JOB_BARE, .args = {"-c", "import evprof; print('evprof', evprof.__version__)"}};
	const char *old = program_path("../../unit/old/version1.evp");
	struct outcome *summary = run_package(python, program_path("table.py")), *table;

	expect(summary,
	       summary->status == 2 && strstr(summary->err, "not an evprof trace") &&
		   strstr(summary->err, "python -m evprof run /") && !strstr(summary->err, "Traceback"),
	       "a program is refused, and how it is recorded");
	set_paths(&version);
	summary = job_run(&version);
	expect(summary, strcmp(summary->out, tool("--version")->out) == 0,
	       "the version of the package is that of the tool");
	summary = run_package(python, old);
	table = tool("info", old);
	expect(summary, summary->status == 2 && strcmp(summary->err, table->err) == 0,
	       "a trace of an earlier version is refused as evprof refuses it: %s", table->err);
	summary = run_package(python, "/nonexistent.evp");
	expect(summary,
	       summary->status == 2 && !strcmp(summary->err, "evprof: /nonexistent.evp: No such file or directory\n"),
	       "a file that is not there is named");
	summary = run_package(python, "--help");
	expect(summary, summary->status == 0 && strncmp(summary->out, "usage: python -m evprof TRACE, or ", 34) == 0,
	       "help was asked for");
}

/* As of the tool. */
SCENARIO_SOME(table, summary_that_nobody_reads, SUPPORTED)
{
	static const char script[] = "import os, subprocess, sys\n"
				     "read, pipe = os.pipe()\n"
				     "os.close(read)\n"
				     "for out in pipe, os.open('/dev/full', os.O_WRONLY):\n"
				     "    for word in sys.argv[1], '--library':\n"
				     "        ended = subprocess.run([sys.executable, '-m', 'evprof', word], "
				     "stdout=out, stderr=subprocess.PIPE)\n"
				     "        print(ended.returncode, ended.stderr.decode().strip())\n";
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}), *result;
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", script, outcome->trace}};

	set_paths(&job);
	result = job_run(&job);
	expect(result,
	       strcmp(result->out, "-13 \n-13 \n2 evprof: cannot write: No space left on device\n"
				   "2 evprof: cannot write: No space left on device\n") == 0,
	       "it ends by SIGPIPE, or with a line");
}

SCENARIO_SOME(table, pickled, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}), *verdict;
	struct job job = {.python = python, .how = JOB_BARE, .args = {"@../table/pickled.py", outcome->trace}};

	set_paths(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strcmp(verdict->out, "the same\n") == 0,
	       "rows and errors are the same in another process");
}

/* A list without elements is not the same as no list. */
SCENARIO_SOME(table, filters_that_are_empty, SUPPORTED)
{
	static const char script[] =
	    "import evprof, sys\n"
	    "trace = evprof.load(sys.argv[1])\n"
	    "for name in ('kinds', 'processes', 'threads', 'include'):\n"
	    "    for empty in ([], (), set(), iter([])):\n"
	    "        for method in (trace.calls, lambda **given: evprof.load(sys.argv[1], **given)):\n"
	    "            try: print(method(**{name: empty}))\n"
	    "            except evprof.EvprofError as error: assert str(error) == 'evprof: %s is an empty list' % "
	    "name\n"
	    "for name in ('processes', 'threads', 'include'):\n"
	    "    try: print(trace.report(**{name: []}))\n"
	    "    except evprof.EvprofError as error: assert ' is an empty list' in str(error)\n"
	    "print(len(trace.calls(exclude=[])) - len(trace.calls()), trace.report(exclude=[]) == trace.report())\n";
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}), *result;
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", script, outcome->trace}};

	set_paths(&job);
	result = job_run(&job);
	expect(result, result->status == 0 && strcmp(result->out, "0 True\n") == 0, "each is refused");
}

/* As evprof export refuses them. */
SCENARIO_SOME(table, filters_that_match_nothing, SUPPORTED)
{
	static const char script[] = "import evprof, sys\n"
				     "for given in (dict(processes=1), dict(threads=[1]), dict(start=5, end=5)):\n"
				     "    try: evprof.load(sys.argv[1]).to_numpy(**given)\n"
				     "    except ValueError as error: print(error)\n"
				     "    except ImportError: print('no numpy')\n";
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", script, outcome->trace}};
	struct outcome *result;

	set_paths(&job);
	result = job_run(&job);
	if (strstr(result->err, "packed with zstd") || strstr(result->out, "no numpy"))
		cr_skip_test("%s has no numpy, or cannot unpack zstd", python->name);
	expect(result,
	       strcmp(result->out,
		      "evprof: there is no process 1 in the trace\nevprof: there is no thread 1 in the trace\n"
		      "evprof: end must be later than start\n") == 0,
	       "each is refused");
}

/* A missing module gets a line that says what to install. */
SCENARIO_SOME(table, without_packages, SUPPORTED)
{
	static const char *const calls[][2] = {
	    {"numpy", "to_numpy()"}, {"pandas", "to_dataframe()"}, {"pyarrow", "to_parquet('none')"}};
	static const char *const code = "import sys, evprof\nsys.modules['%s'] = None\nevprof.load(sys.argv[1]).%s";
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", NULL, outcome->trace}};

	set_paths(&job);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct outcome *verdict;

		job.args[1] = text(code, calls[i][0], calls[i][1]);
		verdict = job_run(&job);
		if (strstr(verdict->err, "packed with zstd"))
			cr_skip_test("%s cannot unpack zstd", python->name);
		expect(verdict,
		       verdict->status == 1 && strstr(verdict->err, text("needs the package %s", calls[i][0])) &&
			   strstr(verdict->err, text("python -m pip install %s\n", calls[i][0])),
		       "it says that %s is to be installed", calls[i][0]);
	}
}

/* The package's tables of calls, functions, lines, memory and tasks against the program's own counters. */
SCENARIO_SOME(table, analyses, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@analysed.py"});
	char *counts = path_in(outcome, "counts");
	struct job job = {.python = python,
			  .how = JOB_BARE,
			  .args = {"@../table/analyses.py", "%B/evprof", outcome->trace, counts},
			  .timeout_s = 200};
	struct outcome *verdict;

	file_write(counts, outcome->out, outcome->out_bytes);
	set_paths(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strcmp(verdict->out, "as counted\n") == 0,
	       "the analyses are as counted");
}

/* The examples of what needs packages of services run where they are. */
SCENARIO_SOME(table, docstrings, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}), *verdict;
	struct job job = {
	    .python = python, .how = JOB_BARE, .args = {"@../table/docstrings.py", outcome->trace}, .timeout_s = 200};

	set_paths(&job);
	job.env[0] = text("%s:%s-services", job.env[0], package_folder(python));
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strstr(verdict->out, " examples"), "the examples do as they say");
}

/* Importing it in a recorded program costs next to nothing. */
SCENARIO(table, import_is_cheap, SUPPORTED)
{
	static const char *const code =
	    "import sys\nbefore = set(sys.modules)\nimport evprof\n"
	    "print(sorted(name for name in set(sys.modules) - before))\nassert 'load' in dir(evprof)";
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", code}};
	struct outcome *verdict;

	set_paths(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strcmp(verdict->out, "['evprof']\n") == 0, "it imports nothing else");
}

/* mypy is pinned for two versions. */
SCENARIO_SOME(table, types, SUPPORTED)
{
	static const char *const code =
	    "import glob, sys\nfrom mypy import api\n"
	    "files = glob.glob(sys.argv[1] + '/*.py')\n"
	    "out, error, status = api.run(['--strict', '--follow-imports=silent', '--cache-dir=/dev/null'] + files)\n"
	    "sys.exit(status and out + error)";
	struct job job = {.python = python,
			  .how = JOB_BARE,
			  .args = {"-c", code, program_path("../../../tools/python/evprof")},
			  .timeout_s = 200};
	struct outcome *verdict;

	package_variable(python, "mypy");
	set_paths(&job);
	job.env[0] = text("%s:%s", job.env[0],
			  service_variable(python, "opentelemetry.sdk, sentry_sdk") + strlen("PYTHONPATH="));
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0, "mypy --strict finds nothing");
}

/* What pandas and pyarrow read of what the package wrote. */
SCENARIO(table, data_frame, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	char *table = path_in(outcome, "table.csv");
	struct outcome *export = tool("export", "-f", "csv", outcome->trace, "-o", table), *verdict;
	struct job job = {.python = python, .how = JOB_BARE, .args = {"@../table/frame.py", outcome->trace, table}};

	expect(export, export->status == 0, "the export ends with 0");
	set_paths(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0, "pandas has the same rows");
	if (strcmp(verdict->out, "read\n") != 0)
		cr_skip_test("%s has %.12s", python->name, verdict->out);
}
