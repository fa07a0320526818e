/*
 * test_cut.c - evprof cut: stretches of real traces, read by a reader that was written from the documents alone, have
 * the calls that the program itself counted (programs/pieces.py). Pieces that follow each other add up to the whole.
 */
#include <string.h>

#include "harness.h"
#include "packages.h"

static void expect_pieces(const struct outcome *outcome, const char *file, const char *parts)
{
	struct outcome *judged;

	expect(outcome, outcome->status == 0, "it runs under evprof");
	judged = run(.how = JOB_BARE,
		     .args = {"python3", "@judge_cut.py", build_path("evprof"), outcome->trace, file, parts},
		     .timeout_s = 300);
	expect(judged, judged->status == 0 && strcmp(judged->out, "as counted\n") == 0, "cuts of %s", file);
}

static void expect_parts(const struct python *python, const char *events)
{
	struct outcome *outcome;
	char *parts;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@pieces.py"},
		      .env = {text("PYTHONPATH=%s", program_path("../../../tools/python")), events});
	parts = text("%s/parts.json", outcome->directory);
	file_write(parts, outcome->out, outcome->out_bytes);
	json_decref(expect_trace(outcome, 2)); /* and the child of a fork */
	expect_pieces(outcome, "pieces.py", parts);
}

SCENARIO_SOME(cut, parts, SUPPORTED)
{
	expect_parts(python, "EVPROF_EVENTS=call,c_call");
}

SCENARIO_SOME(cut, parts_with_memory, SUPPORTED)
{
	expect_parts(python, "EVPROF_EVENTS=call,mem,cpu");
}

SCENARIO_SOME(cut, parts_with_lines, SUPPORTED)
{
	expect_parts(python, "EVPROF_EVENTS=call,line");
}

/* A piece knows the stacks of greenlets that ran before it: none of the functions is ever called within itself. */
SCENARIO(cut, greenlets, SUPPORTED)
{
	const char *path = package_variable(python, "greenlet");
	struct outcome *outcome =
	    run(.python = python, .args = {"@greenlets.py", "plain"}, .env = {path, "EVPROF_EVENTS=call,c_call"});

	expect_pieces(outcome, "greenlets.py", NULL);
}

SCENARIO_SOME(cut, tasks, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@tasks.py"}, .env = {"EVPROF_EVENTS=call,c_call"});

	expect_pieces(outcome, "tasks.py", NULL);
}
