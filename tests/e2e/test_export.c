/*
 * test_export.c - what evprof export writes is strict JSON of nested, complete begins and ends, whatever the names.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define DEPTH_MAX 4096
#define TRACKS_MAX 256

/* One thread in the export: its open begins. */
struct track {
	long pid, tid;
	size_t depth, deepest, spans;
	const char *open[DEPTH_MAX];
	double last;
	bool named;
};

struct tracks {
	struct track *track;
	size_t count;
	size_t processes_named;
};

static struct track *track_of(struct tracks *tracks, const json_t *event)
{
	long pid = (long)json_integer_value(json_object_get(event, "pid"));
	long tid = (long)json_integer_value(json_object_get(event, "tid"));

	for (size_t i = 0; i < tracks->count; i++)
		if (tracks->track[i].pid == pid && tracks->track[i].tid == tid)
			return &tracks->track[i];
	cr_assert(tracks->count < TRACKS_MAX, "more than %d threads in the export", TRACKS_MAX);
	tracks->track[tracks->count] = (struct track){.pid = pid, .tid = tid, .last = -1};
	return &tracks->track[tracks->count++];
}

static void follow_metadata(struct tracks *tracks, struct track *track, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "name"));
	const char *value = json_string_value(json_object_get(json_object_get(event, "args"), "name"));

	if (name && strcmp(name, "thread_name") == 0 && value && *value)
		track->named = true;
	if (name && strcmp(name, "process_name") == 0 && value && *value)
		tracks->processes_named++;
}

static void follow_span(struct track *track, char phase, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "name"));
	double time = json_number_value(json_object_get(event, "ts"));

	cr_assert(isfinite(time) && time >= track->last, "thread %ld: time goes back from %f to %f", track->tid,
		  track->last, time);
	track->last = time;
	if (phase == 'B') {
		cr_assert(name && track->depth < DEPTH_MAX, "thread %ld: a begin without a name", track->tid);
		track->open[track->depth++] = name;
		track->deepest = track->depth > track->deepest ? track->depth : track->deepest;
		track->spans++;
		return;
	}
	cr_assert(track->depth > 0, "thread %ld: an end of %s without its begin", track->tid, name ? name : "?");
	track->depth--;
	cr_assert(!name || !*name || !strcmp(name, track->open[track->depth]), "thread %ld: %s ends inside of %s",
		  track->tid, name, track->open[track->depth]);
}

/* jansson reads strictly: NaN, control characters in strings, wrong UTF-8 and what stands behind the end are errors. */
static json_t *export_read(const struct outcome *outcome)
{
	char *path = text("%s/trace.json", outcome->directory);
	struct outcome *export = tool("export", "--format", "chrome", outcome->trace, "-o", path);
	json_error_t error;
	json_t *root;

	expect(export, export->status == 0, "the export ends with 0");
	root = json_load_file(path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	expect(export, root, "the export is JSON: %s at line %d, column %d", error.text, error.line, error.column);
	return root;
}

static struct tracks export_follow(const struct outcome *outcome, const json_t *root)
{
	const json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents"), *event;
	struct tracks tracks = {.track = calloc(TRACKS_MAX, sizeof(struct track))};
	size_t i;

	expect(outcome, json_is_array(events) && json_array_size(events) > 0, "there is a list of events");
	json_array_foreach(events, i, event)
	{
		const char *phase = json_string_value(json_object_get(event, "ph"));
		struct track *track;

		expect(outcome, phase && phase[0] && !phase[1], "event %zu has a phase", i);
		track = track_of(&tracks, event);
		if (*phase == 'M')
			follow_metadata(&tracks, track, event);
		else if (*phase == 'B' || *phase == 'E')
			follow_span(track, *phase, event);
	}
	for (i = 0; i < tracks.count; i++)
		expect(outcome, tracks.track[i].depth == 0, "thread %ld: %zu begins without their end, the last is %s",
		       tracks.track[i].tid, tracks.track[i].depth, tracks.track[i].open[tracks.track[i].depth - 1]);
	return tracks;
}

/* What the standard library of another maker says about it. */
static void expect_strict(const struct outcome *outcome)
{
	static const char *const code = "import json, sys\n"
					"def refuse(word): raise ValueError(word)\n"
					"def pairs(items):\n"
					"    assert len({k for k, v in items}) == len(items), items\n"
					"    return dict(items)\n"
					"json.loads(open(sys.argv[1], 'rb').read().decode('utf-8'), "
					"parse_constant=refuse, object_pairs_hook=pairs)\n";
	const struct python *python = python_any();
	struct outcome *judge =
	    run(.python = python, .how = JOB_BARE, .args = {"-c", code, text("%s/trace.json", outcome->directory)});

	expect(judge, judge->status == 0, "Python's json reads the export strictly");
}

static size_t spans_named(const json_t *root, const char *part)
{
	const json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents"), *event;
	size_t i, count = 0;

	json_array_foreach(events, i, event)
	{
		const char *phase = json_string_value(json_object_get(event, "ph"));
		const char *name = json_string_value(json_object_get(event, "name"));

		count += phase && *phase == 'B' && name && strstr(name, part);
	}
	return count;
}

SCENARIO(export, nested, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	json_t *root = export_read(outcome);

	export_follow(outcome, root);
	expect(outcome, spans_named(root, "leaf") == 1000, "leaf begins 1000 times, not %zu",
	       spans_named(root, "leaf"));
	expect_strict(outcome);
	json_decref(root);
}

SCENARIO(export, threads_and_processes, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	json_t *root = export_read(outcome);
	struct tracks tracks = export_follow(outcome, root);
	size_t busy = 0;

	for (size_t i = 0; i < tracks.count; i++) {
		busy += tracks.track[i].spans > 0;
		expect(outcome, !tracks.track[i].spans || tracks.track[i].named, "thread %ld has a name",
		       tracks.track[i].tid);
	}
	expect(outcome, busy >= 14, "%zu threads have spans", busy);
	json_decref(root);
	outcome = run(.python = python, .args = {"@processes.py", "forks"});
	root = export_read(outcome);
	tracks = export_follow(outcome, root);
	expect(outcome, tracks.processes_named == 4, "four processes have names, not %zu", tracks.processes_named);
	json_decref(root);
}

SCENARIO(export, generators_and_exceptions, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	json_t *root = export_read(outcome);

	export_follow(outcome, root);
	json_decref(root);
}

SCENARIO(export, strange_names, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@names.py"});
	json_t *root, *info = expect_trace(outcome, 1);

	expect(outcome, outcome->status == 0, "the program runs");
	root = export_read(outcome);
	export_follow(outcome, root);
	expect(outcome, spans_named(root, "quo\"te") == 1, "a name with a quote");
	expect(outcome, spans_named(root, "new\nline") == 1, "a name with a newline");
	expect(outcome, spans_named(root, "back\\slash") == 1, "a name with a backslash");
	expect(outcome, spans_named(root, "\u00fcml\u00e4ut") == 1, "a name beyond ASCII");
	expect(outcome, spans_named(root, "\U0001f600") == 1, "a name beyond 16 bits");
	expect(outcome, spans_named(root, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") == 2,
	       "names of 5000 and 20000 characters");
	expect(outcome, spans_named(root, "surrogate") == 1, "a name with a lone surrogate");
	expect_strict(outcome);
	json_decref(root);
	json_decref(info);
	struct outcome *table = tool("report", outcome->trace), *dump = tool("dump", outcome->trace);

	expect(table, table->status == 0 && !strchr(table->out, '\x01'), "the table holds no control character");
	expect(dump, dump->status == 0 && !strchr(dump->out, '\x01'), "neither does the dump");
	json_decref(trace_report(outcome->trace, NULL));
}

/* A process that is killed leaves functions open: the export closes them. */
SCENARIO(export, killed, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@ends.py", "SIGKILL"});
	json_t *root = export_read(outcome);

	export_follow(outcome, root);
	json_decref(root);
}

SCENARIO(export, mistakes, SCENARIO_ONCE)
{
	struct outcome *outcome;

	(void)python;
	outcome = tool("export", "--format", "nonsense", "/nonexistent.evp");
	expect(outcome, outcome->status > 0 && strstr(outcome->err, "chrome"), "a wrong format names the right ones");
	outcome = tool("export", "--format", "chrome", "/nonexistent.evp", "-o", "/dev/null");
	expect(outcome, outcome->status > 0 && strstr(outcome->err, "/nonexistent.evp"), "a missing file is named");
	outcome = tool("nonsense");
	expect(outcome, outcome->status > 0 && *outcome->err, "a wrong verb gets a line");
}

/* What is begun of the output does not stay. */
SCENARIO_SOME(export, larger_than_a_file_may_be, SUPPORTED)
{
	struct outcome *program = run(.python = python, .args = {"@counting.py", "1", "calls", "2000"});
	struct outcome *outcome =
	    run(.how = JOB_BARE, .directory = program->directory,
		.args = {"sh", "-c",
			 "(ulimit -c 0; ulimit -f 8; exec \"$0\" export --format chrome -o x.json \"$1\"); "
			 "status=$?; ls; exit $status",
			 "%B/evprof", program->trace});

	expect(outcome, outcome->status == 2 && strstr(outcome->err, "File too large"), "it is reported");
	expect(outcome, !strstr(outcome->out, "x.json"), "nothing is left behind");
}

/* ---- the heap -------------------------------------------------------------------------------------------------- */

/* Five arrays that live for a while; the program says when each was there and when it was gone, since it began. */
static const char *const arrays = "import time\n"
				  "for i in range(5):\n"
				  "    x = bytearray(50000017)\n"
				  "    began = time.monotonic()\n"
				  "    time.sleep(0.1)\n"
				  "    print(began, time.monotonic())\n"
				  "    del x\n"
				  "    time.sleep(0.05)\n";

/* When the first call of a function begins. */
static double first_call(const json_t *events, const char *name)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event)
	{
		const char *its = json_string_value(json_object_get(event, "name"));

		if (its && strcmp(its, name) == 0)
			return json_number_value(json_object_get(event, "ts"));
	}
	return -1;
}

/* What the curve holds at a time: the latest value that is not behind it. */
static double heap_at(const json_t *events, double us)
{
	const json_t *event;
	double bytes = 0;
	size_t i;

	json_array_foreach(events, i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "ph")), "C") == 0 &&
		    json_number_value(json_object_get(event, "ts")) <= us)
			bytes = json_number_value(json_object_get(json_object_get(event, "args"), "bytes"));
	}
	return bytes;
}

SCENARIO_SOME(export, chrome_heap, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"-c", arrays}), *result;
	char *path = text("%s/heap.json", outcome->directory), *line = outcome->out;
	json_t *root, *events;
	double start;

	result = tool("export", "-f", "chrome", outcome->trace, "-o", path);
	expect(result, result->status == 0, "the export ends with 0");
	root = json_load_file(path, 0, NULL);
	events = json_object_get(root, "traceEvents");
	start = atof(outcome->out) - first_call(events, "time.sleep") / 1e6;
	for (int i = 0; i < 5; i++) {
		double began = strtod(line, &line) - start, ended = strtod(line, &line) - start;
		double held = heap_at(events, (began + ended) / 2 * 1e6), gone = heap_at(events, (ended + 0.03) * 1e6);

		expect(outcome, held > 50000017 && held < 60000000, "array %d: %.0f bytes while it lives", i, held);
		expect(outcome, gone < 10000000, "array %d: %.0f bytes when it is gone", i, gone);
	}
	json_decref(root);
}
