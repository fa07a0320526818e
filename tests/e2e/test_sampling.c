/*
 * test_sampling.c - with the kind sample, times of functions and lines are about those that the program's own stopwatch
 * says, in all threads and processes, and the program is as it is bare.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/ring.h"
#include "compile.h"
#include "harness.h"

#define OLDEST 6

static struct outcome *sampled(const struct python *python, const char *what, const char *events)
{
	return run(.python = python, .args = {"@sampling.py", what}, .env = {events, "PYTHONIOENCODING=utf-8"});
}

/* A program that is started or replaces has no file. */
static double time_of(const json_t *report, const char *name)
{
	return report_seconds(report, "", name);
}

static long calls_of(const json_t *report, const char *name)
{
	return report_calls(report, "sampling.py", name);
}

/* A sampler that has to wait for a processor takes fewer samples: each then stands for more. */
static bool is_about(double measured, double expected)
{
	return fabs(measured - expected) < 0.08 + 0.2 * expected;
}

/* How many code objects of a name the trace defines; -1: that is not known. */
static long count_codes(const struct outcome *outcome, const char *name)
{
	const char *count = "import evprof, sys; print(sum(code.name == sys.argv[2] for process in "
			    "evprof.load(sys.argv[1]).processes for code in process.codes.values()))";
	struct outcome *counted;

	if (built_with_asan())
		return -1;
	counted = run_with_package(python_any(), count, outcome->trace, name);
	expect(counted, counted->status == 0, "the package reads it");
	return atol(counted->out);
}

/* Of a function that is compiled for each call there is one definition, whatever is recorded. */
SCENARIO(sampling, code_that_is_compiled_anew, OLDEST)
{
	const char *const events[] = {"EVPROF_EVENTS=sample", "EVPROF_EVENTS=call"};

	for (int i = 0; i < 2; i++) {
		struct outcome *outcome = sampled(python, "compiled_anew", events[i]);
		json_t *report = trace_report_by(outcome->trace, "wall");
		double took = atof(outcome->out);
		long codes;

		expect(outcome, is_about(time_of(report, "made"), took), "it took %f s, reported %f", took,
		       time_of(report, "made"));
		codes = count_codes(outcome, "made");
		expect(outcome, codes == 1 || codes < 0, "%ld code objects", codes);
		json_decref(report);
	}
}

/*
 * A call that ends while the frames of its callers are read is not another one. A busy machine may hide calls, but adds
 * none.
 */
SCENARIO(sampling, no_call_is_counted_twice, OLDEST)
{
	struct outcome *outcome = run(.python = python, .args = {"@sampling.py", "many_calls"},
				      .env = {"EVPROF_EVENTS=sample", "EVPROF_SAMPLE_RATE=10000"});
	json_t *report = trace_report_by(outcome->trace, "wall");
	long made = atol(outcome->out), seen = calls_of(report, "spin");

	expect(outcome, seen > 0 && seen <= made + made / 100, "%ld calls of %ld", seen, made);
	json_decref(report);
}

SCENARIO(sampling, times_of_functions, OLDEST)
{
	struct outcome *outcome = sampled(python, "times", "EVPROF_EVENTS=sample");
	json_t *info = expect_trace(outcome, 1), *report = trace_report_by(outcome->trace, "wall");
	char *rest = outcome->out;
	int functions = 0;

	for (char *line; (line = strsep(&rest, "\n")) && *line; functions++) {
		char name[64];
		double took;

		expect(outcome, sscanf(line, "%63s %lf", name, &took) == 2, "the program says: %s", line);
		expect(outcome, is_about(time_of(report, name), took), "%s took %f s, reported %f", name, took,
		       time_of(report, name));
	}
	expect(outcome, functions == 3, "%d functions", functions);
	expect(outcome, info_threads(info) == 1, "the thread is listed once, not %zu times", info_threads(info));
	expect(outcome,
	       is_about(time_of(report, "times"), time_of(report, "short") + time_of(report, "long") +
						      time_of(report, "\xc3\xbcn\xc3\xaf"
								      "code_\xe4\xbe\x8b")),
	       "the caller has the time of what it calls");
	expect(outcome, is_about(time_of(report, "spin"), time_of(report, "short") + time_of(report, "long")),
	       "each call has its callers");
	json_decref(report);
	json_decref(info);
}

SCENARIO(sampling, lines, OLDEST)
{
	struct outcome *outcome = sampled(python, "lines", "EVPROF_EVENTS=sample");
	struct outcome *annotated = tool("annotate", outcome->trace);
	char *rest = strstr(annotated->out, "sampling.py\nFile duration");
	char *after;
	long wanted = strtol(outcome->out, &after, 10);
	double took_in_all = strtod(after, NULL);
	double slept = -1;

	expect(annotated, rest, "the program's file");
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		unsigned hits;
		double took;
		long number;

		if (sscanf(line, "%ld|%u|%lf", &number, &hits, &took) != 3)
			continue;
		if (number == wanted && slept < 0) {
			slept = took;
			expect(annotated, hits > 10, "%u samples of line %ld", hits, number);
		}
	}
	expect(annotated, is_about(slept, took_in_all), "line %ld took %f s, reported %f", wanted, took_in_all, slept);
}

/* What annotate says a call at a line of the program took, -1 if nothing. */
static double call_at_line(char *annotated, long wanted)
{
	char *rest = strstr(annotated, "sampling.py\nFile duration");
	bool there = false;

	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		double took;
		unsigned hits;
		long number;

		if (there && sscanf(line, "(call)|%u|%lf", &hits, &took) == 2)
			return took;
		if (sscanf(line, "%ld|", &number) == 1)
			there = number == wanted;
	}
	return -1;
}

SCENARIO(sampling, lines_of_calls, SUPPORTED)
{
	struct outcome *outcome = sampled(python, "calls", "EVPROF_EVENTS=sample");
	struct outcome *annotated = tool("annotate", outcome->trace);
	double first = 0, second = 0, took[2], measured;
	char *rest = outcome->out;
	long line = 0;

	for (char *said; (said = strsep(&rest, "\n")) && sscanf(said, "%ld %lf %lf", &line, &took[0], &took[1]) == 3;) {
		first += took[0];
		second += took[1];
	}
	measured = call_at_line(text("%s", annotated->out), line);
	expect(annotated, is_about(measured, first), "the first call took %f s, reported %f", first, measured);
	measured = call_at_line(text("%s", annotated->out), line + 2);
	expect(annotated, is_about(measured, second), "the second call took %f s, reported %f", second, measured);
}

/* Whether an export has that line, between two texts. */
static bool has_line(const char *text, const char *before, long line, const char *after)
{
	char wanted[128];

	snprintf(wanted, sizeof(wanted), "%s%ld%s", before, line, after);
	return strstr(text, wanted);
}

static bool firefox_has_line(const json_t *profile, long line)
{
	const json_t *thread, *value;
	size_t i, k;

	json_array_foreach(json_object_get(profile, "threads"), i, thread)
	    json_array_foreach(json_object_get(json_object_get(thread, "frameTable"), "line"), k,
			       value) if (json_integer_value(value) == line) return true;
	return false;
}

SCENARIO_SOME(sampling, lines_in_exports, SUPPORTED)
{
	struct outcome *outcome = sampled(python, "calls", "EVPROF_EVENTS=sample");
	struct outcome *folded = tool("export", "--format", "folded", outcome->trace, "-o", "-");
	struct outcome *evented = tool("export", "--format", "speedscope", outcome->trace, "-o", "-");
	struct outcome *stacks = tool("export", "--format", "speedscope-sampled", outcome->trace, "-o", "-");
	struct outcome *firefox = tool("export", "--format", "firefox", outcome->trace, "-o", "-");
	json_t *profile = json_loads(firefox->out, 0, NULL);
	long first = strtol(outcome->out, NULL, 10);

	for (long line = first; line <= first + 2; line += 2) {
		expect(folded, has_line(folded->out, ";calls (sampling.py:", line, ");spin (sampling.py:"),
		       "folded has line %ld", line);
		expect(evented, has_line(evented->out, "sampling.py\",\"line\":", line, "}"), "speedscope has it");
		expect(stacks, has_line(stacks->out, "sampling.py\",\"line\":", line, "}"), "sampled, too");
		expect(firefox, firefox_has_line(profile, line), "so has firefox");
	}
	json_decref(profile);
}

/* On a machine with much else to do some end before their sampler begins: then it runs again. */
SCENARIO(sampling, short_children, SUPPORTED)
{
	struct outcome *outcome;
	double slept = 0, shown = 0;
	long seen = 0;

	for (int try = 0; try < 3 && (seen < 6 || shown < 0.95 * slept * (double)seen / 40); try++) {
		json_t *report;

		outcome = sampled(python, "children", "EVPROF_EVENTS=sample");
		report = trace_report_by(outcome->trace, "wall");
		slept = strtod(outcome->out, NULL);
		seen = calls_of(report, "brief");
		shown = time_of(report, "brief");
		json_decref(report);
	}
	expect(outcome, seen > 5 && shown > 0.95 * slept * (double)seen / 40, "%ld of 40, %f s of %f", seen, shown,
	       slept);
}

/* ---- what is sampled as often as it runs ------------------------------------------------------------------------- */

#define SHARE_ERROR 0.025

/* The largest difference between the share that a function has in the report and by the program's stopwatch. */
static double error_of_shares(const struct outcome *outcome, const json_t *report)
{
	double took[4], measured[4], took_in_all = 0, measured_in_all = 0, error = 0;
	char *rest = strdup(outcome->out), *at = rest, name[64];
	int count = 0;

	for (char *line; (line = strsep(&at, "\n")) && count < 4; count++) {
		if (sscanf(line, "%63s %lf", name, &took[count]) != 2)
			break;
		measured[count] = report_seconds(report, "shares.py", name);
		took_in_all += took[count];
		measured_in_all += measured[count];
	}
	free(rest);
	expect(outcome, count > 1, "the program says what took how long");
	for (int i = 0; i < count; i++)
		error = fmax(error, fabs(measured[i] / measured_in_all - took[i] / took_in_all));
	return fmax(error, 1 - measured_in_all / took_in_all);
}

/* Chance, and a sampler that has to wait for a processor, count less the longer it takes. */
static void expect_shares(const struct python *python, const char *shape, int rate, double seconds, double turn)
{
	struct outcome *outcome;
	double error = 1;

	for (int try = 0; try < 5 && error > SHARE_ERROR; try++, seconds *= 2) {
		json_t *report;

		outcome = run(.python = python, .args = {"@shares.py", shape, text("%f", seconds), text("%f", turn)},
			      .env = {"EVPROF_EVENTS=sample", text("EVPROF_SAMPLE_RATE=%d", rate)});
		report = trace_report_by(outcome->trace, "wall");
		error = error_of_shares(outcome, report);
		json_decref(report);
	}
	expect(outcome, error <= SHARE_ERROR, "%s, sampled %d times a second: a share is off by %.1f points", shape,
	       rate, 100 * error);
}

SCENARIO(sampling, shares, SUPPORTED)
{
	static const char *const shapes[] = {"generators", "recursion", "functions", "coroutines",
					     "delegation", "tasks",	NULL};

	for (const char *const *shape = shapes; *shape; shape++)
		expect_shares(python, *shape, 1000, strcmp(*shape, "tasks") ? 0.7 : 1.2,
			      strcmp(*shape, "tasks") ? 0.015 : 0.005);
	expect_shares(python, "generators", 10000, 0.5, 0.01);
	expect_shares(python, "tasks", 10000, 0.5, 0.0002);
	expect_shares(python, "delegation", 100, 2.5, 0.3);
	for (const char *const *shape = shapes; test_at_length(python) && *shape; shape++)
		for (int rate = 100; rate <= 10000; rate *= 10)
			expect_shares(python, *shape, rate, rate == 100 ? 40 : 5, 0.005);
}

SCENARIO(sampling, running_and_waiting, SUPPORTED)
{
	struct outcome *outcome = sampled(python, "cpu", "EVPROF_EVENTS=sample,cpu");
	double ran = strtod(outcome->out, NULL);
	json_t *wall = trace_report_by(outcome->trace, "wall"), *cpu = trace_report_by(outcome->trace, "cpu");

	expect(outcome, time_of(wall, "cpu") > 0.37, "it took %f s", time_of(wall, "cpu"));
	expect(outcome, fabs(time_of(cpu, "cpu") - ran) < 0.03 + 0.2 * ran, "it ran %f s, reported %f", ran,
	       time_of(cpu, "cpu"));
	json_decref(wall);
	json_decref(cpu);
}

/* What the program says that the calls of a function took, all together. */
static double said_by(const struct outcome *outcome, const char *name)
{
	const char *const texts[] = {outcome->out, outcome->err};
	size_t length = strlen(name);
	double sum = 0;

	for (int i = 0; i < 2; i++)
		for (const char *line = texts[i]; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
			if (strncmp(line, name, length) == 0 && line[length] == ' ')
				sum += strtod(line + length, NULL);
	return sum;
}

/* Sampled again where other work on the machine kept a sampler from beginning, or waiting. */
static struct outcome *sampled_about(const struct python *python, const char *what, const char *const *names)
{
	struct outcome *outcome = NULL;
	bool good = false;

	for (int try = 0; try < 3 && !good; try++) {
		json_t *report;

		outcome = sampled(python, what, "EVPROF_EVENTS=sample");
		report = trace_report_by(outcome->trace, "wall");
		good = true;
		for (const char *const *name = names; *name; name++) {
			double took = said_by(outcome, *name), shown = time_of(report, *name);

			good &= took > 0 && is_about(shown, took);
			expect(outcome, good || try < 2, "%s took %f s, reported %f", *name, took, shown);
		}
		json_decref(report);
	}
	return outcome;
}

SCENARIO(sampling, threads_and_processes, SUPPORTED)
{
	static const char *const names[] = {"in_thread", "in_child", "started", "replaced", NULL};
	struct outcome *outcome = sampled_about(python, "tree", names);
	json_t *info = expect_trace(outcome, 4), *report = trace_report_by(outcome->trace, "wall");

	expect(outcome, outcome->status == 0 && strstr(outcome->out, "status 7\n"), "as bare");
	expect(outcome, calls_of(report, "in_thread") == 5, "%ld threads", calls_of(report, "in_thread"));
	expect(outcome, calls_of(report, "in_child") == 2, "%ld children", calls_of(report, "in_child"));
	json_decref(report);
	json_decref(info);
}

/* Others have the memory of the thread's state after it. */
static const char starts_in_a_thread[] = "import evprof, threading, time\n"
					 "def run(function):\n"
					 "    thread = threading.Thread(target=function)\n"
					 "    thread.start()\n"
					 "    thread.join()\n"
					 "def works(until):\n"
					 "    while time.time() < until: pass\n"
					 "run(evprof.start)\n"
					 "for _ in range(3): run(lambda: None)\n"
					 "works(time.time() + 1)\n";

/* Sampling goes on after the thread that has started it. */
SCENARIO(sampling, started_by_a_thread_that_ends, SUPPORTED)
{
	struct outcome *outcome;
	json_t *report;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"-c", starts_in_a_thread},
		      .env = {text("PYTHONPATH=%s", program_path("../../../tools/python")), "EVPROF_OUTPUT=late.evp",
			      "EVPROF_EVENTS=sample"});
	report = trace_report_by(outcome->trace, "wall");
	expect(outcome, time_of(report, "works") > 0.5, "works took 1 s, reported %f", time_of(report, "works"));
	json_decref(report);
}

/* A thread that has left Python, and keeps its thread state, is in no function. */
SCENARIO(sampling, thread_that_left, SUPPORTED)
{
	const char *library = compile("entering.c", "entering.so", COMPILE_PLAIN);
	struct outcome *outcome = NULL;
	double took = 0, shown = -1;

	python_needs(python, "ctypes");
	for (int try = 0; try < 3 && !(took > 0 && is_about(shown, took)); try++) {
		json_t *report;

		outcome = run(.python = python, .args = {"@idle.py", library}, .env = {"EVPROF_EVENTS=sample"});
		report = trace_report_by(outcome->trace, "wall");
		took = said_by(outcome, "works");
		shown = time_of(report, "works");
		json_decref(report);
	}
	expect(outcome, took > 0 && is_about(shown, took), "works took %f s, reported %f", took, shown);
}

/* Whether one thread, and no other, has that id (0: any) and is called that. */
static bool is_listed(const json_t *info, long tid, const char *name)
{
	const json_t *process, *thread;
	int with_tid = 0, named = 0;
	size_t i, k;

	json_array_foreach(json_object_get(info, "processes"), i, process)
	{
		json_array_foreach(json_object_get(process, "threads"), k, thread)
		{
			const char *own = json_string_value(json_object_get(thread, "name"));
			bool same = json_integer_value(json_object_get(thread, "tid")) == tid;

			with_tid += same;
			named += (same || !tid) && own && !strcmp(own, name);
		}
	}
	return named == 1 && (!tid || with_tid == 1);
}

static void expect_names_of_threads(const struct python *python, const char *events)
{
	struct outcome *outcome = sampled(python, "named", events);
	json_t *info = expect_trace(outcome, python->minor >= 8 ? 2 : 1);
	char *rest = outcome->out, *name;
	size_t lines = 0;

	for (char *line; (line = strsep(&rest, "\n")) && *line; lines++) {
		long tid = strtol(line, &name, 10);

		expect(outcome, is_listed(info, tid, name + 1), "thread %ld is listed once, as \"%s\"", tid, name + 1);
	}
	expect(outcome, lines == (python->minor >= 8 ? 7 : 6) && info_threads(info) == lines, "%zu threads, not %zu",
	       lines, info_threads(info));
	json_decref(info);
}

SCENARIO(sampling, names_of_threads, OLDEST)
{
	expect_names_of_threads(python, "EVPROF_EVENTS=sample");
}

/* Allocations are recorded, and no call: the names come from the same place as those of samples. */
SCENARIO(sampling, names_of_threads_of_memory, SUPPORTED)
{
	expect_names_of_threads(python, "EVPROF_EVENTS=mem");
}

static int count_of(const char *text, const char *wanted)
{
	int count = 0;

	for (; (text = strstr(text, wanted)); text += strlen(wanted))
		count++;
	return count;
}

/* What the thread wrote itself (its start, forks, its end) is not another thread in any output. */
SCENARIO_SOME(sampling, threads_are_listed_once, SUPPORTED)
{
	static const struct listed {
		const char *format, *wanted; /* in front of the name, or of the id, of a thread */
		bool by_name;
	} listed[] = {{"chrome", "\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"", true},
		      {"firefox", "{\"name\":\"%s\",\"isMainThread\"", true},
		      {"speedscope", " %s (%ld)\",\"startValue\"", true},
		      {"html", "\"tid\":%ld,", false},
		      {NULL, NULL, false}};
	struct outcome *outcome = sampled(python, "named", "EVPROF_EVENTS=sample"), *made;
	char *rest = text("%s", outcome->out), *name;
	char wanted[256];

	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		long tid = strtol(line, &name, 10);

		if (!strcmp(++name, "forks")) /* so the child's thread is called, too */
			continue;
		for (const struct listed *output = listed; output->format; output++) {
			made = tool("export", "--format", output->format, outcome->trace, "-o", "-");
			if (output->by_name)
				snprintf(wanted, sizeof(wanted), output->wanted, name, tid);
			else
				snprintf(wanted, sizeof(wanted), output->wanted, tid);
			expect(made, count_of(made->out, wanted) == 1, "%s has %d of %s", output->format,
			       count_of(made->out, wanted), wanted);
		}
		made = tool("report", "--by", "thread", outcome->trace);
		snprintf(wanted, sizeof(wanted), "thread %ld \"%s\"", tid, name);
		expect(made, count_of(made->out, wanted) == 1, "report has %d of %s", count_of(made->out, wanted),
		       wanted);
	}
}

SCENARIO(sampling, stopped, SUPPORTED)
{
	static const char *const names[] = {"before", "in_child", NULL};
	struct outcome *outcome;
	json_t *report;

	python_needs(python, "ctypes");
	outcome = sampled_about(python, "stopped", names);
	report = trace_report_by(outcome->trace, "wall");
	expect(outcome, time_of(report, "long") < 0.15, "between: %f s", time_of(report, "long"));
	json_decref(report);
}

/* What was seen until then is kept, what was open then ends there, and the report says so. */
static void expect_unsampled(struct outcome *outcome, const char *said)
{
	json_t *info = expect_trace(outcome, 1), *report = trace_report_by(outcome->trace, "wall");
	const json_t *process = json_array_get(json_object_get(info, "processes"), 0);
	const char *sampler = json_string_value(json_object_get(process, "sampler"));
	double took = said_by(outcome, "before");

	expect(outcome, outcome->status == 0, "it runs on");
	expect(outcome, stderr_evprof_lines(outcome) == 2 && strstr(outcome->err, said), "one more line says so");
	expect(outcome, sampler && !strcmp(sampler, "killed"), "the trace says so");
	expect(outcome, time_of(report, "before") > 0.5 * took && time_of(report, "before") < 0.08 + 1.2 * took,
	       "before took %f s, reported %f", took, time_of(report, "before"));
	expect(outcome, time_of(report, "unsampled") < took + 0.45, "nothing goes on: %f s of %f",
	       time_of(report, "unsampled"), took);
	json_decref(report);
	json_decref(info);
}

SCENARIO(sampling, sampler_killed, SUPPORTED)
{
	static const char *const said = "the sampler of 1 process was killed";
	struct outcome *result;

	expect_unsampled(sampled(python, "unsampled", "EVPROF_EVENTS=sample"), said);
	expect_unsampled(
	    run(.python = python, .how = JOB_RUN, .options = {"--sample"}, .args = {"@sampling.py", "unsampled"}),
	    said);
	result = sampled(python, "unsampled", "EVPROF_EVENTS=sample");
	result = tool("report", result->trace);
	expect(result, strstr(result->err, "the sampler of process"), "the report says so");
}

SCENARIO(sampling, hook_compat, SUPPORTED)
{
	struct outcome *bare =
	    run(.python = python, .how = JOB_BARE, .args = {"-Werror", "@sampling.py", "hook_compat"});
	struct outcome *outcome =
	    run(.python = python, .args = {"-Werror", "@sampling.py", "hook_compat"}, .env = {"EVPROF_EVENTS=sample"});

	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 2));
}

SCENARIO(sampling, deep_stacks, SUPPORTED)
{
	static const char *const names[] = {"deeper", NULL};
	struct outcome *outcome = sampled_about(python, "depth", names);
	json_t *report = trace_report_by(outcome->trace, "wall");

	expect(outcome, calls_of(report, "deeper") >= 3001, "%ld frames", calls_of(report, "deeper"));
	json_decref(report);
}

SCENARIO(sampling, dropped_samples, SUPPORTED)
{
	/* The smallest ring has no room for the returns of 3000 frames and the calls of as many. */
	struct outcome *outcome = run(.python = python, .args = {"@sampling.py", "depth"},
				      .env = {"EVPROF_EVENTS=sample", "EVPROF_RING_SIZE=64K"});
	json_t *info = expect_trace(outcome, 1), *process = json_array_get(json_object_get(info, "processes"), 0);
	struct outcome *shown = tool("info", outcome->trace);

	expect(outcome, json_integer_value(json_object_get(process, "samples_dropped")) > 10, "dropped samples count");
	expect(shown, strstr(shown->out, " not recorded"), "info names them");
	json_decref(info);
}

SCENARIO(sampling, many_threads, SUPPORTED)
{
	struct outcome *outcome = sampled(python, "many", "EVPROF_EVENTS=sample");
	json_t *info = expect_trace(outcome, 1);

	expect(outcome, info_events(info, "thread_start") > 200, "%ld threads",
	       (long)info_events(info, "thread_start"));
	expect_balanced(outcome, trace_report_by(outcome->trace, "wall"));
	json_decref(info);
}

SCENARIO(sampling, by_the_command, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .how = JOB_RUN, .options = {"--sample=250"}, .args = {"@sampling.py", "lines"});
	struct outcome *report = tool("report", outcome->trace), *info = tool("info", outcome->trace);

	(void)python;
	expect(report, strstr(report->out, "Sampled 250 times a second"), "a report says so");
	expect(info, strstr(info->out, "sampled 250 times a second"), "info says so");
}

SCENARIO(sampling, without_standard_descriptors, SUPPORTED)
{
	static const char *const names[] = {"before", NULL};

	sampled_about(python, "closed", names);
}

SCENARIO(sampling, what_does_nothing, SCENARIO_ONCE)
{
	static const char *const options[][2] = {{"--native", "events mem"},
						 {"--calibrate", "cost"},
						 {"--include=a*", "evprof report --include"},
						 {"--exclude=a*", "evprof report --include"},
						 {"--exclude-syspath", "evprof report --include"}};
	struct outcome *outcome;

	(void)python;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		outcome = run(.python = python_any(), .how = JOB_RUN, .options = {"--sample", options[i][0]},
			      .args = {"-c", "print(1)"});
		expect(outcome, outcome->status && !*outcome->out && strstr(outcome->err, options[i][1]),
		       "%s is refused", options[i][0]);
	}
	outcome = run(.python = python_any(), .args = {"-c", "print(1)"},
		      .env = {"EVPROF_EVENTS=sample", "EVPROF_INCLUDE=a*", "EVPROF_NATIVE=1"});
	expect(outcome, !outcome->status && stderr_evprof_lines(outcome) == 3, "the library says it, and runs on");
}

/* All but those that have no place for it: pstats, csv and folded. */
SCENARIO_SOME(sampling, outputs_are_labelled, SUPPORTED)
{
	static const char *const formats[] = {"chrome",	 "perfetto",  "speedscope", "speedscope-sampled",
					      "firefox", "callgrind", NULL};
	static const char text_of_all[] = "ampled 250 times a second";
	struct outcome *outcome = run(.python = python, .args = {"@sampling.py", "before"},
				      .env = {"EVPROF_EVENTS=sample", "EVPROF_SAMPLE_RATE=250"});
	struct outcome *made;

	for (const char *const *format = formats; *format; format++) {
		made = tool("export", "--format", *format, outcome->trace, "-o", "-");
		expect(made, memmem(made->out, made->out_bytes, text_of_all, sizeof(text_of_all) - 1), "%s", *format);
	}
	made = tool("export", "--format", "html", outcome->trace, "-o", "-");
	expect(made, strstr(made->out, "\"sampled\":250"), "html");
	made = tool("report", "--format", "json", outcome->trace);
	expect(made, strstr(made->out, "\"sample_rate\": 250"), "report");
	tool("export", "--format", "pprof", outcome->trace, "-o", text("%s.pb.gz", outcome->trace));
	made = run(.python = python, .how = JOB_BARE,
		   .args = {"-c", "import gzip, sys; print(b'samples' in gzip.open(sys.argv[1]).read())",
			    text("%s.pb.gz", outcome->trace)});
	expect(made, !strcmp(made->out, "True\n"), "pprof has samples instead of calls");
}

SCENARIO(sampling, says_what_is_wrong, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", "pass"}, .env = {"EVPROF_EVENTS=sample,call"});

	(void)python;
	expect(outcome, strstr(outcome->err, "EVPROF_EVENTS=sample,call") && strstr(outcome->err, "alone"),
	       "sample stands alone");
	for (const char *const *rate = (const char *const[]){"0", "10001", "x", "1.5", NULL}; *rate; rate++) {
		outcome = run(.python = python_any(), .args = {"-c", "pass"},
			      .env = {"EVPROF_EVENTS=sample", text("EVPROF_SAMPLE_RATE=%s", *rate)});
		expect(outcome, strstr(outcome->err, "1 to 10000") && outcome->status == 0, "rate %s", *rate);
	}
}

/* What starts as root and gives that up has a sampler that does likewise, and that it cannot lead anywhere. */
SCENARIO(sampling, a_sampler_keeps_no_rights, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	if (geteuid() != 0)
		cr_skip_test("needs root");
	outcome = run(.python = python, .args = {"@drops_privileges.py", text("%zu", sizeof(struct ring_layout))},
		      .env = {"EVPROF_EVENTS=sample"});
	expect(outcome, outcome->status == 0, "it runs, and its sampler is there up to its end");
	expect(outcome,
	       !strcmp(outcome->out, "0 0 0 0 0 0 0 0\n65534 65534 65534 65534 65534 65534 65534 65534 "
				     "0000000000000000 0000000000000000\n"),
	       "its sampler has its user, and no capability");
	expect_closing_line(outcome);
}
