/*
 * test_calibrate.c - the cost of the hooks is measured when asked for, and taken out of the times and of nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static double number_of(const json_t *report, const char *member)
{
	return json_number_value(json_object_get(report, member));
}

static json_t *report_of(const char *trace, bool calibrate)
{
	struct outcome *outcome =
	    calibrate ? tool("report", "--json", "--calibrate", trace) : tool("report", "--json", trace);
	json_t *report = json_loads(outcome->out, 0, NULL);

	expect(outcome, report && outcome->status == 0, "a report");
	return report;
}

/* With EVPROF_CALIBRATE=1; again where the machine was too busy to measure, which report says. */
static struct outcome *run_measured(const struct python *python, const char *program, const char *events)
{
	struct outcome *outcome = NULL;

	for (int try = 0; try < 5; try++) {
		outcome = run(.python = python, .args = {program}, .env = {"EVPROF_CALIBRATE=1", events});
		if (!strstr(tool("report", "--calibrate", outcome->trace)->err, "too busy"))
			break;
	}
	return outcome;
}

SCENARIO(calibrate, takes_the_cost_out_of_the_times, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@generators.py"});
	struct outcome *outcome = run_measured(python, "@generators.py", NULL);
	struct outcome *other = run(.python = python, .args = {"@generators.py"});
	json_t *info = expect_trace(outcome, 1), *raw = report_of(outcome->trace, false);
	json_t *calibrated = report_of(outcome->trace, true), *plain = report_of(other->trace, false);

	expect_same(bare, outcome);
	expect(outcome, number_of(calibrated, "tottime") > 0, "time is left");
	expect(outcome, number_of(calibrated, "tottime") < number_of(raw, "tottime"), "%f s are less than %f s",
	       number_of(calibrated, "tottime"), number_of(raw, "tottime"));
	expect(outcome, number_of(calibrated, "calls") == number_of(raw, "calls"), "the same calls");
	expect(outcome,
	       report_calls(raw, "generators.py", "<module>") == 1 && report_functions(raw) == report_functions(plain),
	       "what was measured is not in the trace: %zu functions, %zu without", report_functions(raw),
	       report_functions(plain));
	for (size_t i = 0; i < report_functions(raw); i++)
		expect(outcome, !strstr(report_function(raw, i).name, "c_functions"), "no function of ours");
	json_decref(info);
	json_decref(raw);
	json_decref(calibrated);
	json_decref(plain);
}

/* What the program's own stopwatch said of a function: the shortest run, ns. */
static double stopwatch(const struct outcome *outcome, const char *function)
{
	const char *line = strstr(outcome->out, function);

	expect(outcome, line && outcome->status == 0, "a line for %s", function);
	return strtod(line + strlen(function), NULL);
}

/* The shortest run as the report says it, with what was called, ns. */
static double reported(const json_t *report, const char *function)
{
	double shortest = 0, run;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "functions"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "function"));

		run = number_of(row, "cumtime_ns");
		if (strncmp(name, function, strlen(function)) == 0 && name[strlen(function)] == '_' &&
		    (shortest == 0 || run < shortest))
			shortest = run;
	}
	return shortest;
}

/*
 * The last two from 3.12 on: before, the hook gets no calls of classes, and 3.11 slows properties by more than it slows
 * loops.
 */
static const char *const timed[] = {"recursion", "methods", "generator", "lengths", "classes", "properties"};
enum { TIMED = sizeof(timed) / sizeof(timed[0]), TIMED_BEFORE_3_12 = 4 };

#define PAIRS_FEWEST 3 /* bare and under evprof */
#define PAIRS_MOST 9
#define SHARE_LEAST 0.7
#define SHARE_MOST 1.4

/* Of one function in all pairs of runs so far, ns. Other work on the machine only adds: the shortest runs count. */
struct timing {
	double bare[PAIRS_MOST], evprof[PAIRS_MOST]; /* by the program's own stopwatch */
	double taken[PAIRS_MOST];		     /* out of the shortest run, by the report */
};

/* Of one run of the program bare and one under evprof. */
static void measure_pair(const struct python *python, const char *events, size_t pair, struct timing timings[TIMED])
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@stopwatch.py"});
	struct outcome *outcome = run_measured(python, "@stopwatch.py", events);
	json_t *raw = report_of(outcome->trace, false), *calibrated = report_of(outcome->trace, true);

	for (size_t i = 0; i < TIMED; i++) {
		timings[i].bare[pair] = stopwatch(bare, timed[i]);
		timings[i].evprof[pair] = stopwatch(outcome, timed[i]);
		timings[i].taken[pair] = reported(raw, timed[i]) - reported(calibrated, timed[i]);
	}
	json_decref(raw);
	json_decref(calibrated);
}

static int compare_doubles(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* The median of what is taken out, over what the hooks add. 1 would be perfect. */
static double share_taken(struct timing timing, size_t pairs)
{
	qsort(timing.bare, pairs, sizeof(double), compare_doubles);
	qsort(timing.evprof, pairs, sizeof(double), compare_doubles);
	qsort(timing.taken, pairs, sizeof(double), compare_doubles);
	return timing.taken[pairs / 2] / (timing.evprof[0] - timing.bare[0]);
}

/* From the least to the median of sorted numbers. */
static double spread(const double *numbers, size_t count)
{
	return numbers[count / 2] - numbers[0];
}

/*
 * Whether the runs, or what is taken out of them, differ by as much as would take the share out of its bounds: the
 * machine itself is faster at one time than at another, and says nothing of what a hook costs.
 */
static bool is_uneven(struct timing timing, size_t pairs)
{
	double added;

	qsort(timing.bare, pairs, sizeof(double), compare_doubles);
	qsort(timing.evprof, pairs, sizeof(double), compare_doubles);
	qsort(timing.taken, pairs, sizeof(double), compare_doubles);
	added = timing.evprof[0] - timing.bare[0];
	return spread(timing.bare, pairs) > added * (1 - SHARE_LEAST) ||
	       spread(timing.evprof, pairs) > added * (1 - SHARE_LEAST) ||
	       spread(timing.taken, pairs) > added * (1 - SHARE_LEAST);
}

/* More pairs are run where few do not agree. */
static void expect_agreement(const struct python *python, const char *events)
{
	size_t functions = python->minor < 12 ? TIMED_BEFORE_3_12 : TIMED, pairs = 0, off = 0;
	struct timing timings[TIMED];
	double share = 0;

#ifdef EVPROF_INSTRUMENTED
	cr_skip_test("the sanitizer's checks cost the program's allocations other than those of the measurement");
#endif
	while (pairs < PAIRS_FEWEST || (off < functions && pairs < PAIRS_MOST)) {
		measure_pair(python, events, pairs++, timings);
		for (off = 0; off < functions; off++) {
			share = share_taken(timings[off], pairs);
			if (share < SHARE_LEAST || share > SHARE_MOST)
				break;
		}
	}
	if (off < functions && is_uneven(timings[off], pairs))
		cr_skip_test("the machine's own speed changes by more than the hooks cost");
	cr_assert(off == functions, "%s, %s, %s: %.2f of what the hooks add is taken out, by the shortest of %zu runs",
		  python->name, events, timed[off], share, pairs);
}

/* ns between the two stacks that stand around the measurement: an empty one, and the program's. */
static double measured_ns(const struct outcome *dump)
{
	const char *line = dump->out;
	double begin = 0;

	while (line && *line) {
		const char *kind = strstr(line, "\tstack\t"), *end = strchr(line, '\n');

		if (begin && kind && kind < end)
			return atof(line) - begin;
		begin = kind && kind < end && strncmp(kind, "\tstack\t0\n", 9) == 0 ? atof(line) : 0;
		line = end ? end + 1 : NULL;
	}
	return 0;
}

/* The time of the measurement itself is no function's, calibrated or not. */
SCENARIO(calibrate, takes_time_of_nobody, SUPPORTED)
{
	struct outcome *outcome = run_measured(python, "@known.py", "EVPROF_EVENTS=call,c_call");
	double measured = measured_ns(tool("dump", outcome->trace)) / 1e9;

	expect(outcome, measured > 0.005, "it takes some 15 to 20 ms, %f s", measured);
	for (int calibrated = 0; calibrated < 2; calibrated++) {
		json_t *report = report_of(outcome->trace, calibrated);
		json_t *info = expect_trace(outcome, 1);
		double all = (double)json_integer_value(json_object_get(info, "duration_ns")) / 1e9;

		expect(outcome, number_of(report, "tottime") < all - measured, "%f s of functions in %f s without %f s",
		       number_of(report, "tottime"), all, measured);
		json_decref(info);
		json_decref(report);
	}
}

SCENARIO(calibrate, agrees_with_a_stopwatch, SUPPORTED)
{
	expect_agreement(python, "EVPROF_EVENTS=call,c_call");
}

SCENARIO(calibrate, agrees_with_a_stopwatch_where_memory_is_recorded, SUPPORTED)
{
	expect_agreement(python, "EVPROF_EVENTS=call,c_call,mem");
}

/* Passes of the measurement that differ by more than this say nothing of differences as small as a call of a class. */
#define UNSTEADY 0.15

/* The first of the numbers after a word of the costs; -1: the word is not there. */
static double cost_of(const struct outcome *outcome, const char *word)
{
	const char *costs = strstr(outcome->err, "calibration: "), *at = costs ? strstr(costs, word) : NULL;

	return at ? strtod(at + strlen(word), NULL) : -1;
}

/*
 * What costs more far from the beginning of a code is another thing in each version: integers that are not at hand, or
 * a walk over the table of lines.
 */
SCENARIO(calibrate, knows_what_far_events_cost, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"-c", "pass"}, .env = {"EVPROF_CALIBRATE=1", "EVPROF_LOG=debug"});
	double small = python->minor < 12 ? -1 : python->minor < 15 ? 256 : 1024;

	expect(outcome, cost_of(outcome, " spread ") >= 0, "the measurement says how well its passes agree");
	if (cost_of(outcome, " spread ") > UNSTEADY)
		cr_skip_test("the machine's own speed changed while the costs were measured");
	expect(outcome, cost_of(outcome, " call ") > 0, "costs");
	expect(outcome, cost_of(outcome, " far ") == small, "%f bytes are near, not %f", small,
	       cost_of(outcome, " far "));
	expect(outcome, python->minor == 10 ? cost_of(outcome, " walk ") > 0 : cost_of(outcome, " walk ") == -1,
	       "a walk");
	if (python->minor >= 12)
		expect(outcome, cost_of(outcome, " unwind ") > 0, "exceptions that leave a function cost more");
	expect(outcome, python->minor >= 12 ? cost_of(outcome, " other ") > 0 : cost_of(outcome, " other ") == -1,
	       "calls of classes cost something from 3.12 on");
}

SCENARIO(calibrate, says_how_to_measure, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", "pass"});
	struct outcome *report = tool("report", "--calibrate", outcome->trace);

	(void)python;
	expect(report, report->status == 2 && strstr(report->err, "EVPROF_CALIBRATE=1"), "one line says what to do");
	expect(report, report->out_bytes == 0, "and nothing is printed");
}
