/*
 * test_tools_watch.c - which trace evprof top and evprof serve follow where a path has one after the other
 * (watch/host.h). What they show of a trace is tested with programs (tests/e2e/test_top.c).
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/collectors.h"
#include "trace_fixture.h"
#include "watch/host.h"

enum { F = 1 };

/* A trace of a process that runs. The file that was there is removed, as the collector does it. */
static void write_trace(const char *path, int pid)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, pid, 1), thread;
	char *made;

	fixture_code(fixture, process, F, "a.py", 1, "f");
	thread = fixture_thread(fixture, process, (uint32_t)pid, 1000);
	fixture_event(fixture, thread, WIRE_CALL, F, 0);
	fixture_flush(fixture, thread);
	made = fixture_save(fixture);
	cr_assert(rename(made, path) == 0);
	free(made);
	fixture_free(fixture);
}

/* A refresh with the answer of a collector that writes the trace. */
static void expect_shown(struct watch_host *host, const char *path, int64_t pid, int64_t until_ns)
{
	json_t *answer =
	    json_pack("{s:[{s:s, s:I, s:[I]}]}", "traces", "path", path, "until_ns", until_ns, "shown", pid);
	struct control_collector collector = {.answer = answer};
	struct control_collectors collectors = {.at = &collector, .count = 1};

	cr_assert(answer);
	cr_expect_eq(watch_host_take(host, &collectors), 1, "%s", host->problem);
	cr_expect(host->process_count == 1 && host->processes[0].pid == pid, "process %d is shown", (int)pid);
	json_decref(answer);
}

/* A program that is run again at once with the same path is another trace. One whose file was removed is the same. */
Test(watch, path_that_is_used_again)
{
	struct watch_host host = {.target = "all"};
	char path[] = "/tmp/evprof-watch-XXXXXX";

	close(mkstemp(path));
	write_trace(path, 10);
	expect_shown(&host, path, 10, 2000);
	expect_shown(&host, path, 10, 3000);
	write_trace(path, 11);
	expect_shown(&host, path, 11, 4000);
	cr_expect_eq(host.source_count, 1, "the first one is followed no more");
	unlink(path);
	expect_shown(&host, path, 11, 5000);
	watch_host_done(&host);
}
