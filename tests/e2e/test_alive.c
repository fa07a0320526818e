/*
 * test_alive.c - traces that keep what is alive, and sums (EVPROF_KEEP=alive, evprof cut --alive). The oracles are the
 * program's own counters (alive_counted.py), and the same recording with all its events. tracemalloc's are in
 * test_live.c.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocations.h"
#include "harness.h"
#include "process.h"

#define TRIES 12000 /* of 10 ms: a busy machine */

static json_t *json_of(const struct outcome *outcome)
{
	json_t *root = json_loads(outcome->out, 0, NULL);

	expect(outcome, root, "it writes JSON");
	return root;
}

static json_int_t member(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* The process with that pid in the output of evprof memory --json. */
static const json_t *process_of(const json_t *memory, json_int_t pid)
{
	size_t i;
	const json_t *process;

	json_array_foreach(json_object_get(memory, "processes"), i,
			   process) if (member(process, "pid") == pid) return process;
	cr_assert_fail("process %lld is not in the trace", (long long)pid);
	return NULL;
}

/* The site of a row of the program's; NULL: none. */
static const json_t *site_of(const json_t *process, const json_t *row)
{
	size_t i;
	const json_t *site;

	json_array_foreach(json_object_get(process, "sites"), i,
			   site) if (json_equal(json_object_get(site, "function"), json_array_get(row, 0)) &&
				     json_equal(json_object_get(site, "line"), json_array_get(row, 1))) return site;
	return NULL;
}

/* The trace has what a line of the program says. */
static void expect_row(const json_t *process, const json_t *row)
{
	static const char *const columns[] = {"allocations", "allocated_bytes", "end_bytes"};
	const json_t *site = site_of(process, row);

	for (size_t i = 0; i < 3; i++) {
		json_int_t said = json_integer_value(json_array_get(row, 2 + i)), found = member(site, columns[i]);

		cr_expect_eq(found, said, "%s of %s: %lld, the program counted %lld", columns[i],
			     json_string_value(json_array_get(row, 0)), (long long)found, (long long)said);
	}
}

/* ... and what all its lines say. keeps: `keep` goes on no more. Returns how many there are. */
static unsigned expect_counted(const char *trace, const char *said, bool keeps)
{
	struct outcome *outcome = tool("memory", "--json", "--by", "line", trace);
	json_t *memory = json_of(outcome);
	unsigned lines = 0;

	expect(outcome, outcome->status == 0 && strstr(outcome->out, "\"alive_only\": true"), "it is whole");
	for (const char *at = said; at && *at == '{'; at = strchr(at, '\n'), at += at != NULL, lines++) {
		json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
		const json_t *process = process_of(memory, member(line, "pid")), *row;
		size_t i;

		json_array_foreach(json_object_get(line, "rows"), i,
				   row) if (keeps || strcmp(json_string_value(json_array_get(row, 0)), "keep") != 0)
		    expect_row(process, row);
		json_decref(line);
	}
	json_decref(memory);
	return lines;
}

static off_t size_of(const char *path)
{
	struct stat status;

	cr_assert_eq(stat(path, &status), 0, "%s", path);
	return status.st_size;
}

/*
 * trace.memory() by function: what the program and its child counted, and the numbers that their loops count with. From
 * 3.14 on Python keeps up to a hundred of these for the next ones.
 */
static void expect_functions(const struct python *python, const struct outcome *outcome)
{
	static const char *const code =
	    "import collections, evprof, json, sys\n"
	    "made, end = collections.Counter(), collections.Counter()\n"
	    "for line in sys.argv[2].splitlines():\n"
	    "    for name, _, _, bytes, kept in json.loads(line)['rows']:\n"
	    "        made[name] += bytes\n"
	    "        end[name] += kept\n"
	    "for row in evprof.load(sys.argv[1]).memory():\n"
	    "    if row.name in made and 'alive_counted' in row.file:\n"
	    "        assert end[row.name] <= row.end_bytes < end[row.name] + 5000, (row, end)\n"
	    "        assert made[row.name] <= row.bytes < 1.1 * made[row.name], (row, made)\n"
	    "        print(row.name)\n"
	    "trace = evprof.load(sys.argv[1])\n"
	    "assert {row.peak_bytes_a for row in trace.diff(trace, memory=True)} == {-1}\n";
	struct outcome *said = run_with_package(python, code, outcome->trace, outcome->out);

	expect(said,
	       built_with_asan() || (said->status == 0 && strstr(said->out, "keep") && strstr(said->out, "churn") &&
				     strstr(said->out, "replace")),
	       "three functions");
}

static struct outcome *run_counted(const struct python *python, const char *count)
{
	return run(.python = python, .how = JOB_RUN, .args = {"@alive_counted.py", count},
		   .options = {"--memory", "--keep", "alive"}, .timeout_s = 200);
}

/* Threads that free each other's blocks, a forked child; and ten times as many allocations take the same space. */
SCENARIO(alive, counted, SUPPORTED)
{
	off_t few, many;

	needs_own_malloc();
	for (int i = 0; i < 2; i++) {
		struct outcome *outcome = run_counted(python, i ? "50000" : "5000");

		expect(outcome, outcome->status == 0 && strstr(outcome->err, "evprof: what is alive after "),
		       "its line says what the trace has");
		expect(outcome, strstr(outcome->err, "evprof:   memory ") && strstr(outcome->err, " at the end, "),
		       "the summary has its memory");
		cr_expect_eq(expect_counted(outcome->trace, outcome->out, true), 2, "the program and its child");
		expect_functions(python, outcome);
		few = i ? few : size_of(outcome->trace);
		many = size_of(outcome->trace);
	}
	cr_expect(many < few + few / 10, "%lld bytes, with ten times as many allocations %lld", (long long)few,
		  (long long)many);
}

/*
 * All columns but that of the peak, sorted. Estimates of numbers are rounded for each thread, and such a trace has one
 * for all: estimated numbers of allocations are left out.
 */
static char *rows_of(const char *trace, const char *by, bool estimated)
{
	struct outcome *sorted =
	    run(.how = JOB_BARE, .args = {"sh", "-c",
					  text("%s memory --format csv --by %s '%s' | "
					       "awk -F, -v OFS=, '{$(NF-4) = \"\"; %s print}' | sort",
					       build_path("evprof"), by, trace, estimated ? "$(NF-1) = \"\";" : "")});

	expect(sorted, sorted->status == 0 && strchr(sorted->out, '\n'), "it has rows");
	return sorted->out;
}

static void expect_same_rows(const struct outcome *outcome, bool estimated)
{
	static const char *const all[] = {"line", "function", "module"};
	char *alive = text("%s/alive.evp", outcome->directory);
	struct outcome *cut = tool("cut", "--alive", outcome->trace, "-o", alive), *checked;

	expect(cut, cut->status == 0 && !*cut->err, "it is cut");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		cr_expect_str_eq(rows_of(alive, all[i], estimated), rows_of(outcome->trace, all[i], estimated), "by %s",
				 all[i]);
	checked =
	    run(.how = JOB_BARE, .args = {"sh", "-c",
					  text("for trace in '%s' '%s'; do %s memory --histogram --format csv "
					       "\"$trace\" >\"$trace.csv\"; done; "
					       "cmp '%s.csv' '%s.csv'",
					       alive, outcome->trace, build_path("evprof"), alive, outcome->trace)});
	expect(checked, checked->status == 0, "the histogram of sizes is the same");
	cr_expect(size_of(alive) < size_of(outcome->trace), "it is smaller");
	cut = tool("cut", "--alive", alive, "-o", text("%s/again.evp", outcome->directory));
	expect(cut, cut->status == 0 && !*cut->err, "such a trace can be cut again");
	cr_expect_str_eq(rows_of(text("%s/again.evp", outcome->directory), "line", estimated),
			 rows_of(alive, "line", estimated), "and is the same then");
}

/* What a recording with all its events says, but for the peak: native blocks and stacks, mappings, samples, forks. */
SCENARIO(alive, same_as_whole, SUPPORTED)
{
	static const char *const settings[][2] = {
	    {MALLOC_EVENTS}, {MALLOC_EVENTS, "EVPROF_NATIVE=1"}, {"EVPROF_EVENTS=mem", "EVPROF_MEMORY_INTERVAL=4K"}};

	needs_own_malloc();
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		expect_same_rows(run(.python = python, .args = {"@alive_counted.py", "3000"},
				     .env = {settings[i][0], settings[i][1]}, .timeout_s = 120),
				 i == 2);
}

struct running {
	const char *folder, *trace, *end;
	struct background *program;
};

/* Runs until end_running(), and has printed its counters already. */
static struct running begin_running(const struct python *python, const char *count)
{
	struct running running = {.folder = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory};

	running.trace = text("%s/alive.evp", running.folder);
	running.end = text("%s/end", running.folder);
	running.program =
	    background_start(&(struct job){.python = python,
					   .args = {"@alive_counted.py", count, running.end},
					   .directory = running.folder,
					   .env = {text("EVPROF_OUTPUT=%s", running.trace), "EVPROF_KEEP=alive"}});
	for (unsigned i = 0; i < TRIES; i++) {
		const char *said = file_read(running.program->log, NULL);

		if (said && strstr(said, "\"replace\"") && strstr(strstr(said, "\"replace\"") + 1, "\"replace\""))
			return running;
		usleep(10000);
	}
	cr_assert_fail("%s", file_read(running.program->log, NULL));
	return running;
}

static void end_running(const struct running *running)
{
	file_write(running->end, "", 0);
	cr_expect_eq(background_wait(running->program), 0, "%s", file_read(running->program->log, NULL));
}

/* What was read leaves the file while the program runs. */
SCENARIO_SOME(alive, constant_space, SUPPORTED)
{
	struct running running;
	struct stat status = {0};
	unsigned i;

	needs_own_malloc();
	running = begin_running(python, "200000");
	for (i = 0; i < TRIES; i++) {
		cr_assert_eq(stat(running.trace, &status), 0);
		if (status.st_size > 2 << 20 && status.st_blocks * 512 < 1 << 20)
			break;
		usleep(10000);
	}
	cr_expect(i < TRIES, "of %lld bytes, %lld are left", (long long)status.st_size,
		  (long long)status.st_blocks * 512);
	end_running(&running);
	cr_expect(strstr(tool("memory", "--json", running.trace)->out, "\"alive_only\": true"));
}

/* A collector that is killed: the trace becomes what was alive, as far as it was written. */
SCENARIO_SOME(alive, collector_killed, SUPPORTED)
{
	struct running running;
	struct outcome *memory = NULL;
	unsigned i;

	needs_own_malloc();
	if (geteuid() == 0)
		cr_assert_eq(unshare(CLONE_NEWNET), 0);
	running = begin_running(python, "1000");
	memory = tool("snapshot", "all", "-o", text("%s/snapshot.evp", running.folder));
	expect(memory, memory->status == 0, "what was in the rings is written");
	cr_assert_eq(kill(process_child_named("evprof-collecto"), SIGKILL), 0);
	for (i = 0; i < TRIES / 10; i++) {
		memory = tool("memory", "--json", running.trace);
		if (strstr(memory->out, "\"alive_only\": true"))
			break;
		usleep(100000);
	}
	expect(memory, i < TRIES / 10 && strstr(memory->out, "\"replace\""), "it has what was alive");
	end_running(&running);
}

/* 0: there is none. */
static pid_t first_child(pid_t parent)
{
	char *children = file_read(text("/proc/%d/task/%d/children", (int)parent, (int)parent), NULL);

	return children ? atoi(children) : 0;
}

/* The follower: the only child of the collector. */
static pid_t follower(void)
{
	pid_t followed = first_child(process_child_named("evprof-collecto"));

	cr_assert(followed > 1, "nothing follows the trace");
	return followed;
}

/* The follower is killed: the program goes on, and the trace keeps its last stretch, as a line says. */
SCENARIO_SOME(alive, follower_killed, SUPPORTED)
{
	struct running running;
	struct outcome *memory;

	needs_own_malloc();
	running = begin_running(python, "1000");
	cr_assert_eq(kill(follower(), SIGKILL), 0);
	end_running(&running);
	cr_expect(!strstr(file_read(running.program->log, NULL), "what is alive after"), "the program has the line");
	memory = tool("memory", "--json", running.trace);
	expect(memory, !strstr(memory->out, "\"alive_only\"") && strstr(memory->out, "\"keep\""), "it has a stretch");
}

/* A supervisor signals the collector and its children, and kills what is left: the result is there when it ends. */
SCENARIO_SOME(alive, collector_stopped, SUPPORTED)
{
	struct running running;
	struct outcome *memory;
	pid_t collector, followed;

	needs_own_malloc();
	running = begin_running(python, "1000");
	collector = process_child_named("evprof-collecto");
	followed = follower();
	cr_assert(kill(followed, SIGTERM) == 0 && kill(followed, SIGINT) == 0 && kill(followed, SIGSTOP) == 0);
	cr_assert_eq(kill(collector, SIGTERM), 0);
	usleep(1000000);
	cr_expect(!process_has_ended(collector), "it waits");
	kill(followed, SIGCONT);
	for (unsigned i = 0; i < TRIES && !process_has_ended(collector); i++)
		usleep(10000);
	memory = tool("memory", "--json", running.trace);
	expect(memory, strstr(memory->out, "\"alive_only\": true") && strstr(memory->out, "\"replace\""),
	       "it has what was alive");
	end_running(&running);
}

#define FULL_S 20 /* a program would wait for room, and its ring is full in less than a second ... */
#define LONG_S 3  /* ... and a pause of a busy machine is shorter */

static struct background *begin_pausing(const struct python *python, const char *folder)
{
	return background_start(
	    &(struct job){.python = python,
			  .args = {"@pausing.py", text("%s/end", folder)},
			  .env = {text("EVPROF_SOCKET=%s/socket", folder), "EVPROF_KEEP=alive", "EVPROF_EVENTS=mem",
				  "EVPROF_RING_SIZE=64K", text("EVPROF_ON_FULL=wait:%d", FULL_S * 1000)}});
}

static void end_pausing(struct background *program, const char *folder)
{
	char *said;

	file_write(text("%s/end", folder), "", 0);
	cr_expect_eq(background_wait(program), 0);
	said = file_read(program->log, NULL);
	cr_expect(said && strstr(said, "longest ") && atof(strstr(said, "longest ") + 8) < LONG_S, "%s", said);
}

/* The daemon that a process has started, or the follower of that. */
static pid_t await_child(pid_t parent)
{
	for (unsigned i = 0; i < TRIES && !process_has_ended(parent); i++) {
		pid_t child = first_child(parent);

		if (child > 1)
			return child;
		usleep(10000);
	}
	cr_assert_fail("process %d has no child", (int)parent);
	return 0;
}

static void expect_pausing(const char *traces)
{
	struct outcome found = {.out = "", .err = ""}, *memory;

	outcome_find_traces(&found, traces);
	expect(&found, found.traces == 1, "the next daemon wrote one trace, not %u", found.traces);
	memory = tool("memory", "--json", found.trace);
	expect(memory, strstr(memory->out, "\"alive_only\": true") && strstr(memory->out, "pausing.py"),
	       "it has what was alive");
}

/* stretch: of --keep-last; NULL: none */
static struct background *begin_daemon(const char *folder, const char *name, const char *stretch)
{
	char *traces = text("%s/%s", folder, name);

	cr_assert_eq(mkdir(traces, 0755), 0);
	return background_start(
	    &(struct job){.how = JOB_BARE,
			  .args = {"%B/evprof-collector", "--socket", text("%s/socket", folder), "--output-dir", traces,
				   stretch ? "--keep-last" : NULL, stretch}});
}

/* A daemon that is stopped waits for the follower, and the program for nothing. The next daemon has it meanwhile. */
SCENARIO_SOME(alive, daemon_stopped, SUPPORTED)
{
	const char *folder = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	struct background *first, *next, *program;
	pid_t followed;

	needs_own_malloc();
	first = begin_daemon(folder, "first", NULL);
	background_listens(first, text("%s/socket", folder));
	program = begin_pausing(python, folder);
	followed = await_child(first->pid);
	usleep(500000);
	cr_assert(kill(followed, SIGSTOP) == 0 && kill(first->pid, SIGTERM) == 0);
	usleep(1500000);
	next = begin_daemon(folder, "next", NULL);
	await_child(next->pid);
	cr_expect(!process_has_ended(first->pid), "the first one still waits");
	kill(followed, SIGCONT);
	end_pausing(program, folder);
	cr_expect_eq(background_wait(first), 0);
	cr_expect_eq(background_stop(next), 0);
	expect_pausing(text("%s/next", folder));
}

/* Its path. */
static char *trace_of_daemon(const char *folder)
{
	struct outcome found = {.out = "", .err = ""};

	outcome_find_traces(&found, text("%s/traces", folder));
	return text("%s", found.trace);
}

/* A daemon that keeps what is alive: of a program that records calls there is the whole trace, and snapshots. */
SCENARIO_SOME(alive, daemon_of_programs_with_calls, SUPPORTED)
{
	static const char *const code = "import subprocess, sys, time\n"
					"def work(): pass\n"
					"for _ in range(1000): work()\n"
					"time.sleep(2.5)\n"
					"subprocess.check_call(sys.argv[1:])\n";
	const char *folder = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	char *socket = text("EVPROF_SOCKET=%s/socket", folder), *copy = text("%s/copy.evp", folder), *log;
	struct background *daemon = begin_daemon(folder, "traces", "alive");
	struct outcome *outcome, *memory;
	json_t *report;

	background_listens(daemon, text("%s/socket", folder));
	outcome = run(.python = python, .env = {socket, "EVPROF_CHILDREN=0"}, .timeout_s = 120,
		      .args = {"-c", code, "env", "-u", "LD_PRELOAD", "%B/evprof", "snapshot", "all", "-o", copy});
	expect(outcome, outcome->status == 0 && !strstr(outcome->err, "last stretch"), "it ends well");
	report = trace_report(copy, NULL);
	cr_expect_eq(report_calls(report, "<string>", "work"), 1000, "the snapshot has what it did");
	json_decref(report);
	report = trace_report(trace_of_daemon(folder), NULL);
	cr_expect_eq(report_calls(report, "<string>", "work"), 1000, "the trace has it, too");
	json_decref(report);
	unlink(trace_of_daemon(folder));
	outcome = run(.python = python, .env = {socket, "EVPROF_EVENTS=mem"}, .args = {"-c", "pass"});
	expect(outcome, outcome->status == 0, "it ends well");
	memory = tool("memory", "--json", trace_of_daemon(folder));
	expect(memory, strstr(memory->out, "\"alive_only\": true"), "of one that records memory it has what is alive");
	background_stop(daemon);
	log = file_read(daemon->log, NULL);
	cr_expect(strstr(log, "--keep-last alive has no effect on "), "%s", log);
	cr_expect(!strchr(strchr(log, '\n') + 1, '\n'), "once: %s", log);
}

/* The same where systemd has the socket, and starts the next daemon after the first. */
SCENARIO_SOME(alive, daemon_stopped_by_systemd, SUPPORTED)
{
	const char *folder = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	char *folders[] = {text("%s/first", folder), text("%s/next", folder)};
	struct background *systemd, *program;
	pid_t first, next = 0, followed;

	needs_own_malloc();
	cr_assert(mkdir(folders[0], 0755) == 0 && mkdir(folders[1], 0755) == 0);
	systemd = background_start(&(struct job){.how = JOB_BARE,
						 .args = {"python3", "@holds_socket.py", text("%s/socket", folder),
							  "%B/evprof-collector", folders[0], folders[1]}});
	background_listens(systemd, text("%s/socket", folder));
	program = begin_pausing(python, folder);
	first = await_child(systemd->pid);
	followed = await_child(first);
	usleep(500000);
	cr_assert(kill(followed, SIGSTOP) == 0 && kill(first, SIGTERM) == 0);
	usleep((LONG_S + 2) * 1000000);
	kill(followed, SIGCONT);
	for (unsigned i = 0; i < TRIES && (next <= 1 || next == first); i++, next = first_child(systemd->pid))
		usleep(10000);
	await_child(next);
	end_pausing(program, folder);
	kill(next, SIGTERM);
	cr_expect_eq(background_wait(systemd), 0);
	expect_pausing(folders[1]);
}

/* What is alive so far, of a trace that is being written. */
SCENARIO_SOME(alive, so_far, SUPPORTED)
{
	struct running running;
	struct outcome *followed;

	needs_own_malloc();
	running = begin_running(python, "1000");
	followed =
	    run(.how = JOB_BARE, .lingers = true, .timeout_s = 120,
		.args = {"sh", "-c",
			 text("(i=0; while [ ! -e all-alive.evp ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; "
			      "%s memory --json all-alive.evp >so_far) | "
			      "%s cut --alive --until-closed --every 0.2 '%s' -o all.evp >/dev/null && cat so_far",
			      build_path("evprof"), build_path("evprof"), running.trace)});
	expect(followed, followed->status == 0 && strstr(followed->out, "\"alive_only\": true"), "there is one");
	cr_expect_neq(access(text("%s/all-alive.evp", followed->directory), F_OK), 0, "it is gone at the end");
	end_running(&running);
}

/* Of seventy processes the last 64 that ended, the first process among them, as it ends last. */
SCENARIO_SOME(alive, many_processes, SUPPORTED)
{
	static const char *const program = "import os\n"
					   "for i in range(70):\n"
					   "    child = os.fork()\n"
					   "    if not child: kept = bytes(1000); os._exit(0)\n"
					   "    os.waitpid(child, 0)\n"
					   "print(os.getpid())\n";
	struct outcome *outcome, *memory;
	json_t *root;

	needs_own_malloc();
	outcome = run(.python = python, .args = {"-c", program}, .env = {"EVPROF_KEEP=alive"}, .timeout_s = 200);
	memory = tool("memory", "--json", outcome->trace);
	root = json_of(memory);
	cr_expect_eq(json_array_size(json_object_get(root, "processes")), 64);
	process_of(root, atoi(outcome->out));
	expect(memory, strstr(memory->err, "7 processes that ended before these are not in the trace"),
	       "a line says so");
	json_decref(root);
}

/* A snapshot has what is alive so far, at once. */
SCENARIO(alive, snapshots, SUPPORTED)
{
	struct running running;
	const char *said;

	needs_own_malloc();
	if (geteuid() == 0)
		cr_assert_eq(unshare(CLONE_NEWNET), 0);
	running = begin_running(python, "1000");
	said = strchr(file_read(running.program->log, NULL), '{');
	for (int i = 0; i < 2; i++) {
		char *path = text("%s/snapshot%d.evp", running.folder, i);
		struct outcome *snapshot = tool("snapshot", "all", "-o", path);

		expect(snapshot, snapshot->status == 0 && strstr(snapshot->err, "show it with: evprof memory"),
		       "it is written");
		expect_counted(path, said, false);
	}
	for (int i = 0; i < 2; i++) {
		int stem = (int)strlen(running.trace) - 4;
		char *path = text("%.*s%s.evp", stem, running.trace, i ? "-alive" : "");
		struct outcome *snapshot = tool("snapshot", "all", "-o", path);

		expect(snapshot, snapshot->status == 2 && strstr(snapshot->err, text("%s is a trace that", path)),
		       "it is not replaced by its copy");
	}
	end_running(&running);
	expect_counted(running.trace, said, false);
}

/* Other outputs say so, too. */
static void expect_no_peak(const struct python *python, const char *trace)
{
	static const char *const code = "import evprof, gzip, sys\n"
					"trace = evprof.load(sys.argv[1])\n"
					"for by in 'function', 'line':\n"
					"    rows = trace.memory(by=by)\n"
					"    print({(row.peak_blocks, row.peak_bytes) for row in rows})\n"
					"print(b': no peak' in gzip.open(sys.argv[2]).read())";
	char *pprof = text("%s.pb.gz", trace);
	struct outcome *said;

	tool("export", "--format", "pprof", trace, "-o", pprof);
	said = run_with_package(python, code, trace, pprof);
	expect(said, built_with_asan() || !strcmp(said->out, "{(-1, -1)}\n{(-1, -1)}\nTrue\n"),
	       "tables, and pprof's comments");
	said = tool("export", "--format", "html", trace, "-o", "-");
	expect(said, strstr(said->out, "\"alive_only\":1"), "the page has the note");
}

static void expect_end(const struct python *python, const char *const options[4], const char *kept, const char *verb)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"-c", "pass"},
				      .options = {"--keep=alive", options[0], options[1], options[2], options[3]});

	expect(outcome, strstr(outcome->err, kept), "%s", kept);
	expect(outcome, strstr(outcome->err, text("show it with: evprof %s ", verb)), "%s", verb);
}

/* evprof run names the verb and the stretch that the library does. */
SCENARIO_SOME(alive, closing_line_of_run, SUPPORTED)
{
	static const char *const none[4] = {NULL}, *const memory[4] = {"--events", "mem"},
				 *const calls[4] = {"--events", "call"}, *const samples[4] = {"--sample"},
				 *const program[4] = {"--events", "mem", "--program-only"},
				 *const budget[4] = {"--budget", "5%"};

	expect_end(python, none, "evprof: what is alive after ", "memory");
	expect_end(python, memory, "evprof: what is alive after ", "memory");
	expect_end(python, budget, "evprof: what is alive after ", "memory");
	expect_end(python, calls, "evprof: the last 1 s of ", "report");
	expect_end(python, samples, "evprof: the last 1 s of ", "report");
	expect_end(python, program, "evprof: the last 1 s of ", "report");
}

/* What such a trace cannot show is an error. */
SCENARIO_SOME(alive, limits, SUPPORTED)
{
	struct outcome *outcome, *said;

	needs_own_malloc();
	outcome = run_counted(python, "10");
	said = tool("check", "--max-alloc", "1G", outcome->trace);
	expect(said, said->status == 2 && strstr(said->out, "no peak"), "a limit on the peak");
	said = tool("check", "--max-leak", "100M", "--max-lost", "100", outcome->trace);
	expect(said, said->status == 0, "a limit on what is left");
	said = tool("memory", "--at", "1s", outcome->trace);
	expect(said, said->status == 2 && strstr(said->err, "no stretch of time"), "a time");
	said = tool("memory", outcome->trace);
	expect(said, said->status == 0 && strstr(said->out, "  peak      not kept\n"), "the peak");
	expect_no_peak(python, outcome->trace);
	outcome = run(.python = python, .args = {"-c", "pass"}, .env = {"EVPROF_KEEP=alive", "EVPROF_OUTPUT=none"});
	expect(outcome, strstr(outcome->err, "EVPROF_KEEP=alive needs a file"), "it goes to a file");
	outcome = run(.python = python, .args = {"-c", "pass"}, .env = {"EVPROF_EVENTS=call", "EVPROF_KEEP=alive"});
	expect(outcome, strstr(outcome->err, "EVPROF_KEEP=alive needs memory without calls"), "calls");
	expect(outcome, strstr(outcome->err, "evprof: the last 1 s of "), "the last stretch");
	said = tool("cut", "--alive", outcome->trace, "-o", text("%s/x.evp", outcome->directory));
	expect(said, said->status == 2 && strstr(said->err, "needs a recording of memory without calls"), "calls");
}
