/*
 * test_annotate.c - evprof annotate: hits and calls against the report's counts, and the table as a user sees it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "packages.h"

/* What a verb writes, in a file of the trace's directory. */
static char *kept(const struct outcome *outcome, const char *name, const struct outcome *result)
{
	char *path = text("%s/%s", outcome->directory, name);

	expect(result, result->status == 0, "the tool ends with 0");
	file_write(path, result->out, result->out_bytes);
	return path;
}

static void judge(const struct outcome *outcome)
{
	char *annotated = kept(outcome, "annotated.json", tool("annotate", "--format", "json", outcome->trace));
	char *report = kept(outcome, "report.json", tool("report", "--json", outcome->trace));
	struct outcome *judged =
	    run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_annotate.py", annotated, report});

	expect(judged, judged->status == 0, "annotate says what report says");
}

SCENARIO(annotate, counts, SUPPORTED)
{
	judge(run(.python = python, .args = {"@known.py"}));
	judge(run(.python = python, .args = {"@threads.py"}));
}

/* Each line as often as sys.settrace says, in both threads; calls and time at their lines. */
SCENARIO(annotate, lines, SUPPORTED)
{
	struct outcome *logged = run(.python = python, .how = JOB_BARE, .args = {"@lines.py", "log"});
	struct outcome *outcome =
			   run(.python = python, .args = {"@lines.py"}, .env = {"EVPROF_EVENTS=call,c_call,line"}),
		       *judged;
	char *log = text("%s/log.json", outcome->directory);
	char *annotated = kept(outcome, "annotated.json", tool("annotate", "--format", "json", outcome->trace));

	json_decref(expect_trace(outcome, 1));
	file_write(log, logged->out, logged->out_bytes);
	judged = run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_lines.py", annotated, log});
	expect(judged, judged->status == 0, "annotate says what sys.settrace says");
}

/* Loops within one line: hits of each line inside a function are those that sys.settrace has on the same version. */
SCENARIO(annotate, loops_within_a_line, SUPPORTED)
{
	struct outcome *logged = run(.python = python, .how = JOB_BARE, .args = {"@one_line_loops.py", "log"});
	struct outcome *outcome =
	    run(.python = python, .args = {"@one_line_loops.py"}, .env = {"EVPROF_EVENTS=call,line"});
	struct outcome *result = tool("annotate", "--format", "json", outcome->trace, "one_line_loops.py");
	json_t *expected = json_loads(logged->out, 0, NULL), *annotated = json_loads(result->out, 0, NULL), *line;
	size_t i;

	expect(logged, json_object_size(expected) > 15, "sys.settrace sees the lines");
	json_array_foreach(json_object_get(json_array_get(json_object_get(annotated, "files"), 0), "lines"), i, line)
	{
		char *number = text("%lld", json_integer_value(json_object_get(line, "line")));
		json_int_t hits = json_integer_value(json_object_get(line, "hits"));

		if (!json_object_get(expected, number))
			continue; /* the module's own */
		expect(result, hits == json_integer_value(json_object_get(expected, number)),
		       "line %s has %lld hits, not %lld", number, json_integer_value(json_object_get(expected, number)),
		       hits);
		json_object_del(expected, number);
	}
	expect(result, json_object_size(expected) == 0, "no line is missing");
	json_decref(annotated);
	json_decref(expected);
}

static struct outcome *judge_standing(const struct job *job)
{
	struct outcome *outcome = job_run(job);
	char *counted = text("%s/counted", outcome->directory);
	char *annotated = kept(outcome, "annotated.json", tool("annotate", "--format", "json", outcome->trace));

	json_decref(expect_trace(outcome, 1));
	file_write(counted, outcome->out, outcome->out_bytes);
	return run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_standing.py", annotated, counted});
}

/* Counts are right each time, times once: on a busy machine another process may run before a stopwatch starts. */
static void expect_standing(const struct job *job)
{
	struct outcome *judged = judge_standing(job);

	for (int more = 0; more < 2 && judged->status == 3; more++)
		judged = judge_standing(job);
	expect(judged, judged->status == 0, "annotate says what the program counted");
}

/* Calls stand at the lines at which generators, coroutines and greenlets go on, each at its own. */
SCENARIO(annotate, where_generators_go_on, SUPPORTED)
{
	expect_standing(
	    &(const struct job){.python = python, .args = {"@standing.py"}, .env = {"EVPROF_EVENTS=call,line"}});
}

SCENARIO(annotate, where_greenlets_go_on, SUPPORTED)
{
	const char *path = package_variable(python, "greenlet");

	expect_standing(&(const struct job){
	    .python = python, .args = {"@standing.py", "greenlets"}, .env = {"EVPROF_EVENTS=call,line", path}});
}

/* A window more than 2^22 events behind the lines that led to it: the frames that run stand where they do. */
SCENARIO_SOME(annotate, lines_of_a_window, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@line_window.py"}, .env = {"EVPROF_EVENTS=call,line"});
	json_t *info = expect_trace(outcome, 1);
	double all = (double)json_integer_value(json_object_get(info, "duration_ns")) / 1e9;
	struct outcome *result = tool("annotate", "--format", "json", "--from", text("%.3fs", all * 0.8), "--to",
				      text("%.3fs", all * 0.82), outcome->trace, "line_window.py");
	const char *at = strstr(result->out, "{\"line\": 18, "),
		   *called = strstr(result->out, "\"function\": \"spin\"");

	expect(outcome, info_events(info, "line") > 6000000, "the lines were recorded");
	expect(result, result->status == 0 && at && called && at < called, "spin() was called at line 18");
	expect(result, !strstr(result->out, "{\"line\": 0, ") && !strstr(result->out, "{\"line\": 19, "),
	       "and at no other, nor at one that is not known");
	json_decref(info);
}

/* A program with a tracer of its own gets what it gets without evprof. */
SCENARIO(annotate, own_tracer, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@lines.py", "log"});
	struct outcome *profiled =
	    run(.python = python, .args = {"@lines.py", "log"}, .env = {"EVPROF_EVENTS=call,line"});

	expect_same(bare, profiled);
	json_decref(expect_trace(profiled, 1));
}

/* Only where they are asked for; and the calls come along, without which lines say nothing. */
SCENARIO(annotate, lines_are_asked_for, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}), *dump;
	json_t *info = expect_trace(outcome, 1);

	expect(outcome, info_events(info, "line") == 0, "no line events unless they are asked for");
	json_decref(info);
	outcome = run(.python = python, .args = {"@known.py"}, .env = {"EVPROF_EVENTS=line"});
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "line") > 2000 && info_events(info, "call") > 1000, "lines, and calls");
	expect(outcome, info_events(info, "malloc") == 0 && info_events(info, "c_call") == 0, "and nothing else");
	json_decref(info);
	dump = tool("dump", outcome->trace);
	expect(dump, strstr(dump->out, "\tline\t6\n"), "dump shows them with their number");
}

SCENARIO(annotate, table, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	struct outcome *result = tool("annotate", outcome->trace, "known.py");

	expect(result, result->status == 0 && !*result->err, "annotate ends with 0 and complains of nothing");
	expect(result,
	       strstr(result->out, "Line #|      Hits|         Time| Time per hit|      %|Source code\n"
				   "------+----------+-------------+-------------+-------+-----------\n"),
	       "the heading is there");
	expect(result, strstr(result->out, "\n     5|      1000|") && strstr(result->out, "%|def leaf():\n"),
	       "leaf was called 1000 times");
	expect(result, strstr(result->out, "\n(call)|      1000|") && strstr(result->out, "known.py:5 leaf\n"),
	       "from one function");
	expect(result, strstr(result->out, "\n     7|         0|            0|            0|  0.00%|\n"),
	       "an empty line stands for itself");
	result = tool("annotate", outcome->trace, "nothing.py", "known.py");
	expect(result, result->status == 0 && strstr(result->err, "no file that matches nothing.py ran"),
	       "a file that did not run, with one that did");
}

/* A source that was written after the recording has one line on stderr; one that was not has none. */
SCENARIO_SOME(annotate, changed_source, SUPPORTED)
{
	char *directory = text("%s", run(.how = JOB_BARE, .args = {"true"})->directory);
	char *path = text("%s/changes.py", directory);
	static const char *const before = "def f(): pass\nf()\n", *const after = "import os\ndef f(): pass\nf()\n";
	struct outcome *outcome, *result;

	file_write(path, before, strlen(before));
	outcome = run(.python = python, .directory = directory, .args = {"changes.py"});
	result = tool("annotate", outcome->trace);
	expect(result, result->status == 0 && !strstr(result->err, "changed"), "the source is the one that ran");
	usleep(20000);
	file_write(path, after, strlen(after));
	result = tool("annotate", outcome->trace);
	expect(result, result->status == 0 && strstr(result->err, "changes.py has changed since the recording"),
	       "the source is another one");
}
