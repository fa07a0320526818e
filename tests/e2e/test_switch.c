/*
 * test_switch.c - recording is stopped and started: while it is stopped no hook is set, and what runs on afterwards is
 * recorded from its first event on; and a stretch of a running program is recorded (evprof record). The oracle is the
 * program, which counts its calls and looks into its own memory.
 */
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compile.h"
#include "harness.h"
#include "packages.h"
#include "process.h"

/* What the program has printed. */
static json_t *printed(const struct outcome *outcome)
{
	json_error_t error;
	json_t *root = json_loads(outcome->out, 0, &error);

	expect(outcome, outcome->status == 0 && root, "it ends well and prints JSON: %s", error.text);
	return root;
}

static long long number(const json_t *root, const char *name)
{
	return json_integer_value(json_object_get(root, name));
}

static json_t *expect_leaves(const struct outcome *outcome, const json_t *said)
{
	json_t *report = trace_report(outcome->trace, NULL);

	expect(outcome, report_calls(report, "/switched.py", "leaf") == number(said, "leaves"),
	       "leaf was called %ld times, not %lld", report_calls(report, "/switched.py", "leaf"),
	       number(said, "leaves"));
	return report;
}

/* Runs the part; as many calls of leaf as it says. */
static struct outcome *expect_part(const struct python *python, const char *part, const char *variable, json_t **said)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@switched.py", part}, .env = {variable});
	*said = printed(outcome);
	json_decref(expect_trace(outcome, 1));
	json_decref(expect_leaves(outcome, *said));
	return outcome;
}

/* Every second state is that of a stopped recording, from first on. */
static void expect_hooks(const struct outcome *outcome, const json_t *said, size_t first, bool memory)
{
	const json_t *state;
	size_t i;

	expect(outcome, json_array_size(json_object_get(said, "hooks")) > 1, "it looked");
	json_array_foreach(json_object_get(said, "hooks"), i, state)
	{
		bool off = i % 2 == first;

		expect(outcome, off == !number(state, "calls"), "state %zu: calls are %s", i, off ? "off" : "on");
		expect(outcome, !memory || off == !number(state, "allocators"), "state %zu: allocators are %s", i,
		       off ? "Python's" : "evprof's");
	}
}

SCENARIO(switch, hooks, 6)
{
	json_t *said;
	struct outcome *outcome = expect_part(python, "hooks", NULL, &said);

	expect_hooks(outcome, said, 1, true);
	json_decref(said);
	outcome = expect_part(python, "hooks", "EVPROF_EVENTS=call", &said);
	expect_hooks(outcome, said, 1, false);
	json_decref(said);
	outcome = expect_part(python, "hooks", "EVPROF_EVENTS=call,line,mem", &said);
	expect_hooks(outcome, said, 1, true);
	json_decref(said);
}

SCENARIO(switch, hooks_of_child, 6)
{
	static const char *const events[] = {"EVPROF_EVENTS=call,c_call,mem", "EVPROF_EVENTS=call",
					     "EVPROF_EVENTS=call,line,mem"};
	struct outcome *outcome;
	json_t *said;

	python_needs(python, "ctypes");
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		outcome = run(.python = python, .args = {"@switched.py", "hooks_of_child"},
			      .env = {"EVPROF_CHILDREN=0", events[i]});
		said = printed(outcome);
		json_decref(expect_trace(outcome, 1));
		json_decref(expect_leaves(outcome, said));
		expect_hooks(outcome, said, 1, i != 1);
		json_decref(said);
	}
}

SCENARIO(switch, waiting, 6)
{
	json_t *said, *info;
	struct outcome *outcome = expect_part(python, "waiting", "EVPROF_START=0", &said);

	expect_hooks(outcome, said, 0, true);
	json_decref(said);
	outcome = run(.python = python, .args = {"@known.py"}, .env = {"EVPROF_START=0"});
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "call") == 0 && info_events(info, "malloc") == 0, "nothing is recorded");
	json_decref(info);
}

#define PART(Name, SUPPORT)                                                                                            \
	SCENARIO(switch, Name, SUPPORT)                                                                                \
	{                                                                                                              \
		json_t *said;                                                                                          \
                                                                                                                       \
		expect_part(python, #Name, NULL, &said);                                                               \
		json_decref(said);                                                                                     \
	}

PART(without_gil, 6)
PART(interpreters, 6)

SCENARIO(switch, stays, 12)
{
	json_t *said;
	struct outcome *outcome = expect_part(python, "stays", NULL, &said);
	const char *on = json_string_value(json_object_get(said, "on"));

	expect(outcome, on && !strcmp(on, "101"), "events are on, off, and on: %s", on);
	json_decref(said);
}

/* The time in which recording was stopped is no function's, also in a thread that had no event meanwhile. */
SCENARIO(switch, threads, 6)
{
	json_t *said, *report;
	struct outcome *outcome = expect_part(python, "threads", NULL, &said);
	double waited, recorded = json_number_value(json_object_get(said, "recorded_s"));

	report = trace_report(outcome->trace, NULL);
	waited = report_seconds(report, "/switched.py", "waits");
	expect(outcome, waited > 0.2 && waited < recorded, "waits() took %f s, %f s were recorded", waited, recorded);
	json_decref(report);
	json_decref(said);
}
ALSO_CALLS_ONLY(switch, threads)

SCENARIO(switch, signal, 6)
{
	json_t *said;
	struct outcome *outcome = expect_part(python, "signal", "EVPROF_SIGNAL=USR2", &said);
	const json_t *state;
	size_t i;

	expect(outcome, json_array_size(json_object_get(said, "found")) == 6, "it looked six times");
	json_array_foreach(json_object_get(said, "found"), i, state)
	    expect(outcome, json_is_true(state), "signal %zu switched", i);
	json_decref(said);
}
ALSO_CALLS_ONLY(switch, signal)

SCENARIO(switch, signal_in_lock, 6)
{
	const char *library;
	struct outcome *outcome;
	json_t *said;

	python_needs(python, "ctypes");
	library = compile("each_instruction.c", "each_instruction.so", COMPILE_PLAIN);
	outcome =
	    run(.python = python, .args = {"@switched.py", "signal_in_lock", library}, .env = {"EVPROF_SIGNAL=USR2"});
	said = printed(outcome);
	expect(outcome, json_is_true(json_object_get(said, "stopped")), "the signal was followed");
	json_decref(said);
}

SCENARIO(switch, signal_after_python, 6)
{
	json_t *said;

	expect_part(python, "signal_after_python", "EVPROF_SIGNAL=USR2", &said);
	json_decref(said);
}

/* Six processes are in the trace: two of three children have a child of their own. */
static void expect_forked(const struct python *python, const char *variable)
{
	static const int active[] = {1, 1, 0};
	struct outcome *outcome = run(.python = python, .args = {"@switched.py", "forked"}, .env = {variable});
	json_t *said = printed(outcome);

	json_decref(expect_trace(outcome, 6));
	json_decref(expect_leaves(outcome, said));
	for (size_t i = 0; i < sizeof(active) / sizeof(*active); i++)
		expect(outcome, json_integer_value(json_array_get(json_object_get(said, "active"), i)) == active[i],
		       "child %zu is %s", i, active[i] ? "recorded" : "stopped");
	json_decref(said);
}

SCENARIO(switch, forked, SUPPORTED)
{
	python_needs(python, "ctypes");
	expect_forked(python, NULL);
	expect_forked(python, "EVPROF_START=0");
	expect_forked(python, "EVPROF_EVENTS=call,line,mem");
	expect_forked(python, "EVPROF_EVENTS=call,malloc");
}
ALSO_CALLS_ONLY(switch, forked)

SCENARIO(switch, profiles, 6)
{
	json_t *said;
	struct outcome *outcome = expect_part(python, "profiles", NULL, &said);

	expect(outcome, number(said, "seen") == 30, "the program's function saw %lld events of leaf",
	       number(said, "seen"));
	expect(outcome, json_is_true(json_object_get(said, "same")) && json_is_true(json_object_get(said, "none")),
	       "sys.getprofile() returns the program's");
	json_decref(said);
}
ALSO_CALLS_ONLY(switch, profiles)

SCENARIO(switch, traces, 6)
{
	json_t *said;
	struct outcome *outcome = expect_part(python, "traces", "EVPROF_EVENTS=call,line", &said);

	expect(outcome, number(said, "seen") == 15, "the program's function saw %lld lines of leaf",
	       number(said, "seen"));
	json_decref(said);
}

SCENARIO(switch, greenlets, 6)
{
	json_t *said;

	expect_part(python, "greenlets", package_variable(python, "greenlet"), &said);
	json_decref(said);
}
ALSO_CALLS_ONLY(switch, greenlets)

SCENARIO(switch, greenlets_waiting, 6)
{
	const char *variable = package_variable(python, "greenlet");
	struct outcome *outcome;
	json_t *said, *info;

	python_needs(python, "ctypes");
	outcome =
	    run(.python = python, .args = {"@switched.py", "greenlets_waiting"}, .env = {"EVPROF_START=0", variable});
	said = printed(outcome);
	json_decref(expect_leaves(outcome, said));
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "switch") >= 39, "%ld switches, not 39 or 40", info_events(info, "switch"));
	json_decref(info);
	json_decref(said);
}
ALSO_CALLS_ONLY(switch, greenlets_waiting)

SCENARIO(switch, traced, 6)
{
	json_t *said;
	struct outcome *outcome = expect_part(python, "traced", NULL, &said);

	expect(outcome, json_is_true(json_object_get(said, "traced")), "tracemalloc has all blocks");
	json_decref(said);
}
ALSO_CALLS_ONLY(switch, traced)

/* ---- from outside ------------------------------------------------------------------------------------------------ */

/* served.py, with the bytes that it reads. */
struct served {
	struct background *program;
	volatile unsigned char *phase;
	char *trace;
};

static struct served begin_served(const struct python *python, enum job_how how, const char *variable)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	char *path = text("%s/phase", directory);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct served served;

	/* Collectors of other tests are in another network namespace, where this user may make one. */
	if (geteuid() == 0)
		cr_assert(unshare(CLONE_NEWNET) == 0, "no network namespace");
	cr_assert(fd >= 0 && ftruncate(fd, 4096) == 0);
	served.phase = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(served.phase != MAP_FAILED);
	close(fd);
	served.trace = text("%s/served.evp", directory);
	served.program = background_start(
	    &(struct job){.python = python,
			  .how = how,
			  .args = {"@served.py", path},
			  .directory = directory,
			  .env = {"EVPROF_EVENTS=call,c_call,mem", text("EVPROF_OUTPUT=%s", served.trace), variable}});
	return served;
}

static bool has_entered(const struct served *served, unsigned char phase)
{
	return served->phase[1] == 2 + phase && served->phase[2] == 2 + phase;
}

/* Sets the phase, and waits until both threads of the program have called its leaf. */
static void enter(const struct served *served, unsigned char phase)
{
	served->phase[0] = phase;
	for (unsigned i = 0; i < 60000 && !has_entered(served, phase); i++)
		usleep(1000);
	cr_assert(has_entered(served, phase), "%s", file_read(served->program->log, NULL));
}

static struct outcome *ask(const char *verb, const char *one, const char *other)
{
	return run(.how = JOB_BARE, .args = {"%B/evprof", verb, one, other}, .lingers = true);
}

static void expect_ordered(const char *events, const char *pid, const char *said)
{
	struct outcome *outcome =
	    run(.how = JOB_BARE, .args = {"%B/evprof", "start", "--events", events, pid}, .lingers = true);

	expect(outcome, outcome->status == 0 && strstr(outcome->err, said), "evprof start --events: %s", said);
}

static void expect_asked(const char *verb, const char *one, const char *other, const char *said)
{
	struct outcome *outcome = ask(verb, one, other);

	expect(outcome, outcome->status == 0 && strstr(outcome->err, said), "evprof %s: %s", verb, said);
}

/* Ends the program. Returns how often it has called each leaf. */
static json_t *end_served(const struct served *served)
{
	const char *said;
	json_t *counts;

	served->phase[0] = 9;
	cr_expect_eq(background_wait(served->program), 0);
	said = strchr(file_read(served->program->log, NULL), '[');
	counts = json_loads(said ? said : "", JSON_DISABLE_EOF_CHECK, NULL);
	cr_assert(counts, "%s", file_read(served->program->log, NULL));
	return counts;
}

/* The program is stopped and started again from outside; by its pid or its name. */
static void expect_switched(const struct python *python, const char *variable)
{
	struct served served = begin_served(python, JOB_PRELOAD, variable);
	char *pid = text("%d", (int)served.program->pid);
	json_t *counts, *report;
	struct outcome *dump;

	enter(&served, 0);
	if (variable)
		expect_asked("start", pid, NULL, text("evprof: recording %s served", pid));
	enter(&served, 2);
	enter(&served, 0);
	expect_asked("stop", pid, NULL, text("evprof: stopped %s served", pid));
	enter(&served, 1);
	expect_asked("mark", "missing", pid, "is stopped, so it has no mark");
	enter(&served, 0);
	expect_asked("start", "served", NULL, text("evprof: recording %s served", pid));
	enter(&served, 2);
	expect_asked("mark", "here", "all", text("evprof: marked %s served", pid));
	counts = end_served(&served);
	report = trace_report(served.trace, NULL);
	cr_expect_eq(report_calls(report, "/served.py", "leaf_1"), 0);
	cr_expect_eq(report_calls(report, "/served.py", "leaf_2"), json_integer_value(json_array_get(counts, 2)));
	cr_expect(report_calls(report, "/served.py", "leaf_0") > 0);
	dump = tool("dump", served.trace);
	expect(dump, strstr(dump->out, "\tmark\there\n") && !strstr(dump->out, "\tmark\tmissing\n"), "the marks");
	json_decref(report);
	json_decref(counts);
}

SCENARIO(switch, from_outside, 6)
{
	expect_switched(python, NULL);
}

SCENARIO(switch, from_outside_later, 6)
{
	expect_switched(python, "EVPROF_START=0");
}

/* served.py: a block of this and the number of its phase goes with each call. */
#define BLOCK_BYTES (100000 + 33)

static void expect_blocks(const char *trace, unsigned phase, long long expected)
{
	size_t count;
	const struct event *events = trace_dump(trace, &count);
	long long blocks = 0;

	for (size_t i = 0; i < count; i++)
		blocks += events[i].size == BLOCK_BYTES + phase && strcmp(events[i].kind, "free") != 0;
	cr_expect_eq(blocks, expected, "%lld blocks of phase %u in %s, not %lld", blocks, phase, trace, expected);
}

static void expect_leaf(const char *trace, const char *leaf, long long calls)
{
	json_t *report = trace_report(trace, NULL);

	cr_expect_eq(report_calls(report, "/served.py", leaf), calls, "%ld calls of %s in %s, not %lld",
		     report_calls(report, "/served.py", leaf), leaf, trace, calls);
	json_decref(report);
}

static void expect_changes(const char *trace, const char *expected)
{
	json_t *info = trace_info(trace), *changes = json_array(), *change;
	size_t i;
	char *found;

	json_array_foreach(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "events_changes"), i,
			   change) json_array_append(changes, json_object_get(change, "events"));
	found = json_dumps(changes, JSON_COMPACT);
	cr_expect_str_eq(found, expected);
	free(found);
	json_decref(changes);
	json_decref(info);
}

/* Allocations, then calls, then both: each phase has what was recorded in it, and calls have their stack at once. */
SCENARIO(switch, other_events, 6)
{
	struct served served = begin_served(python, JOB_PRELOAD, "EVPROF_EVENTS=mem");
	char *pid = text("%d", (int)served.program->pid), *said = text("evprof: recording %s served", pid);
	json_t *counts, *report;

	enter(&served, 1);
	enter(&served, 0);
	expect_ordered("call", pid, said);
	enter(&served, 2);
	enter(&served, 0);
	expect_ordered("call,c_call,mem,exception", pid, said);
	counts = end_served(&served);
	expect_leaf(served.trace, "leaf_1", 0);
	expect_leaf(served.trace, "leaf_2", json_integer_value(json_array_get(counts, 2)));
	expect_blocks(served.trace, 1, json_integer_value(json_array_get(counts, 1)));
	expect_blocks(served.trace, 2, 0);
	expect_changes(served.trace, "[[\"call\"],[\"call\",\"c_call\",\"exception\",\"mem\"]]");
	report = trace_report(served.trace, NULL);
	cr_expect_eq(report_calls(report, "/served.py", "serve"), 0, "serve was called before");
	cr_expect(report_seconds(report, "/served.py", "serve") > 0, "and it runs");
	json_decref(report);
	json_decref(counts);
}

static unsigned count_in(const char *text, const char *words)
{
	unsigned count = 0;

	while ((text = strstr(text, words)) != NULL) {
		count++;
		text++;
	}
	return count;
}

static void expect_family(const struct python *python, const char *variable, const char *verb, const char *said)
{
	const char *work = "import os, time\n"
			   "def work(): open(os.devnull).close(); time.sleep(0.001)\n"
			   "os.fork()\n"
			   "while 1: work()";
	struct background *family;
	struct outcome *outcome;
	json_t *status;
	size_t recorded = 0;

	if (geteuid() == 0)
		cr_assert(unshare(CLONE_NEWNET) == 0);
	family = background_start(&(struct job){.python = python, .args = {"-c", work}, .env = {variable}});
	for (unsigned i = 0; i < 200 && recorded < 2; i++) {
		usleep(300000);
		outcome = ask("status", "--json", NULL);
		status = json_loads(outcome->out, 0, NULL);
		recorded = json_array_size(json_object_get(status, "processes"));
		json_decref(status);
	}
	cr_assert_eq(recorded, 2, "%zu processes are recorded", recorded);
	outcome = ask(verb, "all", NULL);
	expect(outcome, count_in(outcome->err, said) == 2, "both follow");
	background_stop(family);
}

/* The child of a fork follows, too: it has the handler of its parent. */
SCENARIO(switch, children, 6)
{
	expect_family(python, NULL, "stop", "evprof: stopped ");
}

/* One that is stopped joins for that at its first audit event. */
SCENARIO(switch, stopped_children, SUPPORTED)
{
	expect_family(python, "EVPROF_START=0", "start", "evprof: recording ");
}

/* Nor needs it an audit event where a signal starts it. */
SCENARIO(switch, stopped_children_by_signal, SUPPORTED)
{
	const char *program = "import os, signal, time\n"
			      "def work(): pass\n"
			      "child = os.fork()\n"
			      "while not child: work()\n"
			      "time.sleep(0.5)\n"
			      "os.kill(child, signal.SIGUSR2)\n"
			      "time.sleep(1)\n"
			      "os.kill(child, signal.SIGTERM)\n"
			      "os.waitpid(child, 0)";
	struct outcome *outcome = run(.python = python, .args = {"-c", program},
				      .env = {"EVPROF_START=0", "EVPROF_SIGNAL=USR2", "EVPROF_EVENTS=call"});
	json_t *report;

	expect(outcome, outcome->status == 0 && outcome->traces == 1, "a trace");
	report = trace_report(outcome->trace, NULL);
	cr_expect_gt(report_calls(report, "<string>", "work"), 0, "the child is recorded");
	json_decref(report);
}

/* What is read from outside does not change. */
SCENARIO(switch, events_that_stay, SCENARIO_ONCE)
{
	struct served served = begin_served(python_any(), JOB_PRELOAD, "EVPROF_EVENTS=sample");
	struct outcome *outcome;

	(void)python;
	enter(&served, 0);
	outcome = tool("start", "--events", "call", text("%d", (int)served.program->pid));
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "keeps its events"), "it is sampled");
	json_decref(end_served(&served));
	expect_changes(served.trace, "[]");
}

/* As soon as an order is followed, or evprof record would not start what is stopped. */
SCENARIO_SOME(switch, status_after_an_order, 6)
{
	struct served served = begin_served(python, JOB_PRELOAD, NULL);
	const char *pid = text("%d", (int)served.program->pid);
	struct outcome *status;

	for (unsigned i = 0; i < 6; i++) {
		enter(&served, 0);
		expect_asked(i % 2 ? "start" : "stop", pid, NULL,
			     text("evprof: %s %s", i % 2 ? "recording" : "stopped", pid));
		status = tool("status", "--json");
		expect(status, strstr(status->out, i % 2 ? "\"recording\": \"events\"" : "\"recording\": \"off\""),
		       "it is so, %u", i);
	}
	json_decref(end_served(&served));
}

/* An order that arrives when Python ends: what is checked then must still be there. */
SCENARIO(switch, events_at_the_end, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .env = {"EVPROF_EVENTS=call"},
				      .args = {"@changed_at_the_end.py", build_path("evprof")});

	expect(outcome, !strcmp(outcome->out, "no functions, status 0\n"), "the events are changed");
	expect(outcome, !strstr(outcome->err, "unknown to evprof"), "as they may be at any time");
	json_decref(expect_trace(outcome, 1));
}

SCENARIO(switch, nobody_there, SCENARIO_ONCE)
{
	struct outcome *outcome;

	(void)python;
	if (geteuid() == 0)
		cr_assert(unshare(CLONE_NEWNET) == 0);
	outcome = ask("stop", "4711", NULL);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "no collector of this user runs here"), "a line");
	outcome = ask("mark", NULL, NULL);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "a mark has a name"), "a line");
	outcome = ask("start", "one", "other");
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "one process or program at a time"), "a line");
}

/* ---- a stretch --------------------------------------------------------------------------------------------------- */

struct stretch {
	struct served served;
	struct background *recorder;
	char *trace;
};

/* Calls leaf_2, then begins to record. begins: the end of the line that says so. events: NULL: those that are. */
static struct stretch begin_stretch(const struct python *python, enum job_how how, const char *variable,
				    const char *target, const char *begins, const char *events)
{
	struct stretch stretch = {.served = begin_served(python, how, variable)};
	char *pid = text("%d", (int)stretch.served.program->pid);
	const char *said = "";

	enter(&stretch.served, 2);
	enter(&stretch.served, 0);
	stretch.trace = text("%s.stretch.evp", stretch.served.trace);
	stretch.recorder =
	    background_start(&(struct job){.how = JOB_BARE,
					   .args = {"%B/evprof", "record", "--for", "600s", "-o", stretch.trace,
						    target ? target : pid, events ? "--events" : NULL, events}});
	begins = text("evprof: recording %s %s", pid, begins);
	for (unsigned i = 0; i < 60000 && !strstr(said, begins); i++) {
		usleep(1000);
		said = file_read(stretch.recorder->log, NULL);
	}
	cr_assert(strstr(said, begins), "%s", said);
	return stretch;
}

/* The program calls leaf_1 in the stretch only. */
static void leave_stretch(const struct stretch *stretch, useconds_t pause)
{
	enter(&stretch->served, 1);
	usleep(pause);
	enter(&stretch->served, 0);
	cr_expect_eq(background_stop(stretch->recorder), 0, "%s", file_read(stretch->recorder->log, NULL));
	enter(&stretch->served, 2);
}

/* Returns the counts of the program. */
static json_t *end_stretch(const struct stretch *stretch, useconds_t pause)
{
	json_t *counts;

	leave_stretch(stretch, pause);
	counts = end_served(&stretch->served);
	expect_leaf(stretch->trace, "leaf_1", json_integer_value(json_array_get(counts, 1)));
	expect_leaf(stretch->trace, "leaf_2", 0);
	return counts;
}

SCENARIO(switch, stretch_of_recorded, 6)
{
	struct stretch stretch = begin_stretch(python, JOB_PRELOAD, NULL, "served", "served into", NULL);
	json_t *counts = end_stretch(&stretch, 0);

	expect_leaf(stretch.served.trace, "leaf_1", json_integer_value(json_array_get(counts, 1)));
	expect_leaf(stretch.served.trace, "leaf_2", json_integer_value(json_array_get(counts, 2)));
	json_decref(counts);
}

SCENARIO(switch, stretch_of_stopped, 6)
{
	struct stretch stretch = begin_stretch(python, JOB_PRELOAD, "EVPROF_START=0", NULL, "served into", NULL);
	json_t *counts = end_stretch(&stretch, 0);

	expect_leaf(stretch.served.trace, "leaf_1", json_integer_value(json_array_get(counts, 1)));
	expect_leaf(stretch.served.trace, "leaf_2", 0);
	json_decref(counts);
}

/* A stopped recording has other events in the stretch only. */
SCENARIO(switch, stretch_of_other_events, 6)
{
	struct stretch stretch = begin_stretch(python, JOB_PRELOAD, "EVPROF_START=0", NULL, "served into", "call,line");
	struct outcome *status;
	json_t *counts, *info;

	leave_stretch(&stretch, 0);
	status = tool("status", "--json");
	expect(status,
	       strstr(status->out, "\"recording\": \"off\"") && strstr(status->out, "\"records\": \"call,c_call,mem\""),
	       "it is stopped, and its events are as before");
	counts = end_served(&stretch.served);
	expect_leaf(stretch.trace, "leaf_1", json_integer_value(json_array_get(counts, 1)));
	expect_leaf(stretch.trace, "leaf_2", 0);
	expect_blocks(stretch.trace, 1, 0);
	info = trace_info(stretch.trace);
	cr_expect(info_events(info, "line") > json_integer_value(json_array_get(counts, 1)), "each leaf has a line");
	json_decref(info);
	expect_leaf(stretch.served.trace, "leaf_1", json_integer_value(json_array_get(counts, 1)));
	expect_leaf(stretch.served.trace, "leaf_2", 0);
	json_decref(counts);
}

SCENARIO(switch, stretch_of_unknown, 6)
{
	struct stretch stretch;

	if (built_with_asan())
		cr_skip_test("a library with the address sanitizer cannot be loaded late");
	stretch = begin_stretch(python, JOB_BARE, NULL, NULL, "", NULL);
	json_decref(end_stretch(&stretch, 0));
}

/* What leaves the trace meanwhile is in the stretch all the same, and a snapshot in it changes nothing. */
SCENARIO_SOME(switch, stretch_of_kept, 6)
{
	struct stretch stretch = begin_stretch(python, JOB_PRELOAD, "EVPROF_KEEP=1s", NULL, "served into", NULL);
	struct outcome *snapshot;

	enter(&stretch.served, 1);
	snapshot = tool("snapshot", "-o", text("%s.snapshot.evp", stretch.served.trace),
			text("%d", (int)stretch.served.program->pid));
	expect(snapshot, snapshot->status == 0, "a snapshot is taken");
	json_decref(end_stretch(&stretch, 2500000));
}

static void expect_stretch_of_ended(const struct python *python, const char *variable)
{
	struct stretch stretch = begin_stretch(python, JOB_PRELOAD, variable, NULL, "served into", NULL);
	json_t *counts;

	enter(&stretch.served, 1);
	counts = end_served(&stretch.served);
	cr_expect_eq(background_wait(stretch.recorder), 0, "%s", file_read(stretch.recorder->log, NULL));
	expect_leaf(stretch.trace, "leaf_1", json_integer_value(json_array_get(counts, 1)));
	expect_leaf(stretch.trace, "leaf_2", 0);
	json_decref(counts);
}

SCENARIO(switch, stretch_of_ended, 6)
{
	expect_stretch_of_ended(python, NULL);
}

/* The only trace is in the memory of the collector, which ends with the program. */
SCENARIO_SOME(switch, stretch_of_ended_without_a_file, 6)
{
	expect_stretch_of_ended(python, "EVPROF_OUTPUT=none");
}

static void expect_refused(const char *first, const char *second, const char *third, const char *line)
{
	struct outcome *outcome = tool("record", first, second, third);

	expect(outcome, outcome->status == 2 && strstr(outcome->err, line), "a line has: %s", line);
	expect(outcome, strchr(outcome->err, '\n') == outcome->err + strlen(outcome->err) - 1, "one line");
}

/* That is known before the stretch, not after it. */
SCENARIO_SOME(switch, stretch_that_cannot_be_written, 6)
{
	struct served served = begin_served(python, JOB_PRELOAD, NULL);
	char *pid = text("%d", (int)served.program->pid);

	enter(&served, 2);
	expect_refused("--for=200ms", "--output=/proc/nonexistent/x.evp", pid, "cannot write /proc/nonexistent/x.evp");
	expect_refused("--for=200ms", "--output=/", pid, "cannot write /: Is a directory");
	json_decref(end_served(&served));
}

SCENARIO(switch, stretch_refused, SCENARIO_ONCE)
{
	(void)python;
	if (geteuid() == 0)
		cr_assert(unshare(CLONE_NEWNET) == 0);
	expect_refused("all", NULL, NULL, "one process, by its PID or NAME");
	expect_refused("nobody", NULL, NULL, "no process nobody is recorded");
	expect_refused("999999999", NULL, NULL, "there is no process 999999999");
	expect_refused("--for", "soon", "1", "--for wants a time");
	expect_refused("--for", "0s", "1", "--for is 1ms to 1000000s, not 0s");
	expect_refused("-o", "-", "1", "a trace needs a file, not -");
	expect_refused("--events", "guesses", text("%d", (int)getpid()), "--events guesses is not understood");
}
