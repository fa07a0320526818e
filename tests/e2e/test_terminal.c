/*
 * test_terminal.c - the verbs on a terminal of a known size, which programs/on_terminal.py makes: widths, colours, and
 * the pager, which is a script of the test's own, so that a missing or another less makes no difference.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

/* Runs evprof in that many rows and columns; variable is one more of its environment, or NULL. */
static struct outcome *on_terminal(const char *rows, const char *columns, const char *variable, const char *verb,
				   const char *option, const char *value, const char *trace)
{
	struct job job = {.python = python_any(),
			  .how = JOB_BARE,
			  .args = {"@on_terminal.py", rows, columns, "%B/evprof", verb},
			  .env = {"NO_COLOR", "LESS", "PAGER", "EVPROF_PAGER", "TERM=xterm"}};
	size_t count = 5;

	if (option)
		job.args[count++] = option;
	if (value)
		job.args[count++] = value;
	job.args[count] = trace;
	job.env[5] = variable;
	return job_run(&job);
}

static struct outcome *trace_of_imports(void)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", "import json, subprocess, argparse"});

	expect(outcome, outcome->status == 0 && outcome->trace[0], "there is a trace");
	return outcome;
}

/* The text without the sequences that switch colours. */
static char *without_colours(const char *from)
{
	char *plain = strdup(from), *to = plain;

	for (; *from; from++) {
		if (*from == '\033')
			from = strchr(from, 'm');
		else
			*to++ = *from;
	}
	*to = 0;
	return plain;
}

/* Names of a real program, in the widths that terminals have. */
SCENARIO(terminal, lines_fit, SCENARIO_ONCE)
{
	static const char *const widths[] = {"60", "80", "132"};
	struct outcome *outcome = trace_of_imports(), *shown;

	(void)python;
	for (size_t i = 0; i < 3; i++) {
		size_t most = 0, lines = 0;
		char *plain, *line, *end;

		shown = on_terminal("2000", widths[i], "EVPROF_PAGER=", "report", "--limit", "all", outcome->trace);
		expect(shown, shown->status == 0, "it ends well");
		expect(shown, strstr(shown->out, "\033[1m"), "there are colours");
		plain = without_colours(shown->out);
		line = strstr(plain, "ncalls");
		expect(shown, line, "there is a table");
		for (; (end = strchr(line, '\n')); line = end + 1, lines++)
			most = (size_t)(end - line) > most ? (size_t)(end - line) : most;
		expect(shown, lines > 100 && most <= (size_t)atoi(widths[i]) && most > 50, "%zu lines, %zu columns",
		       lines, most);
		free(plain);
	}
	shown = on_terminal("2000", "80", "NO_COLOR=1", "report", NULL, NULL, outcome->trace);
	expect(shown, shown->status == 0 && !strchr(shown->out, '\033'), "NO_COLOR");
}

static const char *pager_named(const struct outcome *outcome, const char *name)
{
	static const char script[] = "#!/bin/sh\necho \"pager with LESS=$LESS\"\ncat\necho the end\n";
	char *path = text("%s/%s", outcome->directory, name);

	file_write(path, script, strlen(script));
	chmod(path, 0700);
	return path;
}

static const char *pager(const struct outcome *outcome)
{
	return pager_named(outcome, "pager");
}

static void expect_paged_with(const struct outcome *shown, bool paged, const char *word)
{
	const char *begin = "pager with LESS=FRX\n";

	expect(shown, shown->status == 0, "it ends well");
	expect(shown, (strncmp(shown->out, begin, strlen(begin)) == 0) == paged, "through the pager: %d", paged);
	expect(shown, (strstr(shown->out, "the end\n") != NULL) == paged, "to its end");
	expect(shown, strstr(shown->out, word), "the output is there, with \"%s\"", word);
}

static void expect_paged(const struct outcome *shown, bool paged)
{
	expect_paged_with(shown, paged, " function calls ");
}

SCENARIO(terminal, pager, SCENARIO_ONCE)
{
	struct outcome *outcome = trace_of_imports();
	const char *own = text("EVPROF_PAGER=%s", pager(outcome)), *trace = outcome->trace;
	const char *everybodys = text("PAGER=%s", pager(outcome));
	struct outcome *shown;

	(void)python;
	expect_paged(on_terminal("24", "80", own, "report", NULL, NULL, trace), true);
	expect_paged(on_terminal("24", "80", everybodys, "report", NULL, NULL, trace), true);
	expect_paged(on_terminal("24", "80", own, "report", "--limit", "5", trace), false);
	shown = on_terminal("24", "80", own, "report", "--format", "csv", trace);
	expect(shown, shown->status == 0 && strncmp(shown->out, "file,line,", 10) == 0, "CSV has no pager");
	expect_paged(on_terminal("24", "80", "EVPROF_PAGER=", "report", NULL, NULL, trace), false);
	expect_paged(on_terminal("24", "80", "PAGER=cat", "report", NULL, NULL, trace), false);
	expect_paged(on_terminal("24", "80", "EVPROF_PAGER=/no/such/pager 2>/dev/null", "report", NULL, NULL, trace),
		     false);
	expect_paged(
	    run(.python = python_any(), .how = JOB_BARE, .env = {own},
		.args = {"-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", "%B/evprof", "report", trace}),
	    false);
}

/* less asks for a key first on a terminal that cannot move its cursor. */
SCENARIO(terminal, pager_by_default, SCENARIO_ONCE)
{
	static const char *const kinds[] = {"TERM=xterm", "TERM=dumb", "TERM="};
	struct outcome *outcome = trace_of_imports();
	const char *path = text("PATH=%s:%s", outcome->directory, getenv("PATH"));

	(void)python;
	pager_named(outcome, "less");
	for (size_t i = 0; i < 3; i++)
		expect_paged(run(.python = python_any(), .how = JOB_BARE,
				 .args = {"@on_terminal.py", "24", "80", "%B/evprof", "report", outcome->trace},
				 .env = {"NO_COLOR", "LESS", "PAGER", "EVPROF_PAGER", path, kinds[i]}),
			     i == 0);
}

/* As report has it. What is for programs has none. */
SCENARIO(terminal, pager_of_other_verbs, SCENARIO_ONCE)
{
	static const char *const program = "def leaf(): pass\nfor i in range(8000): leaf()\n";
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", program}, .env = {"EVPROF_EVENTS=call"});
	const char *own = text("EVPROF_PAGER=%s", pager(outcome)), *trace = outcome->trace;
	const char *later = text("%s/later.evp", outcome->directory);
	struct outcome *shown, *plain = tool("dump", trace);
	const char *begin;

	(void)python;
	expect_paged_with(on_terminal("24", "80", own, "tree", "--min-percent=0", NULL, trace), true, "MainThread");
	expect_paged_with(on_terminal("24", "80", own, "annotate", NULL, NULL, trace), true, "leaf");
	expect_paged_with(on_terminal("24", "80", own, "diff", "--all", trace, trace), true, "leaf");
	expect_paged_with(on_terminal("24", "80", own, "diff", "--json", trace, trace), false, "leaf");
	expect_paged_with(on_terminal("24", "80", own, "annotate", "--format", "json", trace), false, "leaf");
	shown = on_terminal("24", "80", own, "annotate", "-o", later, trace);
	expect(shown, shown->status == 0 && shown->out_bytes == 0, "a file has no pager");
	/* Several buffers, all of which come through it. */
	shown = on_terminal("24", "80", own, "dump", NULL, NULL, trace);
	expect_paged_with(shown, true, "\treturn\tleaf\t");
	begin = strchr(shown->out, '\n') + 1;
	expect(shown, plain->out_bytes > 3 << 18, "%zu bytes", plain->out_bytes);
	expect(shown, strncmp(begin, plain->out, plain->out_bytes) == 0, "all events come through the pager");
	shown = on_terminal("24", "80", "EVPROF_PAGER=/no/such/pager 2>/dev/null", "dump", NULL, NULL, trace);
	expect(shown, shown->status == 0 && strcmp(shown->out, plain->out) == 0, "all events come without it");
	shown = on_terminal("24", "80", "EVPROF_PAGER=head -1", "dump", NULL, NULL, trace);
	expect(shown, shown->status == 0 && strchr(shown->out, '\n') == shown->out + shown->out_bytes - 1,
	       "a line is shown, and it ends when the pager does");
}

/* A pager that reads nothing, of a report that no pipe holds: evprof ends as if all was read. */
SCENARIO(terminal, pager_that_is_left, SCENARIO_ONCE)
{
	struct outcome *outcome = trace_of_imports(), *shown;

	(void)python;
	shown =
	    on_terminal("24", "200", "EVPROF_PAGER=exec true", "report", "--callers", "--limit=all", outcome->trace);
	expect(shown, shown->status == 0 && shown->out_bytes == 0, "nothing is shown, and it ends well");
	shown = on_terminal("24", "200", "EVPROF_PAGER=head -1", "annotate", NULL, NULL, outcome->trace);
	expect(shown, shown->status == 0 && strchr(shown->out, '\n') == shown->out + shown->out_bytes - 1,
	       "a line is shown, and it ends well");
}
