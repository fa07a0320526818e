/*
 * test_memory_limits.c - programs at the limits of memory: no memory is left, the kernel ends them for want of it, they
 * are killed while they allocate, they reserve far more than there is, they have a million blocks of one stack, they
 * free what was never seen. What the trace has is compared with what the programs counted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocations.h"
#include "compile.h"
#include "harness.h"
#include "strike.h"

#define STEP 1000003 /* limits.c */
#define THREADS 4
#define SIZE_OF_THREAD 5001 /* and its number */
#define KILLS_MANY 40
#define KILLS_FEW 2

static const char *library(void)
{
	needs_own_malloc();
	return compile("limits.c", "limits.so", COMPILE_ALLOCATING);
}

/* Failed allocations are in the trace, without an address, and nobody has their bytes. */
SCENARIO(memory_limits, no_memory_left, SUPPORTED)
{
	const char *own = library();
	const char *const words[] = {"@limits.py", own, "memory_error", "300000000", NULL};
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {words[0], words[1], words[2], words[3]});
	struct outcome *outcome =
	    run(.python = python, .args = {words[0], words[1], words[2], words[3]}, .env = {MALLOC_EVENTS});
	size_t count, failed = 0, late = 0, made = 0;
	const struct event *events;
	json_t *process;

	expect(bare, bare->status == 0 && strstr(bare->out, "MemoryError (), some 10000033"), "memory runs out");
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
	events = trace_dump(outcome->trace, &count);
	for (size_t i = 0; i < count; i++) {
		failed += !events[i].address && events[i].size >= 10000019 && events[i].size < 10000060;
		late += !events[i].address && events[i].size == 900000011 && !strcmp(events[i].domain, "malloc");
		made += events[i].address && events[i].size >= 10000019 && events[i].size < 10000060;
	}
	expect(outcome, failed == 1 && late == 5, "%zu and %zu failures", failed, late);
	process = memory_process(outcome, "function");
	expect(outcome,
	       memory_site(process, "fill", "peak_bytes") >= (long long)made * 10000020 &&
		   memory_site(process, "fill", "peak_bytes") < (long long)made * 10000020 + 20000,
	       "%zu blocks are at the peak, and not %lld bytes", made, memory_site(process, "fill", "peak_bytes"));
	cr_assert_eq(memory_site(process, "fill", "end_bytes"), 0);
	json_decref(process);
}

/* The last event of a thread that has memory. */
static const struct event *last_of_size(const struct event *events, size_t count, unsigned long long size)
{
	const struct event *last = NULL;

	for (size_t i = 0; i < count; i++)
		if (events[i].size == size && events[i].address)
			last = &events[i];
	return last;
}

static void expect_steps(const struct outcome *outcome, const struct oracle *oracle)
{
	static const char *const functions[] = {"keep_bytes", "keep_block"};
	static const unsigned long long sizes[] = {STEP + 33, STEP};
	json_t *process = memory_process(outcome, "line");
	size_t count;
	const struct event *events = trace_dump(outcome->trace, &count);

	for (unsigned i = 0; i < 2; i++) {
		long long alive = memory_site(process, functions[i], "end_bytes");
		long begun = (long)oracle->calls[i].begun, ended = (long)oracle->calls[i].ended;

		expect(outcome, ended > 3 && alive >= ended * STEP && alive <= begun * (STEP + 40) + 2000,
		       "%s: %ld to %ld blocks are alive, and not %lld bytes", functions[i], ended, begun, alive);
		expect(outcome, last_of_size(events, count, sizes[i]), "the last block of %s is there", functions[i]);
	}
	json_decref(process);
}

/* A control group of 96 MiB: the trace has all until the kernel ends the program, by line. */
SCENARIO(memory_limits, control_group, SUPPORTED)
{
	const char *own, *directory, *group;
	struct oracle *oracle;
	struct outcome *outcome;
	struct job job = {.env = {"EVPROF_EVENTS=call,c_call,mem,malloc,line"}};
	int n = 4;

	if (!runs_by_default(python))
		return;
	own = library();
	group = strike_memory_group();
	if (!group)
		cr_skip_test("no control group for memory can be made here");
	directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	oracle = oracle_new(directory);
	job.directory = directory;
	job.args[0] = "sh";
	job.args[1] = "-c";
	job.args[2] = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
	job.args[3] = group;
	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "@limits.py";
	job.args[n++] = own;
	job.args[n++] = "steps";
	job.args[n] = "100000";
	outcome = job_run(&job);
	rmdir(group);
	expect(outcome, outcome->status == -SIGKILL, "the kernel ends it for want of memory, not status %d",
	       outcome->status);
	expect_steps(outcome, oracle);
}

static void kill_once(const struct python *python, const char *own, const char *directory, struct oracle *oracle)
{
	long delay_us = 1000 + random() % 300000;
	struct outcome *outcome;

	oracle_clear(oracle);
	strike((struct strike){.oracle = oracle, .delay_us = delay_us, .act = strike_program, .argument = SIGKILL});
	outcome = run(.python = python, .args = {"@limits.py", own, "forever", text("%d", THREADS)},
		      .env = {MALLOC_EVENTS, "EVPROF_OUTPUT=killed.evp"}, .directory = directory);
	expect(outcome, outcome->status == -SIGKILL, "it is killed after %ld us", delay_us);
	json_decref(expect_trace(outcome, 1));
	for (unsigned i = 0; i < THREADS; i++) {
		size_t found = events_of_size(outcome, SIZE_OF_THREAD + i, "malloc");

		expect(outcome, found >= oracle->calls[i].ended && found <= oracle->calls[i].begun,
		       "thread %u: %lu to %lu blocks, the trace has %zu", i, (unsigned long)oracle->calls[i].ended,
		       (unsigned long)oracle->calls[i].begun, found);
	}
	unlink(outcome->trace);
}

SCENARIO(memory_limits, killed, SUPPORTED)
{
	const char *own, *directory;
	struct oracle *oracle;

	if (!runs_by_default(python))
		return;
	own = library();
	directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	oracle = oracle_new(directory);
	srandom((unsigned)getpid());
	for (int i = 0; i < (test_at_length(python) ? KILLS_MANY : KILLS_FEW); i++)
		kill_once(python, own, directory, oracle);
}

/* Half of the ranges may not even be read: they are mapped, and not resident. */
SCENARIO(memory_limits, virtual_mappings, SUPPORTED)
{
	const char *own = library();
	struct outcome *outcome = run(.python = python, .args = {"@limits.py", own, "map", "100", "1073741824"},
				      .env = {MALLOC_EVENTS}),
		       *result;
	const long long mapped = 100LL << 30;
	json_t *process;

	expect(outcome, outcome->status == 0 && strstr(outcome->out, text("mapped %lld", mapped)),
	       "it may map so much");
	json_decref(expect_trace(outcome, 1));
	process = memory_process(outcome, "function");
	expect(outcome,
	       memory_site(process, "map_much", "peak_bytes") >= mapped &&
		   memory_site(process, "map_much", "end_bytes") >= mapped &&
		   memory_site(process, "map_much", "peak_bytes") < mapped + 1000000,
	       "map_much has mapped it");
	expect(outcome, json_integer_value(json_object_get(process, "peak_rss_bytes")) < 500000000,
	       "little of it is resident");
	json_decref(process);
	result = tool("memory", outcome->trace);
	expect(result, strstr(result->out, "100 GiB mapped"), "it is said what it is");
	result = tool("check", "--max-heap", "1G", outcome->trace);
	expect(result, result->status == 1, "a limit of the heap sees it");
}

/* A stack is one entry, however many blocks it has: what reads the trace needs some tens of bytes for a block. */
SCENARIO_SOME(memory_limits, many_blocks_of_one_stack, SUPPORTED)
{
	const char *own = library(), *count = test_all() ? "1000000" : "200000";
	struct outcome *outcome = run(.python = python, .args = {"@limits.py", own, "many", count, "40"},
				      .env = {MALLOC_EVENTS}, .timeout_s = 180),
		       *result;
	json_t *root;

	json_decref(expect_trace(outcome, 1));
	result = run(.how = JOB_BARE, .timeout_s = 60,
		     .args = {"sh", "-c", "ulimit -v 300000 && exec \"$0\" memory --json --by function \"$1\"",
			      build_path("evprof"), outcome->trace});
	expect(result, result->status == 0, "300 MB of address space are enough");
	root = json_loads(result->out, 0, NULL);
	cr_assert_eq(memory_site(json_array_get(json_object_get(root, "processes"), 0), "many", "end_bytes") / 40,
		     atol(count));
	json_decref(root);
}

/* Frees of blocks from before the recording, and of those that another binding of malloc() made, and the reverse. */
SCENARIO(memory_limits, unseen_blocks, SUPPORTED)
{
	const char *own = library(), *other = compile("limits.c", "other.so", COMPILE_ALLOCATING);
	struct outcome *outcome =
	    run(.python = python, .args = {"@limits.py", own, "unseen", other}, .env = {MALLOC_EVENTS});
	json_t *process;
	long long end;

	expect(outcome, outcome->status == 0, "it ends well");
	json_decref(expect_trace(outcome, 1));
	for (unsigned i = 0; i < 1000; i += 111) {
		cr_assert_eq(events_of_size(outcome, 300 + i, "malloc"), 0);
		cr_assert_eq(events_of_size(outcome, 7001 + i, "malloc"), 0);
		cr_assert_eq(events_of_size(outcome, 9001 + i, "malloc"), 1);
	}
	/* Blocks that are freed where nobody sees it stay alive until their place has another: 9001 to 10000 bytes. */
	process = memory_process(outcome, "function");
	end = memory_site(process, "unseen", "end_bytes");
	expect(outcome, end >= 0 && end <= 1000LL * 10000, "%lld bytes", end);
	expect(outcome, memory_site(process, "unseen", "peak_bytes") < 20000000, "no size is negative");
	json_decref(process);
}
