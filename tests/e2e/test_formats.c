/*
 * test_formats.c - EVPROF_FORMAT: a CI job sets a variable and finds the files next to the trace when the program has
 * ended.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

/* The file next to the trace with that ending, or a failure. Free the path. */
static char *exported_file(const struct outcome *outcome, const char *suffix)
{
	char *path = text("%.*s%s", (int)strlen(outcome->trace) - 4, outcome->trace, suffix);
	struct stat status;

	expect(outcome, stat(path, &status) == 0, "%s is there", path);
	expect(outcome, status.st_size > 0 && (status.st_mode & 0777) == 0600,
	       "%s has %ld bytes for its owner only: %o", path, (long)status.st_size, status.st_mode & 0777);
	return path;
}

SCENARIO(formats, are_there_at_the_end, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@generators.py"});
	struct outcome *outcome =
	    run(.python = python, .args = {"@generators.py"}, .env = {"EVPROF_FORMAT=pstats,chrome,html"});
	char *json = NULL, *stats = NULL, *page = NULL;
	struct outcome *read;
	json_t *chrome;

	expect_same(bare, outcome);
	expect_closing_line(outcome);
	json = exported_file(outcome, ".json");
	stats = exported_file(outcome, ".pstats");
	page = exported_file(outcome, ".html");
	chrome = json_load_file(json, 0, NULL);
	expect(outcome, json_array_size(json_object_get(chrome, "traceEvents")) > 100, "Chrome's JSON is whole");
	if (!python->chrooted) {
		read = run(.python = python, .how = JOB_BARE,
			   .args = {"-c", "import pstats, sys; pstats.Stats(sys.argv[1]).print_stats(1)", stats});
		expect(read, read->status == 0 && strstr(read->out, "function calls"), "pstats reads it");
	}
	json_decref(chrome);
	free(json);
	free(stats);
	free(page);
}

SCENARIO(formats, by_evprof_run, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .how = JOB_RUN, .options = {"--format", "folded"}, .args = {"@generators.py"});

	(void)python;
	free(exported_file(outcome, ".folded"));
}

SCENARIO(formats, unknown_ones_cost_a_line_and_no_other, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", "pass"}, .env = {"EVPROF_FORMAT=pstat,folded"});
	char *line = stderr_evprof_line(outcome, 0);

	(void)python;
	expect(outcome, strstr(line, "EVPROF_FORMAT=pstat,folded") && strstr(line, "pstats"), "a line says so: %s",
	       line);
	free(exported_file(outcome, ".folded"));
	free(line);
}

/*
 * Another user has put a link where the export goes, in a folder like /tmp, to a file of ours.
 */
SCENARIO(formats, a_strangers_link_is_not_followed, SCENARIO_ONCE)
{
	struct outcome *first = run(.how = JOB_BARE, .args = {"touch", "victim"}), *named;
	char *folder = text("%s/sticky", first->directory), *victim = text("%s/victim", first->directory);
	char *link = text("%s/t.pstats", folder), *output = text("EVPROF_OUTPUT=%s/t.evp", folder);
	char *trace = text("%s/t.evp", folder), *other = text("%s/named", folder);
	struct stat status;

	(void)python;
	if (geteuid() != 0)
		cr_skip_test("only root can make what belongs to another user");
	cr_assert(mkdir(folder, 0755) == 0 && chmod(folder, 01777) == 0 && symlink(victim, link) == 0 &&
		  lchown(link, 65534, 65534) == 0 && symlink(victim, other) == 0 && lchown(other, 65534, 65534) == 0);
	first = run(.python = python_any(), .args = {"@generators.py"}, .env = {"EVPROF_FORMAT=pstats", output});
	expect(first, stat(victim, &status) == 0 && status.st_size == 0,
	       "the file that the link leads to is as it was");
	expect(first, lstat(link, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == 0 && status.st_size > 0,
	       "the export has taken the link's place");
	named = tool("export", "--format", "folded", "-o", other, trace);
	expect(named, named->status != 0 && strstr(named->err, "Permission denied"),
	       "no other link is followed either");
	expect(named, stat(victim, &status) == 0 && status.st_size == 0,
	       "the file that the link leads to is as it was");
	expect(named,
	       lchown(other, 0, 0) == 0 && tool("export", "--format", "folded", "-o", other, trace)->status == 0 &&
		   stat(victim, &status) == 0 && status.st_size > 0,
	       "our own link is");
}

/* A format that cannot be written gets a line, and the trace is there. */
SCENARIO(formats, that_cannot_be_written, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .env = {"EVPROF_FORMAT=pstats", "EVPROF_OUTPUT=trace.evp"},
		.args = {"-c", "import os; os.mkdir('trace.pstats')"});
	char *line = stderr_evprof_line(outcome, 0);

	(void)python;
	expect(outcome, outcome->status == 0 && outcome->traces == 1, "the program and the trace are fine");
	expect(outcome, strstr(line, "pstats could not be written"), "a line says so: %s", line);
	json_decref(trace_info(outcome->trace));
	free(line);
}

/* Beside a collector of its own, an evprof that takes its time. Gives what to preload. */
static char *slow_evprof(const char *directory, int seconds)
{
	char *script = text("#!/bin/sh\nsleep %d\nexec '%s' \"$@\"\n", seconds, build_path("evprof"));
	char *evprof = text("%s/evprof", directory);

	cr_assert(run(.how = JOB_BARE, .args = {"cp", "%B/evprof-collector", "%B/libevprof.so", directory})->status ==
		  0);
	file_write(evprof, script, strlen(script));
	chmod(evprof, 0755);
	free(script);
	free(evprof);
	return text("LD_PRELOAD=%s/libevprof.so", directory);
}

/* A tree goes on when its trace was finished: a program that nobody knew of comes while the formats are written. */
SCENARIO(formats, that_are_being_written_when_another_process_comes, SCENARIO_ONCE)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	const char *program = "import subprocess, sys\n"
			      "subprocess.Popen(['sh', '-c', 'sleep 1; exec \"$0\" -c \"$1\"', sys.executable,\n"
			      "                  'def late(): pass\\nlate()'], start_new_session=True)\n";
	struct outcome *outcome =
	    run(.python = python_any(), .how = JOB_BARE, .args = {"-c", program}, .directory = directory,
		.env = {slow_evprof(directory, 3), "EVPROF_FORMAT=folded", "EVPROF_OUTPUT=late.evp"});
	const char *second = text("%s/late-2.evp", directory);
	json_t *info, *report;

	(void)python;
	outcome_settle(outcome);
	outcome_find_traces(outcome, NULL);
	expect(outcome, outcome->status == 0 && outcome->traces == 2, "there are two traces, not %u", outcome->traces);
	info = trace_info(second);
	expect(outcome, json_is_true(json_object_get(info, "complete")), "the second one is complete");
	report = trace_report(second, NULL);
	expect(outcome, report_calls(report, "<string>", "late") == 1, "it is that of the second program");
	json_decref(report);
	json_decref(info);
	info = trace_info(text("%s/late.evp", directory));
	expect(outcome, json_is_true(json_object_get(info, "complete")), "and so is the first one");
	expect(outcome, info_pids(info) == 1, "which is that of the first program");
	json_decref(info);
}
