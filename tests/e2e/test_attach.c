/*
 * test_attach.c - evprof attaches to a Python that was started without it, and detaches, as often as one likes. The
 * oracle is the program, which counts its calls, looks at its own descriptors, threads, hooks and allocators, and goes
 * on as before.
 */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

/* The sanitizer's library must be the first of a process: a running Python cannot load one that needs it. */
static void needs_no_sanitizer(void)
{
	if (built_with_asan())
		cr_skip_test("a library with the address sanitizer cannot be loaded late");
}

/* Runs the program, and returns what it has printed. */
static json_t *run_attached(const struct python *python, struct outcome **outcome, const char *rounds,
			    const char *const options[4])
{
	json_error_t error;
	json_t *said;

	needs_no_sanitizer();
	python_needs(python, "ctypes");
	*outcome = run(.python = python, .how = JOB_BARE,
		       .args = {"@attached.py", build_path("evprof"), rounds, options[0], options[1], options[2]},
		       .timeout_s = 300);
	said = json_loads((*outcome)->out, 0, &error);
	expect(*outcome, (*outcome)->status == 0 && said, "it ends well and prints JSON: %s", error.text);
	expect(*outcome, !(*outcome)->err_bytes, "nothing is on its stderr");
	return said;
}

static char *round_trace(const struct outcome *outcome, unsigned number)
{
	return text("%s/round-%u.evp", outcome->directory, number);
}

static long long number(const json_t *root, const char *name)
{
	return json_integer_value(json_object_get(root, name));
}

/* After each round everything is as before the first. */
static void expect_nothing_left(const struct outcome *outcome, const json_t *said)
{
	const json_t *before = json_object_get(said, "before"), *round, *after, *value;
	const char *name;
	size_t i;

	json_array_foreach(json_object_get(said, "rounds"), i, round)
	{
		after = json_object_get(round, "after");
		json_object_foreach((json_t *)before, name, value) expect(
		    outcome, json_equal(value, json_object_get(after, name)), "%s after round %zu: %s, not %s", name, i,
		    json_dumps(json_object_get(after, name), JSON_ENCODE_ANY), json_dumps(value, JSON_ENCODE_ANY));
	}
	expect(outcome, number(said, "libraries") <= 8, "the library and one memory are mapped, once");
}

/* The trace of a round has the calls of that round, and the stack of the thread that was there before. */
static void expect_round(const struct outcome *outcome, const json_t *said, unsigned round)
{
	char *trace = round_trace(outcome, round);
	json_t *info = trace_info(trace), *report = trace_report(trace, NULL);

	expect(outcome, number(info, "lost") == 0 && info_pids(info) == 1, "round %u is complete", round);
	expect(outcome, report_calls(report, "/attached.py", "leaf") == number(said, "calls"),
	       "round %u: %ld calls of leaf, not %lld", round, report_calls(report, "/attached.py", "leaf"),
	       number(said, "calls"));
	expect(outcome, report_calls(report, "/attached.py", "outer") == 0, "round %u: outer was called before", round);
	expect(outcome, report_seconds(report, "/attached.py", "outer") > 0, "round %u: and it runs", round);
	expect(outcome, report_calls(report, "/attached.py", "main") == 0, "round %u: so was main", round);
	expect(outcome, report_seconds(report, "<string>", "<module>") <= 0, "round %u: no script is in it", round);
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

SCENARIO(attach, rounds, 6)
{
	static const char *const options[4] = {NULL};
	struct outcome *outcome;
	json_t *said = run_attached(python, &outcome, "3", options);
	const json_t *during = json_object_get(json_array_get(json_object_get(said, "rounds"), 0), "during");

	expect(outcome, number(during, "allocators") == 3, "while it is recorded its allocators are evprof's");
	for (unsigned i = 0; i < 3; i++)
		expect_round(outcome, said, i);
	expect_nothing_left(outcome, said);
	json_decref(said);
}

/* Each round records something else. */
SCENARIO(attach, events, 6)
{
	static const char *const options[4] = {"--events call", "--events mem", "--events call,line,exception"};
	struct outcome *outcome;
	json_t *said = run_attached(python, &outcome, "3", options), *info;

	info = trace_info(round_trace(outcome, 0));
	expect(outcome,
	       info_events(info, "call") > 2000 && !info_events(info, "malloc") && !info_events(info, "c_call"),
	       "calls only");
	json_decref(info);
	info = trace_info(round_trace(outcome, 1));
	expect(outcome, !info_events(info, "call") && info_events(info, "malloc") + info_events(info, "free") > 50,
	       "allocations only");
	json_decref(info);
	info = trace_info(round_trace(outcome, 2));
	expect(outcome, info_events(info, "line") > 4000 && !info_events(info, "malloc"), "lines, too");
	json_decref(info);
	expect_round(outcome, said, 0);
	expect_round(outcome, said, 2);
	expect_nothing_left(outcome, said);
	json_decref(said);
}

/* Native allocations are seen where the library was preloaded: otherwise what is alive is of Python's allocators. */
SCENARIO(attach, what_is_alive, 6)
{
	static const char *const options[4] = {"--keep alive"};
	struct outcome *outcome;
	json_t *said = run_attached(python, &outcome, "1", options), *info;
	char *events;

	info = trace_info(round_trace(outcome, 0));
	events = json_dumps(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "events"), 0);
	expect(outcome, events && !strcmp(events, "[\"mem\"]"), "recorded were %s", events);
	json_decref(info);
	expect_nothing_left(outcome, said);
	json_decref(said);
}

SCENARIO(attach, filters, 6)
{
	static const char *const options[4] = {"--events call --exclude leaf", "--events call --include leaf",
					       "--events call"};
	static const long leaves[] = {0, 2000, 2000}, others[] = {2, 0, 2};
	struct outcome *outcome;
	json_t *said = run_attached(python, &outcome, "3", options), *report;

	for (unsigned i = 0; i < 3; i++) {
		report = trace_report(round_trace(outcome, i), NULL);
		expect(outcome, report_calls(report, "/attached.py", "leaf") == leaves[i], "round %u: %ld of leaf", i,
		       report_calls(report, "/attached.py", "leaf"));
		expect(outcome, report_calls(report, "/attached.py", "other") == others[i], "round %u: %ld of other", i,
		       report_calls(report, "/attached.py", "other"));
		json_decref(report);
	}
	expect_nothing_left(outcome, said);
	json_decref(said);
}

/* A hundred of them in make check-all. */
SCENARIO_SOME(attach, often, 6)
{
	static const char *const options[4] = {NULL};
	unsigned rounds = test_all() ? 100 : 12;
	struct outcome *outcome;
	json_t *said = run_attached(python, &outcome, text("%u", rounds), options);

	for (unsigned i = 0; i < rounds; i += rounds / 4)
		expect_round(outcome, said, i);
	expect_nothing_left(outcome, said);
	json_decref(said);
}

static struct background *begin_loop(const struct python *python, enum job_how how, const char *variable)
{
	return background_start(
	    &(const struct job){.python = python,
				.how = how,
				.env = {variable},
				.args = {"-c", "import time\ndef work(): time.sleep(0.001)\nwhile 1: work()"}});
}

/* Waits until the program runs: `work` is on its stack most of the time. */
static struct background *start_loop(const struct python *python, enum job_how how)
{
	struct background *background = begin_loop(python, how, NULL);

	for (time_t end = time(NULL) + 120;
	     !strstr(tool("stack", text("%d", (int)background->pid))->out, "work") && time(NULL) < end;)
		usleep(10000);
	return background;
}

SCENARIO(attach, for_a_time, 6)
{
	struct background *loop;
	char *trace;
	struct outcome *outcome;
	json_t *info, *report;

	needs_no_sanitizer();
	loop = start_loop(python, JOB_BARE);
	trace = text("%s.evp", loop->log);
	outcome = tool("attach", "--for", "0.01m", "-o", trace, text("%d", (int)loop->pid));

	expect(outcome, outcome->status == 0 && strstr(outcome->err, "detached from"), "it detaches by itself");
	info = trace_info(trace);
	report = trace_report(trace, NULL);
	expect(outcome, report_calls(report, "<string>", "work") > 20, "it has %ld calls",
	       report_calls(report, "<string>", "work"));
	expect(outcome,
	       !strcmp(json_string_value(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "how")),
		       "detached"),
	       "the trace says how it ended");
	expect(outcome, kill(loop->pid, 0) == 0, "the program goes on");
	json_decref(report);
	json_decref(info);
	background_stop(loop);
}

/* Nobody waits for the program, which has ended all the same. */
SCENARIO(attach, until_it_ends, 6)
{
	struct background *loop;
	struct outcome *outcome;
	char *trace;
	json_t *info;

	needs_no_sanitizer();
	loop = background_start(
	    &(const struct job){.python = python,
				.how = JOB_BARE,
				.args = {"-c", "import time\ndef work(): time.sleep(0.001)\nend = time.time() + 3\n"
					       "while time.time() < end: work()"}});
	for (time_t end = time(NULL) + 120;
	     !strstr(tool("stack", text("%d", (int)loop->pid))->out, "work") && time(NULL) < end;)
		usleep(10000);
	trace = text("%s.evp", loop->log);
	outcome = tool("attach", "--for", "60s", "-o", trace, text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 0 && outcome->seconds < 30, "it ends with the program, after %.1f s",
	       outcome->seconds);
	info = trace_info(trace);
	expect(outcome,
	       !strcmp(json_string_value(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "how")),
		       "exit"),
	       "the trace says how it ended");
	json_decref(info);
	background_wait(loop);
}

/* A path need not be UTF-8. */
SCENARIO(attach, into_a_folder_of_any_name, 6)
{
	struct background *loop;
	struct outcome *outcome;
	char *trace, *shown;

	needs_no_sanitizer();
	loop = start_loop(python, JOB_BARE);
	trace = text("%s.\xff.evp", loop->log);
	shown = text("%s.?.evp", loop->log);
	outcome = tool("attach", "--for", "100ms", "-o", trace, text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 0, "it is recorded");
	expect(outcome,
	       strstr(outcome->err, text(" in %s;", shown)) && strstr(outcome->err, text("evprof report %s\n", shown)),
	       "and its lines have the path");
	json_decref(trace_info(trace));
	background_stop(loop);
}

static const char *text_of(const char *path)
{
	const char *found = file_read(path, NULL);

	return found ? found : "";
}

/* A program whose main thread is in C code for some seconds first. Returns once it is about to be. */
static struct background *start_sleeper(const struct python *python, const char *seconds)
{
	struct background *sleeper = background_start(&(const struct job){
	    .python = python,
	    .how = JOB_BARE,
	    .args = {"-c",
		     "import sys, time\ndef work(): time.sleep(0.001)\nprint('sleeps', flush=True)\n"
		     "time.sleep(float(sys.argv[1]))\nprint('works', flush=True)\nwhile 1: work()",
		     seconds}});

	for (time_t end = time(NULL) + 120; !strstr(text_of(sleeper->log), "sleeps") && time(NULL) < end;)
		usleep(10000);
	return sleeper;
}

/* Both are asked before the first is followed. Each has its own answer. */
SCENARIO(attach, two_at_once, 6)
{
	static const char script[] =
	    "%s attach -o %s.1.evp %d & sleep 0.5; %s attach -o %s.2.evp %d; echo $?; wait $!; echo $?";
	struct background *sleeper;
	const char *evprof = build_path("evprof");
	struct outcome *outcome;
	int pid;

	needs_no_sanitizer();
	sleeper = start_sleeper(python, "4");
	pid = (int)sleeper->pid;
	outcome = run(.how = JOB_BARE, .timeout_s = 60, .lingers = true,
		      .args = {"sh", "-c", text(script, evprof, sleeper->log, pid, evprof, sleeper->log, pid), NULL});
	expect(outcome, !strcmp(outcome->out, "0\n2\n") || !strcmp(outcome->out, "2\n0\n"), "one is done: %s",
	       outcome->out);
	expect(outcome, tool("detach", text("%d", pid))->status == 0, "it is recorded");
	expect(outcome, !strcmp(text_of(sleeper->log), "sleeps\nworks\n"), "the program goes on");
	background_stop(sleeper);
}

/* attach --for, which is interrupted after a moment. */
static struct outcome *interrupt(const struct background *loop, const char *seconds)
{
	return run(.how = JOB_BARE, .lingers = true, .timeout_s = 60,
		   .args = {"timeout", "-s", "INT", seconds, build_path("evprof"), "attach", "--for", "60s", "-o",
			    text("%s.evp", loop->log), text("%d", (int)loop->pid)});
}

/* Whoever attaches in vain leaves nothing asked. */
SCENARIO(attach, taken_back, 6)
{
	struct background *sleeper;
	struct outcome *outcome;
	const char *pid, *trace;

	needs_no_sanitizer();
	sleeper = start_sleeper(python, "4");
	pid = text("%d", (int)sleeper->pid);
	trace = text("%s.evp", sleeper->log);
	outcome = run(.how = JOB_BARE, .lingers = true,
		      .args = {"%B/evprof", "attach", "--wait", "200ms", "--for", "100ms", "-o", trace, pid});
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "; try again\n"), "its time is over");
	outcome = interrupt(sleeper, "1");
	expect(outcome, strstr(outcome->err, "; try again\n"), "it is interrupted");
	for (time_t end = time(NULL) + 60; !strstr(text_of(sleeper->log), "works") && time(NULL) < end;)
		usleep(10000);
	usleep(100000);
	outcome = tool("detach", pid);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "not recorded"), "neither is done later");
	outcome = tool("attach", "--for", "100ms", "-o", trace, pid);
	expect(outcome, outcome->status == 0, "another one is done");
	json_decref(trace_info(trace));
	expect(outcome, !strcmp(text_of(sleeper->log), "sleeps\nworks\n"), "the program goes on");
	background_stop(sleeper);
}

SCENARIO(attach, interrupted, 6)
{
	struct background *loop;
	struct outcome *outcome;

	needs_no_sanitizer();
	loop = start_loop(python, JOB_BARE);
	outcome = interrupt(loop, "4");
	expect(outcome, strstr(outcome->err, "evprof: detached from"), "it ends what it has begun");
	outcome = tool("detach", text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "not recorded"), "it is not recorded");
	background_stop(loop);
}

/* The lines of /proc/PID/status: what is pending, blocked, ignored and has a handler. */
static const char *signals_of(const struct background *program)
{
	static const char script[] = "grep ^Sig[BIC] /proc/%d/status";

	return run(.how = JOB_BARE, .args = {"sh", "-c", text(script, (int)program->pid)}, .lingers = true)->out;
}

static struct background *start_with(const struct python *python, const char *signals)
{
	struct background *program = background_start(&(const struct job){
	    .python = python,
	    .how = JOB_BARE,
	    .args = {"-c", text("import signal, time\n%s\nprint('is set', flush=True)\nwhile 1: time.sleep(0.001)",
				signals)}});

	for (time_t end = time(NULL) + 120; !strstr(text_of(program->log), "is set") && time(NULL) < end;)
		usleep(10000);
	return program;
}

/* The kernel ends a handler whose signal is blocked when a fault needs it. */
SCENARIO(attach, where_signals_are_blocked, 6)
{
	struct background *program;
	struct outcome *outcome;
	const char *before;

	needs_no_sanitizer();
	program = start_with(python, "own = [signal.SIGSEGV, signal.SIGTRAP]\n"
				     "for number in own: signal.signal(number, lambda *_: None)\n"
				     "signal.pthread_sigmask(signal.SIG_BLOCK, own)");
	before = signals_of(program);
	outcome = tool("attach", "--for", "100ms", "-o", text("%s.evp", program->log), text("%d", (int)program->pid));
	expect(outcome, outcome->status == 0, "it is recorded");
	expect(outcome, *before && !strcmp(before, signals_of(program)), "all signals are as before: %s, then %s",
	       before, signals_of(program));
	background_stop(program);
}

/* The collector has not begun to listen when attach asks for it: the kernel says that attach itself listens. */
SCENARIO_SOME(attach, before_its_collector_runs, 6)
{
	static const char script[] = "mkdir slow && cp %s slow/ && ln -s %s slow/ && echo '#!/bin/sh' > slow/%s && "
				     "echo 'sleep 1; exec %s \"$@\"' >> slow/%s && chmod +x slow/%s";
	const char *collector = "evprof-collector";
	struct background *loop;
	struct outcome *outcome;

	needs_no_sanitizer();
	loop = start_loop(python, JOB_BARE);
	outcome = run(.how = JOB_BARE, .args = {"sh", "-c",
						text(script, build_path("evprof"), build_path("libevprof.so"),
						     collector, build_path(collector), collector, collector)});
	expect(outcome, outcome->status == 0, "a folder with a collector that begins late");
	outcome = run(.how = JOB_BARE, .timeout_s = 45, .directory = outcome->directory,
		      .args = {"./slow/evprof", "attach", "--for", "100ms", "-o", "t.evp", text("%d", (int)loop->pid)});
	expect(outcome, outcome->status == 0 && strstr(outcome->err, "detached from"), "it detaches by itself");
	json_decref(trace_info(path_in(outcome, "t.evp")));
	background_stop(loop);
}

static void expect_status(int status, const struct background *loop, const char *const options[2])
{
	struct outcome *outcome = tool("attach", options[0], options[1], "--for=50ms", text("%d", (int)loop->pid));

	expect(outcome, outcome->status == status, "status %d with %s %s", status, options[0], options[1]);
}

/* No allocator was set, so none of the program's stands over one. */
SCENARIO(attach, after_a_failed_one, 6)
{
	static const char *const nowhere[2] = {"--socket", "/nonexistent/socket"};
	struct background *loop;
	const char *traced[2] = {"-o"};

	needs_no_sanitizer();
	loop = start_loop(python, JOB_BARE);
	traced[1] = text("%s.evp", loop->log);
	for (int round = 0; round < 2; round++) {
		expect_status(2, loop, nowhere);
		expect_status(0, loop, traced);
	}
	json_decref(trace_info(traced[1]));
	background_stop(loop);
}

/* The folder of a collector becomes a file, so that it cannot create the trace. */
SCENARIO_SOME(attach, without_a_trace, 6)
{
	struct background *loop, *collector;
	char *socket, *folder;
	struct outcome *outcome;

	needs_no_sanitizer();
	loop = start_loop(python, JOB_BARE);
	outcome = tool("attach", "-o", "/", text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "cannot write /: Is a directory"), "a line");
	socket = text("%s.socket", loop->log);
	folder = text("%s.traces", loop->log);
	cr_assert(mkdir(folder, 0700) == 0);
	collector = background_start(&(const struct job){
	    .how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", socket, "--output-dir", folder}});
	for (time_t end = time(NULL) + 60; tool("status", "--socket", socket)->status && time(NULL) < end;)
		usleep(10000);
	cr_assert(rmdir(folder) == 0);
	file_write(folder, "", 0);
	outcome = tool("attach", "--socket", socket, text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "is not recorded: cannot create"), "the reason");
	expect(outcome, !strstr(outcome->err, "recording"), "nothing is recorded");
	expect(outcome, !strstr(tool("status", "--socket", socket)->out, "off"), "it is detached");
	background_stop(collector);
	expect_status(0, loop, (const char *const[]){"-o", text("%s.evp", loop->log)});
	background_stop(loop);
}

/* As soon as the process has Python's functions, which is before Python has a main thread. */
SCENARIO(attach, while_it_starts, 6)
{
	struct background *loop;
	struct outcome *outcome;
	time_t end = time(NULL) + 120;
	char *trace;

	needs_no_sanitizer();
	loop = begin_loop(python, JOB_BARE, NULL);
	trace = text("%s.evp", loop->log);
	do
		outcome = tool("attach", "--for", "100ms", "-o", trace, text("%d", (int)loop->pid));
	while (outcome->status == 2 && strstr(outcome->err, "is no CPython") && time(NULL) < end);
	expect(outcome, outcome->status == 0, "it waits until Python runs");
	expect(outcome, kill(loop->pid, 0) == 0, "the program goes on");
	background_stop(loop);
}

/* While Python runs code of its start: a request that it followed there would be lost, or end the program. */
SCENARIO(attach, before_it_imports, 6)
{
	struct background *loop;
	struct outcome *outcome;
	char *trace;

	needs_no_sanitizer();
	loop = begin_loop(python, JOB_BARE, text("PYTHONPATH=%s", program_path("slow_start")));
	trace = text("%s.evp", loop->log);
	for (time_t end = time(NULL) + 120; !text_of(loop->log)[0] && time(NULL) < end;)
		usleep(10000);
	outcome = tool("attach", "--wait", "60s", "--for", "100ms", "-o", trace, text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 0, "it waits until Python runs");
	expect(outcome, kill(loop->pid, 0) == 0, "the program goes on");
	expect(outcome, !strcmp(text_of(loop->log), "starts\n"), "nothing is printed: %s", text_of(loop->log));
	background_stop(loop);
}

/* A Python of another user, in namespaces of its own, where a folder of its own is mounted on /tmp. */
#define SYSTEM_PYTHON "/usr/bin/python3"
#define USER "12345"

static const char in_its_namespaces[] =
    "import ctypes, os, sys, time\n"
    "mount = ctypes.CDLL(None, use_errno=True).mount\n"
    "if mount(b'none', b'/', None, 1 << 14 | 1 << 18, None) or mount(b'tmp', b'/tmp', None, 4096, "
    "None):\n"
    "    sys.exit('no mounts: errno %d' % ctypes.get_errno())\n"
    "victim, end = os.open('victim', os.O_PATH), time.time() + 60\n"
    "def seize():\n"
    "    for name in os.listdir('/tmp'):\n"
    "        path = '/tmp/' + name + '/socket'\n"
    "        if os.path.exists(path):\n"
    "            return mount(b'/proc/self/fd/%d' % victim, path.encode(), None, 4096, None) == 0\n"
    "if sys.argv[1] == 'seize' and not os.fork():\n"
    "    while time.time() < end and not seize(): pass\n"
    "    os._exit(0)\n"
    "print('ready', flush=True)\n"
    "def work(): time.sleep(0.001)\n"
    "while time.time() < end: work()\n";

/* spaces: options of unshare. The folder is mounted on its /tmp; the victim is a file of root's. */
static struct background *start_apart(const char *spaces, const char *what, char **folder, char **victim)
{
	struct background *loop;
	struct outcome *outcome;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	outcome = run(.how = JOB_BARE, .args = {"sh", "-c",
						"chmod 711 . && mkdir tmp && chown " USER ":" USER
						" tmp && echo host >victim && setpriv "
						"--reuid " USER " --regid " USER
						" --clear-groups unshare -Urmn " SYSTEM_PYTHON " -c 'import ctypes'"});
	if (outcome->status)
		cr_skip_test("no namespaces of another user here: %s", outcome->err);
	*folder = path_in(outcome, "tmp");
	*victim = path_in(outcome, "victim");
	loop = background_start(
	    &(const struct job){.how = JOB_BARE,
				.directory = outcome->directory,
				.args = {"setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "unshare",
					 spaces, SYSTEM_PYTHON, "-c", in_its_namespaces, what}});
	for (time_t end = time(NULL) + 60; !strstr(text_of(loop->log), "ready") && time(NULL) < end;)
		usleep(10000);
	if (!strstr(text_of(loop->log), "ready"))
		cr_skip_test("it cannot mount: %s", text_of(loop->log));
	return loop;
}

static unsigned folders_in(const char *folder)
{
	DIR *directory = opendir(folder);
	unsigned count = 0;

	cr_assert(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += strncmp(entry->d_name, "evprof-attach-", 14) == 0;
	closedir(directory);
	return count;
}

/* Root attaches. The process mounts a file of the host where its socket is, before that becomes the process's. */
SCENARIO(attach, a_mount_in_its_tmp, SCENARIO_ONCE)
{
	struct background *loop;
	struct outcome *outcome;
	char *folder, *victim;
	struct stat status;

	(void)python;
	needs_no_sanitizer();
	loop = start_apart("-Urmn", "seize", &folder, &victim);
	outcome = tool("attach", "--for=100ms", "-o", text("%s.evp", loop->log), text("%d", (int)loop->pid));
	cr_assert(stat(victim, &status) == 0);
	expect(outcome, status.st_uid == 0 && status.st_gid == 0, "the host's file is user %u's now",
	       (unsigned)status.st_uid);
	background_stop(loop);
}

/* Root's collector takes a process of another user, by the session's secret. */
SCENARIO(attach, by_root, SCENARIO_ONCE)
{
	static const char *const ways[][2] = {{"env", "--"}, {"unshare", "--net"}};

	(void)python;
	needs_no_sanitizer();
	if (geteuid() != 0 ||
	    run(.how = JOB_BARE, .args = {"unshare", "--net", "setpriv", "--reuid", USER, SYSTEM_PYTHON, "-c",
					  "import ctypes; open(__import__('sys').argv[1])", "%B/libevprof.so"})
		->status)
		cr_skip_test("needs root, setpriv, and a build folder that others may read");
	for (int i = 0; i < 2; i++) {
		struct job job = {.how = JOB_BARE,
				  .args = {ways[i][0], ways[i][1], "setpriv", "--reuid", USER, "--regid", USER,
					   "--clear-groups", SYSTEM_PYTHON, "-uc",
					   "import time\ndef work(): time.sleep(0.001)\n"
					   "print('ready')\nwhile 1: work()"}};
		struct background *loop = background_start(&job);
		struct outcome *outcome;
		json_t *report;

		for (time_t end = time(NULL) + 60; !strstr(text_of(loop->log), "ready") && time(NULL) < end;)
			usleep(10000);
		outcome = tool("attach", "--for=200ms", "-o", text("%s.evp", loop->log), text("%d", (int)loop->pid));
		expect(outcome, outcome->status == 0, "it is recorded, way %d", i);
		report = trace_report(text("%s.evp", loop->log), NULL);
		expect(outcome, report_calls(report, "<string>", "work") > 20, "with its calls");
		json_decref(report);
		outcome = run(.how = JOB_BARE,
			      .args = {"find", "/tmp", "-maxdepth", "1", "-name", "evprof-attach-*", "-uid", USER});
		expect(outcome, !outcome->out_bytes, "its folder is removed");
		background_stop(loop);
	}
}

/*
 * In its user namespace, root has no number. A path shows who listens there; an abstract name shows nothing, so the
 * process does not trust root's collector, and is left as it was.
 */
SCENARIO(attach, in_another_user_namespace, SCENARIO_ONCE)
{
	struct background *loop;
	struct outcome *outcome;
	char *folder, *victim;

	(void)python;
	needs_no_sanitizer();
	loop = start_apart("-Urmn", "wait", &folder, &victim);
	outcome = tool("attach", "--for=100ms", "-o", text("%s.evp", loop->log), text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 0, "it is recorded");
	expect(outcome, folders_in(folder) == 0, "nothing of attach is left in its /tmp");
	background_stop(loop);
	loop = start_apart("-Urm", "wait", &folder, &victim);
	outcome = tool("attach", "-o", text("%s.evp", loop->log), text("%d", (int)loop->pid));
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "attach as its user"), "a line");
	expect(outcome, folders_in(folder) == 0, "nothing of attach is left in its /tmp");
	expect(outcome, strstr(tool("detach", text("%d", (int)loop->pid))->err, "not recorded"), "it is detached");
	background_stop(loop);
}

static void expect_refusal(const char *pid, const char *line)
{
	struct outcome *outcome = tool("attach", "-o", "/tmp/none.evp", pid);

	expect(outcome, outcome->status == 2 && strstr(outcome->err, line), "a line has: %s", line);
	expect(outcome, strchr(outcome->err, '\n') == outcome->err + strlen(outcome->err) - 1, "one line");
}

/* A number of /proc that is no process of its own. */
SCENARIO(attach, thread, SCENARIO_ONCE)
{
	struct background *program =
	    start_with(python_any(), "import os, threading\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
				     "for number in os.listdir('/proc/self/task'): print(number, flush=True)");
	const char *main_thread = text("%d", (int)program->pid), *other = NULL, *line;
	struct outcome *outcome;

	(void)python;
	for (char *at = strtok(file_read(program->log, NULL), "\n"); at; at = strtok(NULL, "\n"))
		other = strcmp(at, main_thread) && *at != 'i' ? at : other;
	cr_assert(other, "it has another thread");
	line = text("%s is a thread of process %s\n", other, main_thread);
	expect_refusal(other, line);
	outcome = tool("stack", other);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, line), "stack refuses it, too");
	outcome = tool("attach", "--sample", "--for", "100ms", other);
	expect(outcome, outcome->status == 2, "and so do samples");
	background_stop(program);
}

SCENARIO(attach, refusals, SCENARIO_ONCE)
{
	struct background *recorded = start_loop(python_any(), JOB_PRELOAD);
	struct background *sleeps =
	    background_start(&(const struct job){.how = JOB_BARE, .args = {"/bin/sleep", "60"}});
	struct background *stopped = start_loop(python_any(), JOB_BARE);
	struct background *ignores = start_with(python_any(), "signal.signal(signal.SIGTRAP, signal.SIG_IGN)");
	struct outcome *outcome;

	(void)python;
	expect_refusal("999999999", "there is no process 999999999");
	expect_refusal(text("%d", (int)sleeps->pid), "is no CPython");
	expect_refusal(text("%d", (int)recorded->pid), "is recorded already");
	expect_refusal(text("%d", (int)ignores->pid), "ignores SIGSEGV or SIGTRAP");
	kill(stopped->pid, SIGSTOP);
	usleep(100000);
	expect_refusal(text("%d", (int)stopped->pid), "is stopped");
	kill(stopped->pid, SIGCONT);
	outcome = tool("detach", text("%d", (int)stopped->pid));
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "is not recorded"), "nothing to detach");
	outcome = tool("attach", "--events", "sample", text("%d", (int)stopped->pid));
	expect(outcome, outcome->status == 2, "samples are refused");
	outcome = tool("attach", "--for", "soon", text("%d", (int)stopped->pid));
	expect(outcome, outcome->status == 2, "a time is a number and a unit");
	background_stop(ignores);
	background_stop(stopped);
	background_stop(sleeps);
	background_stop(recorded);
}
