/*
 * test_program_only.c - evprof run --program-only: what Python does before and after the program is not in the trace,
 * however the program is started and however it ends; its threads and children are. test_counts.c compares the rest
 * with cProfile.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* sitecustomize.py there calls before(), and has after() called at the end. */
static const char *around(void)
{
	return text("PYTHONPATH=%s", program_path("around"));
}

static void expect_calls(const struct outcome *outcome, const json_t *report, const char *function, long calls)
{
	expect(outcome, report_calls(report, "", function) == calls, "%s was called %ld times, not %ld", function,
	       report_calls(report, "", function), calls);
}

/* The trace says of its processes that they are not whole. */
static void expect_said(const struct outcome *outcome)
{
	const struct outcome *info = tool("info", outcome->trace);
	json_t *root = trace_info(outcome->trace);
	const json_t *process = json_array_get(json_object_get(root, "processes"), 0);

	expect(info, strstr(info->out, "; of the program only"), "info says so");
	expect(info, json_is_true(json_object_get(process, "program_only")), "info --json says so");
	json_decref(root);
}

/* The same as bare; the trace has that number of processes (0: any), and nothing around a program. */
static json_t *expect_program(struct job job, unsigned processes, struct outcome **outcome)
{
	struct outcome *bare;
	json_t *report;

	job.how = JOB_BARE;
	job.env[0] = around();
	bare = job_run(&job);
	job.how = JOB_RUN;
	job.options[0] = "--program-only";
	*outcome = job_run(&job);
	expect_same(bare, *outcome);
	json_decref(expect_trace(*outcome, processes));
	expect_said(*outcome);
	report = trace_report((*outcome)->trace, NULL);
	expect_balanced(*outcome, report);
	expect_calls(*outcome, report, "before", 0);
	expect_calls(*outcome, report, "after", 0);
	expect_calls(*outcome, report, "_run_module_as_main", 0);
	return report;
}

/* ---- starts ------------------------------------------------------------------------------------------------------ */

#define CODE                                                                                                           \
	"def leaf(): pass\n"                                                                                           \
	"def early():\n"                                                                                               \
	"    for i in range(77): leaf()\n"                                                                             \
	"early()\n"

/* Makes the same program a file, a folder, an archive, a module and a package. */
static const char *const programs = "import os, sys, zipfile\n"
				    "def write(name, code):\n"
				    "    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)\n"
				    "    with open(name, 'w') as file: file.write(code)\n"
				    "write('prog.py', sys.argv[1])\n"
				    "write('folder/__main__.py', sys.argv[1])\n"
				    "write('pkg/__init__.py', 'def up(): pass\\nup()\\n')\n"
				    "write('pkg/__main__.py', sys.argv[1])\n"
				    "write('pkg/sub/__init__.py', 'def up(): pass\\nup()\\n')\n"
				    "write('pkg/sub/mod.py', sys.argv[1])\n"
				    "with zipfile.ZipFile('prog.zip', 'w') as archive:\n"
				    "    archive.write('prog.py', '__main__.py')\n";

static const struct start {
	const char *args[2];
	const char *input;
	size_t functions; /* that are in the trace: <module>, early, leaf, and <module> and up of each package */
	long ups;
} starts[] = {
    {{"prog.py"}, NULL, 3, 0}, {{"-m", "prog"}, NULL, 3, 0}, {{"-c", CODE}, NULL, 3, 0},
    {{"folder"}, NULL, 3, 0},  {{"prog.zip"}, NULL, 3, 0},   {{"-m", "pkg"}, NULL, 5, 1},
    {{NULL}, CODE, 3, 0},      {{"-"}, CODE, 3, 0},	     {{"-m", "pkg.sub.mod"}, NULL, 7, 2},
};

static void expect_functions(const struct outcome *outcome, const json_t *report, size_t count)
{
	char *rows = text("%s", "");

	for (size_t i = 0; i < report_functions(report); i++)
		rows = text("%s\n    %s:%s", rows, report_function(report, i).file, report_function(report, i).name);
	expect(outcome, report_functions(report) == count, "%zu functions, not %zu:%s", report_functions(report), count,
	       rows);
}

SCENARIO(program_only, starts, 6)
{
	struct outcome *made = run(.python = python, .how = JOB_BARE, .args = {"-c", programs, CODE}), *outcome;

	expect(made, made->status == 0, "the programs are there");
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		const struct start *start = &starts[i];
		struct job job = {.python = python,
				  .directory = made->directory,
				  .args = {start->args[0], start->args[1]},
				  .input = start->input,
				  .options = {NULL, "--events", "call,c_call"}};
		json_t *report = expect_program(job, 1, &outcome);

		expect_calls(outcome, report, "leaf", 77);
		expect_calls(outcome, report, "early", 1);
		expect_calls(outcome, report, "up", start->ups);
		expect_functions(outcome, report, start->functions);
		json_decref(report);
		unlink(outcome->trace);
	}
}
ALSO_CALLS_ONLY(program_only, starts)

/* Each statement that Python runs by itself is the program's. */
SCENARIO(program_only, prompt_after_the_program, 6)
{
	struct outcome *outcome;
	json_t *report = expect_program((struct job){.python = python,
						     .args = {"-q", "-i", "-c", CODE},
						     .input = "leaf()\nleaf()\n",
						     .options = {NULL, "--events", "call"}},
					1, &outcome);

	expect_calls(outcome, report, "leaf", 79);
	json_decref(report);
}

/* The same by the variable, with all events: blocks and lines are those of the program. */
SCENARIO(program_only, all_events, SUPPORTED)
{
	struct outcome *all = run(.python = python, .args = {"@only.py"}, .env = {"EVPROF_EVENTS=mem,line"});
	struct outcome *outcome =
	    run(.python = python, .args = {"@only.py"}, .env = {"EVPROF_PROGRAM_ONLY=1", "EVPROF_EVENTS=mem,line"});
	json_t *whole = expect_trace(all, 1), *info = expect_trace(outcome, 1);
	json_t *report = trace_report(outcome->trace, NULL);

	expect(outcome, info_events(info, "malloc") < info_events(whole, "malloc") / 10,
	       "%ld of %ld blocks are the program's", info_events(info, "malloc"), info_events(whole, "malloc"));
	expect(outcome, info_events(info, "line") > 2 * 77 && info_events(info, "line") < 4 * 77,
	       "the lines are the program's: %ld", info_events(info, "line"));
	expect_calls(outcome, report, "leaf", 77);
	expect_functions(outcome, report, 3);
	json_decref(report);
	/* mem alone: calls show where the program is. */
	outcome = run(.python = python, .args = {"@only.py"}, .env = {"EVPROF_PROGRAM_ONLY=1", "EVPROF_EVENTS=mem"});
	json_decref(info);
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "call") == 79 && info_events(info, "c_call") == 0, "calls are recorded, too");
	expect(outcome, info_events(info, "malloc") < info_events(whole, "malloc") / 10, "the blocks are as before");
	json_decref(info);
	json_decref(whole);
}

/* What hides the program's own code does not hide its end. */
SCENARIO(program_only, filtered, SUPPORTED)
{
	struct outcome *outcome;
	json_t *report = expect_program(
	    (struct job){.python = python, .args = {"@only.py", "atexit"}, .options = {NULL, "--exclude", "<module>"}},
	    1, &outcome);

	expect_calls(outcome, report, "early", 1);
	expect_calls(outcome, report, "late", 0);
	json_decref(report);
}

SCENARIO(program_only, without_samples, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.how = JOB_BARE, .args = {"%B/evprof", "run", "--program-only", "--sample", "true"});

	(void)python;
	expect(outcome, outcome->status == 125 && strstr(outcome->err, "--program-only does nothing with samples: "),
	       "it is refused in one line");
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static const struct end {
	const char *how;
	int status;
	long leaves;
	unsigned processes;
} ends[] = {
    {"exit", 3, 77, 1},	  {"exception", 1, 77, 1}, {"os_exit", 4, 77, 1}, {"signal", -SIGKILL, 77, 1},
    {"atexit", 0, 77, 1}, {"fork", 0, 154, 2},	   {"thread", 0, 154, 1},
};

SCENARIO(program_only, ends, 6)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct outcome *outcome;
		json_t *report = expect_program((struct job){.python = python, .args = {"@only.py", ends[i].how}},
						ends[i].processes, &outcome);

		expect(outcome, outcome->status == ends[i].status, "%s: the status is %d", ends[i].how,
		       outcome->status);
		expect_calls(outcome, report, "leaf", ends[i].leaves);
		expect_calls(outcome, report, "late", 0);
		json_decref(report);
	}
}
ALSO_CALLS_ONLY(program_only, ends)

/* Without the option all of it is there, so the tests above can fail. */
SCENARIO(program_only, not_asked_for, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@only.py", "atexit"}, .env = {around()});
	json_t *report = trace_report(outcome->trace, NULL);

	expect_calls(outcome, report, "before", 1);
	expect_calls(outcome, report, "after", 1);
	expect_calls(outcome, report, "late", 1);
	expect(outcome, report_functions(report) > 50, "and what Python does: %zu functions", report_functions(report));
	json_decref(report);
}

/* The program stops the recording, and what runs after it starts it again. */
SCENARIO(program_only, stopped_by_the_program, SUPPORTED)
{
	struct outcome *outcome;
	json_t *report;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@only.py", "stop"}, .env = {around(), "EVPROF_PROGRAM_ONLY=1"});
	report = trace_report(outcome->trace, NULL);
	expect(outcome, outcome->status == 0, "it ends well");
	expect_calls(outcome, report, "leaf", 2 * 77);
	expect_calls(outcome, report, "late", 0);
	expect_calls(outcome, report, "after", 0);
	json_decref(report);
}
ALSO_CALLS_ONLY(program_only, stopped_by_the_program)

/* ---- children ---------------------------------------------------------------------------------------------------- */

/* Runs processes.py; the trace has `processes` processes (0: at least two). */
static void expect_children(const struct python *python, const char *kind, unsigned processes, long children)
{
	struct job job = {.python = python, .args = {"@processes.py", kind}, .options = {NULL, "--wait=30"}};
	struct outcome *outcome;
	json_t *report = expect_program(job, processes, &outcome);

	expect(outcome, report_calls(report, "processes.py", "in_child") == children,
	       "%s: in_child was called %ld times, not %ld", kind, report_calls(report, "processes.py", "in_child"),
	       children);
	json_decref(report);
}

SCENARIO(program_only, forked_children, SUPPORTED)
{
	expect_children(python, "forks", 4, 3);
	expect_children(python, "fork_of_fork", 3, 2);
	expect_children(python, "fork_in_thread", 4, 3);
	expect_children(python, "daemonise", 3, 1);
	expect_children(python, "killed_child", 2, 1);
}
ALSO_CALLS_ONLY(program_only, forked_children)

SCENARIO(program_only, started_children, SUPPORTED)
{
	expect_children(python, "subprocesses", 3, 2);
	expect_children(python, "shell_between", 2, 1);
	expect_children(python, "execs", 1, 1);
}

SCENARIO(program_only, workers, SUPPORTED)
{
	expect_children(python, "fork", 4, 3);
	expect_children(python, "spawn", 0, 3);
	expect_children(python, "forkserver", 0, 3);
	expect_children(python, "pool", 0, 20);
}
