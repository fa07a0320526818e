/*
 * test_tree.c - evprof tree: its stacks and calls are those that a program counts itself with sys.setprofile(), and on
 * a terminal its lines fit.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static char *keep(const struct outcome *run, const char *name, const char *contents)
{
	char *path = text("%s/%s", run->directory, name);

	file_write(path, contents, strlen(contents));
	return path;
}

SCENARIO(tree, calls, SUPPORTED)
{
	struct outcome *counted = run(.python = python, .how = JOB_BARE, .args = {"@tree_of_calls.py", "count"});
	struct outcome *outcome = run(.python = python, .args = {"@tree_of_calls.py"}), *tree, *judged;

	expect(counted, counted->status == 0 && outcome->status == 0, "the program ends well");
	tree = tool("tree", "--min-percent", "0", "--include", "*/tree_of_calls.py", outcome->trace);
	expect(tree, tree->status == 0 && tree->err_bytes == 0, "there is a tree");
	expect(tree, !strstr(tree->out, "left out"), "of everything");
	judged = run(.how = JOB_BARE, .args = {"python3", "@judge_tree.py", keep(outcome, "counted", counted->out),
					       keep(outcome, "tree", tree->out)});
	expect(judged, judged->status == 0 && strstr(judged->out, " stacks agree"), "each stack with its calls");
	expect(judged, atoi(judged->out) > 40, "down() alone has 31");
}

SCENARIO(tree, on_a_terminal, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@tree_of_calls.py"}), *shown;
	size_t most = 0, lines = 0;

	(void)python;
	shown =
	    run(.python = python_any(), .how = JOB_BARE, .env = {"TERM=xterm", "NO_COLOR=1", "EVPROF_PAGER="},
		.args = {"@on_terminal.py", "2000", "80", "%B/evprof", "tree", "--min-percent", "0", outcome->trace});
	expect(shown, shown->status == 0, "it ends well");
	for (const char *line = shown->out, *end; (end = strchr(line, '\n')); line = end + 1, lines++)
		most = (size_t)(end - line) > most ? (size_t)(end - line) : most;
	expect(shown, lines > 100 && most <= 80, "%zu lines, the longest with %zu columns", lines, most);
	expect(shown, strstr(shown->out, " (30) "), "what is deep has its depth");
}
