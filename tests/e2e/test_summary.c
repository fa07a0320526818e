/*
 * test_summary.c - the summary of evprof run: its numbers are those of the report, of check and of the file, it changes
 * neither output nor exit status, and there is none where it is not wanted.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

#define SUMMARY "evprof:   "

/* Keeps what a program wrote in a file of the run's folder. Returns its path. */
static char *keep(const struct outcome *run, const char *name, const char *contents)
{
	char *path = text("%s/%s", run->directory, name);

	file_write(path, contents, strlen(contents));
	return path;
}

static struct outcome *judge(const struct outcome *outcome, const char *calibrated)
{
	struct outcome *report = tool("report", "--json", outcome->trace);
	struct outcome *peak = tool("check", "--max-alloc", "1", outcome->trace);
	struct stat file;

	expect(outcome, stat(outcome->trace, &file) == 0, "there is a trace");
	return run(.how = JOB_BARE, .args = {"python3", "@judge_summary.py", keep(outcome, "stderr", outcome->err),
					     keep(outcome, "report", report->out), keep(outcome, "peak", peak->out),
					     text("%lld", (long long)file.st_size), calibrated});
}

SCENARIO(summary, numbers, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@compared.py", "200"}), *judged;

	expect(outcome, outcome->status == 0 && strstr(outcome->err, SUMMARY "own time "), "there is a summary");
	expect_closing_line(outcome);
	judged = judge(outcome, NULL);
	expect(judged, judged->status == 0 && strstr(judged->out, "the numbers agree"), "as the other verbs say it");
	expect(outcome, strstr(outcome->err, "; --calibrate measures its time"), "what measures the cost");
}

/* The time that recording took is that of report --calibrate, where the process could measure it. */
SCENARIO(summary, calibrated, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .how = JOB_RUN, .args = {"@compared.py", "200"}, .options = {"--calibrate"});
	struct outcome *left = tool("report", "--json", "--calibrate", outcome->trace), *judged;

	(void)python;
	judged = judge(outcome, keep(outcome, "left", left->out));
	expect(judged, judged->status == 0, "the numbers agree");
	expect(judged, (left->status == 0) == (strstr(judged->out, "with calibration") != NULL),
	       "the cost is there if it was measured, and else it is not");
}

/* A program that sleeps nearly all of its time. */
static void expect_waiting(const struct python *python, const char *events)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"-c", "import time; time.sleep(3)"},
				      .options = {"--events", events});
	const char *line = strstr(outcome->err, SUMMARY "waiting ");
	int share = 0;

	expect(outcome, line && sscanf(line + strlen(SUMMARY "waiting "), "%d %%", &share) == 1, "the share is there");
	expect(outcome, share >= 75 && share <= 100, "%d %% of it", share);
	expect(outcome, !strstr(outcome->err, SUMMARY "memory"), "memory was not recorded");
}

SCENARIO_SOME(summary, waiting, SUPPORTED)
{
	expect_waiting(python, "call,c_call,cpu"); /* of each thread */
	expect_waiting(python, "call,c_call");	   /* of the process */
}

/* Of a trace that keeps its last stretch the summary is that of the stretch. */
SCENARIO_SOME(summary, of_what_is_kept, SUPPORTED)
{
	static const char *const code = "import time\n"
					"def first(): time.sleep(0.01)\n"
					"def last(): time.sleep(0.01)\n"
					"for _ in range(200): first()\n"
					"for _ in range(200): last()\n";
	struct outcome *outcome =
	    run(.python = python, .how = JOB_RUN, .args = {"-c", code}, .options = {"--keep", "1s"});

	expect(outcome, strstr(outcome->err, "evprof: the last 1 s of "), "the line says what there is");
	expect(outcome, strstr(outcome->err, SUMMARY "own time ") && strstr(outcome->err, " <string>:3\n"),
	       "the summary has its functions");
	expect(outcome, !strstr(outcome->err, " <string>:2\n"), "and none that has left the trace");
}

SCENARIO(summary, where_there_is_none, SCENARIO_ONCE)
{
	static const char *const code = "import os, sys; sys.stdout.write('out'); sys.exit(7)";
	struct outcome *outcome;

	(void)python;
	outcome = run(.python = python_any(), .how = JOB_RUN, .args = {"-c", code}, .options = {"-q"});
	expect(outcome, outcome->status == 7 && outcome->err_bytes == 0, "-q: not a word");
	outcome = run(.python = python_any(), .args = {"-c", code});
	expect_closing_line(outcome);
	expect(outcome, outcome->status == 7 && !strstr(outcome->err, SUMMARY), "the library has its one line");
	outcome = run(.python = python_any(), .how = JOB_RUN, .args = {"-c", code});
	expect(outcome, outcome->status == 7 && strcmp(outcome->out, "out") == 0 && strstr(outcome->err, SUMMARY),
	       "neither status nor output are changed");
	outcome = run(.python = python_any(), .how = JOB_RUN, .args = {"-c", "import os; os.kill(os.getpid(), 9)"});
	expect(outcome, outcome->status == -9, "it ends by the program's signal");
}
