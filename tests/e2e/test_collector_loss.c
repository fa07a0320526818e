/*
 * test_collector_loss.c - the collector is killed, frozen, slow or cannot write, and what a program may use is short:
 * the program does what it does without evprof, is held up once and for no longer than is documented, and the trace
 * says what is missing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compile.h"
#include "harness.h"
#include "process.h"
#include "strike.h"

#define CALLS 200000
#define CALLS_TEXT "200000"
#define SLACK_S 2.0   /* of a machine that does other things too */
#define ON_FULL_S 1.0 /* EVPROF_ON_FULL's default */
#define CLOSING_S 5.0 /* the closing line waits so long for a sign of life */
#define SMALL_RING "EVPROF_RING_SIZE=64K"

/* counting.py with two threads; ended when it has made its calls. */
struct run {
	const char *directory;
	struct oracle *oracle;
	struct outcome *outcome;
};

static struct run new_run(void)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;

	return (struct run){.directory = directory, .oracle = oracle_new(directory)};
}

static void start_run(struct run *run, const struct python *python, const char *variable, const char *other)
{
	run->outcome =
	    run(.python = python, .args = {"@counting.py", "2", "calls", CALLS_TEXT}, .directory = run->directory,
		.lingers = true, .env = {"EVPROF_OUTPUT=loss.evp", variable, other});
}

static struct run struck_run(const struct python *python, struct strike blow, const char *variable, const char *other)
{
	struct run run = new_run();

	blow.oracle = run.oracle;
	/* On a busy machine a collector may be killed before it has begun a trace, and then it leaves none. */
	blow.after = blow.act == strike_collector_signal ? text("%s/loss.evp", run.directory) : NULL;
	if (blow.act)
		strike(blow);
	start_run(&run, python, variable, other);
	return run;
}

/* As bare, but for `lines` lines of evprof's. */
static void expect_unharmed(const struct python *python, const struct run *run, unsigned lines)
{
	struct run bare = new_run();

	bare.outcome = run(.python = python, .how = JOB_BARE, .args = {"@counting.py", "2", "calls", CALLS_TEXT},
			   .directory = bare.directory);
	expect_same(bare.outcome, run->outcome);
	expect(run->outcome, oracle_ended(run->oracle) == 2 * CALLS, "it made all its calls: %ld",
	       oracle_ended(run->oracle));
	expect(run->outcome, stderr_evprof_lines(run->outcome) == lines, "%u lines are said, not %u",
	       stderr_evprof_lines(run->outcome), lines);
}

/* Takes at most bound_s longer than with a collector that works. */
static void expect_in_time(const struct python *python, const struct run *run, double bound_s, const char *what)
{
	struct run well = struck_run(python, (struct strike){0}, SMALL_RING, NULL);
	double more_s = run->outcome->seconds - well.outcome->seconds;

	outcome_settle(well.outcome);
	expect(run->outcome, more_s < bound_s + SLACK_S, "%s: %.2f s more than the %.2f s with a good collector", what,
	       more_s, well.outcome->seconds);
}

static void end_collector(struct run *run)
{
	pid_t collector = process_child_named("evprof-collecto");

	if (collector > 0)
		kill(collector, SIGKILL);
	outcome_settle(run->outcome);
}

/*
 * What is in a trace that was cut short: some of it, and a line that says that the rest is not there. Returns the
 * calls.
 */
static long expect_cut(const struct run *run, const char *trace)
{
	struct outcome *result = tool("info", "--json", trace);
	json_t *info = json_loads(result->out, 0, NULL), *report;
	long calls;

	expect(result, result->status == 1 && *result->err, "info says that something is missing");
	expect(result, info && json_is_false(json_object_get(info, "complete")), "the trace is not complete");
	report = trace_report(trace, NULL);
	calls = report_calls(report, "counting.py", "leaf");
	expect(run->outcome, calls <= 2 * CALLS, "no call is invented");
	json_decref(report);
	json_decref(info);
	return calls;
}

/* What the collector had read and not written when it was killed: less than a buffer of each thread. */
#define READ_AND_NOT_WRITTEN (2 * 65536)

/* Two traces: the one of the collector that was killed, and one of another that has taken its place. */
static void expect_resumed(const struct run *run)
{
	const char *second = text("%s/loss-2.evp", run->directory);
	long calls = expect_cut(run, text("%s/loss.evp", run->directory));
	json_t *info = trace_info(second), *report = trace_report(second, NULL);
	long lost = info_lost(info, "call");

	expect(run->outcome, run->outcome->traces == 2, "there are two traces, not %u", run->outcome->traces);
	expect(run->outcome, json_is_true(json_object_get(info, "complete")), "the second one is complete");
	calls += report_calls(report, "counting.py", "leaf");
	expect(run->outcome, calls <= 2 * CALLS, "no call is in both: %ld of %d", calls, 2 * CALLS);
	expect(run->outcome, calls + lost + READ_AND_NOT_WRITTEN > 2 * CALLS,
	       "%ld calls are in either, %ld are reported lost, of %d", calls, lost, 2 * CALLS);
	expect_balanced(run->outcome, report);
	json_decref(report);
	json_decref(info);
}

/* Written and lost are all there was, in a file that is whole. Returns what was lost. */
static long expect_accounted(const struct run *run)
{
	struct outcome *result = tool("info", "--json", run->outcome->trace);
	json_t *info = json_loads(result->out, 0, NULL), *report;
	long written, lost;

	expect(result, result->status == 0 && info && json_is_true(json_object_get(info, "complete")),
	       "the trace is complete");
	report = trace_report(run->outcome->trace, NULL);
	written = report_calls(report, "counting.py", "leaf");
	lost = info_lost(info, "call");
	expect(run->outcome, written + lost >= 2 * CALLS && written <= 2 * CALLS,
	       "%ld calls written and %ld calls lost of any function are at least %d", written, lost, 2 * CALLS);
	expect(run->outcome, lost > 0 || written == 2 * CALLS, "nothing is lost, and %ld calls are there", written);
	lost = (long)json_integer_value(json_object_get(info, "lost"));
	expect(run->outcome, json_integer_value(json_object_get(report, "lost")) == lost,
	       "the gaps hold %lld lost events, the counts %ld",
	       (long long)json_integer_value(json_object_get(report, "lost")), lost);
	expect_balanced(run->outcome, report);
	json_decref(report);
	json_decref(info);
	return lost;
}

SCENARIO(collector_loss, killed, SUPPORTED)
{
	struct run run =
	    struck_run(python, (struct strike){.delay_us = 20000, .act = strike_collector_signal, .argument = SIGKILL},
		       SMALL_RING, NULL);

	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 2);
	expect_in_time(python, &run, ON_FULL_S, "killed");
	expect_resumed(&run);
}

/* The memory for another collector would be a file above the limit: the program gets a line, not SIGXFSZ. */
SCENARIO(collector_loss, killed_under_a_limit_of_file_sizes, SUPPORTED)
{
	struct run run = new_run();

	strike((struct strike){.oracle = run.oracle,
			       .delay_us = 20000,
			       .after = text("%s/loss.evp", run.directory),
			       .act = strike_collector_signal,
			       .argument = SIGKILL});
	run.outcome = run(.python = python, .args = {"@limits_itself.py", "file_size", "1", "2", "calls", CALLS_TEXT},
			  .directory = run.directory, .env = {"EVPROF_OUTPUT=loss.evp", SMALL_RING});
	expect(run.outcome, run.outcome->status == 0 && !strcmp(run.outcome->out, "counted 2\n"), "it runs");
	expect(run.outcome, strstr(run.outcome->err, "a limit of file sizes"), "a line says why it is not recorded");
	expect(run.outcome, run.outcome->traces == 1, "no collector is started in vain: %u traces",
	       run.outcome->traces);
	expect_cut(&run, run.outcome->trace);
}

SCENARIO(collector_loss, killed_before_a_quiet_end, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run =
	    struck_run(python, (struct strike){.delay_us = 30000, .act = strike_collector_signal, .argument = SIGKILL},
		       "EVPROF_RING_SIZE=64M", NULL);

	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 2);
	expect_in_time(python, &run, ON_FULL_S, "killed, with room in the ring");
	expect_resumed(&run);
}

/* Processes that live, one that sleeps, and others that come later: what the tree does from then on is in one trace. */
SCENARIO(collector_loss, killed_with_a_family, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run = new_run();
	json_t *info, *report;

	strike((struct strike){
	    .oracle = run.oracle, .delay_us = 400000, .act = strike_collector_signal, .argument = SIGKILL});
	run.outcome = run(.python = python, .args = {"@family.py"}, .directory = run.directory,
			  .env = {"EVPROF_OUTPUT=loss.evp"});
	expect(run.outcome, run.outcome->status == 0 && !strcmp(run.outcome->out, "all have ended\n"), "it runs");
	expect(run.outcome, stderr_evprof_lines(run.outcome) == 2, "two lines are said, not %u",
	       stderr_evprof_lines(run.outcome));
	expect(run.outcome, run.outcome->traces == 2, "there are two traces, not %u", run.outcome->traces);
	info = trace_info(text("%s/loss-2.evp", run.directory));
	expect(run.outcome, json_is_true(json_object_get(info, "complete")), "the second one is complete");
	expect(run.outcome, info_pids(info) == 7, "it has 7 processes, not %zu", info_pids(info));
	report = trace_report(text("%s/loss-2.evp", run.directory), NULL);
	expect(run.outcome, report_calls(report, "counting.py", "leaf") > oracle_ended(run.oracle) / 2,
	       "it has %ld of %ld calls, those after the first 0.4 of 3 seconds",
	       report_calls(report, "counting.py", "leaf"), oracle_ended(run.oracle));
	expect_balanced(run.outcome, report);
	json_decref(report);
	json_decref(info);
}

SCENARIO(collector_loss, frozen, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run =
	    struck_run(python, (struct strike){.delay_us = 20000, .act = strike_collector_signal, .argument = SIGSTOP},
		       SMALL_RING, NULL);

	end_collector(&run);
	expect_unharmed(python, &run, 1);
	expect_in_time(python, &run, ON_FULL_S, "frozen");
	expect_cut(&run, run.outcome->trace);
}

/* The ring has room for all: the program ends without having met the collector's silence. */
SCENARIO(collector_loss, frozen_before_a_quiet_end, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run =
	    struck_run(python, (struct strike){.delay_us = 30000, .act = strike_collector_signal, .argument = SIGSTOP},
		       "EVPROF_RING_SIZE=64M", NULL);

	end_collector(&run);
	expect_unharmed(python, &run, 1);
	expect_in_time(python, &run, CLOSING_S, "frozen, with room in the ring");
}

SCENARIO(collector_loss, paused_for_less_than_the_bound, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run =
	    struck_run(python, (struct strike){.delay_us = 30000, .act = strike_collector_pause, .argument = 400},
		       SMALL_RING, "EVPROF_ON_FULL=wait:5000");

	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 1);
	expect(run.outcome, expect_accounted(&run) == 0, "nothing is lost");
}

SCENARIO(collector_loss, paused_for_more_than_the_bound, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run =
	    struck_run(python, (struct strike){.delay_us = 30000, .act = strike_collector_pause, .argument = 1500},
		       SMALL_RING, "EVPROF_ON_FULL=wait:100");

	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 1);
	expect_accounted(&run);
}

SCENARIO(collector_loss, slow, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run = struck_run(python, (struct strike){.act = strike_collector_slow, .argument = 30}, SMALL_RING,
				    "EVPROF_ON_FULL=drop");

	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 1);
	expect(run.outcome, expect_accounted(&run) > 0, "something is lost");
}

/* Each signal cuts short what the program waits by; that it waits at all, and how long, is counted by the clock. */
SCENARIO(collector_loss, paused_at_an_end_under_signals, SUPPORTED)
{
	struct run run = new_run();
	json_t *info;

	strike(
	    (struct strike){.oracle = run.oracle, .delay_us = 100000, .act = strike_collector_pause, .argument = 1500});
	run.outcome = run(.python = python, .args = {"@interrupted.py"}, .directory = run.directory);
	expect(run.outcome, run.outcome->status == 0 && !strcmp(run.outcome->out, "interrupted\n"), "it runs");
	expect_closing_line(run.outcome);
	info = expect_trace(run.outcome, 1);
	json_decref(info);
}

/* Nobody waits longer for a collector that is stopped because the program's clock stands still. */
SCENARIO(collector_loss, frozen_where_time_stands_still, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run = new_run();
	char *library =
	    text("LD_PRELOAD=%s %s", build_path("libevprof.so"), compile("still.c", "still.so", COMPILE_PLAIN));

	strike((struct strike){
	    .oracle = run.oracle, .delay_us = 20000, .act = strike_collector_signal, .argument = SIGSTOP});
	run.outcome = run(.python = python, .how = JOB_BARE, .args = {"@counting.py", "1", "calls", "2000000"},
			  .directory = run.directory, .lingers = true, .env = {library, SMALL_RING}, .timeout_s = 30);
	end_collector(&run);
	expect(run.outcome, run.outcome->status == 0 && oracle_ended(run.oracle) == 2000000, "it made all its calls");
	expect(run.outcome, run.outcome->seconds < 20, "it took %.2f s", run.outcome->seconds);
	free(library);
}

/* ---- where it writes --------------------------------------------------------------------------------------------- */

/* counting.py, started by a line of sh with "$@"; in a mount namespace of its own. */
static struct run run_in_shell(const struct python *python, const char *line, const char *output)
{
	struct run run = new_run();
	struct job job = {
	    .directory = run.directory, .env = {output, SMALL_RING}, .args = {"unshare", "-m", "sh", "-c", line, "sh"}};
	int n = 6;

	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "@counting.py";
	job.args[n++] = "2";
	job.args[n++] = "calls";
	job.args[n] = CALLS_TEXT;
	run.outcome = job_run(&job);
	if (run.outcome->status == 77)
		cr_skip_test("no mount can be made here: %s", run.outcome->err);
	return run;
}

#define MOUNT_OR_SKIP(options) "mkdir m && mount -t tmpfs -o " options " none m 2>/dev/null || exit 77; "
#define COPY "\"$@\"; s=$?; sleep 0.3; cp m/*.evp copy.evp; exit $s"

SCENARIO(collector_loss, disk_full, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run = run_in_shell(python, MOUNT_OR_SKIP("size=400k") COPY, "EVPROF_OUTPUT=m/loss.evp");

	expect_unharmed(python, &run, 1);
	expect(run.outcome, strstr(run.outcome->err, "No space left"), "the line says what was wrong");
	expect(run.outcome, run.outcome->traces == 1, "what was written is there");
	expect(run.outcome, expect_accounted(&run) > 0, "something is lost");
}

/* Limits the growth of the trace to some bytes from here on (the argument). */
static void limit_file_size(const struct strike *strike)
{
	struct stat status = {0};
	struct rlimit limit = {.rlim_max = RLIM_INFINITY};

	stat(text("%s/loss.evp", strike->path), &status);
	limit.rlim_cur = (rlim_t)(status.st_size + strike->argument);
	prlimit(strike_collector(), RLIMIT_FSIZE, &limit, NULL);
}

/* As /dev/stdout is one, which an administrator's trace would take the place of. */
SCENARIO(collector_loss, a_link_to_a_device, SCENARIO_ONCE)
{
	const struct python *any = python_any();
	struct run run = new_run();
	char target[16] = "";

	(void)python;
	cr_assert_eq(symlink("/dev/full", text("%s/loss.evp", run.directory)), 0);
	start_run(&run, any, NULL, NULL);
	outcome_settle(run.outcome);
	expect_unharmed(any, &run, 1);
	expect(run.outcome, readlink(text("%s/loss.evp", run.directory), target, sizeof(target) - 1) > 0,
	       "the link is still there");
	expect(run.outcome, !strcmp(target, "/dev/full"), "it leads to %s", target);
}

SCENARIO(collector_loss, file_size_limited, SUPPORTED)
{
	struct run run = new_run();

	strike(
	    (struct strike){.oracle = run.oracle, .act = limit_file_size, .argument = 300000, .path = run.directory});
	start_run(&run, python, SMALL_RING, NULL);
	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 1);
	expect(run.outcome, strstr(run.outcome->err, "File too large"), "the line says what was wrong");
	expect(run.outcome, expect_accounted(&run) > 0, "something is lost");
}

SCENARIO(collector_loss, read_only, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run = run_in_shell(python, MOUNT_OR_SKIP("ro") "exec \"$@\"", "EVPROF_OUTPUT=m/loss.evp");

	expect_unharmed(python, &run, 1);
	expect(run.outcome, strstr(run.outcome->err, "Read-only") && strstr(run.outcome->err, "EVPROF_OUTPUT"),
	       "the line says what is wrong and what to do");
}

static void remove_output(const struct strike *strike)
{
	char *command = text("rm -rf '%s/out'", strike->path);

	if (system(command))
		_exit(1);
}

SCENARIO(collector_loss, folder_removed, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	struct run run = new_run();

	cr_assert(mkdir(text("%s/out", run.directory), 0755) == 0);
	strike((struct strike){.oracle = run.oracle, .delay_us = 20000, .act = remove_output, .path = run.directory});
	start_run(&run, python, "EVPROF_OUTPUT=out/loss.evp", SMALL_RING);
	outcome_settle(run.outcome);
	expect_unharmed(python, &run, 1);
	expect(run.outcome, strstr(run.outcome->err, "removed"), "the line says that the trace is gone");
}

/* ---- what the program may use ------------------------------------------------------------------------------------ */

static const char *const limits[] = {
    "ulimit -v 500000", /* address space: 390 MiB of rings would be most of it */
    "ulimit -v 300000",
    "ulimit -f 40",
    "ulimit -n 12",
    "ulimit -n 5",
    "ulimit -n 40; ulimit -v 700000",
    "ulimit -l 0; ulimit -c 0; ulimit -s 1024",
};

SCENARIO(collector_loss, limits_of_the_program, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		char *line = text("%s; exec \"$@\"", limits[i]);
		struct job job = {.how = JOB_BARE, .args = {"sh", "-c", line, "sh"}};
		struct outcome *bare, *outcome;
		int n = 4;

		/* The address sanitizer itself takes terabytes of addresses. */
		if (strstr(limits[i], "-v") && built_with_asan())
			continue;
		/* The shell that enters the root keeps its script in a descriptor above nine. */
		if (strstr(limits[i], "-n 5") && python->chrooted)
			continue;
		for (int k = 0; python->command[k]; k++)
			job.args[n++] = python->command[k];
		job.args[n] = "@greedy.py";
		bare = job_run(&job);
		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect_same(bare, outcome);
		expect(outcome, stderr_evprof_lines(outcome) > 0 || outcome->traces,
		       "%s: nothing is recorded, silently", limits[i]);
		expect(outcome, stderr_evprof_lines(outcome) <= 2, "%s: %u lines are said", limits[i],
		       stderr_evprof_lines(outcome));
		free(line);
	}
}

/* Below what a collector needs, the program gets a line and does not wait for one that can do nothing. */
SCENARIO(collector_loss, few_descriptors, SUPPORTED)
{
	static const char *const ulimits[] = {"ulimit -n 7", "ulimit -n 13", "ulimit -n 14", "ulimit -S -n 8"};

	if (!runs_by_default(python))
		return;
	for (size_t i = 0; i < sizeof(ulimits) / sizeof(*ulimits); i++) {
		const char *const limited[] = {"sh", "-c", text("%s; exec \"$@\"", ulimits[i]), "sh"};
		struct job job = {0};
		struct outcome *outcome;
		int n = 0;

		/* Only Python is limited: what brings it into its root is a script, which needs more. */
		for (int k = 0; python->command[k]; k++) {
			for (size_t l = 0; !python->command[k + 1] && l < sizeof(limited) / sizeof(*limited); l++)
				job.args[n++] = limited[l];
			job.args[n++] = python->command[k];
		}
		job.args[n++] = "-c";
		job.args[n] = "print('run')";
		outcome = job_run(&job);
		expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "run\n"), "it runs");
		expect(outcome, stderr_evprof_lines(outcome) == 1, "%u lines are said", stderr_evprof_lines(outcome));
		expect(outcome, outcome->seconds < CLOSING_S, "%s: it took %.2f s", ulimits[i], outcome->seconds);
		if (i < 2)
			expect(outcome, strstr(outcome->err, "limit of open files") && !outcome->traces,
			       "the line says why nothing is recorded");
		else
			json_decref(expect_trace(outcome, 1));
	}
}

/* There is no memory for its message to the collector. */
SCENARIO(collector_loss, child_without_memory_to_join, SUPPORTED)
{
	static const char program[] = "import os, resource\n"
				      "def leaf():\n"
				      "    pass\n"
				      "leaf()\n"
				      "hard = resource.getrlimit(resource.RLIMIT_AS)[1]\n"
				      "resource.setrlimit(resource.RLIMIT_AS, (4096, hard))\n"
				      "pid = os.fork()\n"
				      "if not pid:\n"
				      "    leaf()\n"
				      "    os._exit(0)\n"
				      "resource.setrlimit(resource.RLIMIT_AS, (hard, hard))\n"
				      "print(os.waitpid(pid, 0)[1])\n";
	struct outcome *outcome;

	if (built_with_asan())
		cr_skip_test("the sanitizer takes memory in the child");
	outcome = run(.python = python, .args = {"-c", program});
	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "0\n"), "it runs");
	expect(outcome,
	       strstr(outcome->err, "no memory to join a collector: Cannot allocate memory; this process is "
				    "not recorded"),
	       "the line says why the child is not recorded");
	expect(outcome, stderr_evprof_lines(outcome) == 2, "%u lines are said", stderr_evprof_lines(outcome));
	json_decref(expect_trace(outcome, 1));
}

#define LIMITED_BY(Function)                                                                                           \
	{                                                                                                              \
		"@limits_itself.py", Function, "400", "2", "calls", CALLS_TEXT                                         \
	}

/*
 * It joined before: what it may still take is what it may take bare, but for a small part. No thread goes without a
 * ring.
 */
SCENARIO(collector_loss, limit_set_by_the_program, SUPPORTED)
{
	static const struct job jobs[] = {{.args = LIMITED_BY("setrlimit")}, {.args = LIMITED_BY("prlimit")}};

	if (python_is_free_threaded(python) || built_with_asan())
		cr_skip_test("its allocator has more than these limits from the beginning");
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		struct run run = new_run(), bare = new_run();
		struct job job = jobs[i];
		json_t *report;

		job.python = python;
		job.directory = run.directory;
		run.outcome = job_run(&job);
		job.how = JOB_BARE;
		job.directory = bare.directory;
		bare.outcome = job_run(&job);
		expect_same(bare.outcome, run.outcome);
		json_decref(expect_trace(run.outcome, 1));
		report = trace_report(run.outcome->trace, NULL);
		expect(run.outcome, report_calls(report, "counting.py", "leaf") == 2 * CALLS, "all calls are there");
		json_decref(report);
	}
}

/* The exchange of the memory is of what is left of it. */
SCENARIO(collector_loss, killed_after_a_limit, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	if (python_is_free_threaded(python) || built_with_asan())
		cr_skip_test("its allocator has more than these limits from the beginning");
	struct run run = new_run();

	strike((struct strike){
	    .oracle = run.oracle, .delay_us = 20000, .act = strike_collector_signal, .argument = SIGKILL});
	run.outcome =
	    run(.python = python, .directory = run.directory, .env = {"EVPROF_OUTPUT=loss.evp", "EVPROF_RING_SIZE=1M"},
		.args = LIMITED_BY("setrlimit"), .lingers = true);
	outcome_settle(run.outcome);
	expect(run.outcome, run.outcome->status == 0, "it ends by itself");
	expect(run.outcome, oracle_ended(run.oracle) == 2 * CALLS, "it made all its calls");
	expect_resumed(&run);
}

/* ---- the host's daemon ------------------------------------------------------------------------------------------- */

static struct background *start_daemon(const char *folder, const char *socket)
{
	struct background *daemon = background_start(&(struct job){
	    .how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", socket, "--output-dir", folder}});

	background_listens(daemon, socket);
	return daemon;
}

/* How many instructions losing.py has in all, by valgrind; 0: it is not recorded there, and the test is skipped. */
static double instructions(const struct python *python, const char *what, const char *ring_size)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	char *socket = text("%s/s", directory), *counts;
	struct background *daemon = start_daemon(directory, socket);
	struct outcome *outcome = run(.directory = directory,
				      .env = {text("EVPROF_SOCKET=%s", socket), ring_size, "EVPROF_ON_FULL=drop",
					      "EVPROF_EVENTS=call,c_call", "PYTHONHASHSEED=0"},
				      .args = {"valgrind", "--tool=callgrind", "--callgrind-out-file=counts",
					       python->command[0], "@losing.py", what, text("%d", daemon->pid)},
				      .timeout_s = 300);
	const char *total;
	double value;

	background_stop(daemon);
	outcome_find_traces(outcome, NULL);
	if (!outcome->traces)
		cr_skip_test("under this valgrind nothing is recorded: %s", outcome->err);
	expect(outcome, outcome->status == 0, "it runs");
	counts = file_read(text("%s/counts", directory), NULL);
	total = counts ? strstr(counts, "\ntotals: ") : NULL;
	value = total ? atof(total + strlen("\ntotals: ")) : 0;
	expect(outcome, value > 0, "callgrind says how many");
	free(counts);
	return value;
}

#define START_PART 0.01 /* of the instructions: two starts of Python differ by so much */

/* To lose an event is no dearer than to keep it: the same calls twice, and the collector stands still once. */
SCENARIO(collector_loss, losing_is_cheap, SUPPORTED)
{
	double kept, lost;

	if (!runs_by_default(python) || python->command[1])
		return;
	if (run(.how = JOB_BARE, .args = {"sh", "-c", "command -v valgrind"})->status)
		cr_skip_test("valgrind is not installed");
	if (built_with_asan())
		cr_skip_test("valgrind runs no address sanitizer");
	kept = instructions(python, "kept", "EVPROF_RING_SIZE=64M");
	lost = instructions(python, "lost", SMALL_RING);
	cr_assert_leq(lost, kept * (1 + START_PART), "%.0f instructions where events are lost, %.0f where they are not",
		      lost, kept);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Killed and started anew: a program that runs on is recorded again, with all that it did since. */
SCENARIO(collector_loss, daemon_started_anew, SUPPORTED)
{
	struct run run = new_run();
	char *socket = text("%s/sock", run.directory), *folders[2];
	struct background *daemon, *program;
	struct outcome found = {.out = "", .err = ""};
	long before, after;
	json_t *info, *report;

	for (int i = 0; i < 2; i++) {
		folders[i] = text("%s/traces%d", run.directory, i);
		cr_assert(mkdir(folders[i], 0755) == 0);
	}
	daemon = start_daemon(folders[0], socket);
	program = background_start(&(struct job){.python = python,
						 .directory = run.directory,
						 .env = {text("EVPROF_SOCKET=%s", socket)},
						 .args = {"@steady.py", "4"}});
	for (int i = 0; i < 1000 && !run.oracle->pid; i++)
		usleep(10000);
	usleep(800000);
	kill(daemon->pid, SIGKILL);
	background_wait(daemon);
	unlink(socket);
	before = oracle_begun(run.oracle);
	daemon = start_daemon(folders[1], socket);
	usleep(1500000);
	after = oracle_ended(run.oracle);
	found.status = background_wait(program);
	background_stop(daemon);
	expect(&found, found.status == 0, "the program ends with 0: %s", file_read(program->log, NULL));
	outcome_find_traces(&found, folders[1]);
	expect(&found, found.traces == 1, "the new daemon wrote one trace, not %u: %s", found.traces,
	       file_read(daemon->log, NULL));
	info = trace_info(found.trace);
	expect(&found, json_is_true(json_object_get(info, "complete")), "it is complete");
	expect(&found,
	       !strcmp("rejoin", json_string_value(
				     json_object_get(json_array_get(json_object_get(info, "processes"), 0), "start"))),
	       "it says that the process had begun before");
	report = trace_report(found.trace, NULL);
	/* A second is time enough to notice, at a call every millisecond. */
	expect(&found, report_calls(report, "steady.py", "leaf") >= oracle_ended(run.oracle) - after,
	       "%ld calls after the restart are in it; there were %ld, %ld of them after 1.5 s",
	       report_calls(report, "steady.py", "leaf"), oracle_ended(run.oracle) - before,
	       oracle_ended(run.oracle) - after);
	expect_balanced(&found, report);
	json_decref(report);
	json_decref(info);
}

/* The same for a program that has two events a second and is killed: it is in the new trace after two seconds. */
SCENARIO(collector_loss, daemon_started_anew_for_a_quiet_program, SUPPORTED)
{
	struct run run = new_run();
	char *socket = text("%s/sock", run.directory), *folders[2];
	struct background *daemon, *program;
	struct outcome found = {.out = "", .err = ""};
	long after;
	json_t *report;

	if (!runs_by_default(python))
		return;
	for (int i = 0; i < 2; i++) {
		folders[i] = text("%s/traces%d", run.directory, i);
		cr_assert(mkdir(folders[i], 0755) == 0);
	}
	daemon = start_daemon(folders[0], socket);
	program = background_start(&(struct job){.python = python,
						 .directory = run.directory,
						 .env = {text("EVPROF_SOCKET=%s", socket), "EVPROF_EVENTS=call"},
						 .args = {"@steady.py", "60", "0.5"}});
	for (int i = 0; i < 1000 && !run.oracle->pid; i++)
		usleep(10000);
	usleep(1200000);
	kill(daemon->pid, SIGKILL);
	background_wait(daemon);
	unlink(socket);
	daemon = start_daemon(folders[1], socket);
	usleep(2500000);
	after = oracle_ended(run.oracle);
	usleep(2000000);
	kill((pid_t)run.oracle->pid, SIGKILL);
	background_wait(program);
	background_stop(daemon);
	outcome_find_traces(&found, folders[1]);
	expect(&found, found.traces == 1, "the new daemon wrote one trace, not %u", found.traces);
	report = trace_report(found.trace, NULL);
	expect(&found, report_calls(report, "steady.py", "leaf") >= oracle_ended(run.oracle) - after,
	       "%ld calls after the restart are in it; there were %ld after 2.5 s",
	       report_calls(report, "steady.py", "leaf"), oracle_ended(run.oracle) - after);
	json_decref(report);
}

#define CLOCKS_APART_MS 5 /* what a call costs, and what the program sleeps too long */

static double began_ms(const struct event *events, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(events[i].kind, "call") && !strcmp(events[i].name, name))
			return (double)events[i].time_ns / 1e6;
	return 0;
}

/* The times of the first words in the new trace are those of the program, with silences among the unread words, too. */
SCENARIO(collector_loss, daemon_started_anew_after_a_silence, SUPPORTED)
{
	static const char *const names[] = {"early", "late", "last"};
	struct run run = new_run();
	char *socket = text("%s/sock", run.directory), *folder = text("%s/traces", run.directory);
	struct background *daemon, *program;
	struct outcome found = {.out = "", .err = ""};
	struct event *events;
	double at[3];
	size_t count;

	if (!runs_by_default(python))
		return;
	daemon = start_daemon(run.directory, socket);
	program = background_start(&(struct job){.python = python,
						 .directory = run.directory,
						 .env = {text("EVPROF_SOCKET=%s", socket)},
						 .args = {"@silent.py", text("%d", daemon->pid)}});
	for (int i = 0; i < 1000 && !run.oracle->pid; i++)
		usleep(10000);
	background_wait(daemon);
	unlink(socket);
	cr_assert(mkdir(folder, 0755) == 0);
	daemon = start_daemon(folder, socket);
	usleep(1500000);
	run.oracle->stop = 1;
	found.status = background_wait(program);
	background_stop(daemon);
	found.out = file_read(program->log, NULL);
	expect(&found, sscanf(found.out, "began %lf %lf %lf", &at[0], &at[1], &at[2]) == 3, "it ends by itself");
	outcome_find_traces(&found, folder);
	expect(&found, found.traces == 1, "the new daemon wrote one trace, not %u", found.traces);
	events = trace_dump(found.trace, &count);
	for (int i = 0; i < 2; i++) {
		double recorded = began_ms(events, count, names[2]) - began_ms(events, count, names[i]);
		double real = (at[2] - at[i]) / 1e6;

		expect(&found, recorded > real - CLOCKS_APART_MS && recorded < real + CLOCKS_APART_MS,
		       "%s() began %.3f ms before %s(), and %.3f ms in the trace", names[i], real, names[2], recorded);
	}
}

/* The daemon never looked at the program: that it is gone is known all the same, and another in its place is joined. */
SCENARIO(collector_loss, daemon_killed_before_its_first_look, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	for (int another = 0; another < 2; another++) {
		struct run run = new_run();
		char *socket = text("%s/sock", run.directory), *folder = text("%s/traces", run.directory);
		struct background *daemon, *program;
		struct outcome found = {.out = "", .err = ""};

		cr_assert(mkdir(folder, 0755) == 0);
		daemon = start_daemon(folder, socket);
		kill(daemon->pid, SIGSTOP);
		program = background_start(&(struct job){.python = python,
							 .directory = run.directory,
							 .env = {text("EVPROF_SOCKET=%s", socket)},
							 .args = {"@steady.py", "2"}});
		for (int i = 0; i < 1000 && !run.oracle->pid; i++)
			usleep(10000);
		kill(daemon->pid, SIGKILL);
		background_wait(daemon);
		unlink(socket);
		daemon = another ? start_daemon(folder, socket) : NULL;
		found.seconds = seconds_now();
		found.status = background_wait(program);
		found.seconds = seconds_now() - found.seconds;
		if (another)
			background_stop(daemon);
		found.err = file_read(program->log, NULL);
		expect(&found, found.status == 0, "the program ends with 0");
		expect(&found, found.seconds < 2 + SLACK_S, "its two seconds took %.2f s", found.seconds);
		outcome_find_traces(&found, folder);
		expect(&found, found.traces == (unsigned)another, "there are %u traces", found.traces);
		if (another) {
			json_t *report = trace_report(found.trace, NULL);

			expect(&found, report_calls(report, "steady.py", "leaf") == oracle_ended(run.oracle),
			       "%ld of %ld calls are in the trace", report_calls(report, "steady.py", "leaf"),
			       oracle_ended(run.oracle));
			json_decref(report);
		}
	}
}

/*
 * Nothing is done in a program that is sampled, so it looks at its end only; what the sampler saw until then is kept.
 */
SCENARIO(collector_loss, daemon_started_anew_for_samples, SUPPORTED)
{
	struct run run = new_run();
	char *socket = text("%s/sock", run.directory), *begun = text("%s/begun", run.directory);
	char *folders[2] = {text("%s/traces0", run.directory), text("%s/traces1", run.directory)};
	struct background *daemon, *program;
	struct outcome found = {.out = "", .err = ""};
	json_t *report;

	if (!runs_by_default(python))
		return;
	cr_assert(mkdir(folders[0], 0755) == 0 && mkdir(folders[1], 0755) == 0);
	daemon = start_daemon(folders[0], socket);
	program = background_start(&(struct job){.python = python,
						 .directory = run.directory,
						 .env = {text("EVPROF_SOCKET=%s", socket), "EVPROF_EVENTS=sample"},
						 .args = {"@sampling.py", "anew"}});
	for (int i = 0; i < 2000 && access(begun, F_OK); i++)
		usleep(10000);
	kill(daemon->pid, SIGKILL);
	background_wait(daemon);
	unlink(socket);
	daemon = start_daemon(folders[1], socket);
	found.status = background_wait(program);
	background_stop(daemon);
	expect(&found, found.status == 0, "the program ends with 0: %s", file_read(program->log, NULL));
	outcome_find_traces(&found, folders[1]);
	expect(&found, found.traces == 1, "the new daemon wrote one trace, not %u", found.traces);
	report = trace_report(found.trace, NULL);
	expect(&found,
	       report_seconds(report, "sampling.py", "long") > 1 && report_seconds(report, "sampling.py", "long") < 2.3,
	       "%f s of 1.8 s are in it", report_seconds(report, "sampling.py", "long"));
	json_decref(report);
}
