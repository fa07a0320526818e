/*
 * test_formats.c - EVPROF_FORMAT: a CI job sets a variable and finds the files beside the trace when the program has ended.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

/* The file beside the trace with that ending, or a failure. Free the path. */
static char *file_beside(const struct outcome *outcome, const char *suffix)
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
	json = file_beside(outcome, ".json");
	stats = file_beside(outcome, ".pstats");
	page = file_beside(outcome, ".html");
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
	free(file_beside(outcome, ".folded"));
}

SCENARIO(formats, unknown_ones_cost_a_line_and_no_other, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", "pass"}, .env = {"EVPROF_FORMAT=pstat,folded"});
	char *line = stderr_evprof_line(outcome, 0);

	(void)python;
	expect(outcome, strstr(line, "EVPROF_FORMAT=pstat,folded") && strstr(line, "pstats"), "a line says so: %s",
	       line);
	free(file_beside(outcome, ".folded"));
	free(line);
}

/* What cannot be written beside the trace is said, and the trace is there. */
SCENARIO(formats, that_cannot_be_written, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .env = {"EVPROF_FORMAT=pstats"},
				      .args = {"-c", "import os; os.mkdir(f'evprof-python-{os.getpid()}.pstats')"});
	char *line = stderr_evprof_line(outcome, 0);

	(void)python;
	expect(outcome, outcome->status == 0 && outcome->traces == 1, "the program and the trace are fine");
	expect(outcome, strstr(line, "pstats could not be written"), "a line says so: %s", line);
	json_decref(trace_info(outcome->trace));
	free(line);
}
