/*
 * test_allocators.c - native allocations of programs whose malloc() is jemalloc's, tcmalloc's or mimalloc's, preloaded
 * before evprof and after it. Each is left out by name where it is not installed (tools/scripts/setup.sh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "compile.h"
#include "harness.h"
#include "packages.h"

#define THREADS 4

static const char *const allocators[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"};
#define ALLOCATORS (sizeof(allocators) / sizeof(*allocators))

/* dlopen() refuses what wants much of the static TLS, so it is preloaded. */
static bool is_installed(const struct python *python, const char *allocator)
{
	return !strstr(
	    run(.python = python, .how = JOB_BARE, .args = {"-c", "pass"}, .env = {text("LD_PRELOAD=%s", allocator)})
		->err,
	    "cannot be preloaded");
}

static void needs_any(const struct python *python)
{
	for (size_t i = 0; i < ALLOCATORS; i++)
		if (is_installed(python, allocators[i]))
			return;
	cr_skip_test("%s finds none of jemalloc, tcmalloc and mimalloc", python->name);
}

/* "TID KIND CALLS BYTES" of malloc, calloc, realloc and free (mallocs.c): each is what the trace has of the thread. */
static unsigned expect_threads(const struct outcome *outcome, const char *allocator)
{
	unsigned lines = 0;
	size_t count;
	const struct event *events = trace_dump(outcome->trace, &count);

	for (const char *at = outcome->out; at; at = strchr(at, '\n')) {
		long tid, calls, bytes, seen = 0;
		char kind[16];

		at += *at == '\n';
		if (sscanf(at, "%ld %15s %ld %ld", &tid, kind, &calls, &bytes) != 4 || strstr(kind, "map"))
			continue;
		expect(outcome, strcmp(kind, "live") != 0 || !bytes, "%s: blocks are whole", allocator);
		for (size_t i = 0; i < count; i++)
			seen += events[i].tid == tid && !strcmp(events[i].kind, kind) &&
				!strcmp(events[i].domain, "malloc");
		expect(outcome, !strcmp(kind, "live") || seen == calls, "%s, thread %ld: %ld calls of %s, not %ld",
		       allocator, tid, calls, kind, seen);
		lines++;
	}
	return lines;
}

static struct outcome *run_with(const struct python *python, const char *preloaded, const char *own)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@mallocs.py", own, "threads", text("%d", THREADS), "2000"},
		.env = {MALLOC_EVENTS, preloaded}, .timeout_s = 120);

	expect(outcome, outcome->status == 0, "it ends well");
	json_decref(expect_trace(outcome, 1));
	return outcome;
}

/* evprof comes first: it sees each call, and the allocator gives the memory. */
SCENARIO(allocators, after_evprof, SUPPORTED)
{
	const char *own, *evprof = build_path("libevprof.so");

	needs_own_malloc();
	needs_any(python);
	own = compile("mallocs.c", "mallocs.so", COMPILE_ALLOCATING);
	for (size_t i = 0; i < ALLOCATORS; i++) {
		struct outcome *outcome;

		if (!is_installed(python, allocators[i]))
			continue;
		outcome = run_with(python, text("LD_PRELOAD=%s:%s", evprof, allocators[i]), own);
		cr_assert_eq(expect_threads(outcome, allocators[i]), THREADS * 5);
	}
}

/* The allocator comes first: the program never calls evprof's functions, which is said. */
SCENARIO(allocators, before_evprof, SUPPORTED)
{
	const char *own, *evprof = build_path("libevprof.so");

	needs_own_malloc();
	needs_any(python);
	own = compile("mallocs.c", "mallocs.so", COMPILE_ALLOCATING);
	for (size_t i = 0; i < ALLOCATORS; i++) {
		struct outcome *outcome;
		const char *trace;
		json_t *info;

		if (!is_installed(python, allocators[i]))
			continue;
		outcome = run_with(python, text("LD_PRELOAD=%s:%s", allocators[i], evprof), own);
		info = trace_info(outcome->trace);
		expect(outcome, strstr(outcome->err, "native allocations are not seen"), "%s: a line says it",
		       allocators[i]);
		cr_assert(json_is_true(json_object_get(info_process(info, outcome->pid), "malloc_unseen")));
		json_decref(info);
		trace = outcome->trace;
		outcome = tool("check", "--max-heap", "1G", trace);
		expect(outcome, outcome->status == 2, "%s: a limit of the heap is an error", allocators[i]);
		outcome = tool("memory", trace);
		expect(outcome, strstr(outcome->err, "are not seen: the program has its own malloc()"),
		       "%s: evprof memory says it, too", allocators[i]);
	}
}

/* Arrays are of the allocator's memory, and each is there once. */
SCENARIO(allocators, arrays, SUPPORTED)
{
	static const char *const program = "import numpy\n"
					   "kept = [numpy.ones(1000001 + i) for i in range(3)]\n"
					   "kept.append(numpy.zeros(1000004))\n";
	const char *numpy, *evprof = build_path("libevprof.so");

	needs_own_malloc();
	needs_any(python);
	numpy = package_variable(python, "numpy");
	for (size_t i = 0; i < ALLOCATORS; i++) {
		struct outcome *outcome;

		if (!is_installed(python, allocators[i]))
			continue;
		outcome = run(.python = python, .args = {"-c", program},
			      .env = {MALLOC_EVENTS, text("LD_PRELOAD=%s:%s", evprof, allocators[i]), numpy},
			      .timeout_s = 180);
		expect(outcome, outcome->status == 0, "%s: it ends well", allocators[i]);
		for (unsigned long long n = 1000001; n < 1000005; n++)
			expect(outcome, events_of_size(outcome, n * 8, NULL) == 1,
			       "%s: the array of %llu is there once", allocators[i], n);
	}
}
