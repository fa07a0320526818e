/*
 * test_namespaces.c - the first process of a pid namespace, as in a container: when it is gone the kernel ends all
 * others in it, and the private collector is one of them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "strike.h"

#define PROCESSES 4 /* of namespace.py ... */
#define CALLS 4000  /* ... and what they call in all */
#define KILLED_AFTER_US 1500000

/* In a namespace of its own; what stands behind it is the first process there. */
static const char *const ways[][7] = {
    {"unshare", "--pid", "--fork", "--mount-proc"},
    {"unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"},
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static void add(struct job *job, int *n, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		job->args[(*n)++] = words[i];
}

static bool is_allowed(const char *const *way)
{
	struct job job = {.how = JOB_BARE};
	int n = 0;

	add(&job, &n, way);
	add(&job, &n, (const char *const[]){"true", NULL});
	return job_run(&job)->status == 0;
}

/* The arguments of a namespace, as far as this machine allows one. Skips the test where it does not. */
static int enter(struct job *job, size_t way)
{
	int n = 0;

	if (!is_allowed(ways[way]))
		cr_skip_test("%s %s is not allowed here", ways[way][0], ways[way][1]);
	add(job, &n, ways[way]);
	return n;
}

static struct outcome *run_first(const struct python *python, struct job job, int n, const char *how)
{
	add(&job, &n, (const char *const *)python->command);
	add(&job, &n, (const char *const[]){"@namespace.py", how, NULL});
	return job_run(&job);
}

static void expect_all(struct outcome *outcome, const char *what)
{
	json_t *report = trace_report(outcome->trace, NULL);

	expect(outcome, report_calls(report, "namespace.py", "leaf") == CALLS, "%s: %ld calls of leaf, not %d", what,
	       report_calls(report, "namespace.py", "leaf"), CALLS);
	expect_balanced(outcome, report);
	json_decref(report);
}

static const struct {
	const char *how;
	int status;
} ends[] = {
    {"return", 0},
    {"os_exit", 4},
    {"exception", 1},
    {"exec", 9},
};

static void expect_ends(const struct python *python, size_t way, size_t count)
{
	struct job job = {.timeout_s = 30};
	int n = enter(&job, way);

	for (size_t i = 0; i < count; i++) {
		struct outcome *outcome = run_first(python, job, n, ends[i].how);

		expect(outcome, outcome->status == ends[i].status, "%s: the status is %d, not %d", ends[i].how,
		       outcome->status, ends[i].status);
		expect(outcome, strstr(outcome->out, "process 1\n"), "%s: it is the first process", ends[i].how);
		json_decref(expect_trace(outcome, PROCESSES));
		expect_closing_line(outcome);
		expect_all(outcome, ends[i].how);
	}
}

SCENARIO(namespaces, first_process_ends, SUPPORTED)
{
	expect_ends(python, 0, sizeof(ends) / sizeof(*ends));
}

SCENARIO(namespaces, without_privileges, SUPPORTED)
{
	if (!runs_by_default(python))
		return;
	expect_ends(python, 1, 2);
}

/* The formats are written before it ends, too. */
SCENARIO(namespaces, formats_are_next_to_the_trace, SUPPORTED)
{
	struct job job = {.env = {"EVPROF_FORMAT=folded,csv", "EVPROF_OUTPUT=first.evp"}};
	struct outcome *outcome;
	char *folded;

	if (!runs_by_default(python))
		return;
	outcome = run_first(python, job, enter(&job, 0), "return");
	expect_closing_line(outcome);
	folded = file_read(text("%s/first.folded", outcome->directory), NULL);
	expect(outcome, folded && strstr(folded, "leaf"), "the folded stacks are there");
	expect(outcome, access(text("%s/first.csv", outcome->directory), R_OK) == 0, "so is the table");
	free(folded);
}

/* evprof run is the first process, the program is not. */
SCENARIO(namespaces, evprof_run_is_first, SUPPORTED)
{
	struct job job = {.how = JOB_BARE};
	struct outcome *outcome;
	int n = 0;

	if (!runs_by_default(python))
		return;
	n = enter(&job, 0);
	add(&job, &n, (const char *const[]){"%B/evprof", "run", "-o", "first.evp", "--", NULL});
	outcome = run_first(python, job, n, "os_exit");
	expect(outcome, outcome->status == 4, "the status is %d, not 4", outcome->status);
	json_decref(expect_trace(outcome, PROCESSES));
	expect_all(outcome, "evprof run");
}

static void strike_first(const struct strike *strike)
{
	char *children = NULL;

	(void)strike;
	/* The namespace is known outside by another number: the only child of unshare, which is the test's. */
	children = file_read(text("/proc/%d/task/%d/children", getppid(), getppid()), NULL);
	for (char *at = children, *word; at && (word = strsep(&at, " "));) {
		char *inside = *word ? file_read(text("/proc/%s/task/%s/children", word, word), NULL) : NULL;

		if (inside && atoi(inside) > 0)
			kill((pid_t)atoi(inside), SIGKILL);
		free(inside);
	}
	free(children);
}

/* Nobody can write the end then; what had been there for a moment is in the file, which is read as far as it goes. */
SCENARIO(namespaces, first_process_killed, SUPPORTED)
{
	struct job job = {.env = {"EVPROF_OUTPUT=first.evp"}};
	struct outcome *outcome;
	json_t *info;
	int n;

	if (!runs_by_default(python))
		return;
	n = enter(&job, 0);
	job.directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	strike((struct strike){.oracle = oracle_new(job.directory), .delay_us = KILLED_AFTER_US, .act = strike_first});
	outcome = run_first(python, job, n, "sleep");
	info = trace_info(outcome->trace);
	expect(outcome, json_is_false(json_object_get(info, "complete")), "the trace has no end");
	expect_all(outcome, "killed");
	json_decref(info);
}

/* ---- /proc ------------------------------------------------------------------------------------------------------- */

/* Without /proc, and without /dev, too; then with that of the namespace outside, where all numbers are others. */
static const char *const surroundings[][6] = {
    {"unshare", "--mount", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"},
    {"unshare", "--mount", "sh", "-c", "umount -l /proc && mount -t tmpfs none /dev && exec \"$@\"", "sh"},
    {"unshare", "--pid", "--fork", "sh", "-c", "\"$@\"; exit $?"},
};

static struct outcome *run_surrounded(const struct python *python, size_t which, const char *with)
{
	struct job job = {.how = JOB_BARE, .env = {with}};
	int n = 0;

	for (int i = 0; i < 6; i++)
		job.args[n++] = surroundings[which][i];
	if (which == 2)
		job.args[n++] = "sh";
	if (!with)
		add(&job, &n, (const char *const[]){"%B/evprof", "run", "-o", "x.evp", "--", NULL});
	add(&job, &n, (const char *const *)python->command);
	add(&job, &n, (const char *const[]){"@processes.py", "forks", NULL});
	return job_run(&job);
}

SCENARIO(namespaces, without_proc, SUPPORTED)
{
	char *preload = text("LD_PRELOAD=%s", build_path("libevprof.so"));

	if (!runs_by_default(python))
		return;
	if (python->chrooted)
		cr_skip_test("what starts %s needs /proc", python->name);
	if (built_with_asan())
		cr_skip_test("the sanitizer needs /proc");
	if (run(.how = JOB_BARE, .args = {"unshare", "--mount", "--pid", "--fork", "true"})->status)
		cr_skip_test("unshare is not allowed here");
	for (size_t i = 0; i < 2 * sizeof(surroundings) / sizeof(*surroundings); i++) {
		struct outcome *outcome = run_surrounded(python, i / 2, i % 2 ? preload : NULL);

		expect(outcome, outcome->status == 0, "%zu: the program runs", i);
		expect(outcome, outcome->eof_seconds < 5, "%zu: its output ends after %.1f s", i, outcome->eof_seconds);
		json_decref(expect_trace(outcome, 4));
		expect_closing_line(outcome);
	}
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* Naps, becomes itself once more in another time namespace, naps there, and says how long in all. */
static const char *const naps = "import os, sys, time\n"
				"def nap():\n    time.sleep(.3)\n"
				"begin = time.perf_counter()\n"
				"nap()\n"
				"took = time.perf_counter() - begin\n"
				"if len(sys.argv) == 3:\n"
				"    print(float(sys.argv[2]) + took)\n"
				"    sys.exit(3)\n"
				"words = 'unshare --time --boottime 100000 --monotonic 200000'.split()\n"
				"code = sys.argv[1]\n"
				"os.execvp(words[0], words + [sys.executable, '-c', code, code, str(took)])\n";

static void expect_one_process(const struct outcome *outcome)
{
	json_t *info, *report;
	double seconds, naps_s;
	size_t images;

	expect(outcome, outcome->status == 3, "the status is the program's");
	info = expect_trace(outcome, 1);
	images = json_array_size(json_object_get(info, "processes"));
	expect(outcome, images == 2, "two images, not %zu", images);
	for (size_t i = 0; i < images; i++) {
		const json_t *image = json_array_get(json_object_get(info, "processes"), i);

		expect(outcome, strcmp(json_string_value(json_object_get(image, "start")), "exec") == 0,
		       "image %zu began by exec", i);
	}
	report = trace_report(outcome->trace, NULL);
	seconds = report_seconds(report, "", "nap");
	naps_s = atof(outcome->out);
	expect(outcome, seconds > .55 && seconds < naps_s + .1, "naps of %.3f s took %.3f s", naps_s, seconds);
	/* Own times, since a module's cumulative time is in it twice where one of the same name imports another. */
	seconds = json_number_value(json_object_get(report, "tottime"));
	expect(outcome, seconds > naps_s && seconds < outcome->seconds, "all functions took %.3f s of %.3f", seconds,
	       outcome->seconds);
	json_decref(report);
	json_decref(info);
}

/* With the counter as clock, and with the kernel's, which is another one there. */
SCENARIO(namespaces, another_time, SUPPORTED)
{
	static const char *const time[] = {"unshare", "--time", "--boottime", "9", NULL};
	static const char *const slow[] = {
	    "unshare", "--mount", "sh", "-c", "echo hpet >hpet && mount --bind hpet " CLOCK_SOURCE " && exec \"$@\"",
	    "sh",      NULL};
	bool mounts = access(CLOCK_SOURCE, R_OK) == 0 && is_allowed(slow);

	if (!is_allowed(time))
		cr_skip_test("unshare --time is not allowed here");
	if (python->chrooted)
		cr_skip_test("its root has no unshare");
	for (int clock = 0; clock < 1 + mounts; clock++) {
		for (int run = 0; run < 2; run++) {
			struct job job = {.how = run ? JOB_BARE : JOB_PRELOAD};
			int n = 0;

			if (clock)
				add(&job, &n, slow);
			if (run)
				add(&job, &n, (const char *const[]){"%B/evprof", "run", "-o", "naps.evp", "--", NULL});
			add(&job, &n, (const char *const *)python->command);
			add(&job, &n, (const char *const[]){"-c", naps, naps, NULL});
			expect_one_process(job_run(&job));
		}
	}
}

/* ---- a collector elsewhere --------------------------------------------------------------------------------------- */

/*
 * $0 the collector, $1 the library, the rest the program. The collector is alone in its pid namespace; its socket has a
 * name a moment before it listens.
 */
static const char *const apart =
    "library=$1; shift\n"
    "unshare --pid --fork --mount-proc \"$0\" --socket \"$PWD/socket\" --output-dir \"$PWD\" &\n"
    "for i in $(seq 100); do test -S socket && sleep .2 && break; sleep .1; done\n"
    "LD_PRELOAD=$library EVPROF_SOCKET=$PWD/socket \"$@\"\n"
    "status=$?\n"
    "kill $(cat /proc/$!/task/$!/children)\n"
    "wait $!\n"
    "exit $status\n";

/* Two containers of a pod that does not share its processes: the collector sees no pid, and knows each by its pidfd. */
SCENARIO(namespaces, collector_sees_no_pid, SUPPORTED)
{
	static const struct {
		const char *kind;
		int status;
		size_t images;
		long calls;
	} kinds[] = {{"forks", 0, 4, 3}, {"execs", 7, 2, 1}, {"subprocesses", 0, 3, 2}};

	if (python->chrooted)
		cr_skip_test("its root has no unshare");
	if (run(.how = JOB_BARE, .args = {"unshare", "--pid", "--fork", "--mount-proc", "true"})->status)
		cr_skip_test("unshare is not allowed here");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct outcome *outcome =
		    run(.how = JOB_BARE, .args = {"sh", "-c", apart, "%B/evprof-collector", "%B/libevprof.so",
						  python->command[0], "@processes.py", kinds[i].kind});
		json_t *info, *report;

		expect(outcome, outcome->status == kinds[i].status, "%s: its status", kinds[i].kind);
		expect(outcome, outcome->traces == 1, "%s: one trace, not %u", kinds[i].kind, outcome->traces);
		info = expect_trace(outcome, 0);
		expect(outcome, json_array_size(json_object_get(info, "processes")) == kinds[i].images,
		       "%s: %zu images", kinds[i].kind, json_array_size(json_object_get(info, "processes")));
		report = trace_report(outcome->trace, NULL);
		expect(outcome, report_calls(report, "processes.py", "in_child") == kinds[i].calls,
		       "%s: %ld calls in children", kinds[i].kind, report_calls(report, "processes.py", "in_child"));
		expect_balanced(outcome, report);
		json_decref(report);
		json_decref(info);
	}
}

/*
 * $0 the folder of evprof, $1 the Python, $2... what the collector is started by. The program is the first of its pid
 * namespace. Prints the pid that evprof status has.
 */
static const char *const looked_at =
    "python=$1; shift; export EVPROF_SOCKET=$PWD/socket EVPROF_KEEP=1s\n"
    "\"$@\" \"$0/evprof-collector\" --socket \"$PWD/socket\" --output-dir \"$PWD\" & collector=$!\n"
    "for i in $(seq 100); do test -S socket && sleep .2 && break; sleep .1; done\n"
    "LD_PRELOAD=$0/libevprof.so unshare --pid --fork --kill-child --mount-proc \"$python\" -c 'import time\n"
    "def work(): time.sleep(0.005)\n"
    "while True: work()' & program=$!\n"
    "for i in $(seq 200); do\n"
    "  pid=$(\"$0/evprof\" status | sed -n 's/^ *\\([0-9]*\\)  events .*/\\1/p'); test \"$pid\" && break; sleep .1\n"
    "done; sleep 1\n"
    "\"$0/evprof\" snapshot -o snapshot.evp $pid && \"$0/evprof\" top -n 2 --interval 0.5 --json $pid >top &&\n"
    "\"$0/evprof\" record --for 1s -o record.evp $pid && sleep 2.5 && \"$0/evprof\" snapshot -o later.evp $pid\n"
    "status=$?; echo $pid; kill -KILL $(cat /proc/$program/task/$program/children); wait $program; sleep .5\n"
    "kill $(grep . /proc/$collector/task/$collector/children || echo $collector); wait $collector\n"
    "exit $status\n";

static double worked(const struct outcome *outcome, const char *name)
{
	json_t *report = trace_report(text("%s/%s", outcome->directory, name), NULL);
	double seconds = report_seconds(report, "<string>", "work");

	json_decref(report);
	return seconds;
}

/* From the host, and from a sidecar, whose namespace has no number for it; the trace has its own, 1. */
SCENARIO_SOME(namespaces, looked_at_from_another_one, SUPPORTED)
{
	static const char *const starts[][5] = {{"env"}, {"unshare", "--pid", "--fork", "--mount-proc"}};

	if (python->chrooted)
		cr_skip_test("its root has no unshare");
	if (!is_allowed(ways[0]))
		cr_skip_test("unshare is not allowed here");
	for (size_t i = 0; i < 2; i++) {
		struct job job = {
		    .how = JOB_BARE, .args = {"sh", "-c", looked_at, "%B", python->command[0]}, .timeout_s = 60};
		struct outcome *outcome;
		int n = 5;
		long pid;
		char *top;

		add(&job, &n, starts[i]);
		outcome = job_run(&job);
		pid = atol(outcome->out);
		expect(outcome, outcome->status == 0 && (i ? pid == 1 : pid > 1), "all are there for %ld", pid);
		expect(outcome, worked(outcome, "snapshot.evp") > 0.3, "the snapshot is of it");
		expect(outcome, worked(outcome, "record.evp") > 0.5, "the stretch is of it");
		expect(outcome, worked(outcome, "later.evp") < 2, "what was held then is given up");
		top = file_read(text("%s/top", outcome->directory), NULL);
		expect(outcome, top && strstr(top, text("\"processes\": [{\"pid\": %ld,", pid)), "top shows it: %s",
		       top);
		expect(outcome, (strstr(top, "\"rss_bytes\": null") != NULL) == (i == 1), "with its memory: %s", top);
		free(top);
	}
}

/*
 * The same. The program takes a snapshot of itself, by its own pid, and is killed in a stretch that is recorded.
 */
static const char *const looks_at_itself =
    "python=$1; shift; export EVPROF_SOCKET=$PWD/socket\n"
    "\"$@\" \"$0/evprof-collector\" --socket \"$PWD/socket\" --output-dir \"$PWD\" & collector=$!\n"
    "for i in $(seq 100); do test -S socket && sleep .2 && break; sleep .1; done\n"
    "LD_PRELOAD=$0/libevprof.so unshare --pid --fork --kill-child --mount-proc \"$python\" -c 'import evprof, time\n"
    "def work(): time.sleep(0.005)\n"
    "for i in range(100): work()\n"
    "with open(\"taken\", \"w\") as file: file.write(str(evprof.snapshot(\"own.evp\")))\n"
    "while True: work()' & program=$!\n"
    "for i in $(seq 300); do test -s taken && break; sleep .1; done; cat taken\n"
    "pid=$(\"$0/evprof\" status | sed -n 's/^ *\\([0-9]*\\)  events .*/\\1/p')\n"
    "\"$0/evprof\" record --for 4s -o ended.evp $pid & recorder=$!\n"
    "sleep 2; kill -KILL $(cat /proc/$program/task/$program/children); wait $program; wait $recorder; status=$?\n"
    "kill $(grep . /proc/$collector/task/$collector/children || echo $collector); wait $collector\n"
    "exit $status\n";

SCENARIO_SOME(namespaces, looks_at_itself, 8)
{
	static const char *const starts[][5] = {{"env"}, {"unshare", "--pid", "--fork", "--mount-proc"}};

	if (python->chrooted)
		cr_skip_test("its root has no unshare");
	if (!is_allowed(ways[0]))
		cr_skip_test("unshare is not allowed here");
	python_needs(python, "ctypes");
	for (size_t i = 0; i < 2; i++) {
		struct job job = {.how = JOB_BARE,
				  .args = {"sh", "-c", looks_at_itself, "%B", python->command[0]},
				  .env = {text("PYTHONPATH=%s", program_path("../../../tools/python"))},
				  .timeout_s = 60};
		struct outcome *outcome;
		int n = 5;

		add(&job, &n, starts[i]);
		outcome = job_run(&job);
		expect(outcome, outcome->status == 0, "the stretch is recorded");
		expect(outcome, worked(outcome, "ended.evp") > 0.5, "until its end");
		expect(outcome, strstr(outcome->out, "/own.evp"), "it takes a snapshot of itself");
		expect(outcome, worked(outcome, "own.evp") > 0.3, "the snapshot is of it");
	}
}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

/* calls leaf() as often as its child does, which is started by the words after it. */
static const char *const family = "import os, subprocess, sys\n"
				  "def leaf():\n    pass\n"
				  "def work():\n    for _ in range(100): leaf()\n"
				  "work()\n"
				  "if len(sys.argv) > 2:\n"
				  "    code = sys.argv.pop(1)\n"
				  "    sys.exit(subprocess.call(sys.argv[1:] + [sys.executable, '-c', code, code]))\n"
				  "pid = os.fork()\n"
				  "work()\n"
				  "if not pid:\n    os._exit(0)\n"
				  "print(os.waitpid(pid, 0)[1], sorted(os.listdir('/proc/self/fd')))\n";

/*
 * The rights to go where the collector is: all is in one trace. Without them the others have one of their own, and a
 * line says why.
 */
SCENARIO(namespaces, another_network, SUPPORTED)
{
	static const char *const networks[][5] = {{"unshare", "--net"},
						  {"unshare", "--user", "--map-root-user", "--net"}};

	for (int way = 0; way < 2; way++) {
		struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", family, family}};
		bool reached = way == 0;
		struct outcome *bare, *outcome;
		json_t *report;
		int n = 3;

		if (!reached && python->chrooted) /* where no user namespace can be made */
			continue;
		if (!is_allowed(networks[way]))
			cr_skip_test("%s is not allowed here", networks[way][1]);
		add(&job, &n, networks[way]);
		bare = job_run(&job);
		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect_same(bare, outcome);
		expect(outcome, outcome->status == 0 && outcome->traces == 1u + !reached, "%u traces", outcome->traces);
		expect(outcome, !strstr(outcome->err, "is gone"), "nobody is said to be gone");
		expect(outcome, !strstr(outcome->err, "another network namespace") == reached,
		       "it is said where it cannot be reached");
		if (!reached)
			continue;
		report = trace_report(outcome->trace, NULL);
		expect(outcome, report_calls(report, "<string>", "leaf") == 400, "%ld calls",
		       report_calls(report, "<string>", "leaf"));
		json_decref(expect_trace(outcome, 3));
		json_decref(report);
	}
}
