/*
 * test_parallel.c - threads that run at the same time: programs/parallel.py, whose counts are known, on builds without
 * the GIL and, for comparison, on those of the same version and later with it.
 *
 * cProfile is no judge here: it takes all threads for one. The program knows how often each thread does what.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define THREADS 8
#define PARALLEL 13 /* the first 3.x that may have no GIL */

static void expect_count(const struct outcome *outcome, const json_t *report, const char *function, long count)
{
	long got = report_calls(report, "", function);

	expect(outcome, got == count, "%s was called %ld times, not %ld", function, got, count);
}

/* The same bare and profiled; no event lost, each call with its end. */
static struct outcome *run_part(const struct python *python, const char *part, const char *variable)
{
	struct job job = {
	    .python = python, .how = JOB_BARE, .args = {"-W", "ignore", "@parallel.py", part}, .env = {variable}};
	struct outcome *bare = job_run(&job), *outcome;

	expect(bare, bare->status == 0, "%s runs bare", part);
	job.how = JOB_PRELOAD;
	outcome = job_run(&job);
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 0));
	return outcome;
}

static json_t *expect_whole(const struct outcome *outcome)
{
	json_t *report = trace_report(outcome->trace, NULL);

	expect_balanced(outcome, report);
	return report;
}

static void expect_counts(const struct outcome *outcome)
{
	json_t *report = expect_whole(outcome), *info = expect_trace(outcome, 1);

	expect_count(outcome, report, "leaf", THREADS * 20000);
	expect_count(outcome, report, "<built-in method builtins.abs>", THREADS * 20000);
	expect_count(outcome, report, "fails", THREADS * 100);
	expect_count(outcome, report, "grows", THREADS * 51);
	expect(outcome, info_events(info, "exception") >= THREADS * 100, "%d exceptions are raised, not %ld",
	       THREADS * 100, info_events(info, "exception"));
	json_decref(info);
	json_decref(report);
}

SCENARIO(parallel, counts, PARALLEL)
{
	expect_counts(run_part(python, "counts", NULL));
	if (test_all()) /* rings that are full again and again */
		expect_counts(run_part(python, "counts", "EVPROF_RING_SIZE=64K"));
}

/* A function that two threads meet at once has one id: or its call and its return would have two. */
SCENARIO(parallel, definitions, PARALLEL)
{
	for (int turn = 0; turn < (test_all() ? 20 : 3); turn++) {
		struct outcome *outcome = run_part(python, "definitions", NULL);
		json_t *report = expect_whole(outcome);

		for (int i = 0; i < 600; i++)
			expect_count(outcome, report, text("first_%d", i), 2);
		json_decref(report);
	}
}

static int by_address(const void *a, const void *b)
{
	const struct event *one = *(const struct event *const *)a, *other = *(const struct event *const *)b;

	if (one->address != other->address)
		return one->address < other->address ? -1 : 1;
	return one < other ? -1 : one > other; /* the dump is in the order of time */
}

/* Blocks of 54321 bytes and a head are taken, and each is given back before another gets its place. */
SCENARIO(parallel, memory, PARALLEL)
{
	size_t size = 54321 + (python_is_free_threaded(python) ? 49 : 33), count, blocks = 0, used = 0;
	struct outcome *outcome = run_part(python, "memory", NULL);
	struct event *events = trace_dump(outcome->trace, &count);
	const struct event **memory = calloc(count + 1, sizeof(*memory));

	for (size_t i = 0; i < count; i++)
		if (!strcmp(events[i].domain, "obj"))
			memory[used++] = &events[i];
	qsort(memory, used, sizeof(*memory), by_address);
	for (size_t i = 0; i < used; i++) {
		if (memory[i]->size != size || strcmp(memory[i]->kind, "calloc") != 0)
			continue;
		blocks++;
		expect(outcome,
		       i + 1 < used && memory[i + 1]->address == memory[i]->address &&
			   !strcmp(memory[i + 1]->kind, "free"),
		       "the block at %llx is given back next, not %s", memory[i]->address,
		       i + 1 < used ? memory[i + 1]->kind : "");
	}
	expect(outcome, blocks == THREADS * 600, "%d blocks are taken, not %zu", THREADS * 600, blocks);
	free(memory);
}

SCENARIO(parallel, codes, PARALLEL)
{
	struct outcome *outcome = run_part(python, "codes", NULL);
	json_t *report = expect_whole(outcome);

	for (int thread = 0; thread < THREADS; thread++)
		for (int i = 0; i < 200; i++)
			expect_count(outcome, report, text("made_%d_%d", thread, i), 1);
	json_decref(report);
}

SCENARIO(parallel, forks, PARALLEL)
{
	struct outcome *outcome = run_part(python, "forks", NULL);
	json_t *info = expect_trace(outcome, 1 + THREADS / 2 * 5), *report = expect_whole(outcome);

	expect_count(outcome, report, "leaf", THREADS * 300 + THREADS / 2 * 5 * 7);
	json_decref(report);
	json_decref(info);
}

/* While no id is left evprof gets no events; those that it gets are right, and recorded once. */
SCENARIO(parallel, tools, PARALLEL)
{
	struct outcome *outcome = run_part(python, "tools", NULL);
	json_t *report = expect_whole(outcome);
	long calls = report_calls(report, "", "leaf");

	expect(outcome, calls > 0, "leaf was called");
	expect(outcome, report_primitive_calls(report, "", "leaf") == calls,
	       "leaf never calls itself, but %ld of %ld times", calls - report_primitive_calls(report, "", "leaf"),
	       calls);
	json_decref(report);
}

/* ---- builds that are not recorded -------------------------------------------------------------------------------- */

/* There is none to test with: so this one says that it is the next. */
SCENARIO(parallel, other_builds_are_left_alone, PARALLEL)
{
	static const char *const copy =
	    "import os, sys\n"
	    "own = sys.version.split()[0]\n"
	    "other = own.replace('3.13.', '3.14.').encode()\n"
	    "program = open(sys.executable, 'rb').read()\n"
	    "assert own.encode() in program and len(other) == len(own)\n"
	    "with open('python', 'wb') as file: file.write(program.replace(own.encode(), other))\n"
	    "os.chmod('python', 0o755)\n";
	struct outcome *made, *outcome;

	python_needs(python, "freethreaded");
	python_needs(python, "static");
	made = run(.python = python, .how = JOB_BARE, .args = {"-c", copy});
	expect(made, made->status == 0, "a copy with another version is made");
	outcome = run(.args = {"./python", "-c", "import sys; print(sys.version.split()[0][:4])"},
		      .directory = made->directory, .env = {text("PYTHONHOME=%s", python_home(python))});
	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "3.14\n"), "it runs");
	expect(outcome, stderr_evprof_lines(outcome) == 1, "one line is said, not %u", stderr_evprof_lines(outcome));
	expect(outcome, strstr(stderr_evprof_line(outcome, 0), "free-threaded Python 3.14 is not recorded"),
	       "it names the version: %s", stderr_evprof_line(outcome, 0));
	expect(outcome, outcome->traces == 0, "no trace was written");
}

/* ---- the GIL in a build that can do without ---------------------------------------------------------------------- */

SCENARIO(parallel, gil_by_variable, PARALLEL)
{
	python_needs(python, "freethreaded");
	expect_counts(run_part(python, "counts", "PYTHON_GIL=1"));
	expect_counts(run_part(python, "counts", "PYTHON_GIL=0"));
}

SCENARIO(parallel, gil_by_option, PARALLEL)
{
	static const char *const code = "import sys\n"
					"def leaf(): pass\n"
					"for _ in range(77): leaf()\n"
					"print(sys._is_gil_enabled())\n";
	struct outcome *outcome;
	json_t *report;

	python_needs(python, "freethreaded");
	outcome = run(.python = python, .args = {"-X", "gil=1", "-c", code});
	expect(outcome, !strcmp(outcome->out, "True\n"), "the GIL is there");
	json_decref(expect_trace(outcome, 1));
	report = expect_whole(outcome);
	expect_count(outcome, report, "leaf", 77);
	json_decref(report);
}

SCENARIO(parallel, gil_by_extension, PARALLEL)
{
	static const char *const where = "import sysconfig; print(sysconfig.get_path('include'), end='')";
	struct outcome *built, *outcome;
	char *include;
	json_t *report;

	python_needs(python, "freethreaded");
	include = run(.python = python, .how = JOB_BARE, .args = {"-c", where})->out;
	built = run(.how = JOB_BARE,
		    .args = {"cc", "-shared", "-fPIC", "-o", "needs_gil.so", text("-I%s", include), "@needs_gil.c"});
	if (built->status)
		cr_skip_test("%s has no headers", python->name);
	outcome = run_part(python, "switched", text("PYTHONPATH=%s", built->directory));
	expect(outcome, strstr(outcome->out, "42 True"), "the extension has switched the GIL on");
	report = expect_whole(outcome);
	expect_count(outcome, report, "leaf", THREADS * 20000);
	json_decref(report);
}
