/*
 * test_processes.c - children of every making are in the one trace of their tree; every end of a process leaves it
 * whole.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* Runs processes.py bare and profiled; the trace has `processes` processes (0: at least two) and the calls. */
static struct outcome *expect_tree(const struct python *python, const char *kind, unsigned processes, long children)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@processes.py", kind});
	struct outcome *outcome = run(.python = python, .args = {"@processes.py", kind});
	json_t *info, *report;

	expect_same(bare, outcome);
	info = expect_trace(outcome, processes);
	expect(outcome, info_pids(info) >= 2 || processes == 1, "%s: the trace holds its children", kind);
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "processes.py", "in_child") == children,
	       "%s: in_child was called %ld times, not %ld", kind, children,
	       report_calls(report, "processes.py", "in_child"));
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
	return outcome;
}

/* The program says for each process what the system shows of it. Forked workers do not keep their parent's. */
SCENARIO(processes, titles, SUPPORTED)
{
	struct outcome *outcome, *chrome, *report;
	const char *line;
	json_t *info;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@titled.py", "words that give room for a longer title", "last", ""});
	info = expect_trace(outcome, 3);
	chrome = tool("export", "--format", "chrome", "-o", "-", outcome->trace);
	report = tool("report", "--by", "process", outcome->trace);
	line = outcome->out;
	for (int i = 0; i < 3 && *line; i++) {
		int pid = atoi(line);
		char *title = strndup(strchr(line, ' ') + 1, strcspn(line, "\n") - strcspn(line, " ") - 1);
		const json_t *process = info_process(info, pid), *argv = json_object_get(process, "argv");
		const char *shown = json_string_value(json_object_get(process, "title"));
		size_t count = json_array_size(argv);

		expect(outcome, shown && !strcmp(shown, title), "the title of %d is %s, not %s", pid, title, shown);
		expect(outcome,
		       count >= 4 && !strcmp(json_string_value(json_array_get(argv, count - 2)), "last") &&
			   !*json_string_value(json_array_get(argv, count - 1)),
		       "the arguments of %d are those of the start", pid);
		expect(chrome, strstr(chrome->out, text("{\"name\":\"%s\"}", title)), "its title is in an export");
		expect(report, strstr(report->out, text("process %d: %s\n", pid, title)), "and in a report");
		line += strcspn(line, "\n") + 1;
		free(title);
	}
	expect(outcome, !*line && strstr(outcome->out, "titled: worker 1"), "there are three");
	json_decref(info);
}

SCENARIO(processes, fork, SUPPORTED)
{
	struct outcome *outcome = expect_tree(python, "forks", 4, 3);
	json_t *info = trace_info(outcome->trace);

	expect_closing_line(outcome);
	expect(outcome, info_events(info, "fork") == 3, "three forks, not %ld", info_events(info, "fork"));
	expect(outcome, info_events(info, "process_start") == 4, "four processes start, not %ld",
	       info_events(info, "process_start"));
	json_decref(info);
}
ALSO_CALLS_ONLY(processes, fork)

/* With the library that has it, or where it calls the program's fork() (until glibc 2.33): one event. */
SCENARIO(processes, fork_of_a_terminal, SUPPORTED)
{
	struct outcome *outcome = expect_tree(python, "pty_forks", 5, 4);
	json_t *info = trace_info(outcome->trace);

	expect(outcome, info_events(info, "fork") == 4, "four forks, not %ld", info_events(info, "fork"));
	json_decref(info);
	outcome = run(.python = python, .args = {"@processes.py", "pty_forks"}, .env = {"EVPROF_EVENTS=sample"});
	json_decref(expect_trace(outcome, 5));
}

SCENARIO(processes, fork_of_fork, SUPPORTED)
{
	expect_tree(python, "fork_of_fork", 3, 2);
}

SCENARIO(processes, fork_in_thread, SUPPORTED)
{
	expect_tree(python, "fork_in_thread", 4, 3);
}
ALSO_CALLS_ONLY(processes, fork_in_thread)

SCENARIO(processes, subprocess, SUPPORTED)
{
	struct outcome *outcome = expect_tree(python, "subprocesses", 3, 2);

	expect_closing_line(outcome);
}

SCENARIO(processes, shell_between, SUPPORTED)
{
	expect_tree(python, "shell_between", 2, 1);
}

SCENARIO(processes, posix_spawn, SUPPORTED)
{
	expect_tree(python, "spawned", 2, 1);
}

SCENARIO(processes, multiprocessing_fork, SUPPORTED)
{
	expect_tree(python, "fork", 4, 3);
}
ALSO_CALLS_ONLY(processes, multiprocessing_fork)

SCENARIO(processes, multiprocessing_spawn, SUPPORTED)
{
	expect_tree(python, "spawn", 0, 3);
}

SCENARIO(processes, multiprocessing_forkserver, SUPPORTED)
{
	expect_tree(python, "forkserver", 0, 3);
}

SCENARIO(processes, multiprocessing_pool, SUPPORTED)
{
	expect_tree(python, "pool", 0, 20);
}

SCENARIO(processes, futures, SUPPORTED)
{
	expect_tree(python, "futures", 0, 20);
}

SCENARIO(processes, exec, SUPPORTED)
{
	struct outcome *outcome = expect_tree(python, "execs", 1, 1);
	json_t *info = trace_info(outcome->trace), *report = trace_report(outcome->trace, NULL);

	expect(outcome, outcome->status == 7, "the status is that of the second program");
	expect(outcome, report_calls(report, "processes.py", "in_parent") == 1, "the first image is there too");
	expect(outcome, info_events(info, "exec") == 1, "the exec is an event");
	json_decref(report);
	json_decref(info);
}
ALSO_CALLS_ONLY(processes, exec)

SCENARIO(processes, exec_that_fails, SUPPORTED)
{
	struct outcome *outcome = expect_tree(python, "exec_fails", 1, 1);
	json_t *info = trace_info(outcome->trace);

	expect(outcome, info_events(info, "exec_failed") == info_events(info, "exec"), "its failure is recorded");
	json_decref(info);
}

SCENARIO(processes, exec_of_another_program, SUPPORTED)
{
	struct outcome *outcome = expect_tree(python, "exec_of_other", 1, 0);

	expect(outcome, outcome->status == 8, "the status is that of the second program");
}

/* The daemon is alive when the first process has ended, closes all descriptors, and is in the trace all the same. */
SCENARIO(processes, daemonised, SUPPORTED)
{
	expect_tree(python, "daemonise", 3, 1);
}

SCENARIO(processes, killed_child, SUPPORTED)
{
	expect_tree(python, "killed_child", 2, 1);
}

/* A child whose environment was made anew is not followed, and nothing breaks. */
SCENARIO(processes, cleared_environment, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@processes.py", "cleared_environment"});
	struct outcome *outcome = run(.python = python, .args = {"@processes.py", "cleared_environment"});

	if (bare->status != 0)
		cr_skip_test("%s does not start without its environment", python->name);
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
}

SCENARIO(processes, run_of_a_tree, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@processes.py", "spawn"});
	json_t *report;

	json_decref(expect_trace(outcome, 0));
	expect_closing_line(outcome);
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "processes.py", "in_child") == 3, "the children are in the trace");
	json_decref(report);
}

/* ---- ends ------------------------------------------------------------------------------------------------------- */

struct end {
	const char *how;
	int status;
	bool closes; /* a closing line can be said */
	long leaves;
};

static const struct end ends[] = {
    {"normally", 0, true, 1000},	{"exit3", 3, true, 1000},	    {"text", 1, true, 1000},
    {"exception", 1, true, 1000},	{"interrupt", -SIGINT, true, 1000}, {"os_exit", 4, true, 1000},
    {"libc_exit", 5, true, 1000},	{"abort", -SIGABRT, false, 1000},   {"segfault", -SIGSEGV, false, 1000},
    {"SIGTERM", -SIGTERM, false, 1000}, {"SIGKILL", -SIGKILL, false, 1000}, {"SIGINT", -SIGINT, false, 1000},
    {"atexit", 0, true, 1100},
};

SCENARIO(processes, ends, SUPPORTED)
{
	python_needs(python, "ctypes");
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@ends.py", ends[i].how});
		struct outcome *outcome = run(.python = python, .args = {"@ends.py", ends[i].how});
		json_t *report;

		expect(bare, bare->status == ends[i].status, "%s bare ends with %d", ends[i].how, ends[i].status);
		expect_same(bare, outcome);
		json_decref(expect_trace(outcome, 1));
		if (ends[i].closes)
			expect_closing_line(outcome);
		else
			expect(outcome, stderr_evprof_lines(outcome) <= 1, "%s: one line at most", ends[i].how);
		report = trace_report(outcome->trace, NULL);
		expect(outcome, report_calls(report, "known.py", "leaf") == ends[i].leaves,
		       "%s: leaf was called %ld times, not %ld", ends[i].how, ends[i].leaves,
		       report_calls(report, "known.py", "leaf"));
		json_decref(report);
	}
}

/* The closing line comes before the death: the trace has the death that the library announced. */
SCENARIO(processes, interrupt_is_reported, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@ends.py", "interrupt"});
	struct outcome *info = tool("info", outcome->trace);

	expect_closing_line(outcome);
	expect(info, info->status == 0 && strstr(info->out, "ended: killed by SIGINT"), "info says so");
}

/* The last events before kill -9 are there, with the death. */
SCENARIO(processes, kill_is_reported, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@ends.py", "SIGKILL"});
	struct outcome *dump = tool("info", outcome->trace);

	expect(dump, dump->status == 0, "info shows it");
	expect(dump, strstr(dump->out, "kill") || strstr(dump->out, "signal") || strstr(dump->out, "SIG"),
	       "info says that it was killed");
}
