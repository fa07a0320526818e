/*
 * test_triggers.c - what the collector copies by itself (EVPROF_TRIGGER): what led to a slow call, a blocked event
 * loop, grown memory, an uncaught exception. The oracle is the stopwatch of the program (triggers.py), which times each
 * of its numbered calls.
 */
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

/*
 * From the end of a slow call until the program sees the copy: about a second on an idle machine. It must not be the
 * program's end that has it made.
 */
#define LATENCY_S 25.0

/* What the program noted of one of its calls. */
struct timed {
	long number;
	double end, seconds;
};

/* The calls that took longer than that, in their order. Free it. */
static struct timed *slow_calls(const char *stamps, double seconds, unsigned *count)
{
	struct timed *slow = NULL, one;

	*count = 0;
	for (char *at = file_read(stamps, NULL), *end; at && (end = strchr(at, '\n')); at = end + 1) {
		cr_assert_eq(sscanf(at, "%ld %lf %lf", &one.number, &one.end, &one.seconds), 3);
		if (one.seconds <= seconds)
			continue;
		slow = realloc(slow, (*count + 1) * sizeof(*slow));
		slow[(*count)++] = one;
	}
	return slow;
}

/* The path of the only copy of that name (a glob); NULL: there is none. */
static char *copy_named(const char *folder, const char *name, unsigned wanted)
{
	glob_t found;
	char *path = NULL;

	if (glob(text("%s/%s", folder, name), 0, NULL, &found) == 0 && found.gl_pathc)
		path = text("%s", found.gl_pathv[0]);
	cr_expect_eq(path ? found.gl_pathc : 0, wanted, "%u copies %s", path ? (unsigned)found.gl_pathc : 0, name);
	globfree(&found);
	return path;
}

/* The copy is a trace of its own, and has the whole call with its seven callees. */
static void expect_call(const char *path, const struct timed *call, double seen)
{
	struct outcome *info = tool("info", path);
	json_t *report = trace_report(path, NULL);

	expect(info, info->status == 0 && strstr(info->out, "\nstate     complete\n"), "the copy is whole");
	cr_expect_eq(report_calls(report, "<string>", text("view_%ld", call->number)), 1, "it has the slow call");
	cr_expect(report_seconds(report, "<string>", text("view_%ld", call->number)) > call->seconds - 0.02,
		  "from its beginning: %.3f of %.3f s",
		  report_seconds(report, "<string>", text("view_%ld", call->number)), call->seconds);
	cr_expect(report_calls(report, "/triggers.py", "step") >= 7, "with its callees");
	json_decref(report);
	cr_expect(seen - call->end < LATENCY_S, "it was there %.3f s after the call", seen - call->end);
}

/* Runs triggers.py, and compares the only copy with the first call that its stopwatch says was too slow. */
static void expect_first(const struct python *python, const char *trigger, const char *keep, const char *how,
			 const char *name)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@triggers.py", "stamps", "30", "12", how, name}, .lingers = true,
		.env = {text("EVPROF_TRIGGER=%s", trigger), "EVPROF_OUTPUT=t.evp", "EVPROF_EVENTS=call", keep});
	unsigned count;
	struct timed *slow = slow_calls(text("%s/stamps", outcome->directory), 0.5, &count);
	char *path = copy_named(outcome->directory, name, 1);

	expect(outcome, outcome->status == 0 && count > 0 && path, "it was slow, and a copy was made");
	if (count && path)
		expect_call(path, &slow[0], strtod(outcome->out, NULL));
	free(slow);
}

/* A call of a function, in a recording of all, and in one that keeps its last stretch. */
SCENARIO(triggers, slow_call, SUPPORTED)
{
	expect_first(python, "*:view_*>500ms", NULL, "call", "t-*-view_-500ms-1.evp");
	expect_first(python, "*:view_*>500ms", "EVPROF_KEEP=20s", "call", "t-*-view_-500ms-1.evp");
}

/* A callback (even numbers) of an event loop, or a step of a task, that blocks it. */
SCENARIO(triggers, blocked_loop, SUPPORTED)
{
	expect_first(python, "loop>500ms", NULL, "loop", "t-*-loop-500ms-1.evp");
}

/* Each time the memory grows above the bound, once, and not while it stays there. */
SCENARIO(triggers, grown_memory, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@triggers.py", "stamps", "40", "10,25", "memory"}, .lingers = true,
		.env = {"EVPROF_TRIGGER=rss>64M,quiet=1s", "EVPROF_OUTPUT=t.evp", "EVPROF_EVENTS=call"});
	char *path;
	json_t *report;

	expect(outcome, outcome->status == 0, "it ran");
	path = copy_named(outcome->directory, "t-*-rss-64M-1.evp", 1);
	copy_named(outcome->directory, "t-*-rss-64M-*.evp", 2);
	if (!path)
		return;
	report = trace_report(path, NULL);
	cr_expect_eq(report_calls(report, "<string>", "view_10"), 1, "the call that allocated is there");
	cr_expect_eq(report_calls(report, "<string>", "view_39"), 0, "and not what came long after it");
	json_decref(report);
}

/* A child that ends at once: the session has forgotten it when the call is found. */
SCENARIO(triggers, ended_child, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@ended_child.py", "t-*-job-500ms-1.evp"}, .lingers = true,
		.env = {"EVPROF_TRIGGER=*:job>500ms", "EVPROF_OUTPUT=t.evp", "EVPROF_EVENTS=call"});
	char *path = copy_named(outcome->directory, "t-*-job-500ms-1.evp", 1);
	json_t *report;

	expect(outcome, outcome->status == 0 && path, "a copy was made");
	if (!path)
		return;
	cr_expect(strstr(path, text("/t-%ld-job-", strtol(outcome->out, NULL, 10))), "%s has the child's pid", path);
	report = trace_report(path, NULL);
	cr_expect_eq(report_calls(report, "/ended_child.py", "job"), 1, "it has the slow call");
	cr_expect_eq(report_calls(report, "/ended_child.py", "work_of_parent"), 0, "of the child alone");
	json_decref(report);
}

/* At most one in the quiet time, and no more than the list allows. */
SCENARIO_SOME(triggers, bounded, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@triggers.py", "stamps", "42", "5,6,15,22,29,36"}, .lingers = true,
		.env = {"EVPROF_TRIGGER=*:view_*>500ms,*:work>500ms,quiet=1s,most=3", "EVPROF_OUTPUT=t.evp"});

	expect(outcome, outcome->status == 0, "it ran");
	copy_named(outcome->directory, "t-*-*00ms-*.evp", 3);
	outcome = run(.python = python, .args = {"@triggers.py", "stamps", "10", "5,6,7,8"}, .lingers = true,
		      .env = {"EVPROF_TRIGGER=*:view_*>500ms", "EVPROF_OUTPUT=t.evp"});
	copy_named(outcome->directory, "t-*-view_-500ms-*.evp", 1);
}

static void expect_batches(const char *path, bool main)
{
	struct outcome *info = tool("info", path);
	json_t *report = trace_report(path, NULL);

	expect(info, info->status == 0, "the copy is whole");
	cr_expect_eq(report_calls(report, "<string>", "batch_thread"), 1, "what came before is there");
	cr_expect_eq(report_calls(report, "<string>", "batch_main"), main);
	json_decref(report);
}

/* In a thread, and in the program. It prints what it prints without evprof, and has its status. */
SCENARIO(triggers, uncaught, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@uncaught.py", "0"});
	struct outcome *outcome = run(.python = python, .args = {"@uncaught.py", "1.5"}, .lingers = true,
				      .env = {"EVPROF_TRIGGER=exception,quiet=1s", "EVPROF_OUTPUT=t.evp"});
	char *first = copy_named(outcome->directory, "t-*-exception-1.evp", 1);
	char *second = copy_named(outcome->directory, "t-*-exception-2.evp", 1);

	expect_same(bare, outcome);
	expect(outcome, stderr_evprof_lines(outcome) == 1, "the closing line alone");
	copy_named(outcome->directory, "t-*-exception-*.evp", 2);
	if (first && second) {
		expect_batches(first, false);
		expect_batches(second, true);
	}
	outcome = run(.python = python, .args = {"@uncaught.py", "0"}, .env = {"EVPROF_OUTPUT=t.evp"});
	copy_named(outcome->directory, "t-*-*.evp", 0);
}

/* A daemon's policy, for a program that wants none, and whose user may read the copy. */
SCENARIO_SOME(triggers, of_a_daemon, SUPPORTED)
{
	const char *directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	char *socket = text("%s/evprof.sock", directory);
	struct background *daemon = background_start(
	    &(struct job){.how = JOB_BARE,
			  .args = {"%B/evprof-collector", "--socket", socket, "--output-dir",
				   text("%s/traces", directory), "--trigger", "*:view_*>500ms", "--keep-last", "20s"}});
	struct outcome *outcome;
	struct timed *slow;
	unsigned count;
	char *path;

	background_listens(daemon, socket);
	outcome = run(.python = python,
		      .args = {"@triggers.py", "stamps", "30", "12", "call", text("%s/traces/*-1.evp", directory)},
		      .lingers = true, .env = {text("EVPROF_SOCKET=%s", socket)});
	slow = slow_calls(text("%s/stamps", outcome->directory), 0.5, &count);
	path = copy_named(text("%s/traces", directory), "*-view_-500ms-1.evp", 1);
	cr_assert(count && path, "%s", file_read(daemon->log, NULL));
	expect_call(path, &slow[0], strtod(outcome->out, NULL));
	free(slow);
	cr_expect_eq(background_stop(daemon), 0, "%s", file_read(daemon->log, NULL));
	cr_expect(strstr(file_read(daemon->log, NULL), "-view_-500ms-1.evp has what process "), "its log says so");
}

/* The pid of a child of a process that runs `evprof watch`; 0: none. */
static int watcher_of(pid_t parent)
{
	char *children = file_read(text("/proc/%d/task/%d/children", (int)parent, (int)parent), NULL), *at = children;

	for (long pid; at && (pid = strtol(at, &at, 10)) > 0;) {
		char *command = file_read(text("/proc/%ld/cmdline", pid), NULL);

		if (command && !strcmp(command, "evprof") && !strcmp(command + 7, "watch"))
			return (int)pid;
	}
	return 0;
}

static bool blocks_nothing(int pid)
{
	return strstr(file_read(text("/proc/%d/status", pid), NULL), "\nSigBlk:\t0000000000000000\n");
}

/* The tools of a collector do not have its blocked signals: it ends them by SIGTERM, as anybody may. */
SCENARIO(triggers, watcher_takes_signals, SCENARIO_ONCE)
{
	const char *directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	char *socket = text("%s/evprof.sock", directory);
	struct background *daemon =
	    background_start(&(struct job){.how = JOB_BARE,
					   .args = {"%B/evprof-collector", "--socket", socket, "--output-dir",
						    text("%s/traces", directory), "--trigger", "*:view_*>500ms"}});
	struct background *program;
	int watcher = 0;

	(void)python;
	background_listens(daemon, socket);
	program = background_start(&(struct job){.python = python_any(),
						 .args = {"-c", "import time; time.sleep(60)"},
						 .env = {text("EVPROF_SOCKET=%s", socket)}});
	for (int i = 0; i < 6000 && !(watcher = watcher_of(daemon->pid)); i++)
		usleep(10000);
	cr_assert(watcher > 0, "%s", file_read(daemon->log, NULL));
	/* It has its collector's mask a moment long. */
	for (int i = 0; i < 500 && !blocks_nothing(watcher); i++)
		usleep(10000);
	cr_expect(blocks_nothing(watcher));
	kill(watcher, SIGTERM);
	for (int i = 0; i < 6000 && watcher_of(daemon->pid) == watcher; i++)
		usleep(10000);
	cr_expect_neq(watcher_of(daemon->pid), watcher, "SIGTERM ends it");
	background_stop(program);
	cr_expect_eq(background_stop(daemon), 0, "%s", file_read(daemon->log, NULL));
}

/* By hand, of a trace that is there: every slow call has a line. */
SCENARIO_SOME(triggers, watched_by_hand, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@triggers.py", "stamps", "20", "3,12"}), *watched;
	unsigned count, lines = 0;
	struct timed *slow = slow_calls(text("%s/stamps", outcome->directory), 0.5, &count);

	watched = tool("watch", "--trigger", "*:view_*>500ms,loop>1s", outcome->trace);
	expect(watched, watched->status == 0, "it ran");
	for (char *at = watched->out, *end; (end = strchr(at, '\n')); at = end + 1, lines++) {
		unsigned long long ns;
		long number;
		unsigned trigger;

		cr_assert_eq(sscanf(at, "%u\t%*d\t%*u\t%*d\t%llu\tview_%ld\n", &trigger, &ns, &number), 3, "%s", at);
		cr_assert(lines < count && !trigger && number == slow[lines].number, "%s", at);
		cr_expect(fabs((double)ns / 1e9 - slow[lines].seconds) < 0.02, "%s: %.3f s", at, slow[lines].seconds);
	}
	cr_expect(lines >= 2 && lines == count, "%u lines for %u slow calls", lines, count);
	free(slow);
}

SCENARIO(triggers, misused, SCENARIO_ONCE)
{
	static const char *const wrong[] = {"view>500ms", "app:view>500", "app:view", "loop>0s",	  "rss>1T",
					    "rss>1s",	  "exceptions",	  "quiet=1s", "most=0,exception", ":>1s"};

	(void)python;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct outcome *outcome =
		    run(.how = JOB_BARE, .args = {"%B/evprof", "run", "--trigger", wrong[i], "true"});

		expect(outcome, outcome->status == 125 && strstr(outcome->err, "MODULE:FUNCTION>TIME, loop>TIME"),
		       "%s: one line says what is allowed", wrong[i]);
		outcome = tool("watch", "--trigger", wrong[i], "x.evp");
		expect(outcome, outcome->status == 2 && strstr(outcome->err, "MODULE:FUNCTION>TIME, loop>TIME"),
		       "watch");
		outcome = run(.how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", "s", "--output-dir", ".",
							"--trigger", wrong[i]});
		expect(outcome, outcome->status == 2 && strstr(outcome->err, "--trigger is a list"), "collector");
	}
}
