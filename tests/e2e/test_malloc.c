/*
 * test_malloc.c - native allocations (EVPROF_EVENTS=malloc) against what the allocating code counted itself.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "compile.h"
#include "harness.h"
#include "packages.h"

#define SPECIAL 1234567 /* mallocs.c */

static const char *library(void)
{
	return compile("mallocs.c", "mallocs.so", COMPILE_ALLOCATING);
}

/* The events of a dump that belong to a thread and are native. */
struct seen {
	long calls[8], bytes[8], live;
};

static const char *const kinds[] = {"malloc", "calloc", "realloc", "free", "mmap", "munmap"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct seen count_thread(const struct event *events, size_t count, long tid)
{
	struct seen seen = {0};

	for (size_t i = 0; i < count; i++) {
		const struct event *event = &events[i];

		for (size_t kind = 0; event->tid == tid && kind < KINDS; kind++) {
			if (strcmp(event->kind, kinds[kind]) || (kind < 4 && strcmp(event->domain, "malloc")))
				continue;
			seen.calls[kind]++;
			seen.bytes[kind] += (long)event->size;
		}
	}
	return seen;
}

/* Compares each line of the program, "tid kind calls bytes", with the trace. Returns the number of lines. */
static unsigned expect_counts(const struct outcome *outcome)
{
	size_t count;
	const struct event *events = trace_dump(outcome->trace, &count);
	char *state, *out = strdup(outcome->out);
	struct seen seen = {0};
	long known = 0;
	unsigned lines = 0;

	for (char *line = strtok_r(out, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		long tid, calls, bytes;
		char kind[16];

		if (sscanf(line, "%ld %15s %ld %ld", &tid, kind, &calls, &bytes) != 4)
			continue;
		if (tid != known)
			seen = count_thread(events, count, tid);
		known = tid;
		if (!strcmp(kind, "live")) {
			expect(outcome, bytes == 0, "blocks are whole and as they were asked for");
			continue;
		}
		for (size_t i = 0; i < KINDS; i++) {
			if (strcmp(kind, kinds[i]))
				continue;
			expect(outcome, seen.calls[i] == calls, "thread %ld: %ld calls of %s, the trace has %ld", tid,
			       calls, kind, seen.calls[i]);
			expect(outcome, i == 3 || seen.bytes[i] == bytes, "thread %ld: %ld bytes of %s, not %ld", tid,
			       bytes, kind, seen.bytes[i]);
			lines++;
		}
	}
	return lines;
}

SCENARIO(malloc, threads_without_python, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome =
	    run(.python = python, .args = {"@mallocs.py", own, "threads", "4", "3000"}, .env = {MALLOC_EVENTS});

	expect(outcome, outcome->status == 0, "it ends well");
	expect_trace(outcome, 1);
	cr_assert_eq(expect_counts(outcome), 4 * KINDS);
}

/* Such a thread has no stack that a gap could make unknown, also where calls are recorded (from 3.12 on). */
SCENARIO(malloc, threads_without_python_after_gaps, 12)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome =
	    run(.python = python, .args = {"@mallocs.py", own, "threads", "4", "40000"},
		.env = {"EVPROF_EVENTS=call,malloc", "EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K"}, .timeout_s = 120);
	json_t *info = trace_info(outcome->trace), *process = memory_process(outcome, "function");
	long long missing = json_integer_value(json_object_get(process, "missing_stacks")), lost, made = 0;
	const json_t *site;
	size_t i;

	expect(outcome, outcome->status == 0, "it ends well");
	lost = info_lost(info, "malloc");
	json_array_foreach(json_object_get(process, "sites"), i, site) made +=
	    json_integer_value(json_object_get(site, "allocations"));
	expect(outcome, lost && made > 10000, "%lld allocations are lost, %lld are there", lost, made);
	expect(outcome, missing < made / 20, "%lld of %lld have no stack", missing, made);
	json_decref(process);
	json_decref(info);
}

/* The blocks of one thread come to others, which realloc them: MALLOC_ARENA_MAX=1 has glibc share all addresses. */
SCENARIO(malloc, eight_threads_that_realloc, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome = run(.python = python, .args = {"@mallocs.py", own, "threads", "8", "2000"},
				      .env = {MALLOC_EVENTS, "MALLOC_ARENA_MAX=1"}, .timeout_s = 120);
	struct outcome *folded;
	char *state, *out;

	expect(outcome, outcome->status == 0, "it ends well");
	expect_trace(outcome, 1);
	cr_assert_eq(expect_counts(outcome), 8 * KINDS);
	folded = tool("export", "--format", "folded", "--weight", "live", "-o", "-", outcome->trace);
	out = strdup(outcome->out);
	for (char *line = strtok_r(out, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		long tid, blocks, wrong;
		const char *at;

		if (sscanf(line, "%ld live %ld %ld", &tid, &blocks, &wrong) != 3 || !blocks)
			continue;
		at = strstr(folded->out, text("%ld", tid));
		expect(folded, at, "thread %ld has live blocks", tid);
	}
}

/* Another thread gets the old block before the realloc() is recorded. */
SCENARIO(malloc, a_raced_realloc, SUPPORTED)
{
	const char *own = (needs_own_malloc(), compile("mallocs_race.c", "race.so", COMPILE_ALLOCATING));
	struct outcome *outcome =
	    run(.python = python, .args = {"-c", text("import ctypes\nctypes.CDLL('%s').race_run()", own)},
		.env = {"EVPROF_EVENTS=malloc", text("LD_PRELOAD=%s:%s", build_path("libevprof.so"), own)});
	const char *folded, *rows;
	long tid, kept;

	expect(outcome, sscanf(outcome->out, "%ld %ld", &tid, &kept) == 2 && kept == 1, "all blocks are there");
	expect_trace(outcome, 1);
	folded = tool("export", "--format", "folded", "--weight", "live", "-o", "-", outcome->trace)->out;
	cr_expect(strstr(folded, text("(%ld) 2000003\n", tid)), "the other thread's block is alive: %s", folded);
	rows = tool("export", "--format", "csv", "-o", "-", outcome->trace)->out;
	cr_expect(strstr(rows, ",-4000037,realloc_free,") && !strstr(rows, ",-2000003,"), "the old block ends");
	cr_expect(strstr(rows, ",1000003,realloc,") && strstr(rows, ",0,realloc_free,"), "one moves, one cannot");
}

SCENARIO(malloc, end_of_a_thread, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome = run(.python = python, .args = {"@mallocs.py", own, "end"}, .env = {MALLOC_EVENTS});

	expect(outcome, outcome->status == 0, "it ends well");
	expect_trace(outcome, 1);
	cr_assert_eq(expect_counts(outcome), KINDS);
}

SCENARIO(malloc, forks_of_threads, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome =
	    run(.python = python, .args = {"@mallocs.py", own, "fork", "5"}, .env = {MALLOC_EVENTS}, .timeout_s = 120);

	expect(outcome, outcome->status == 0 && !strstr(outcome->out, "child ended"), "it ends well");
	expect_trace(outcome, 6);
	cr_assert_eq(expect_counts(outcome), 5 * KINDS);
}

SCENARIO(malloc, cancelled_threads, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome = run(.python = python, .args = {"@mallocs.py", own, "cancelled"},
				      .env = {MALLOC_EVENTS, "EVPROF_RING_SIZE=64K"});

	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "done 1\n"),
	       "the thread ends at its own cancellation point");
}

SCENARIO(malloc, atexit_handlers, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@mallocs.py", own, "exit"});
	struct outcome *outcome = run(.python = python, .args = {"@mallocs.py", own, "exit"}, .env = {MALLOC_EVENTS});

	cr_assert_eq(bare->status, outcome->status);
	expect(outcome, strstr(outcome->out, "exit"), "the handler has run");
	expect_trace(outcome, 1);
}

/* Handlers interrupt calls, and the recording of them. The allocator is one that may be called there. */
SCENARIO(malloc, signal_handlers, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library()),
		   *next = compile("mallocs_next.c", "next.so", COMPILE_ALLOCATING);
	struct outcome *outcome =
	    run(.python = python, .args = {"@mallocs.py", own, "storm", "50", "300000"},
		.env = {"EVPROF_EVENTS=call,c_call,malloc", text("LD_PRELOAD=%s:%s", build_path("libevprof.so"), next)},
		.timeout_s = 120);
	const char *handled = strstr(outcome->out, "handled ");
	json_t *info, *report;
	long times, seen;

	expect(outcome, outcome->status == 0 && handled, "it ends well");
	times = atol(handled + strlen("handled "));
	info = trace_info(outcome->trace);
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "mallocs.py", "called") == 300000, "each call is there: %ld",
	       report_calls(report, "mallocs.py", "called"));
	expect_balanced(outcome, report);
	seen = (long)events_of_size(outcome, SPECIAL, "malloc");
	expect(outcome, seen <= times && seen + info_lost(info, "malloc") >= times / 2,
	       "of %ld allocations in handlers %ld are there, and %ld lost", times, seen, info_lost(info, "malloc"));
}

/* What is mapped at the end, with some pages of Python's. */
static void expect_mapped(const struct outcome *outcome, long bytes)
{
	struct outcome *summary = tool("memory", "--summary", "--format", "csv", outcome->trace);
	const char *row = strstr(summary->out, ",end,mapped,");
	long found = row ? atol(strchr(row + strlen(",end,mapped,"), ',') + 1) : -1;

	expect(summary, found >= bytes && found < bytes + (1 << 20), "%ld bytes are mapped, not %ld", found, bytes);
}

SCENARIO(malloc, failing, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@mallocs.py", own, "failing"});
	struct outcome *outcome =
	    run(.python = python, .args = {"@mallocs.py", own, "failing"}, .env = {MALLOC_EVENTS});
	size_t count, failed = 0, whole = 0;
	const struct event *events;

	expect(bare, bare->status == 0 && strstr(bare->out, "malloc 0 12"), "malloc() fails");
	expect_same(bare, outcome);
	expect_trace(outcome, 1);
	events = trace_dump(outcome->trace, &count);
	for (size_t i = 0; i < count; i++) {
		failed += !events[i].address && !strcmp(events[i].domain, "malloc");
		whole += events[i].size == 70003;
	}
	cr_assert_eq(failed, 3);
	cr_assert_eq(whole, 1);
	expect_mapped(outcome, 8 << 20);
}

/* The libraries before and after evprof in LD_PRELOAD, and one that binds its own malloc(). */
SCENARIO(malloc, other_allocators, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library()),
		   *next = compile("mallocs_next.c", "next.so", COMPILE_ALLOCATING);
	const char *evprof = build_path("libevprof.so");
	struct outcome *after = run(.python = python, .args = {"@mallocs.py", own, "threads", "2", "500"},
				    .env = {MALLOC_EVENTS, text("LD_PRELOAD=%s:%s", evprof, next)});
	struct outcome *before = run(.python = python, .args = {"@mallocs.py", own, "threads", "2", "500"},
				     .env = {MALLOC_EVENTS, text("LD_PRELOAD=%s:%s", next, evprof)});
	struct outcome *deep =
	    run(.python = python, .args = {"@mallocs.py", own, "keep", "deepbind"}, .env = {MALLOC_EVENTS});
	struct outcome *kept = run(.python = python, .args = {"@mallocs.py", own, "keep"}, .env = {MALLOC_EVENTS});

	expect(after, after->status == 0, "it ends well");
	expect_trace(after, 1);
	expect_counts(after);
	expect(before, before->status == 0 && strstr(before->err, "native allocations are not seen"), "a line says it");
	cr_assert(json_is_true(json_object_get(info_process(trace_info(before->trace), before->pid), "malloc_unseen")));
	expect(deep, deep->status == 0, "it ends well");
	cr_assert_eq(events_of_size(deep, 5000012, NULL), 0);
	expect(kept, kept->status == 0, "it ends well");
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(events_of_size(kept, 5000011 + i, "malloc"), 1);
}

/* A program that is not Python, and one whose malloc is not asked for. */
SCENARIO(malloc, not_asked_for, SUPPORTED)
{
	const char *own = (needs_own_malloc(), library());
	struct outcome *outcome = run(.python = python, .args = {"@mallocs.py", own, "keep"});
	size_t count;
	const struct event *events;

	expect_trace(outcome, 1);
	events = trace_dump(outcome->trace, &count);
	for (size_t i = 0; i < count; i++)
		cr_assert(strcmp(events[i].domain, "malloc") != 0 && strcmp(events[i].kind, "mmap") != 0);
}

/* Each native block is at the line that allocated it: in threads, with the GIL and without, below a callback. */
SCENARIO(malloc, lines, SUPPORTED)
{
	struct outcome *outcome, *read, *judged;
	char *own, *json;

	needs_own_malloc();
	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_RUN, .options = {"--memory"},
		      .args = {"@native_lines.py", compile("native_keep.c", "native_keep.so", COMPILE_ALLOCATING)});
	read = tool("memory", "--json", "--by", "line", outcome->trace);
	own = text("%s/own", outcome->directory);
	json = text("%s/memory.json", outcome->directory);
	file_write(own, outcome->out, outcome->out_bytes);
	file_write(json, read->out, read->out_bytes);
	judged = run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_native_lines.py", own, json});
	expect(judged, judged->status == 0 && !strcmp(judged->out, "13 lines\n"), "each line has its blocks");
}

/* evprof run --memory, and arrays of numpy: what Python's domains do not see. */
SCENARIO(malloc, arrays, SUPPORTED)
{
	struct outcome *outcome;
	const char *numpy, *summary;

	needs_own_malloc();
	numpy = package_variable(python, "numpy");
	outcome = run(.python = python, .how = JOB_RUN, .options = {"--memory"},
		      .args = {"-c", "import numpy\nkept = [numpy.ones(5000000 + i) for i in range(3)]"},
		      .env = {numpy}, .timeout_s = 180);
	expect(outcome, outcome->status == 0, "it ends well");
	for (unsigned i = 0; i < 3; i++)
		expect(outcome, events_of_size(outcome, (5000000 + i) * 8, NULL) == 1, "array %u is there", i);
	expect(outcome, strstr(outcome->err, "; show it with: evprof memory "), "the verb is the one for memory");
	summary = strstr(outcome->err, "evprof:   memory ");
	expect(outcome, summary && atof(summary + strlen("evprof:   memory ")) > 115 && strstr(summary, "native code"),
	       "the summary has the three arrays");
}
