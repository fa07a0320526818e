/*
 * test_annotate.c - evprof annotate: hits and calls against the report's counts, and the table as a user sees it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* What a verb writes, in a file of the trace's directory. */
static char *kept(const struct outcome *outcome, const char *name, const struct outcome *told)
{
	char *path = text("%s/%s", outcome->directory, name);

	expect(told, told->status == 0, "the tool ends with 0");
	file_write(path, told->out, told->out_bytes);
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

SCENARIO(annotate, table, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	struct outcome *told = tool("annotate", outcome->trace, "known.py");

	expect(told, told->status == 0 && !*told->err, "annotate ends with 0 and complains of nothing");
	expect(told,
	       strstr(told->out, "Line #|      Hits|         Time| Time per hit|      %|Source code\n"
				 "------+----------+-------------+-------------+-------+-----------\n"),
	       "the heading is there");
	expect(told, strstr(told->out, "\n     5|      1000|") && strstr(told->out, "%|def leaf():\n"),
	       "leaf was called 1000 times");
	expect(told, strstr(told->out, "\n(call)|      1000|") && strstr(told->out, "known.py:5 leaf\n"),
	       "from one function");
	expect(told, strstr(told->out, "\n     7|         0|            0|            0|  0.00%|\n"),
	       "an empty line stands for itself");
	told = tool("annotate", outcome->trace, "nothing.py");
	expect(told, told->status == 0 && strstr(told->err, "none of these files ran"), "a file that did not run");
}
