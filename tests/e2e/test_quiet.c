/*
 * test_quiet.c - what a program that does little costs the machine: how often the collector wakes up for it, and that
 * what it does after a sleep is in the trace all the same, soon and whole.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"
#include "strike.h"

#define SECONDS 3.0
#define MANY "100000"
#define MANY_CALLS 100000
#define SOON_S 1.0
#define SLACK_S 1.0 /* the machine does other things, and a report of the trace takes its time */

/* A program in the background, and what it counts. */
struct sleeper {
	struct oracle *oracle;
	struct background *program;
	struct outcome outcome; /* its trace */
};

static struct sleeper start(const struct python *python, const char *program, const char *const arguments[3],
			    const char *variable, const char *other)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct sleeper sleeper = {.oracle = oracle_new(directory), .outcome = {.out = "", .err = ""}};

	sleeper.program = background_start(&(struct job){.python = python,
							 .directory = directory,
							 .env = {"EVPROF_OUTPUT=quiet.evp", variable, other},
							 .args = {program, arguments[0], arguments[1], arguments[2]}});
	for (int i = 0; i < 1000 && !sleeper.oracle->pid; i++)
		usleep(10000);
	snprintf(sleeper.outcome.directory, sizeof(sleeper.outcome.directory), "%s", directory);
	snprintf(sleeper.outcome.trace, sizeof(sleeper.outcome.trace), "%s/quiet.evp", directory);
	expect(&sleeper.outcome, sleeper.oracle->pid, "the program begins: %s", file_read(sleeper.program->log, NULL));
	return sleeper;
}

static long switches_of_thread(const char *status)
{
	const char *text = file_read(status, NULL);
	const char *line = text ? strstr(text, "\nvoluntary_ctxt_switches:") : NULL;

	return line ? atol(strchr(line, ':') + 1) : 0;
}

/* How often the threads of the collector have gone to sleep. */
static long switches(pid_t collector)
{
	DIR *tasks = opendir(text("/proc/%d/task", (int)collector));
	struct dirent *entry;
	long sum = 0;

	cr_assert(tasks, "there is a collector");
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			sum += switches_of_thread(text("/proc/%d/task/%s/status", (int)collector, entry->d_name));
	closedir(tasks);
	return sum;
}

static double wakeups_a_second(void)
{
	pid_t collector = process_child_named("evprof-collecto");
	long before = switches(collector);

	usleep((useconds_t)(SECONDS * 1e6));
	return (double)(switches(collector) - before) / SECONDS;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long calls_now(const struct sleeper *sleeper)
{
	json_t *report = trace_report(sleeper->outcome.trace, NULL);
	long calls = report_calls(report, "quiet.py", "leaf");

	json_decref(report);
	return calls;
}

/* From when the program has made its calls, until they are in the trace of the program that sleeps on. */
static double seconds_until_traced(const struct sleeper *sleeper, long calls)
{
	double began;

	while (!sleeper->oracle->calls[0].ended)
		usleep(1000);
	began = seconds_now();
	while (calls_now(sleeper) < calls && seconds_now() - began < 10)
		usleep(20000);
	return seconds_now() - began;
}

static void end(struct sleeper *sleeper)
{
	kill((pid_t)sleeper->oracle->pid, SIGKILL);
	background_wait(sleeper->program);
	outcome_settle(&sleeper->outcome);
}

/* Idle for a while, asleep for long, and then awake for a moment. */
SCENARIO_SOME(quiet, asleep, SUPPORTED)
{
	struct sleeper sleeper = start(python, "@quiet.py", (const char *[]){"9", MANY, "100"}, NULL, NULL);
	double idle, asleep, soon;

	usleep(500000);
	idle = wakeups_a_second();
	usleep(1500000);
	asleep = wakeups_a_second();
	soon = seconds_until_traced(&sleeper, MANY_CALLS);
	expect(&sleeper.outcome, idle <= 5, "the collector of an idle program wakes up %.1f times a second", idle);
	expect(&sleeper.outcome, asleep <= 1, "that of one that sleeps for long, %.1f times", asleep);
	expect(&sleeper.outcome, soon < SOON_S + SLACK_S, "after %.2f s its calls are in the trace", soon);
	end(&sleeper);
	expect(&sleeper.outcome, calls_now(&sleeper) == MANY_CALLS, "no more and no fewer");
}

SCENARIO_SOME(quiet, ten_events_a_second, SUPPORTED)
{
	struct sleeper sleeper =
	    start(python, "@steady.py", (const char *[]){"100", "0.1", NULL}, "EVPROF_EVENTS=call", NULL);
	double wakeups;

	usleep(1500000);
	wakeups = wakeups_a_second();
	expect(&sleeper.outcome, wakeups <= 20, "its collector wakes up %.1f times a second", wakeups);
	end(&sleeper);
}

/* One call, of a thread that has been quiet: the collector sleeps for long, and is woken by it. */
SCENARIO_SOME(quiet, one_call_after_a_sleep, SUPPORTED)
{
	struct sleeper sleeper =
	    start(python, "@quiet.py", (const char *[]){"6", "1", "100"}, "EVPROF_EVENTS=call", NULL);
	double soon = seconds_until_traced(&sleeper, 1);

	expect(&sleeper.outcome, soon < SOON_S + SLACK_S, "after %.2f s it is in the trace", soon);
	end(&sleeper);
}

static long emitted(const struct sleeper *sleeper, long *lost)
{
	json_t *info = trace_info(sleeper->outcome.trace);
	long calls = info_events(info, "call");

	*lost = info_lost(info, "call");
	json_decref(info);
	return calls + *lost;
}

/* With the smallest ring, and nobody who waits: what is lost is counted. As many calls as where nothing is lost. */
SCENARIO_SOME(quiet, burst_after_a_sleep, SUPPORTED)
{
	static const char *const small = "EVPROF_RING_SIZE=64K", *const drop = "EVPROF_ON_FULL=drop";
	struct sleeper whole = start(python, "@quiet.py", (const char *[]){"0", MANY, "0"}, small, NULL), sleeper;
	long lost, calls;

	background_wait(whole.program);
	outcome_settle(&whole.outcome);
	calls = emitted(&whole, &lost);
	expect(&whole.outcome, lost == 0 && calls > MANY_CALLS, "%ld calls, %ld of them lost", calls, lost);
	sleeper = start(python, "@quiet.py", (const char *[]){"3", MANY, "0"}, small, drop);
	background_wait(sleeper.program);
	outcome_settle(&sleeper.outcome);
	expect(&sleeper.outcome, emitted(&sleeper, &lost) == calls, "%ld calls, %ld of them lost; there were %ld",
	       emitted(&sleeper, &lost), lost, calls);
}
