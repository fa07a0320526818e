/*
 * test_top.c - evprof top: what it shows is what the program has counted; keys do what its help says, on a terminal
 * that tmux makes and reads.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

static size_t lines_of(const char *path)
{
	size_t count = 0;
	char *text = file_read(path, NULL);

	for (const char *at = text; at && (at = strchr(at, '\n')); at++)
		count++;
	free(text);
	return count;
}

/* Waits until evprof top has printed more refreshes. */
static void await_refreshes(const struct background *top, size_t more)
{
	size_t wanted = lines_of(top->log) + more;

	for (int i = 0; i < 600 && lines_of(top->log) < wanted; i++)
		usleep(50000);
	cr_assert(lines_of(top->log) >= wanted, "refreshes: %s", file_read(top->log, NULL));
}

/* Calls, recursion, times, threads and tasks, in the stretches in which they happened, whatever their length. */
SCENARIO(top, shows_what_happened, SUPPORTED)
{
	const char *directory;
	char *ready, *gate, *counted;
	struct background *program, *top;
	struct outcome *judged;
	int ready_fd, gate_fd;

	network_apart();
	directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	ready = text("%s/ready", directory), gate = text("%s/gate", directory), counted = text("%s/counted", directory);
	ready_fd = fifo_make(ready), gate_fd = fifo_make(gate);
	program = background_start(
	    &(struct job){.python = python, .args = {"@top_shapes.py", ready, gate, counted}, .directory = directory});
	fifo_await(ready_fd);
	top = background_start(&(struct job){
	    .how = JOB_BARE, .args = {"%B/evprof", "top", "--json", "--rows", "0", "--interval", "0.25"}});
	await_refreshes(top, 1);
	cr_assert(write(gate_fd, ".", 1) == 1);
	fifo_await(ready_fd);
	await_refreshes(top, 2);
	judged =
	    run(.how = JOB_BARE, .args = {"python3", "@judge_top.py", top->log, counted, text("%d", (int)program->pid)},
		.lingers = true);
	expect(judged, judged->status == 0 && strcmp(judged->out, "right\n") == 0, "it is shown: %s", judged->out);
	cr_assert(write(gate_fd, ".", 1) == 1);
	cr_expect_eq(background_wait(program), 0, "%s", file_read(program->log, NULL));
	cr_expect_eq(background_wait(top), 0, "it ends when no process is left: %s", file_read(top->log, NULL));
}

/* Recording by samples, without calls, and of the last stretch only are shown, too. */
SCENARIO(top, shows_other_recordings, SCENARIO_ONCE)
{
	static const struct {
		const char *variable, *wanted;
	} recordings[] = {
	    {"EVPROF_EVENTS=sample", "outer  "}, {"EVPROF_EVENTS=memory", "allocs/s"}, {"EVPROF_KEEP=1s", "  leaf"}};

	network_apart();
	python = python_any();
	for (size_t i = 0; i < sizeof(recordings) / sizeof(*recordings); i++) {
		const char *directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
		char *gate = text("%s/input", directory);
		int fd = fifo_make(gate);
		struct background *program = background_start(
		    &(struct job){.python = python,
				  .args = {"-c",
					   "import sys\n\ndef leaf(x): return [x]\n\ndef outer(path):\n"
					   "    end = open(path)\n    import select\n"
					   "    while not select.select([end], [], [], 0.002)[0]:\n"
					   "        for i in range(2000): leaf(i)\n\nouter(sys.argv[1])",
					   gate},
				  .env = {recordings[i].variable},
				  .directory = directory});
		struct outcome *shown;

		sleep(1);
		shown =
		    run(.how = JOB_BARE, .args = {"%B/evprof", "top", "-n", "4", "--interval", "0.5"}, .lingers = true);
		expect(shown, shown->status == 0 && strstr(shown->out, recordings[i].wanted), "%s: it shows %s",
		       recordings[i].variable, recordings[i].wanted);
		shown = run(.how = JOB_BARE, .args = {"%B/evprof", "top", "--json", "-n", "2"}, .lingers = true);
		expect(shown, shown->status == 0 && strstr(shown->out, "\"since\""), "as JSON");
		if (strstr(recordings[i].variable, "sample"))
			expect(shown, strstr(shown->out, "\"sampled\": true"), "it says so");
		cr_assert(write(fd, ".", 1) == 1);
		cr_expect_eq(background_wait(program), 0, "%s", file_read(program->log, NULL));
		close(fd);
	}
}

/* A trace that keeps its last second does so while somebody watches. */
SCENARIO(top, lets_go_of_what_leaves_a_trace, SCENARIO_ONCE)
{
	const char *directory, *trace, *duration;
	struct background *program, *top;
	struct outcome *info;
	char *input;
	int fd;

	(void)python;
	network_apart();
	directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	input = text("%s/input", directory), trace = text("%s/kept.evp", directory);
	fd = fifo_make(input);
	program = background_start(
	    &(struct job){.python = python_any(),
			  .args = {"@top_busy.py", input},
			  .directory = directory,
			  .env = {"EVPROF_KEEP=1s", text("EVPROF_OUTPUT=%s", trace), "EVPROF_EVENTS=call"}});
	sleep(1);
	top = background_start(
	    &(struct job){.how = JOB_BARE, .args = {"%B/evprof", "top", "--lines", "--interval", "0.2"}});
	await_refreshes(top, 20);
	sleep(5);
	cr_assert(write(fd, ".", 1) == 1);
	cr_expect_eq(background_wait(program), 0, "%s", file_read(program->log, NULL));
	cr_expect_eq(background_wait(top), 0, "%s", file_read(top->log, NULL));
	info = run(.how = JOB_BARE, .args = {"%B/evprof", "info", trace});
	duration = strstr(info->out, "\nduration  ");
	expect(info, duration && atof(duration + 11) >= 0.98 && atof(duration + 11) < 3.5, "the last second of seven");
}

/* Where the cursor cannot be moved there are lines. */
SCENARIO(top, dumb_terminal, SCENARIO_ONCE)
{
	static const char *const kinds[] = {"TERM=dumb", "TERM=", "TERM=xterm"};
	struct background *program;
	struct outcome *shown;
	const char *directory;
	char *input;
	int fd;

	(void)python;
	network_apart();
	directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	input = text("%s/input", directory);
	fd = fifo_make(input);
	program = background_start(
	    &(struct job){.python = python_any(), .args = {"@top_busy.py", input}, .directory = directory});
	sleep(1);
	for (size_t i = 0; i < 3; i++) {
		shown =
		    run(.python = python_any(), .how = JOB_BARE, .lingers = true, .env = {kinds[i]},
			.args = {"@on_terminal.py", "24", "80", "%B/evprof", "top", "-n", "2", "--interval", "0.5"});
		expect(shown, shown->status == 0 && strstr(shown->out, "events/s"), "%s: it shows what runs", kinds[i]);
		expect(shown, i == 2 || !strpbrk(shown->out, "\r\033"), "%s: in lines", kinds[i]);
	}
	cr_assert(write(fd, ".", 1) == 1);
	cr_expect_eq(background_wait(program), 0, "%s", file_read(program->log, NULL));
	close(fd);
}

SCENARIO(top, keys, SCENARIO_ONCE)
{
	const char *directory;
	char *input;
	struct background *program;
	struct outcome *driven;
	int fd;

	(void)python;
	network_apart();
	if (run(.how = JOB_BARE, .args = {"tmux", "-V"})->status != 0)
		cr_skip_test("tmux is not here");
	directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	input = text("%s/input", directory);
	fd = fifo_make(input);
	program = background_start(&(struct job){.python = python_any(),
						 .args = {"@top_busy.py", input},
						 .directory = directory,
						 .env = {"EVPROF_EVENTS=call"}});
	driven = run(.how = JOB_BARE, .timeout_s = 200, .lingers = true,
		     .args = {"python3", "@drive_top.py", text("%d", (int)program->pid), build_path("evprof"), "top",
			      "--interval", "0.5"});
	expect(driven, driven->status == 0 && strcmp(driven->out, "right\n") == 0, "the keys work: %s%s", driven->out,
	       driven->err);
	cr_assert(write(fd, ".", 1) == 1);
	cr_expect_eq(background_wait(program), 0, "%s", file_read(program->log, NULL));
}

/* One line says what to do. */
SCENARIO(top, refuses, SCENARIO_ONCE)
{
	static const char *const wrong[][3] = {{"--interval", "0", "--interval is 0.1 to 3600 seconds"},
					       {"--interval", "1x", "--interval is 0.1"},
					       {"--sort", "name", "--sort is own, total, calls"},
					       {"--count", "0", "--count"},
					       {"--rows", "-1", "--rows"},
					       {"--socket", "/nonexistent", "no collector answers"}};
	struct outcome *outcome;

	(void)python;
	network_apart();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "top", wrong[i][0], wrong[i][1]});
		expect(outcome, outcome->status == 2 && strstr(outcome->err, wrong[i][2]), "%s %s", wrong[i][0],
		       wrong[i][1]);
	}
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "top"});
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "no collector of this user runs here"), "none");
}
