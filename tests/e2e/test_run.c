/*
 * test_run.c - evprof run in the place of the program: its status, its signals, timers and job control, what it hands
 * down, and what it refuses before the program has started.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

static void add(struct job *job, int *n, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		job->args[(*n)++] = words[i];
}

#define ADD(Job, N, ...) add(Job, N, (const char *const[]){__VA_ARGS__, NULL})

/* Where it is ignored, the kernel keeps no status of a child. The program gets the signal as it was. */
SCENARIO(run, status_where_sigchld_is_ignored, SUPPORTED)
{
	static const char program[] = "import signal, sys\n"
				      "print(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN)\n"
				      "sys.exit(3)\n";
	struct job job = {.how = JOB_BARE};
	struct outcome *outcome;
	char *folded;
	int n = 0;

	ADD(&job, &n, "env", "--ignore-signal=CHLD", "%B/evprof", "run", "--format", "folded", "-o", "x.evp", "--");
	add(&job, &n, (const char *const *)python->command);
	ADD(&job, &n, "-c", program);
	outcome = job_run(&job);
	expect(outcome, outcome->status == 3, "the status is %d, not 3", outcome->status);
	expect(outcome, strcmp(outcome->out, "True\n") == 0, "the program inherits that it is ignored");
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
	folded = file_read(text("%s/x.folded", outcome->directory), NULL);
	expect(outcome, folded, "the format is there");
	free(folded);
}

static const char *const names[] = {"SIGHUP",  "SIGINT",  "SIGQUIT",  "SIGUSR1", "SIGALRM",
				    "SIGCONT", "SIGPIPE", "SIGWINCH", "SIGTERM", NULL};
static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGALRM, SIGCONT, SIGPIPE, SIGWINCH, SIGTERM};

/* Each signal of that name that the program had, in its own count. */
static int times_got(const char *directory, const char *name)
{
	char *got = file_read(text("%s/got", directory), NULL);
	int count = 0;

	for (char *at = got, *word; at && (word = strsep(&at, "\n"));)
		count += strcmp(word, name) == 0;
	free(got);
	return count;
}

static bool comes(const char *directory, const char *name)
{
	for (int i = 0; i < 2000; i++) {
		if (times_got(directory, name))
			return true;
		usleep(10000);
	}
	return false;
}

/* As a supervisor does it: to the process that it has started. */
SCENARIO(run, signals_to_it_alone, SUPPORTED)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"true"});
	const char *folder = outcome->directory;
	struct job job = {.python = python, .how = JOB_RUN, .directory = folder, .args = {"@signals.py"}};
	struct background *program;
	int n = 1;

	add(&job, &n, names);
	program = background_start(&job);
	expect(outcome, comes(folder, "ready"), "the program is there: %s", file_read(program->log, NULL));
	for (size_t i = 0; names[i]; i++) {
		kill(program->pid, numbers[i]);
		expect(outcome, comes(folder, names[i]), "%s comes: %s", names[i], file_read(program->log, NULL));
	}
	expect(outcome, background_wait(program) == 9, "the status is that of the program: %s",
	       file_read(program->log, NULL));
	for (size_t i = 0; names[i]; i++)
		expect(outcome, times_got(folder, names[i]) == 1, "%s comes once, not %d times", names[i],
		       times_got(folder, names[i]));
	outcome_settle(outcome);
	json_decref(expect_trace(outcome, 1));
}

/* What is typed goes to the whole group, and comes once; whoever waits for evprof run sees the program stop. */
SCENARIO(run, job_of_a_terminal, SUPPORTED)
{
	struct job bare = {.python = python, .how = JOB_BARE, .args = {"@terminal.py"}}, job = bare;
	static const char *const program[] = {"@signals.py", "SIGINT",	"SIGQUIT", "SIGCONT",
					      "SIGUSR2",     "SIGTERM", NULL};
	struct outcome *expected, *outcome;
	int n = 1;

	add(&bare, &n, (const char *const *)python->command);
	add(&bare, &n, program);
	n = 1;
	ADD(&job, &n, "%B/evprof", "run", "--");
	add(&job, &n, (const char *const *)python->command);
	add(&job, &n, program);
	expected = job_run(&bare);
	expect(expected,
	       strcmp(expected->out,
		      "ready SIGINT SIGQUIT SIGCONT SIGUSR2 SIGCONT SIGTERM / stopped stopped ended 9\n") == 0,
	       "so it is without evprof");
	outcome = job_run(&job);
	expect_same(expected, outcome);
	json_decref(expect_trace(outcome, 1));
}

/* alarm() and setitimer() reach over an exec, and are meant for what runs then. */
SCENARIO(run, pending_alarm, SUPPORTED)
{
	static const char program[] = "import os, signal, sys\n"
				      "signal.signal(signal.SIGALRM, lambda *_: sys.exit(7))\n"
				      "if len(sys.argv) > 1:\n"
				      "    signal.alarm(2)\n"
				      "    os.execvp(sys.argv[1], sys.argv[1:])\n"
				      "signal.pause()\n";
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", program, "%B/evprof", "run", "--"}};
	struct outcome *outcome;
	int n = 5;

	add(&job, &n, (const char *const *)python->command);
	ADD(&job, &n, "-c", program);
	outcome = job_run(&job);
	expect(outcome, outcome->status == 7, "the status is %d, not 7", outcome->status);
	json_decref(expect_trace(outcome, 1));
}
