/*
 * test_death.c - processes that die at any moment, by whatever there is to die of: every call that had begun is in the
 * trace, the file is whole, and info says how each of them ended.
 *
 * A thousand deaths with EVPROF_TEST_ALL=1, a few for each interpreter otherwise.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile.h"
#include "harness.h"
#include "strike.h"

#define DEATHS_ALL 112 /* for each interpreter; nine make a thousand */
#define DEATHS_FEW 2
#define DELAY_MAX_US 150000

struct cause {
	const char *entries, *end;
	int signal; /* from outside */
	void (*act)(const struct strike *strike);
	int status;
	const char *how, *result; /* of info --json, and a word of info */
	unsigned processes;	  /* images in the trace */
};

static const struct cause causes[] = {
    {"1", "forever", SIGKILL, strike_program, -SIGKILL, "killed", "SIGKILL", 1},
    {"1", "os_exit", 0, NULL, 7, "exit", "status 7", 1},
    {"3", "forever", SIGKILL, strike_program, -SIGKILL, "killed", "SIGKILL", 1},
    {"3", "exec", 0, NULL, 9, "exec", "exec", 2},
    {"2", "forever", SIGKILL, strike_program_while_stopped, -SIGKILL, "killed", "SIGKILL", 1},
    {"1", "forever", SIGSEGV, strike_program, -SIGSEGV, "killed", "SIGSEGV", 1},
    {"p4", "forever", SIGKILL, strike_program_group, -SIGKILL, "killed", "SIGKILL", 4},
    {"3", "segfault", 0, NULL, -SIGSEGV, "killed", "SIGSEGV", 1},
    {"3", "forever", SIGABRT, strike_program, -SIGABRT, "killed", "SIGABRT", 1},
    {"1", "exec_other", 0, NULL, 8, "exec", "exec", 1},
    {"3", "os_exit", 0, NULL, 7, "exit", "status 7", 1},
    {"1", "abort", 0, NULL, -SIGABRT, "killed", "SIGABRT", 1},
    {"3", "forever", SIGTERM, strike_program, -SIGTERM, "killed", "SIGTERM", 1},
};

#define CAUSES (sizeof(causes) / sizeof(*causes))

/*
 * Every call that had begun is in the trace; one that was about to begin may be there. Without a GIL, other
 * threads go on while one of them ends the process: what they do in these moments is not looked at. cause: NULL where
 * it is a signal.
 */
static void expect_calls(const struct python *python, const struct cause *cause, const struct outcome *outcome,
			 const struct oracle *oracle, const char *what)
{
	bool goes_on = cause && !cause->signal && python_is_free_threaded(python);
	json_t *report = trace_report(outcome->trace, NULL);
	long begun = oracle_begun(oracle), ended = oracle_ended(oracle);
	long calls = report_calls(report, "counting.py", "leaf");

	expect(outcome, calls >= (goes_on ? 1 : ended) && calls <= begun,
	       "%s: %ld calls ended and %ld were begun, the trace has %ld", what, ended, begun, calls);
	expect(outcome, begun > 0, "%s: the program had begun", what);
	expect_balanced(outcome, report);
	json_decref(report);
}

static void expect_reported(const struct outcome *outcome, const struct cause *cause, const char *what)
{
	json_t *info = trace_info(outcome->trace);
	const json_t *process, *number;
	struct outcome *result = tool("info", outcome->trace);
	size_t i;

	json_array_foreach(json_object_get(info, "processes"), i, process)
	{
		const char *how = json_string_value(json_object_get(process, "how"));

		if (i > 0 && strcmp(cause->how, "killed") != 0)
			continue;
		expect(result, how && strcmp(how, cause->how) == 0, "%s: process %zu ended by %s, not %s", what, i, how,
		       cause->how);
		number = json_object_get(process, "signal");
		expect(result, cause->status >= 0 || json_integer_value(number) == -cause->status,
		       "%s: the signal of process %zu is %lld", what, i, (long long)json_integer_value(number));
	}
	expect(result, strstr(result->out, cause->result), "%s: info says %s", what, cause->result);
	if (strcmp(cause->how, "killed") == 0) {
		result = tool("report", "-n", "1", outcome->trace);
		expect(result, strstr(result->err, cause->result), "%s: report says %s", what, cause->result);
	}
	json_decref(info);
}

/* A forked process that dies before it has run at all leaves no event. */
static void expect_images(const struct outcome *outcome, const struct cause *cause, const struct oracle *oracle,
			  const char *what)
{
	json_t *info = trace_info(outcome->trace);
	size_t images = json_array_size(json_object_get(info, "processes"));
	size_t least = *cause->entries == 'p' ? oracle_entries(oracle) : cause->processes;

	expect(outcome, images >= least && images <= cause->processes, "%s: the trace has %zu images, not %zu to %u",
	       what, images, least, cause->processes);
	json_decref(info);
}

static void die_once(const struct python *python, const char *directory, struct oracle *oracle, unsigned number)
{
	const struct cause *cause = &causes[number % CAUSES];
	long delay_us = random() % DELAY_MAX_US;
	char *seconds = text("%.6f", (double)delay_us / 1e6);
	char *what =
	    text("%s %s %s, signal %d after %ld us", cause->entries, cause->end, seconds, cause->signal, delay_us);
	struct outcome *outcome;

	oracle_clear(oracle);
	if (cause->act)
		strike((struct strike){
		    .oracle = oracle, .delay_us = delay_us, .act = cause->act, .argument = cause->signal});
	outcome = run(.python = python, .args = {"@counting.py", cause->entries, cause->end, seconds},
		      .directory = directory, .env = {"EVPROF_OUTPUT=death.evp"});
	expect(outcome, outcome->status == cause->status, "%s: the status is %d, not %d", what, outcome->status,
	       cause->status);
	json_decref(expect_trace(outcome, 0));
	expect_calls(python, cause, outcome, oracle, what);
	expect_reported(outcome, cause, what);
	expect_images(outcome, cause, oracle, what);
	free(what);
	free(seconds);
}

SCENARIO(death, at_any_moment, SUPPORTED)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct oracle *oracle = oracle_new(directory);
	unsigned deaths = test_at_length(python) ? DEATHS_ALL : DEATHS_FEW;

	python_needs(python, "ctypes");
	srandom((unsigned)getpid());
	for (unsigned i = 0; i < deaths; i++)
		die_once(python, directory, oracle, (unsigned)python->minor * DEATHS_FEW + i);
}

/* What runs when a process dies has run until then. */
SCENARIO(death, calls_end_with_the_process, SUPPORTED)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct oracle *oracle = oracle_new(directory);
	struct outcome *outcome;
	json_t *report;

	strike((struct strike){.oracle = oracle, .delay_us = 600000, .act = strike_program, .argument = SIGKILL});
	outcome = run(.python = python, .args = {"@counting.py", "3", "sleep"}, .directory = directory);
	expect(outcome, outcome->status == -SIGKILL, "it is killed");
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_seconds(report, "", "<built-in method time.sleep>") > 0.4,
	       "time.sleep ran 0.6 s until the death, not %.3f s",
	       report_seconds(report, "", "<built-in method time.sleep>"));
	expect(outcome, report_seconds(report, "", "forever_asleep") > 0.4, "and so did its caller: %.3f s",
	       report_seconds(report, "", "forever_asleep"));
	json_decref(report);
}

/* What a thread did last is there, though it might have been taken back (writer_hold). */
SCENARIO(death, last_event, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@last_block.py"}, .env = {"EVPROF_CHILDREN=0"});
	size_t count, found = 0;
	struct event *events;

	expect(outcome, outcome->status == -SIGKILL, "it is killed");
	json_decref(expect_trace(outcome, 1));
	events = trace_dump(outcome->trace, &count);
	for (size_t i = 0; i < count; i++)
		found += strcmp(events[i].kind, "malloc") == 0 && events[i].size > 54321 && events[i].size < 54321 + 64;
	expect(outcome, found == 1, "the block of os.read() is there once, not %zu times", found);
	free(events);
}

/* The limit of the processor's time: the kernel ends it. */
SCENARIO(death, processor_time_used_up, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct oracle *oracle = oracle_new(directory);
	struct outcome *outcome;

	outcome = run(.python = python, .args = {"@counting.py", "1", "cpu", "1"}, .directory = directory);
	expect(outcome, outcome->status == -SIGKILL || outcome->status == -SIGXCPU, "the limit kills it, not %d",
	       outcome->status);
	json_decref(expect_trace(outcome, 1));
	expect_calls(python, NULL, outcome, oracle, "one second of processor time");
}

/* The collector is small, and is not ended in place of a program. */
SCENARIO(death, out_of_memory, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory, *group = strike_memory_group();
	struct oracle *oracle = oracle_new(directory);
	struct job job = {.directory = directory,
			  .env = {"EVPROF_OUTPUT=death.evp"},
			  .args = {"sh", "-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"", group}};
	struct outcome *outcome;
	int n = 4;

	if (!group)
		cr_skip_test("no control group for memory can be made here");
	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "@counting.py";
	job.args[n++] = "2";
	job.args[n] = "memory";
	outcome = job_run(&job);
	rmdir(group);
	expect(outcome, outcome->status == -SIGKILL, "the kernel ends it for want of memory, not status %d",
	       outcome->status);
	json_decref(expect_trace(outcome, 0));
	expect_calls(python, NULL, outcome, oracle, "out of memory");
}

/* A handler on an alternate signal stack has little room: ways out of it do what they do without evprof. */
SCENARIO(death, on_a_small_stack, SUPPORTED)
{
	static const struct {
		const char *way;
		int status;
		bool finishes; /* the program prints the closing line */
	} ways[] = {{"_exit", 3, true}, {"exit", 5, true}, {"abort", -SIGABRT, false},
		    {"exec", 4, false}, {"fork", 0, true}, {"exec fails", 0, true}};
	static const char *const sizes[] = {"8192", "0"};
	const char *library = compile("small_stack.c", "small_stack.so", COMPILE_PLAIN);

	if (built_with_asan())
		cr_skip_test("the sanitizer's frames are larger than a small stack");
	python_needs(python, "ctypes");
	for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(*ways); i++) {
		const char *way = ways[i / 2].way, *size = sizes[i % 2];
		struct job job = {.python = python, .how = JOB_BARE, .args = {"@small_stack.py", library, way, size}};
		struct outcome *bare = job_run(&job), *outcome;

		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		if (bare->status != ways[i / 2].status && i % 2) /* too small for libc itself */
			continue;
		expect(bare, bare->status == ways[i / 2].status, "%s ends with %d", way, ways[i / 2].status);
		expect_same(bare, outcome);
		expect(outcome, stderr_evprof_lines(outcome) == (ways[i / 2].finishes ? 1 : 0),
		       "%s on %s bytes: the closing line", way, size);
	}
}
