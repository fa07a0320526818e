/*
 * test_tools_watch.c - which trace evprof top and evprof serve follow where a path has one after the other
 * (watch/host.h), and which tasks a page shows (watch/json.h). What else they show of a trace is tested with programs
 * (tests/e2e/test_top.c).
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/collectors.h"
#include "trace_fixture.h"
#include "watch/host.h"
#include "watch/json.h"

enum { F = 1 };

/* The file that was there is removed, as the collector does it. */
static void save(struct fixture *fixture, const char *path)
{
	char *made = fixture_save(fixture);

	cr_assert(rename(made, path) == 0);
	free(made);
	fixture_free(fixture);
}

/* A trace of a process that runs. */
static void write_trace(const char *path, int pid)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, pid, 1), thread;

	fixture_code(fixture, process, F, "a.py", 1, "f");
	thread = fixture_thread(fixture, process, (uint32_t)pid, 1000);
	fixture_event(fixture, thread, WIRE_CALL, F, 0);
	fixture_flush(fixture, thread);
	save(fixture, path);
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

/* Steps of tasks, all after the time 1000. steps: how many each task takes. */
static void write_trace_of_tasks(const char *path, const unsigned *steps, unsigned tasks)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread = fixture_thread(fixture, process, 10, 1000);

	fixture_code(fixture, process, F, "a.py", 1, "f");
	for (unsigned i = 0; i < tasks; i++) {
		for (unsigned step = 0; step < steps[i]; step++) {
			fixture_event(fixture, thread, WIRE_TASK, F, 1);
			fixture_extra(fixture, thread, wire_task_word(0x1000 * (i + 1), 0));
			fixture_event(fixture, thread, step ? WIRE_RESUME : WIRE_CALL, F, 0);
			fixture_event(fixture, thread, WIRE_YIELD, F, 1);
		}
	}
	fixture_flush(fixture, thread);
	save(fixture, path);
}

/* Of more tasks than are asked for, those with the most steps are shown, and these first. */
Test(watch, tasks_with_the_most_steps)
{
	static const unsigned steps[] = {1, 4, 3, 9, 2}, most[] = {9, 4, 3};
	const struct watch_detail detail = {.view.filter = "", .rows = 3, .query.focus = WATCH_NO_FOCUS};
	struct watch_host host = {.target = "all"};
	char path[] = "/tmp/evprof-watch-XXXXXX", *text;
	struct output output;
	json_t *shown, *tasks;
	size_t length;

	close(mkstemp(path));
	write_trace_of_tasks(path, steps, 5);
	expect_shown(&host, path, 10, 500);
	cr_assert(output_open_memory(&output) == 0);
	output_char(&output, '{');
	cr_assert_eq(watch_json_put_detail(&output, &detail, &host), 0);
	output_char(&output, '}');
	text = output_close_memory(&output, &length);
	shown = json_loadb(text, length, 0, NULL);
	tasks = json_object_get(shown, "tasks");
	cr_assert_eq(json_array_size(tasks), 3);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(json_integer_value(json_object_get(json_array_get(tasks, i), "steps")), most[i]);
	json_decref(shown);
	free(text);
	unlink(path);
	watch_host_done(&host);
}
