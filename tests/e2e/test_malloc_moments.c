/*
 * test_malloc_moments.c - native allocations at the moments at which profilers and allocators break: at the ends of
 * threads and of the process, in a thread that crashes, in children of programs with threads, in signal handlers that
 * interrupt malloc(). The programs count what they allocate; what they do must be the same as without evprof.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "compile.h"
#include "harness.h"

static const char *library(void)
{
	needs_own_malloc();
	return compile("moments.c", "moments.so", COMPILE_ALLOCATING);
}

/*
 * Destructors of thread_local and of thread-specific data, in two rounds; Python's atexit, C's, and destructors. The
 * ring of a thread ends in the third round: what its destructors allocate later is counted as lost.
 */
SCENARIO(malloc_moments, ends, SUPPORTED)
{
	const char *own = library();
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@moments.py", own, "ends", "2"});
	struct outcome *outcome =
	    run(.python = python, .args = {"@moments.py", own, "ends", "2"}, .env = {MALLOC_EVENTS});
	json_t *info;

	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
	cr_assert_eq(expect_made(outcome), 12);
	outcome = run(.python = python, .args = {"@moments.py", own, "ends", "3"}, .env = {MALLOC_EVENTS});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "made 7000016"), "it ends well");
	info = trace_info(outcome->trace);
	cr_assert_eq(json_integer_value(json_object_get(info, "lost")), 3);
	json_decref(info);
}

/* A thread with a Python stack ends: nothing of it is lost, so that limits on memory hold. */
SCENARIO(malloc_moments, ends_of_python_threads, SUPPORTED)
{
	struct outcome *outcome, *checked;

	needs_own_malloc();
	outcome = run(.python = python, .env = {MALLOC_EVENTS},
		      .args = {"-c", "import threading\n"
				     "threads = [threading.Thread(target=lambda: bytes(5000)) for _ in range(5)]\n"
				     "for thread in threads: thread.start()\n"
				     "for thread in threads: thread.join()\n"});
	checked = tool("check", "--max-heap", "1G", "--max-lost", "0", outcome->trace);
	expect(checked, checked->status == 0, "no event is lost");
}

/* The last block of the thread that crashes is in the trace, and is alive; faulthandler writes what it always does. */
SCENARIO(malloc_moments, crash, SUPPORTED)
{
	const char *own = library();
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@moments.py", own, "crash"});
	struct outcome *outcome = run(.python = python, .args = {"@moments.py", own, "crash"}, .env = {MALLOC_EVENTS});
	json_t *process, *info;

	expect(bare, bare->status == -SIGSEGV, "it crashes");
	expect(outcome,
	       outcome->status == -SIGSEGV && strstr(outcome->err, "Fatal Python error: Segmentation fault") &&
		   strstr(outcome->err, "moments.py\", line"),
	       "faulthandler says where it was");
	info = trace_info(outcome->trace);
	cr_assert_eq(json_integer_value(json_object_get(info_process(info, outcome->pid), "signal")), SIGSEGV);
	cr_assert_eq(expect_made(outcome), 1);
	process = memory_process(outcome, "thread");
	expect(outcome, json_integer_value(json_object_get(process, "end_bytes")) > 7000031, "the block is alive");
	json_decref(process);
	json_decref(info);
}

/* A thread forks while others allocate, with and without Python: no child waits for a lock that nobody holds. */
SCENARIO(malloc_moments, forks_of_threads, SUPPORTED)
{
	const char *own = library(), *turns = test_at_length(python) ? "200" : "10";
	struct outcome *outcome = run(.python = python, .args = {"@moments.py", own, "fork", turns},
				      .env = {MALLOC_EVENTS, "EVPROF_ON_FULL=drop"}, .timeout_s = 180);
	json_t *info;

	expect(outcome, outcome->status == 0 && strstr(outcome->out, "failed 0"), "each child ends well");
	info = trace_info(outcome->trace);
	cr_assert_eq((long)info_pids(info), atol(turns) + 1);
	json_decref(info);
}

static void expect_handled(const struct outcome *outcome)
{
	const char *handled = strstr(outcome->out, "handled ");
	long times, failed;

	expect(outcome, outcome->status == 0 && handled, "it ends well");
	cr_assert_eq(sscanf(handled, "handled %ld %ld", &times, &failed), 2);
	expect(outcome, times > 2 && !failed, "%ld handlers have run, %ld of them have failed", times, failed);
	expect(outcome, events_of_size(outcome, 7000041, NULL) <= (size_t)times * 2, "no event is there twice");
}

/*
 * A timer at 1 kHz interrupts libc's malloc() and the recording of it. The handler maps memory of its own, on the
 * thread's stack and on a small one.
 */
SCENARIO(malloc_moments, interrupted, SUPPORTED)
{
	static const char *const places[] = {"0", "1"};
	const char *own = library();

	for (unsigned i = 0; i < 2; i++) {
		expect_handled(run(.python = python,
				   .args = {"@moments.py", own, "interrupted", "100000", "1000", places[i]},
				   .env = {MALLOC_EVENTS}, .timeout_s = 120));
		expect_handled(run(.python = python,
				   .args = {"@moments.py", own, "interrupted", "20000", "1000", places[i]},
				   .env = {MALLOC_EVENTS, "EVPROF_NATIVE=1"}, .timeout_s = 120));
	}
}
