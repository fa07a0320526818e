/*
 * test_spans.c - spans, counters and marks: what programs/spans.py saw is what a reader finds that was written from the
 * documents alone.
 *
 * The program looks at the clock before and after each begin and end. So each span of the trace must lie between, with
 * its arguments, in its thread and process, and no other span may be there.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

static const char *evprof_path(void)
{
	return text("PYTHONPATH=%s", program_path("../../../tools/python"));
}

/* The same, and the packages of the interpreter, which the test needs. */
static const char *paths_with(const struct python *python, const char *package)
{
	package_variable(python, package);
	return text("%s:%s", evprof_path(), package_path(python));
}

/* Compares the program's own rows with those that the independent reader finds in the trace. more: further rows. */
static void expect_seen(const struct outcome *outcome, const char *more)
{
	char *seen = text("%s/seen.json", outcome->directory), *rows = text("%s/rows.json", outcome->directory);
	struct outcome *read, *judged;

	expect(outcome, outcome->status == 0, "the program ends well");
	file_write(seen, outcome->out, outcome->out_bytes);
	read = run(.how = JOB_BARE, .args = {"python3", "@../oracle_trace.py", outcome->trace, "spans"});
	expect(read, read->status == 0, "the trace is as the documents say");
	file_write(rows, read->out, read->out_bytes);
	judged = run(.how = JOB_BARE, .args = {"python3", "@judge_spans.py", seen, rows, more});
	expect(judged, judged->status == 0 && strstr(judged->out, " rows agree"), "each span is as the program saw it");
	expect(judged, strncmp(judged->out, "0 ", 2) != 0, "the program has spans");
}

static struct outcome *run_part(const struct python *python, const char *part, const char *variable)
{
	python_needs(python, "ctypes");
	return run(.python = python, .args = {"@spans.py", part}, .env = {evprof_path(), variable});
}

static void expect_part(const struct python *python, const char *part)
{
	struct outcome *outcome = run_part(python, part, NULL);

	json_decref(expect_trace(outcome, 1));
	expect_seen(outcome, NULL);
}

#define PART(Name)                                                                                                     \
	SCENARIO(spans, Name, SUPPORTED)                                                                               \
	{                                                                                                              \
		expect_part(python, #Name);                                                                            \
	}

PART(nested)
PART(arguments)
PART(counters)
PART(exceptions)
PART(decorated)
PART(tasks)
PART(threads)
PART(stops)

PART(one_object_of_two)

static json_int_t number_of(const json_t *report, const char *span, const char *member)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "spans"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "span")), span) == 0)
			return json_integer_value(json_object_get(row, member));
	}
	return -1;
}

/* A step that switches to another greenlet and back is one step, and its spans nest as if it did not. */
SCENARIO(spans, in_steps_with_greenlets, SUPPORTED)
{
	static const char code[] = "import evprof, sys\n"
				   "for task in evprof.load(sys.argv[1]).tasks():\n"
				   "    if 'work' in task.name: print(task.steps, task.finished)\n";
	const char *paths = paths_with(python, "greenlet");
	struct outcome *outcome, *tasks, *table;
	json_t *report;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@task_greenlets.py"}, .env = {paths});
	json_decref(expect_trace(outcome, 1));
	table = tool("report", "--by", "span", "--json", outcome->trace);
	report = json_loads(table->out, 0, NULL);
	expect(table, number_of(report, "a", "count") == 6 && number_of(report, "b", "count") == 6,
	       "all spans are there");
	expect(table,
	       number_of(report, "a", "own_ns") ==
		   number_of(report, "a", "total_ns") - number_of(report, "b", "total_ns"),
	       "each b is in an a");
	json_decref(report);
	if (built_with_asan())
		return; /* Python cannot load a library with the address sanitizer in it */
	tasks = run(.python = python, .how = JOB_BARE, .args = {"-c", code, outcome->trace},
		    .env = {paths, text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so"))});
	expect(tasks, strcmp(tasks->out, "4 1\n4 1\n") == 0, "a step for each time that the loop runs it");
}

/* Three more end in an order that nobody can know. */
SCENARIO(spans, one_object, SUPPORTED)
{
	expect_seen(run_part(python, "one_object", NULL), "3");
}

SCENARIO(spans, forks, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "forks", NULL);

	json_decref(expect_trace(outcome, 2));
	expect_seen(outcome, NULL);
}

/* Whatever else is recorded. */
SCENARIO_SOME(spans, with_other_events, SUPPORTED)
{
	static const char *const events[] = {"EVPROF_EVENTS=c_call", "EVPROF_EVENTS=call,mem,cpu",
					     "EVPROF_EVENTS=sample"};

	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		struct outcome *outcome = run_part(python, "nested", events[i]);

		expect_seen(outcome, NULL);
	}
}

/* A program that makes names without end: the definitions stay within the budget. */
SCENARIO_SOME(spans, runaway, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "runaway", "EVPROF_EVENTS=c_call"), *read;
	json_t *info = expect_trace(outcome, 1);
	long names = 0, other = 0;

	expect(outcome, info_events(info, "counter") == 70000, "70000 counters");
	read = run(.how = JOB_BARE, .args = {"python3", "@../oracle_trace.py", outcome->trace, "spans"});
	expect(read, read->status == 0, "the trace is as the documents say");
	for (const char *at = read->out; (at = strstr(at, "\"name\": \"")); at++) {
		names += strncmp(at + 9, "name ", 5) == 0;
		other += strncmp(at + 9, "(too many names)", 16) == 0;
	}
	expect(read, names == 65535 && other == 70000 - 65535, "%ld names, %ld others", names, other);
	json_decref(info);
}

/* The library comes in by evprof.start(). One line says what that leaves out. */
SCENARIO(spans, late, SUPPORTED)
{
	struct outcome *outcome;
	char *line;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"@spans.py", "late"},
		      .env = {evprof_path(), "EVPROF_OUTPUT=late.evp"});
	expect(outcome, stderr_evprof_lines(outcome) == 2, "a line at the start and one at the end");
	line = stderr_evprof_line(outcome, 0);
	expect(outcome, strstr(line, "loaded into a running Python"), "the first line says what is not recorded");
	free(line);
	json_decref(expect_trace(outcome, 1));
	expect_seen(outcome, NULL);
}

/* The names of kinds in dump, with what they hold. */
SCENARIO_SOME(spans, dump, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "arguments", NULL), *dump = tool("dump", outcome->trace);

	expect(dump, strstr(dump->out, "\tspan_begin\t1\targuments\n"), "the first span");
	expect(dump, strstr(dump->out, "\tspan_end\t1\n"), "its end");
	expect(dump, strstr(dump->out, "\targument\tvalue\t-9223372036854775808\n"), "an integer");
	expect(dump, strstr(dump->out, "\targument\tvalue\t1.5\n"), "a double");
	expect(dump, strstr(dump->out, "\targument\tvalue\ttrue\n"), "a bool");
	expect(dump, strstr(dump->out, "\targument\tkey\tvalue\n"), "a mark's text");
}

/* The examples of cProfile and EventProfiler give the tables that cProfile gives. The trace goes with the process. */
static void expect_profiled(const struct outcome *outcome)
{
	const char *path = strstr(outcome->out, "as cProfile ");

	expect(outcome, outcome->status == 0 && path, "the tables are those of cProfile");
}

SCENARIO(spans, profile, SUPPORTED)
{
	struct outcome *outcome;
	char *path;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"@profiled.py"}, .env = {evprof_path()});
	expect_profiled(outcome);
	expect(outcome, outcome->traces == 0, "no trace in the working directory");
	expect(outcome, stderr_evprof_lines(outcome) == 1, "the line of the start only");
	path = strchr(strstr(outcome->out, "as cProfile"), '/');
	path[strcspn(path, "\n")] = 0;
	expect(outcome, !file_read(path, NULL), "%s is gone", path);
}

/* Where the process is recorded anyway, a profile is its block. */
SCENARIO(spans, profile_of_recorded, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@profiled.py"}, .env = {evprof_path()});
	expect_profiled(outcome);
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
}

/* A block has the processes that it starts, and no others. */
SCENARIO_SOME(spans, profile_of_forks, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@profiled_forks.py"},
		      .env = {text("%s:%s", evprof_path(), package_path(python)), "EVPROF_EVENTS=call"});
	expect(outcome, outcome->status == 0 && strcmp(outcome->out, "as called\n") == 0, "the calls are as made");
}

static const char profiles_of_a_child[] = "import evprof, os, sys, threading\n"
					  "begun, ends = threading.Event(), threading.Event()\n"
					  "def elsewhere():\n"
					  "    with evprof.profile():\n"
					  "        begun.set()\n"
					  "        ends.wait()\n"
					  "thread = threading.Thread(target=elsewhere)\n"
					  "thread.start()\n"
					  "begun.wait()\n"
					  "mine = evprof.profile().start()\n"
					  "child = os.fork()\n"
					  "if not child:\n"
					  "    with evprof.profile():\n"
					  "        pass\n"
					  "    within = evprof.active()\n"
					  "    mine.stop()\n"
					  "    os._exit(0 if within and not evprof.active() else 3)\n"
					  "mine.stop()\n"
					  "within = evprof.active()\n"
					  "ends.set()\n"
					  "thread.join()\n"
					  "print(within, evprof.active(), os.waitpid(child, 0)[1])\n";

/* The last profile ends the recording. Those of other threads are not in a child. */
SCENARIO_SOME(spans, profiles_end_in_a_child, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	if (python->minor < 7)
		cr_skip_test("there is no os.register_at_fork()");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"-c", profiles_of_a_child}, .env = {evprof_path()});
	expect(outcome, outcome->status == 0 && strcmp(outcome->out, "True False 0\n") == 0, "each ends its own");
}

/* Nor is the package in the table of a program that is recorded from its start. */
SCENARIO(spans, package_is_not_in_the_table, SUPPORTED)
{
	struct outcome *outcome, *report;

	python_needs(python, "ctypes");
	outcome = run(.python = python,
		      .args = {"-c", "import evprof\n"
				     "def work():\n"
				     "    with evprof.span('a'): evprof.mark('m')\n"
				     "work(); evprof.counter('c', 1); evprof.active()\n"},
		      .env = {evprof_path()});
	report = tool("report", "--json", outcome->trace);
	expect(report, report->status == 0 && strstr(report->out, "\"work\""), "the program is in the table");
	expect(report, !strstr(report->out, "/evprof/__init__.py") && !strstr(report->out, "/evprof/recording.py"),
	       "the package is not");
}

/* Nothing happens, and no library is loaded. */
SCENARIO_SOME(spans, unrecorded, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .how = JOB_BARE,
		.args = {"-c", "import evprof, sys\n"
			       "with evprof.span('a', b=1): evprof.mark('m'); evprof.counter('c', 1)\n"
			       "assert evprof.span('f')(len)('ab') == 2 and not evprof.active()\n"
			       "import types\n"
			       "@evprof.span('g')\n"
			       "@types.coroutine\n"
			       "def g(): yield 1\n"
			       "async def waits(): await g()\n"
			       "assert waits().send(None) == 1 and next(g()) == 1\n"
			       "assert 'libevprof' not in open('/proc/self/maps').read()\n"},
		.env = {evprof_path()});

	expect(outcome, outcome->status == 0 && !outcome->err_bytes && !outcome->traces, "nothing is done");
}

static const char *export_to(const struct outcome *outcome, const char *format)
{
	char *path = text("%s/%s.json", outcome->directory, format);
	struct outcome *made = tool("export", "--format", format, outcome->trace, "-o", path);

	expect(made, made->status == 0, "export --format %s", format);
	return path;
}

/* The spans and counters of the outputs are those that the program saw. */
static void expect_outputs(const struct outcome *outcome)
{
	char *seen = text("%s/seen.json", outcome->directory), *report = text("%s/report.json", outcome->directory);
	struct outcome *judged = tool("report", "--by", "span", "--json", outcome->trace);

	file_write(seen, outcome->out, outcome->out_bytes);
	expect(judged, judged->status != 2, "report --by span");
	file_write(report, judged->out, judged->out_bytes);
	judged =
	    run(.how = JOB_BARE, .args = {"python3", "@judge_span_outputs.py", seen, export_to(outcome, "chrome"),
					  export_to(outcome, "firefox"), report, export_to(outcome, "speedscope")});
	expect(judged, judged->status == 0 && strstr(judged->out, " agree"), "outputs agree");
}

static const char tasks_of_decorated[] =
    "import asyncio, evprof\n"
    "async def fetch():\n"
    "    with evprof.span('within'):\n"
    "        for _ in range(3): await asyncio.sleep(0.01)\n"
    "@evprof.span('around')\n"
    "async def runner(): await fetch()\n"
    "async def main():\n"
    "    new = asyncio.get_event_loop().create_task\n"
    "    await asyncio.gather(*[new(runner(), name='n%d' % i) for i in range(5)])\n"
    "asyncio.new_event_loop().run_until_complete(main())\n";

/* Spans of five tasks that take turns, of which some functions may be left out: none is within another task's. */
static void expect_tasks_of_decorated(const struct outcome *outcome, const char *exclude)
{
	struct outcome *table = exclude ? tool("report", "--by", "span", "--json", "--exclude", exclude, outcome->trace)
					: tool("report", "--by", "span", "--json", outcome->trace);
	json_t *report = json_loads(table->out, 0, NULL), *row;
	json_int_t around = 0, within = 0;
	size_t i;

	expect(table, report != NULL, "report --by span");
	json_array_foreach(json_object_get(report, "spans"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "span"));
		json_int_t total = json_integer_value(json_object_get(row, "total_ns")),
			   own = json_integer_value(json_object_get(row, "own_ns"));

		expect(table, strcmp(name, "within") != 0 || own == total, "nothing is within \"within\"");
		within += strcmp(name, "within") == 0 ? total : 0;
		around += strcmp(name, "around") == 0 ? total - own : 0;
	}
	expect(table, within > 0 && around == within, "\"within\" is within \"around\": %lld ns of %lld",
	       (long long)around, (long long)within);
	json_decref(report);
}

/* The decorator's coroutine, which is not recorded, is the task's outermost: what it awaits has its steps and name. */
SCENARIO(spans, decorated_tasks, SUPPORTED)
{
	static const char *const excluded[] = {"EVPROF_EXCLUDE=none", "EVPROF_EXCLUDE=*runner", "EVPROF_EXCLUDE=*fetch",
					       "EVPROF_EXCLUDE=*runner,*fetch"};

	python_needs(python, "ctypes");
	for (size_t i = 0; i < sizeof(excluded) / sizeof(*excluded); i++) {
		struct outcome *outcome = run(.python = python, .args = {"-c", tasks_of_decorated},
					      .env = {evprof_path(), "EVPROF_EVENTS=call", excluded[i]}),
			       *dump = tool("dump", outcome->trace);

		expect_tasks_of_decorated(outcome, NULL);
		expect_tasks_of_decorated(outcome, "*runner");
		expect_tasks_of_decorated(outcome, "*runner,*fetch");
		if (i < 3 && !python_is_free_threaded(python))
			expect(dump, strstr(dump->out, "\tn4\n"), "the task's name");
	}
}

static const char step_that_blocks[] = "import asyncio, evprof, time\n"
				       "@evprof.span('slow')\n"
				       "async def blocks(): time.sleep(1)\n"
				       "async def main(): await asyncio.get_event_loop().create_task(blocks())\n"
				       "asyncio.new_event_loop().run_until_complete(main())\n";

/* Without the functions of asyncio, the step is the only one that blocks its loop. */
SCENARIO_SOME(spans, decorated_step_that_blocks, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome =
	    run(.python = python, .args = {"-c", step_that_blocks},
		.env = {evprof_path(), "EVPROF_EVENTS=call", "EVPROF_TRIGGER=loop>800ms", "EVPROF_EXCLUDE_SYSPATH=1"});
	expect(outcome, outcome->traces == 2, "%u traces, with the copy of the trigger", outcome->traces);
}

SCENARIO_SOME(spans, outputs, SUPPORTED)
{
	static const char *const parts[] = {"nested", "tasks", "threads", "counters", "stops"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct outcome *outcome = run_part(python, parts[i], NULL);

		expect(outcome, outcome->status == 0, "%s ends well", parts[i]);
		expect_outputs(outcome);
	}
}

SCENARIO(spans, greenlets, SUPPORTED)
{
	const char *paths = paths_with(python, "greenlet");
	struct outcome *outcome = run(.python = python, .args = {"@spans.py", "greenlets"}, .env = {paths});

	expect_seen(outcome, NULL);
	expect_outputs(outcome);
}

/* Spans of a program that execs another one in their middle have no end, in no output. */
SCENARIO(spans, exec, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "execs", NULL);

	json_decref(expect_trace(outcome, 1)); /* it has one pid */
	expect_seen(outcome, NULL);
	expect_outputs(outcome);
}

/* Nor have those of one that is killed. */
SCENARIO(spans, death, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "dies", NULL), *report;

	expect(outcome, outcome->status == -SIGKILL, "it dies");
	json_decref(expect_trace(outcome, 1));
	expect_outputs(outcome);
	report = tool("report", "--by", "span", outcome->trace);
	expect(report, strstr(report->out, " open at the death (and 1 unfinished)\n"), "the table says so");
}

static long sum_of_spans(const char *trace, const char *column)
{
	struct outcome *printed = tool("report", "--by", "span", "--json", trace);
	json_t *report = json_loads(printed->out, 0, NULL), *row;
	long sum = 0;
	size_t i;

	expect(printed, report, "report --by span");
	json_array_foreach(json_object_get(report, "spans"), i, row) sum +=
	    (long)json_integer_value(json_object_get(row, column));
	json_decref(report);
	return sum;
}

/* Threads that use one span at the same time: each begin has its end. */
SCENARIO(spans, shared, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "shared", "EVPROF_EVENTS=c_call");

	json_decref(expect_trace(outcome, 1));
	expect(outcome, outcome->status == 0, "it ends well");
	expect(outcome, sum_of_spans(outcome->trace, "count") == 8000, "%ld spans with an end",
	       sum_of_spans(outcome->trace, "count"));
	expect(outcome, sum_of_spans(outcome->trace, "unfinished") == 0, "none without");
}

/* Events are lost: each span is there as the program saw it, or counted as lost, and none has a wrong end. */
SCENARIO(spans, lossy, SUPPORTED)
{
	struct outcome *outcome, *read, *judged;
	char *seen, *rows;
	json_t *info;
	long begins;

	python_needs(python, "ctypes");
	outcome =
	    run(.python = python, .args = {"@spans.py", "lossy"},
		.env = {evprof_path(), "EVPROF_EVENTS=call,c_call", "EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K"});
	expect(outcome, outcome->status == 0, "it ends well");
	info = trace_info(outcome->trace);
	begins = info_events(info, "span_begin");
	expect(outcome, info_lost(info, "span_begin") > 0, "spans were lost");
	expect(outcome, begins + info_lost(info, "span_begin") == 6600, "%ld spans and %ld lost ones", begins,
	       info_lost(info, "span_begin"));
	expect(outcome, info_events(info, "span_end") + info_lost(info, "span_end") == begins,
	       "an end is written or lost for each begin that was written");
	expect(outcome, sum_of_spans(outcome->trace, "count") == info_events(info, "span_end"), "the ends are counted");
	expect(outcome, sum_of_spans(outcome->trace, "unfinished") == begins - info_events(info, "span_end"),
	       "spans without one are unfinished");
	seen = text("%s/seen.json", outcome->directory);
	rows = text("%s/rows.json", outcome->directory);
	file_write(seen, outcome->out, outcome->out_bytes);
	read =
	    run(.how = JOB_BARE, .args = {"python3", "@../oracle_trace.py", outcome->trace, "lossy"}, .timeout_s = 200);
	expect(read, read->status == 0, "the trace is as the documents say");
	file_write(rows, read->out, read->out_bytes);
	judged = run(.how = JOB_BARE, .args = {"python3", "@judge_spans.py", seen, rows, "lossy"});
	expect(judged, judged->status == 0 && strstr(judged->out, " rows agree"), "what is there is right");
	json_decref(info);
}

/* The table, and what it does not take. */
SCENARIO_SOME(spans, report, SUPPORTED)
{
	struct outcome *outcome = run_part(python, "stops", NULL), *report;

	report = tool("report", "--by", "span", outcome->trace);
	expect(report, report->status == 0 && strstr(report->out, "p90         max span\n"), "its titles");
	expect(report, strstr(report->out, " again\n") && strstr(report->out, " cut (and 1 unfinished)\n"), "its rows");
	report = tool("report", "--by", "span", "--format", "csv", outcome->trace);
	expect(report, strstr(report->out, "\n\"cut\",0,1,0,0,0,0,0,0\n"), "an unfinished one has no time");
	report = tool("report", "--by", "span", "--callers", outcome->trace);
	expect(report, report->status == 2, "no callers of spans");
}
