/*
 * test_storms.c - very many of everything, and programs that leave where they were: the program is as without evprof,
 * the counts are exact, the file is whole, and what is used of memory has a bound.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "harness.h"
#include "strike.h"

/* Bare and profiled, by way of some words before the interpreter; in_child was called so often. */
static struct outcome *storm(const struct python *python, const char *const *words, const char *kind, const char *count,
			     long children)
{
	struct job job = {.how = JOB_BARE, .timeout_s = 200};
	struct outcome *bare, *outcome;
	json_t *report;
	int n = 0;

	while (words && words[n]) {
		job.args[n] = words[n];
		n++;
	}
	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "@storms.py";
	job.args[n++] = kind;
	job.args[n] = count;
	bare = job_run(&job);
	if (bare->status != 0)
		cr_skip_test("%s cannot be had here: %s", kind, bare->err);
	job.how = JOB_PRELOAD;
	outcome = job_run(&job);
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 0));
	expect(outcome, stderr_evprof_lines(outcome) == 1, "%s: one line is said, not %u", kind,
	       stderr_evprof_lines(outcome));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "storms.py", "in_child") == children,
	       "%s: in_child was called %ld times, not %ld", kind, children,
	       report_calls(report, "storms.py", "in_child"));
	expect_balanced(outcome, report);
	json_decref(report);
	return outcome;
}

static void expect_processes(const struct outcome *outcome, size_t images)
{
	json_t *info = trace_info(outcome->trace);
	size_t found = json_array_size(json_object_get(info, "processes"));

	expect(outcome, found == images, "%zu process images are in the trace, not %zu", images, found);
	json_decref(info);
}

SCENARIO(storms, children_at_once, SUPPORTED)
{
	bool many = test_all() || (python->minor == 13 && runs_by_default(python));

	expect_processes(storm(python, NULL, "children", many ? "500" : "50", many ? 500 : 50), many ? 501 : 51);
}

/* The collector may open fewer files than there are processes: they wait for their turn. */
SCENARIO(storms, children_and_few_descriptors, SUPPORTED)
{
	static const char *const words[] = {"sh", "-c", "ulimit -n 30; exec \"$@\"", "sh", NULL};

	if (!runs_by_default(python))
		return;
	expect_processes(storm(python, words, "children", "60", 60), 61);
}

SCENARIO(storms, orphans, SUPPORTED)
{
	expect_processes(storm(python, NULL, "orphans", "20", 20), 22);
}

SCENARIO(storms, live_threads, SUPPORTED)
{
	bool many = test_all() || runs_by_default(python);
	struct outcome *outcome = storm(python, NULL, "live_threads", many ? "1000" : "200", 0);
	char *shared = file_read(text("%s/shared_kib", outcome->directory), NULL);
	json_t *info = trace_info(outcome->trace);

	expect(outcome, (long)info_threads(info) == (many ? 1001 : 201), "there are %zu threads", info_threads(info));
	/* 16 rings of 4 MiB, 112 of 512 KiB, the rest of 64 KiB, and what stands before them. */
	expect(outcome, shared && atol(shared) > 0 && atol(shared) < (16 * 4096 + 112 * 512 + 872 * 64 + 8192),
	       "the shared memory has %s KiB", shared);
	json_decref(info);
}
ALSO_CALLS_ONLY(storms, live_threads)

SCENARIO(storms, short_threads_through_a_small_ring, SUPPORTED)
{
	const char *count = test_all() ? "10000" : "400";
	struct outcome *outcome = run(.python = python, .args = {"@many_threads.py", count}, .timeout_s = 200,
				      .env = {"EVPROF_RING_SIZE=64K"});
	json_t *report;

	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "", "leaf") == 10 * atol(count), "leaf was called %ld times",
	       report_calls(report, "", "leaf"));
	expect_balanced(outcome, report);
	json_decref(report);
}

SCENARIO(storms, deep_recursion, SUPPORTED)
{
	static const char *const words[] = {"sh", "-c", "ulimit -s 1000000; exec \"$@\"", "sh", NULL};
	struct outcome *outcome = storm(python, words, "recursion", "50000", 0);
	json_t *report = trace_report(outcome->trace, NULL);

	expect(outcome, report_calls(report, "storms.py", "deep") == 3 * 50001, "deep was called %ld times",
	       report_calls(report, "storms.py", "deep"));
	expect(outcome, report_primitive_calls(report, "storms.py", "deep") == 3, "three of them from outside");
	json_decref(report);
}
ALSO_CALLS_ONLY(storms, deep_recursion)

/* Who calls what at which depth is known; some caller is not, where the thread's stack is. */
static void expect_callers(const struct outcome *outcome, const char *prefix, const char *caller_prefix)
{
	struct outcome *result = tool("report", "--callers", "--format", "json", outcome->trace);
	json_t *report = json_loads(result->out, 0, NULL);
	size_t i, k, found = 0, length = strlen(prefix);
	const json_t *row, *caller;

	json_array_foreach(json_object_get(report, "functions"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "function"));

		if (strncmp(name, prefix, length) != 0)
			continue;
		json_array_foreach(json_object_get(row, "callers"), k, caller)
		{
			const char *by = json_string_value(json_object_get(caller, "function"));

			expect(outcome, strcmp(by, text("%s%s", caller_prefix, name + length)) == 0,
			       "%s is called by %s", name, by);
			found++;
		}
	}
	expect(outcome, found > 0, "calls of %s are in the report, with who made them", prefix);
	json_decref(report);
}

/* The stacks that follow gaps are deeper than the ring: the inner part is recorded, and more of it as it unwinds. */
SCENARIO(storms, deep_recursion_with_gaps, SUPPORTED)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct job job = {.args = {"sh", "-c", "ulimit -s 1000000; exec \"$@\"", "sh"},
			  .directory = directory,
			  .env = {"EVPROF_RING_SIZE=64K", "EVPROF_ON_FULL=drop"}};
	struct outcome *outcome, *result;
	json_t *report, *info;
	int n = 4;

	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "@storms.py";
	job.args[n++] = "ladder";
	job.args[n] = "50000";
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0, "the program runs");
	result = tool("info", outcome->trace);
	expect(result, result->status == 0, "the trace is whole");
	info = trace_info(outcome->trace);
	expect(outcome, json_integer_value(json_object_get(info, "lost")) > 0, "something is lost");
	report = trace_report(outcome->trace, NULL);
	for (int i = 0; i < 7; i++)
		expect(outcome, report_calls(report, "", text("rung_%d", i)) <= 50001 / 7 + 1, "no call is invented");
	expect_balanced(outcome, report);
	expect(outcome, report_calls(report, "", "rung_0") > 50001 / 7 / 2, "most of the way up was recorded");
	expect_callers(outcome, "rung_", "step_");
	json_decref(report);
	json_decref(info);
}

SCENARIO(storms, signals, SUPPORTED)
{
	const char *milliseconds = test_all() ? "5000" : "700";
	struct outcome *outcome = storm(python, NULL, "signals", milliseconds, 0);
	char *numbers = file_read(text("%s/handled", outcome->directory), NULL);
	json_t *report = trace_report(outcome->trace, NULL);
	long handled = 0, calls = 0;

	expect(outcome, numbers && sscanf(numbers, "%ld %ld", &handled, &calls) == 2 && handled > 100,
	       "signals came: %s", numbers);
	expect(outcome, report_calls(report, "storms.py", "handler") == handled,
	       "the handler was called %ld times, not %ld", handled, report_calls(report, "storms.py", "handler"));
	expect(outcome, report_calls(report, "known.py", "recurse") == 4 * calls,
	       "and the program made %ld calls, not %ld", 4 * calls, report_calls(report, "known.py", "recurse"));
	json_decref(report);
}
ALSO_CALLS_ONLY(storms, signals)

/* The event of the fork never stands within another one: it is there, or it alone is lost. */
SCENARIO(storms, forks_in_a_handler, SUPPORTED)
{
	const char *code = "import ctypes, sys\n"
			   "def leaf(): pass\n"
			   "forking = ctypes.CDLL(sys.argv[1]).forking\n"
			   "forking(2000)\n"
			   "for _ in range(3000000): leaf()\n"
			   "print(forking(0))";
	struct outcome *outcome;
	json_t *info, *report;
	long forks;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"-c", code, compile("forking.c", "forking.so", COMPILE_PLAIN)},
		      .env = {"EVPROF_EVENTS=call", "EVPROF_RING_SIZE=64M"});
	forks = atol(outcome->out);
	expect(outcome, outcome->status == 0 && forks > 10, "it forks");
	info = trace_info(outcome->trace);
	report = trace_report(outcome->trace, NULL);
	expect(outcome, info_events(info, "fork") + info_lost(info, "fork") == forks,
	       "of %ld forks %ld are there, and %ld lost", forks, info_events(info, "fork"), info_lost(info, "fork"));
	expect(outcome, report_calls(report, "<string>", "leaf") == 3000000, "each call is there: %ld",
	       report_calls(report, "<string>", "leaf"));
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

SCENARIO(storms, forks_with_threads, SUPPORTED)
{
	const char *count = test_all() ? "200" : "20";

	expect_processes(storm(python, NULL, "forks_with_threads", count, atol(count)), (size_t)atol(count) + 1);
}

SCENARIO(storms, same_pid, SUPPORTED)
{
	static const char *const words[] = {"unshare",	       "--pid", "--fork", "--mount-proc", "sh", "-c",
					    "\"$@\"; exit $?", "sh",	NULL};
	struct outcome *outcome = storm(python, words, "same_pid", "10", 10);
	char *same = file_read(text("%s/same", outcome->directory), NULL);

	expect(outcome, same && atol(same) >= 8, "children have the same pid: %s", same);
	expect_processes(outcome, 11);
}

SCENARIO(storms, chrooted, SUPPORTED)
{
	expect_processes(storm(python, NULL, "chrooted", "3", 3), 4);
}

SCENARIO(storms, unprivileged, SUPPORTED)
{
	expect_processes(storm(python, NULL, "unprivileged", "3", 4), 4);
}

SCENARIO(storms, environment_cleared, SUPPORTED)
{
	expect_processes(storm(python, NULL, "environment_cleared", "3", 3), 4);
}

/* The calls that evprof needs to join, to wake the collector and to see whether it lives. */
SCENARIO(storms, seccomp_filter_that_kills, SUPPORTED)
{
	static const char *const ways[] = {"prctl", "syscall", "thread"};

	python_needs(python, "ctypes");
	for (int i = 0; i < 3; i++) {
		struct job job = {.python = python, .how = JOB_BARE, .args = {"@own_seccomp_filter.py", ways[i]}};
		struct outcome *bare = job_run(&job), *outcome;
		json_t *report;

		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect_same(bare, outcome);
		expect(outcome, strstr(outcome->out, "filter 0\n"), "there is a filter");
		expect(outcome, stderr_evprof_lines(outcome) == (i < 2 ? 2 : 1), "%s: %u lines are said", ways[i],
		       stderr_evprof_lines(outcome));
		json_decref(expect_trace(outcome, 1));
		report = trace_report(outcome->trace, NULL);
		expect(outcome, report_calls(report, "known.py", "leaf") == 2 * 1000, "all that it did is there");
		expect_balanced(outcome, report);
		json_decref(report);
	}
}

/* A thread that may not read the time-stamp counter is recorded until then, and goes on as without evprof. */
SCENARIO(storms, counter_forbidden, SUPPORTED)
{
	static const char *const ways[] = {"seccomp", "counter", "stopped"};

	python_needs(python, "ctypes");
	for (int i = 0; i < 3; i++) {
		struct job job = {.python = python, .how = JOB_BARE, .args = {"@strict.py", ways[i]}};
		struct outcome *bare = job_run(&job), *outcome;
		json_t *report;

		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect(bare, bare->status == 3 && strcmp(bare->out, "worked on\n") == 0, "%s: it works bare", ways[i]);
		expect_same(bare, outcome);
		expect(outcome, stderr_evprof_lines(outcome) == 1 && strstr(outcome->err, "time-stamp counter"),
		       "%s: a line says why", ways[i]);
		json_decref(expect_trace(outcome, 1));
		report = trace_report(outcome->trace, NULL);
		expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "%s: all until then is there",
		       ways[i]);
		expect_balanced(outcome, report);
		json_decref(report);
	}
}

/* What Python's objects look like is found out by looking, where the kernel does not help either. */
SCENARIO(storms, may_not_peek, SUPPORTED)
{
	struct job job = {
	    .python = python,
	    .how = JOB_BARE,
	    .args = {"@refuses.py", "EPERM", "process_vm_readv,process_vm_writev", "python", "@known.py"}};
	struct outcome *bare, *outcome;
	json_t *report;

	python_needs(python, "ctypes");
	bare = job_run(&job);
	job.how = JOB_PRELOAD;
	outcome = job_run(&job);
	expect_same(bare, outcome);
	expect(outcome, strstr(outcome->out, "filter 0\n"), "there is a filter");
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "what runs under the filter is there");
	json_decref(report);
}

/* A filter that was there before, with each call of evprof's that it may end a process for, and with none. */
SCENARIO(storms, seccomp_filter_from_before, SUPPORTED)
{
	static const char *const calls[] = {"memfd_create", "socket", "connect", "sendmsg", "pidfd_open", "none"};

	python_needs(python, "ctypes");
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct job job = {.python = python,
				  .how = JOB_BARE,
				  .args = {"@own_seccomp_filter.py", "execute", calls[i]},
				  .env = {"EVPROF=0"}};
		struct outcome *bare = job_run(&job), *outcome;

		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect(outcome, bare->status == 0 && strstr(outcome->out, "filter 0\n"), "there is a filter");
		expect_same(bare, outcome);
		expect(outcome, stderr_evprof_lines(outcome) == 1, "%s: %u lines are said", calls[i],
		       stderr_evprof_lines(outcome));
		if (!strcmp(calls[i], "none"))
			json_decref(expect_trace(outcome, 1));
		else
			expect(outcome, strstr(outcome->err, "seccomp filter") && !outcome->traces,
			       "%s: the line says why nothing is recorded", calls[i]);
	}
}

/*
 * Calls that old containers and SystemCallFilter= refuse. The program begins at once, and is recorded where there is
 * another way; where there is none the lines say which call it is, and no other reason.
 */
static void expect_refused(const struct python *python, const char *error, const char *call, bool run)
{
	struct job job = {.python = python,
			  .how = JOB_PRELOAD,
			  .args = {"@refuses.py", error, call, "/usr/bin/env", "python", "@known.py"},
			  .env = {"EVPROF=0"}};
	struct outcome *outcome;
	json_t *report;

	if (run) {
		const char *const args[] = {"@refuses.py", error,    call, "%B/evprof", "run",
					    "--format",	   "folded", "--", "python",	"@known.py"};

		job.how = JOB_BARE;
		memcpy(job.args, args, sizeof(args));
	}
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "filter 0\n") && outcome->seconds < 5,
	       "%s %s: nothing waits: %.1f s", call, error, outcome->seconds);
	expect(outcome, !strstr(outcome->err, "CPython 3.6"), "%s %s: no false reason", call, error);
	if (strcmp(call, "memfd_create") == 0 || strstr(outcome->err, "pidfd_open()")) { /* before Linux 6.5 */
		expect(outcome, !outcome->traces && stderr_evprof_lines(outcome) == (run ? 2 : 1), "%s %s: it is said",
		       call, error);
		expect(outcome,
		       !run || strstr(stderr_evprof_line(outcome, 1),
				      "nothing was recorded: a filter refuses memfd_create()"),
		       "%s %s: the closing line has the reason", call, error);
		return;
	}
	json_decref(expect_trace(outcome, 1));
	expect(outcome, !run || system(text("ls '%s'/*.folded >/dev/null", outcome->directory)) == 0,
	       "%s %s: the format is there", call, error);
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "%s %s: it is recorded", call, error);
	json_decref(report);
}

SCENARIO_SOME(storms, refused_calls, SUPPORTED)
{
	static const char *const calls[] = {"memfd_create", "pidfd_open", "accept4"};

	python_needs(python, "ctypes");
	if (python->chrooted)
		cr_skip_test("what leads into its root is not there for evprof run");
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		expect_refused(python, "EPERM", calls[i], true);
		expect_refused(python, "ENOSYS", calls[i], false);
	}
}

/* The rings are 380 MiB, which the kernel would fill to write them into a core. */
SCENARIO(storms, cores_without_rings, SUPPORTED)
{
	static const char program[] = "import sys\n"
				      "maps = open('/proc/self/smaps').read().split('\\nVmFlags:')\n"
				      "flags = [after.split('\\n')[0].split() for map, after in zip(maps, maps[1:])\n"
				      "         if 'memfd:evprof' in map]\n"
				      "sys.exit(0 if flags and all('dd' in one for one in flags) else 1)\n";
	struct outcome *outcome = run(.python = python, .args = {"-c", program});

	expect(outcome, outcome->status == 0, "the mapping is left out of cores");
	json_decref(expect_trace(outcome, 1));
}

/* Nor do they become memory where the program has all that it maps kept there. */
SCENARIO(storms, memory_locked_without_rings, SUPPORTED)
{
	static const char program[] = "import ctypes, sys\n"
				      "if sys.argv[1:] and hasattr(ctypes.CDLL(None), 'evprof_stop'):\n"
				      "    ctypes.PyDLL(None).evprof_stop()\n"
				      "print(ctypes.CDLL(None).mlockall(1))\n"
				      "status = open('/proc/self/status').read()\n"
				      "sys.exit(0 if int(status.split('VmLck:')[1].split()[0]) < 100000 else 1)\n";
	struct outcome *bare, *outcome;

	python_needs(python, "ctypes");
	if (python_is_free_threaded(python))
		cr_skip_test("its allocator locks a gigabyte in a bare run");
	if (built_with_asan())
		cr_skip_test("the sanitizer's own terabytes would be locked");
	for (int i = 0; i < 2; i++) { /* recorded, and stopped */
		const char *stop = i ? "stop" : NULL;

		bare = run(.python = python, .how = JOB_BARE, .args = {"-c", program, stop});
		outcome = run(.python = python, .args = {"-c", program, stop});
		expect_same(bare, outcome);
		expect(outcome, outcome->status == 0, "what is locked is little more than bare");
		json_decref(expect_trace(outcome, 1));
	}
}
