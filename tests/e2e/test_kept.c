/*
 * test_kept.c - a trace that keeps its last stretch (EVPROF_KEEP), and copies of it while it is written (evprof
 * snapshot). The oracle is the program (kept.py), which notes when it began each of its numbered batches.
 */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

struct kept {
	struct background *program;
	const char *trace, *stamps, *end, *folder;
};

/* Collectors of other tests are in another network namespace, where this user may make one. */
static void apart(void)
{
	if (geteuid() == 0)
		cr_assert(unshare(CLONE_NEWNET) == 0, "no network namespace");
}

static struct kept begin_kept_with(const struct python *python, const char *keep, const char *variable,
				   const char *seconds)
{
	struct kept kept = {.folder = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory};

	kept.trace = text("%s/kept.evp", kept.folder);
	kept.stamps = text("%s/stamps", kept.folder);
	kept.end = text("%s/end", kept.folder);
	kept.program = background_start(&(struct job){.python = python,
						      .args = {"@kept.py", kept.stamps, kept.end, seconds},
						      .directory = kept.folder,
						      .env = {text("EVPROF_OUTPUT=%s", kept.trace), keep, variable}});
	return kept;
}

static struct kept begin_kept(const struct python *python, const char *keep, const char *seconds)
{
	return begin_kept_with(python, keep, NULL, seconds);
}

static double monotonic_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The beginnings of the batches, and their number. */
static double *read_stamps(const struct kept *kept, long *count)
{
	char *bytes = file_read(kept->stamps, NULL), *at = bytes, *end;
	double *stamps = NULL;

	*count = 0;
	/* The last line may be half written. */
	for (; at && (end = strchr(at, '\n')); at = end + 1) {
		stamps = realloc(stamps, (size_t)(*count + 1) * sizeof(*stamps));
		stamps[(*count)++] = strtod(at, NULL);
	}
	return stamps;
}

static void await_batches(const struct kept *kept, long wanted)
{
	long count = 0;

	for (unsigned i = 0; i < 6000 && count < wanted; i++) {
		usleep(10000);
		if (access(kept->stamps, F_OK) == 0)
			free(read_stamps(kept, &count));
	}
	cr_assert(count >= wanted, "%s", file_read(kept->program->log, NULL));
}

/* How often the batch was called, in the report of a trace. */
static long batch_calls(const json_t *report, long number)
{
	return report_calls(report, "<string>", text("batch_%ld", number));
}

/* The first batch of the report whose successors up to `last` are all in it; last + 1: not even that. */
static long first_batch(const json_t *report, long last)
{
	long first = last + 1;

	while (first > 0 && batch_calls(report, first - 1) == 1)
		first--;
	return first;
}

/* But for one that runs where the trace begins: it is called before. */
static long all_batches(const json_t *report)
{
	long count = 0;

	for (size_t i = 0; i < report_functions(report); i++)
		count +=
		    strncmp(report_function(report, i).name, "batch_", 6) == 0 && report_function(report, i).total > 0;
	return count;
}

/*
 * The trace has all batches from some one on, no other began after `since` (of the program's clock), and its last is
 * among those from `last` on; or the one before (when the copy was made, it was about to begin). Returns the first.
 */
static long expect_stretch(const char *trace, const double *stamps, long last, long noted, double since)
{
	struct outcome *info = tool("info", trace);
	json_t *report = trace_report(trace, NULL);
	long first, count;

	expect(info, info->status == 0 && strstr(info->out, "\nstate     complete\n"), "the trace is whole");
	last -= !batch_calls(report, last) && batch_calls(report, last - 1);
	/* On a busy machine the copy is of so much later that none of them is in it any more. */
	while (last + 1 < noted && !batch_calls(report, last))
		last++;
	while (last + 1 < noted && batch_calls(report, last + 1))
		last++;
	first = first_batch(report, last);
	count = last - first + 1;
	cr_assert(count > 0, "batch %ld of %ld is in %s\n%s", last, noted, trace, info->out);
	cr_expect_eq(all_batches(report), count, "%ld batches, %ld of them from %ld on", all_batches(report), count,
		     first);
	cr_expect(first == 0 || stamps[first - 1] < since, "batch %ld is missing, %.3f s too early", first - 1,
		  stamps[first - 1] - since);
	cr_expect(report_calls(report, "/kept.py", "leaf") >= 7 * count - 7 &&
		      report_calls(report, "/kept.py", "leaf") <= 7 * count + 7,
		  "%ld calls of leaf in %ld batches", report_calls(report, "/kept.py", "leaf"), count);
	cr_expect(first == 0 || report_calls(report, "/kept.py", "waiter") == 0, "waiter runs at its beginning");
	cr_expect(report_seconds(report, "/kept.py", "waiter") >= stamps[last] - stamps[first] - 0.02,
		  "it waits all the time: %.3f of %.3f s", report_seconds(report, "/kept.py", "waiter"),
		  stamps[last] - stamps[first]);
	json_decref(report);
	return first;
}

static void end_kept(const struct kept *kept)
{
	file_write(kept->end, "", 0);
	cr_expect_eq(background_wait(kept->program), 0, "%s", file_read(kept->program->log, NULL));
}

/* The last second of a run of some seconds, and not much more. */
SCENARIO_SOME(kept, end, SUPPORTED)
{
	struct kept kept = begin_kept(python, "EVPROF_KEEP=1s", "4");
	long count, first;
	double *stamps, last, ended;
	struct stat status;

	cr_expect_eq(background_wait(kept.program), 0);
	ended = monotonic_s();
	stamps = read_stamps(&kept, &count);
	last = stamps[count - 1];
	first = expect_stretch(kept.trace, stamps, count - 1, count, ended - 0.98);
	cr_expect(first > 0 && last - stamps[first] < (last - stamps[0]) * 0.8, "%.3f s of %.3f s are kept",
		  last - stamps[first], last - stamps[0]);
	cr_expect(stat(kept.trace, &status) == 0 && status.st_blocks * 512 + 4096 >= status.st_size,
		  "the file is not sparse");
	cr_expect(strstr(file_read(kept.program->log, NULL), "evprof: the last 1 s of "), "its line says so");
	free(stamps);
}

/* The collector is stopped while the program runs: the trace is as short, and is exported. */
SCENARIO_SOME(kept, collector_stopped, SUPPORTED)
{
	struct kept kept = begin_kept_with(python, "EVPROF_KEEP=1s", "EVPROF_FORMAT=folded", "60");
	pid_t collector;
	long before, count;
	double *stamps;

	await_batches(&kept, 1);
	usleep(2500000);
	collector = process_child_named("evprof-collecto");
	free(read_stamps(&kept, &before));
	cr_assert(collector && kill(collector, SIGTERM) == 0);
	for (unsigned i = 0; i < 6000 && !process_has_ended(collector); i++)
		usleep(10000);
	stamps = read_stamps(&kept, &count);
	cr_expect(expect_stretch(kept.trace, stamps, before - 1, count, monotonic_s() - 0.98) > 0);
	cr_expect_eq(access(text("%s/kept.folded", kept.folder), F_OK), 0, "it is exported");
	end_kept(&kept);
	free(stamps);
}

static char *snapshot_of(const struct kept *kept, const char *target, const char *name)
{
	char *path = text("%s/%s", kept->folder, name);
	struct outcome *outcome =
	    run(.how = JOB_BARE, .args = {"%B/evprof", "snapshot", target, "-o", path}, .lingers = true);

	expect(outcome, outcome->status == 0 && strstr(outcome->err, text("evprof: %s has what is recorded of ", path)),
	       "a snapshot is written, and a line says so");
	return path;
}

/* A copy that was just made has the last second, not all from the start. before: batches before it was asked for. */
static void expect_copy(const struct kept *kept, const char *path, long before)
{
	double now = monotonic_s(), *stamps;
	long count;

	stamps = read_stamps(kept, &count);
	cr_assert(count >= before && before > 0);
	cr_expect(expect_stretch(path, stamps, before - 1, count, now - 0.98) > 0, "not from its start on");
	free(stamps);
}

static void expect_last_second(const struct kept *kept)
{
	double *stamps;
	long count;

	end_kept(kept);
	stamps = read_stamps(kept, &count);
	expect_stretch(kept->trace, stamps, count - 1, count, monotonic_s() - 0.98);
	free(stamps);
}

/* Copies while the program runs: the last second each time, and all that comes later is in the next. */
SCENARIO(kept, snapshots, SUPPORTED)
{
	struct kept kept;
	const char *pid;
	long before;

	apart();
	kept = begin_kept(python, "EVPROF_KEEP=1s", "60");
	pid = text("%d", (int)kept.program->pid);
	await_batches(&kept, 1);
	usleep(3000000);
	for (unsigned i = 0; i < 2; i++) {
		char *path;

		free(read_stamps(&kept, &before));
		path = snapshot_of(&kept, i ? "kept" : pid, text("snapshot%u.evp", i));
		expect_copy(&kept, path, before);
		usleep(1500000);
	}
	expect_last_second(&kept);
}

/* Without EVPROF_KEEP a snapshot has everything since the start. */
SCENARIO(kept, snapshot_of_all, SUPPORTED)
{
	struct kept kept;
	long count, before;
	double *stamps;
	char *path;

	apart();
	kept = begin_kept(python, NULL, "60");
	await_batches(&kept, 50);
	free(read_stamps(&kept, &before));
	path = snapshot_of(&kept, "all", "snapshot.evp");
	stamps = read_stamps(&kept, &count);
	cr_expect_eq(expect_stretch(path, stamps, before - 1, count, stamps[0]), 0, "from the first batch on");
	end_kept(&kept);
	free(stamps);
}

static void expect_refused(struct outcome *outcome, const char *reason)
{
	const char *said = strstr(outcome->err, reason);

	expect(outcome, outcome->status == 2 && said, "\"%s\"", reason);
	expect(outcome, said && strchr(said, '\n') == outcome->err + strlen(outcome->err) - 1, "in one line");
}

/* The copy would be the end of what is recorded from then on. */
SCENARIO(kept, copies_over_traces, SCENARIO_ONCE)
{
	static const char written[] = "is a trace that is being written; give the output another name";
	static const char gone[] = "/kept.evp was removed or replaced while it was written, and cannot be copied";
	struct kept kept, other;
	const char *pid, *path;

	apart();
	kept = begin_kept(python_any(), NULL, "60"), other = begin_kept(python_any(), NULL, "60");
	(void)python;
	await_batches(&kept, 1), await_batches(&other, 1);
	pid = text("%d", (int)kept.program->pid);
	expect_refused(tool("snapshot", "-o", kept.trace, pid), written);
	expect_refused(tool("record", "--for", "1s", "--events", "call", "-o", kept.trace, pid), written);
	expect_refused(tool("snapshot", "-o", other.trace, pid), written);
	path = snapshot_of(&kept, pid, "snapshot.evp");
	cr_assert_eq(rename(path, kept.trace), 0);
	expect_refused(tool("snapshot", "-o", path, pid), gone);
	expect_refused(tool("record", "--for", "1s", "-o", path, pid), gone);
	cr_assert_eq(unlink(kept.trace), 0);
	expect_refused(tool("snapshot", "-o", path, pid), gone);
	end_kept(&kept), end_kept(&other);
	cr_expect(strstr(file_read(kept.program->log, NULL), "was removed while it was written: nothing is kept"));
	cr_expect(strstr(file_read(other.program->log, NULL), " 0 lost, in "), "the other is whole");
}

/* The file takes what it may, and little more, however long the program runs. */
SCENARIO_SOME(kept, bytes, SUPPORTED)
{
	/* Without allocations: those of Python's end are half of what is kept, and more where chunks are small. */
	struct kept kept = begin_kept_with(python, "EVPROF_KEEP=200K", "EVPROF_EVENTS=call,c_call", "60");
	long long most = 0, length = 0;
	long count;
	double *stamps;
	struct stat status;

	for (unsigned i = 0; i < 3000 && length < (3 << 20); i++) {
		usleep(10000);
		if (stat(kept.trace, &status) < 0)
			continue;
		most = status.st_blocks * 512 > most ? status.st_blocks * 512 : most;
		length = status.st_size;
	}
	end_kept(&kept);
	cr_expect(length >= 3 << 20, "it wrote %lld bytes", length);
	/* Space is given back and reserved in steps of 256 KiB, and events from the last stack on are kept. */
	cr_expect(most < 2 << 20, "it took %lld bytes", most);
	stamps = read_stamps(&kept, &count);
	cr_expect(expect_stretch(kept.trace, stamps, count - 1, count, stamps[count - 1]) > 0);
	free(stamps);
}

/* The path by which evprof top sees the trace of a process. */
static char *path_in_status(const struct kept *kept)
{
	json_t *said = json_loads(tool("status", "--json")->out, 0, NULL);
	const json_t *collectors = json_object_get(said, "collectors");
	json_t *collector, *process;
	char *path = NULL;
	size_t i, k;

	json_array_foreach(collectors, i, collector)
	    json_array_foreach(json_object_get(collector, "processes"), k,
			       process) if (json_integer_value(json_object_get(process, "pid")) == kept->program->pid)
		path = text("%s", json_string_value(json_object_get(process, "trace")));
	json_decref(said);
	cr_assert(path, "it is recorded");
	return path;
}

/* No trace on disk: what it does can be looked at and copied, in bounded memory, and nothing is left. */
SCENARIO(kept, nowhere, SUPPORTED)
{
	struct kept kept;
	struct outcome *top;
	struct stat status = {0};
	long count, before;
	double *stamps;
	char *path;

	apart();
	kept = begin_kept_with(python, "EVPROF_KEEP=200K", "EVPROF_OUTPUT=none", "120");
	await_batches(&kept, 100);
	path = path_in_status(&kept);
	for (unsigned i = 0; i < 6000 && status.st_size < 2 << 20; i++) {
		usleep(10000);
		cr_assert(stat(path, &status) == 0, "%s", path);
	}
	cr_expect(status.st_size >= 2 << 20 && status.st_blocks * 512 < 3 << 19, "%s: %lld bytes of %lld", path,
		  (long long)status.st_blocks * 512, (long long)status.st_size);
	top = tool("top", "-n", "1", "--json", text("%d", (int)kept.program->pid));
	expect(top, top->status == 0 && strstr(top->out, "\"function\": \"fill\""), "top shows it");
	free(read_stamps(&kept, &before));
	path = snapshot_of(&kept, text("%d", (int)kept.program->pid), "snapshot.evp");
	stamps = read_stamps(&kept, &count);
	cr_expect(expect_stretch(path, stamps, before - 1, count, stamps[count - 1]) > 0, "its last stretch");
	free(stamps);
	end_kept(&kept);
	cr_expect(strstr(file_read(kept.program->log, NULL), "; no trace is kept (EVPROF_OUTPUT=none)"),
		  "a line says so");
	unlink(path);
	top = run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s | grep evp", kept.folder)});
	expect(top, !top->out_bytes, "no file is left");
	top = run(.python = python, .how = JOB_RUN, .env = {"EVPROF_OUTPUT=none"}, .args = {"-c", "1"});
	expect(top, top->status == 0 && strstr(top->err, "; no trace is kept (EVPROF_OUTPUT=none)\n"),
	       "nor by evprof run");
}

/* The collector is killed: the file is no complete trace, but it is readable, and what was dropped is no damage. */
SCENARIO_SOME(kept, collector_killed, SUPPORTED)
{
	struct kept kept = begin_kept(python, "EVPROF_KEEP=1s", "60");
	struct outcome *report;
	long count;

	await_batches(&kept, 1);
	usleep(3000000);
	free(read_stamps(&kept, &count));
	cr_assert(kill(process_child_named("evprof-collecto"), SIGKILL) == 0);
	report = tool("report", "--json", kept.trace);
	expect(report, report->status == 3 || report->status == 1, "it is read");
	expect(report, strstr(report->out, "\"batch_") && !strstr(report->out, "\"batch_0\""),
	       "it has batches, and not the first one");
	expect(report, strstr(report->err, "the trace is incomplete") && !strstr(report->err, "damaged"),
	       "nothing is damaged");
	file_write(kept.end, "", 0);
	background_wait(kept.program);
}

/* The program asks for the copies: the last second each time, up to its last batch. */
SCENARIO(kept, by_the_program, SUPPORTED)
{
	struct outcome *outcome;
	const json_t *taken;
	json_t *said;
	size_t i;

	python_needs(python, "ctypes");
	apart();
	outcome = run(.python = python, .args = {"@kept_api.py", "named.evp"}, .lingers = true,
		      .env = {"EVPROF_KEEP=1s", text("PYTHONPATH=%s", program_path("../../../tools/python"))});
	said = json_loads(outcome->out, 0, NULL);
	expect(outcome, outcome->status == 0 && json_array_size(said) == 2, "it took two snapshots");
	json_array_foreach(said, i, taken)
	{
		const char *path = json_string_value(json_object_get(taken, "path"));
		long last = (long)json_integer_value(json_object_get(taken, "last"));
		json_t *report;

		expect(outcome, path && (!i || strstr(path, "/named.evp")), "snapshot %zu has a path", i);
		report = trace_report(path, NULL);
		cr_expect(first_batch(report, last) <= json_integer_value(json_object_get(taken, "first")),
			  "batches from %ld on are there, not from %lld on", first_batch(report, last),
			  json_integer_value(json_object_get(taken, "first")));
		cr_expect(!batch_calls(report, last + 1) && first_batch(report, last) > 0, "and no others");
		json_decref(report);
	}
	json_decref(said);
}

/* Of a child that was just forked, and of threads at once: each is a file of its own. */
SCENARIO(kept, snapshots_at_once, SUPPORTED)
{
	struct outcome *outcome;
	unsigned count = 0;

	python_needs(python, "ctypes");
	apart();
	outcome = run(.python = python, .args = {"@snapshots.py"}, .lingers = true,
		      .env = {"EVPROF_OUTPUT=t.evp", "EVPROF_EVENTS=call",
			      text("PYTHONPATH=%s", program_path("../../../tools/python"))});
	expect(outcome, outcome->status == 0, "it ran");
	for (char *path = strtok(text("%s", outcome->out), "\n"); path; path = strtok(NULL, "\n"), count++) {
		struct outcome *info = tool("info", path);

		expect(info, info->status == 0, "%s is whole", path);
		cr_expect(!strstr(strstr(outcome->out, path) + 1, path), "%s twice", path);
	}
	expect(outcome, count == 9, "%u snapshots", count);
}

static void await_file(const struct kept *kept, const char *path)
{
	for (unsigned i = 0; i < 1000 && access(path, F_OK) < 0; i++)
		usleep(10000);
	cr_assert(access(path, F_OK) == 0, "%s: %s", path, file_read(kept->program->log, NULL));
}

/* A signal asks for a copy, while the program runs: its last second each time, in a file of its own. */
SCENARIO(kept, by_signal, SUPPORTED)
{
	struct kept kept = begin_kept_with(python, "EVPROF_KEEP=1s", "EVPROF_SIGNAL=USR2:snapshot", "60");
	long before;

	await_batches(&kept, 1);
	usleep(2500000);
	for (unsigned i = 1; i <= 2; i++) {
		char *path = text("%s/kept-%d-signal-%u.evp", kept.folder, (int)kept.program->pid, i);

		free(read_stamps(&kept, &before));
		cr_assert(kill(kept.program->pid, SIGUSR2) == 0 && before > 0);
		await_file(&kept, path);
		expect_copy(&kept, path, before);
		usleep(1500000);
	}
	expect_last_second(&kept);
}

/* The folder of the trace has another name when a copy is asked for. */
SCENARIO_SOME(kept, folder_is_renamed, SUPPORTED)
{
	struct kept kept = begin_kept_with(python, "EVPROF_KEEP=1s", "EVPROF_SIGNAL=USR2:snapshot", "60");
	const char *moved = text("%s-moved", kept.folder);
	long before;

	await_batches(&kept, 1);
	usleep(2500000);
	free(read_stamps(&kept, &before));
	cr_assert_eq(rename(kept.folder, moved), 0);
	cr_assert_eq(kill(kept.program->pid, SIGUSR2), 0);
	await_file(&kept, text("%s/kept-%d-signal-1.evp", moved, (int)kept.program->pid));
	cr_assert_eq(rename(moved, kept.folder), 0);
	expect_copy(&kept, text("%s/kept-%d-signal-1.evp", kept.folder, (int)kept.program->pid), before);
	expect_last_second(&kept);
}

static json_t *expect_alone(const char *path, long pid)
{
	json_t *info = trace_info(path);

	cr_expect(info_pids(info) == 1 && info_process(info, pid), "only process %ld is in %s", pid, path);
	return info;
}

/* A worker is killed while others run on: what it did last is copied before it leaves the trace. */
SCENARIO(kept, a_child_is_killed, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@kept_killed.py"}, .lingers = true,
				      .env = {"EVPROF_KEEP=1s", "EVPROF_OUTPUT=kept.evp"});
	char *end;
	long pid = strtol(outcome->out, &end, 10), count = strtol(end, &end, 10), ordered = strtol(end, NULL, 10);
	const char *path = text("%s/kept-%ld-killed.evp", outcome->directory, pid);
	struct outcome *info;
	json_t *report;

	outcome_settle(outcome);
	expect(outcome, outcome->status == 0 && count > 20 && access(path, R_OK) == 0, "%s was written", path);
	expect(outcome, ordered > 0 && access(text("%s/kept-%ld-killed.evp", outcome->directory, ordered), F_OK) < 0,
	       "none of the one that SIGTERM ended");
	info = tool("info", path);
	expect(info,
	       info->status == 0 && strstr(info->out, text("\nprocess %ld, ", pid)) && strstr(info->out, "killed by"),
	       "it has the process that was killed");
	json_decref(expect_alone(path, pid));
	report = trace_report(path, NULL);
	cr_expect(batch_calls(report, count - 1) == 1 && first_batch(report, count - 1) > 0, "up to its end");
	cr_expect_eq(all_batches(report), count - first_batch(report, count - 1), "without a gap");
	json_decref(report);
	report = trace_report(text("%s/kept.evp", outcome->directory), NULL);
	cr_expect_eq(all_batches(report), 0, "and is no longer in the trace");
	json_decref(report);
}

SCENARIO(kept, misused, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "run", "--keep", "30", "true"});

	(void)python;
	expect(outcome, outcome->status == 125 && strstr(outcome->err, "30s, 10m or 2h, a size such as 256M, or both"),
	       "one line says what is allowed");
	apart();
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "snapshot", "4711"}, .lingers = true);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "no collector of this user runs here"), "a line");
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "snapshot", "-o", "-"}, .lingers = true);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "a trace needs a file"), "a line");
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "cut", "--in-place", "-o", "x.evp", "y.evp"});
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "--in-place is for one stretch"), "a line");
}

/* A private collector that ends while it is asked closes the connection a moment before its socket. */
SCENARIO(kept, collector_ends_meanwhile, SCENARIO_ONCE)
{
	static const char ending[] = "import socket, time\n"
				     "listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
				     "listener.bind('ending.sock'); listener.listen(5); print('ready', flush=True)\n"
				     "asked = listener.accept()[0]; asked.recv(4096); asked.close()\n"
				     "time.sleep(0.1); listener.close()\n";
	const char *directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	struct background *collector = background_start(
	    &(struct job){.python = python_any(), .how = JOB_BARE, .directory = directory, .args = {"-c", ending}});
	struct outcome *outcome;

	(void)python;
	for (int i = 0; i < 6000 && !strstr(file_read(collector->log, NULL), "ready"); i++)
		usleep(10000);
	outcome = tool("snapshot", "--socket", text("%s/ending.sock", directory), "all");
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "no collector of this user runs here"), "a line");
	expect(outcome, !strstr(outcome->err, "no answer"), "none about the one that has ended");
	cr_expect_eq(background_wait(collector), 0, "%s", file_read(collector->log, NULL));
}
