/*
 * test_budget.c - EVPROF_BUDGET: functions that are not thinned are exact, the calls of the others are estimates, and
 * every output says so. The oracle is the program, which counts its own calls.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "compile.h"
#include "harness.h"
#include "packages.h"
#include "process.h"

#define TIMEOUT_S 300
#define SECONDS "1.0"

static const char *const functions[] = {"tiny",
					"other",
					"long_one",
					"raises",
					"fib",
					"long_loop",
					"<built-in method builtins.abs>",
					"guarded",
					"deep",
					"__getitem__",
					"small",
					"steps_of_a_task",
					"parent",
					"passed",
					"some_time",
					"instructions",
					"much_time",
					"made"};

static const json_t *row_of(const json_t *report, const char *function)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "functions"), i, row)
	{
		const char *file = json_string_value(json_object_get(row, "file"));

		if (!strcmp(json_string_value(json_object_get(row, "function")), function) &&
		    (strstr(file, "budget.py") || !strcmp(file, "~")))
			return row;
	}
	return NULL;
}

/* What all processes of the program counted; C functions by their own names. */
static double counted(const struct outcome *outcome, const char *function)
{
	double sum = 0;

	for (const char *line = outcome->out; line && *line; line = strchr(line, '\n') + 1) {
		json_t *counts = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);

		expect(outcome, counts, "a line of JSON");
		sum += json_number_value(json_object_get(counts, function));
		json_decref(counts);
		if (!strchr(line, '\n'))
			break;
	}
	return sum;
}

/*
 * An interval of 95 % is missed now and then: six times its width, and a quarter of the number, are not. Without the
 * estimate the number is a small part of the true one.
 */
static bool is_near(double calls, double truth, const json_t *error)
{
	return !json_is_number(error) || fabs(calls - truth) <= 6 * json_number_value(error) + truth / 4;
}

static void expect_number(const struct outcome *outcome, const json_t *report, const char *function)
{
	const json_t *row = row_of(report, function);
	double calls = json_number_value(json_object_get(row, "ncalls")), truth = counted(outcome, function);
	const json_t *error = json_object_get(row, "ncalls_error");

	if (!row && (truth == 0 || (*function == '<' && process_calls_only())))
		return;
	expect(outcome, row, "%s is in the report", function);
	if (!json_is_true(json_object_get(row, "estimated")))
		expect(outcome, calls == truth, "%s was called %.0f times, reported are %.0f", function, truth, calls);
	else
		expect(outcome, is_near(calls, truth, error), "%s was called %.0f times, estimated are %.0f +- %.0f",
		       function, truth, calls, json_number_value(error));
}

static json_t *expect_numbers(const struct outcome *outcome)
{
	struct outcome *reported;
	json_t *report;

	expect(outcome, outcome->status == 0 && outcome->traces == 1, "a trace");
	reported = tool("report", "--json", outcome->trace);
	report = json_loads(reported->out, 0, NULL);
	expect(reported, report, "a report");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		expect_number(outcome, report, functions[i]);
	expect(outcome, !json_is_true(json_object_get(row_of(report, "long_one"), "estimated")),
	       "the long function is exact");
	expect(outcome, json_integer_value(json_object_get(report, "lost")) == 0, "nothing is lost");
	return report;
}

/* budget: the option. more: a variable, or NULL. */
static struct outcome *run_within(const struct python *python, const char *budget, const char *kind, const char *more)
{
	return run(.python = python, .how = JOB_RUN, .options = {budget}, .timeout_s = TIMEOUT_S,
		   .env = {text("PYTHONPATH=%s", program_path("../../../tools/python")), more},
		   .args = {"@budget.py", kind, SECONDS});
}

static struct outcome *run_kind_with(const struct python *python, const char *kind, const char *more)
{
	return run_within(python, "--budget=5%", kind, more);
}

static struct outcome *run_kind(const struct python *python, const char *kind)
{
	return run_kind_with(python, kind, NULL);
}

static void expect_thinned(const struct outcome *outcome, const json_t *report, const char *function)
{
	expect(outcome, json_is_true(json_object_get(row_of(report, function), "estimated")), "%s is thinned",
	       function);
}

/* Also where no burst has recorded it. */
static bool is_thinned(const json_t *report, const char *function)
{
	const json_t *row = row_of(report, function);

	return json_is_true(json_object_get(row, "estimated")) || json_is_true(json_object_get(row, "at_least"));
}

static void expect_refused(const struct outcome *outcome)
{
	char exact[64];
	struct outcome *check;

	snprintf(exact, sizeof(exact), "budget:long_one=%.0f", counted(outcome, "long_one"));
	check = tool("check", "--max-calls", exact, outcome->trace);
	expect(check, check->status == 0, "an exact number is decided");
	check = tool("check", "--max-calls", "budget:tiny=1000000000", outcome->trace);
	expect(check, check->status != 0 && strstr(check->out, "an estimate"), "an estimate decides nothing");
	check = tool("check", "--max-calls", "budget:tiny=1", outcome->trace);
	expect(check, strstr(check->out, "FAILED"), "more was recorded than is allowed");
}

static double time_of(const json_t *event)
{
	return json_number_value(json_object_get(event, "ts"));
}

/* Of "C functions that tiny calls" tiny() itself is recorded. */
static bool names_tiny(const json_t *event)
{
	const char *names = json_string_value(json_object_get(json_object_get(event, "args"), "not recorded")),
		   *at = names;

	while ((at = strstr(at, "tiny"))) {
		if (at < names + strlen("that ") || strncmp(at - strlen("that "), "that ", strlen("that ")) != 0)
			return true;
		at++;
	}
	return false;
}

struct begin {
	double time;
	json_int_t thread;
};

/* Sets *begins, which is the caller's, to the calls of tiny() in Chrome's trace, and returns how many there are. */
static size_t find_calls(const json_t *events, struct begin **begins)
{
	const json_t *event;
	size_t count = 0, i;

	*begins = malloc(json_array_size(events) * sizeof(**begins) + 1);
	cr_assert(*begins, "no memory");
	json_array_foreach(events, i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "ph")), "B") ||
		    strcmp(json_string_value(json_object_get(event, "name")), "tiny"))
			continue;
		(*begins)[count].thread = json_integer_value(json_object_get(event, "tid"));
		(*begins)[count++].time = time_of(event);
	}
	return count;
}

/* No call of tiny() lies in a stretch that says it is not recorded. */
static void expect_stretch(const struct outcome *outcome, const json_t *begin, const json_t *end,
			   const struct begin *calls, size_t count)
{
	json_int_t thread = json_integer_value(json_object_get(end, "tid"));
	double from = time_of(begin), to = time_of(end);

	for (size_t i = 0; i < count; i++)
		if (calls[i].thread == thread && calls[i].time >= from && calls[i].time <= to)
			expect(outcome, false, "tiny() is not recorded at %f us", calls[i].time);
}

static void expect_stretches(const struct outcome *outcome, const char *path)
{
	json_t *chrome = json_load_file(path, 0, NULL);
	const json_t *events = json_object_get(chrome, "traceEvents"), *event, *begin = NULL;
	size_t stretches = 0, count, i;
	struct begin *calls;

	count = find_calls(events, &calls);
	json_array_foreach(events, i, event)
	{
		const char *category = json_string_value(json_object_get(event, "cat"));
		const char *phase = json_string_value(json_object_get(event, "ph"));

		if (!category || strcmp(category, "thinned"))
			continue;
		if (*phase == 'b') {
			begin = event;
			stretches += names_tiny(begin);
			continue;
		}
		expect(outcome, begin && time_of(begin) < time_of(event), "a stretch begins before it ends");
		if (names_tiny(begin))
			expect_stretch(outcome, begin, event, calls, count);
	}
	expect(outcome, count > 0 && stretches > 0, "there is a stretch without tiny()");
	free(calls);
	json_decref(chrome);
}

/* The timelines show where not all is recorded; what has no room for it says so on stderr. */
static void expect_outputs(const struct outcome *outcome)
{
	static const struct {
		const char *format, *in_file, *said;
	} formats[] = {{"csv", NULL, "short calls that were not recorded are missing"},
		       {"chrome", "not all calls are recorded", "short calls"},
		       {"perfetto", "not all calls are recorded", "short calls"},
		       {"firefox", "not all calls are recorded", "short calls"},
		       {"pstats", NULL, "are estimates"},
		       {"folded", NULL, "short calls that were not recorded are missing"},
		       {"html", "\"budget\":5,", ""}};
	struct outcome *table = tool("report", outcome->trace), *exported;

	expect(table, table->status == 0 && strstr(table->out, "are estimates") && strchr(table->out, '~'),
	       "the table says what is estimated");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const char *path = text("%s/exported.%s", outcome->directory, formats[i].format);
		char *bytes;
		size_t size;

		exported = tool("export", "--format", formats[i].format, "-o", path, outcome->trace);
		expect(exported, exported->status == 0, "%s", formats[i].format);
		expect(exported, strstr(exported->err, formats[i].said), "%s says what it lacks", formats[i].format);
		bytes = file_read(path, &size);
		expect(exported,
		       !formats[i].in_file || memmem(bytes, size, formats[i].in_file, strlen(formats[i].in_file)),
		       "%s shows it", formats[i].format);
		if (!strcmp(formats[i].format, "chrome"))
			expect_stretches(exported, path);
	}
	exported = tool("report", "--format", "csv", outcome->trace);
	expect(exported, strstr(exported->err, "are estimates"), "so does the table as csv");
	exported = tool("annotate", outcome->trace, "budget.py");
	expect(exported, strstr(exported->err, "short calls"), "so do sources");
	exported = tool("tree", outcome->trace);
	expect(exported, strstr(exported->err, "short calls"), "so does the tree");
	exported = tool("info", outcome->trace);
	expect(exported, strstr(exported->out, "within a budget of 5%"), "info");
}

static bool can_thin(const struct python *python)
{
	return python->minor >= 9 && !python_is_free_threaded(python);
}

/*
 * Runs the program, whose numbers are right. thinned: whether tiny() must be. more: a variable, or NULL. NULL: this
 * Python has no budget.
 */
static struct outcome *run_checked_with(const struct python *python, const char *kind, bool thinned, const char *more)
{
	struct outcome *outcome = can_thin(python) ? run_kind_with(python, kind, more) : NULL;
	json_t *report;

	if (!outcome)
		return NULL;
	report = expect_numbers(outcome);
	if (thinned)
		expect_thinned(outcome, report, "tiny");
	json_decref(report);
	return outcome;
}

static struct outcome *run_checked(const struct python *python, const char *kind, bool thinned)
{
	return run_checked_with(python, kind, thinned, NULL);
}

/* The number after some words of what the program says on stderr; 0: it does not. */
static double number_after(const struct outcome *outcome, const char *words)
{
	const char *at = strstr(outcome->err, words);

	return at ? strtod(at + strlen(words), NULL) : 0;
}

/* What the closing line says is in the trace: others than `evprof run` have no such line. */
static void expect_account_in_info(const struct outcome *outcome, double percent)
{
	struct outcome *shown = tool("info", "--json", outcome->trace);
	json_t *info = json_loads(shown->out, 0, NULL),
	       *process = json_array_get(json_object_get(info, "processes"), 0);
	double found = json_number_value(json_object_get(process, "recording_percent"));
	double longest_us = json_number_value(json_object_get(process, "longest_left_out_us"));

	expect(shown, fabs(found - percent) <= 0.051, "%.3f %%, in the closing line %.1f", found, percent);
	expect(shown, json_number_value(json_object_get(process, "recording_cpu_ms")) > 0, "its CPU time");
	expect(shown, longest_us > 0 && longest_us < 100, "functions of up to %.3f us are left out", longest_us);
	json_decref(info);
	shown = tool("info", outcome->trace);
	expect(shown,
	       strstr(shown->out, text("within a budget of 5%%: recording cost %.1f%%; left out were ", percent)),
	       "the same in the text");
	shown = run_with_package(python_any(),
				 "import evprof, sys; budget = evprof.load(sys.argv[1]).processes[0].budget\n"
				 "print('%g %.6g %.6g' % (budget.percent, budget.recording_percent, "
				 "budget.longest_left_out_us))",
				 outcome->trace, NULL);
	expect(shown, strcmp(shown->out, text("5 %.6g %.6g\n", found, longest_us)) == 0, "and in the package");
}

/* The machine may be busy; but an account that lacks something has less than a hundredth, or more than all. */
static void expect_account(const struct outcome *outcome)
{
	double share = number_after(outcome, "Python's end, ");

	expect(outcome, share > 1 && share < 100, "recording cost %.1f %%", share);
	expect_account_in_info(outcome, share);
}

/*
 * The closing line has the number of the table. Where events cost much, as with sanitizers, the first burst may be due
 * later than the program ends: then that is 0.
 */
static void expect_estimates_in_closing_line(const struct outcome *outcome)
{
	struct outcome *table = tool("report", outcome->trace);
	const char *said = strstr(table->out, "calls and times of ");
	long estimates = said ? strtol(said + strlen("calls and times of "), NULL, 10) : -1;

	expect(table, estimates >= 0, "the table says how many are estimates");
	expect(outcome,
	       strstr(outcome->err, estimates ? text("; estimates of %ld of the functions; it cost ", estimates)
					      : "of the functions may be missing; it cost "),
	       "the closing line says so, of %ld", estimates);
}

SCENARIO(budget, leaves_out_what_is_called_most, 9)
{
	struct outcome *outcome = run_checked(python, "many", true);

	if (!outcome)
		return;
	expect_estimates_in_closing_line(outcome);
	expect(outcome, strstr(outcome->err, "(budget: 5%)"), "and what the budget was");
	expect_account(outcome);
	expect_refused(outcome);
	expect_outputs(outcome);
}
ALSO_CALLS_ONLY(budget, leaves_out_what_is_called_most)

/*
 * An estimate of a time holds nothing of what the bursts cost: with that it would be a multiple of what the program
 * measures, which is a little more than the time in the function. On a busy machine bursts may have waited for a
 * processor, or not: it is between the CPU time and the time.
 */
SCENARIO(budget, estimates_times, 9)
{
	struct outcome *outcome = run_checked(python, "timed", false);
	struct outcome *report = outcome ? tool("report", "--json", outcome->trace) : NULL;
	json_t *json = report ? json_loads(report->out, 0, NULL) : NULL;
	double seconds, error, least, most;
	const json_t *row;

	if (!json)
		return;
	expect_thinned(outcome, json, "parent");
	row = row_of(json, "parent");
	seconds = json_number_value(json_object_get(row, "cumtime"));
	error = json_number_value(json_object_get(row, "cumtime_ns_error")) / 1e9;
	least = 0.5 * counted(outcome, "cpu_seconds");
	most = 1.25 * counted(outcome, "seconds");
	if (error > 0) /* else there was one burst */
		expect(outcome, seconds > least - 2 * error && seconds < most + 2 * error,
		       "%.3f s +- %.3f of parent(), not %.3f to %.3f s", seconds, error, least, most);
	json_decref(json);
}
ALSO_CALLS_ONLY(budget, estimates_times)

/* Those whose type begins so. */
static double recorded_exceptions(const struct outcome *outcome, const char *type)
{
	const struct outcome *dump = tool("dump", outcome->trace);
	const char *line = text("\texception\t%s", type);
	double recorded = 0;

	for (const char *at = dump->out; (at = strstr(at, line)); at++)
		recorded++;
	return recorded;
}

/* Of this type are all but a few. Returns whether some were left out. */
static bool expect_exceptions(const struct outcome *outcome, const char *type, double truth)
{
	json_t *report = expect_numbers(outcome);
	const json_t *exceptions = json_object_get(report, "exceptions"),
		     *error = json_object_get(exceptions, "raised_error");
	double raised = json_number_value(json_object_get(exceptions, "raised")),
	       recorded = recorded_exceptions(outcome, exceptions ? "" : type);

	if (!exceptions)
		expect(outcome, recorded == truth, "%.0f exceptions, not %.0f", recorded, truth);
	else
		expect(outcome, recorded == json_number_value(json_object_get(exceptions, "recorded")),
		       "those of all types");
	expect(outcome, is_near(raised, truth, error), "%.0f exceptions, estimated are %.0f +- %.0f", truth, raised,
	       json_number_value(error));
	json_decref(report);
	return exceptions;
}

/*
 * Exceptions are exact where the budget has room for them, also in thinned functions, and each is one, however many
 * frames it passes.
 */
SCENARIO(budget, counts_exceptions_of_thinned_functions, 12)
{
	struct outcome *outcome = can_thin(python) ? run_within(python, "--budget=20%", "many", NULL) : NULL;
	bool left_out;

	if (!outcome)
		return;
	left_out = expect_exceptions(outcome, "__main__.Raised", counted(outcome, "raises"));
	expect(outcome, !left_out || built_with_asan(), "all are recorded");
	/* A build with invariants may cost more than that. */
	outcome = run_within(python, "--budget=100%", "passing", NULL);
	expect_exceptions(outcome, "__main__.Passing", counted(outcome, "thrown"));
}

/* Else they are estimated, and all that shows what is missing says so. The ends of calls that they unwind are there. */
SCENARIO(budget, leaves_out_exceptions_if_it_must, 12)
{
	struct outcome *outcome = can_thin(python) ? run_within(python, "--budget=1%", "passing", NULL) : NULL, *shown;
	static const char said[] = "\"not recorded\":\"exceptions";
	const char *path, *bytes;
	size_t size;

	if (!outcome)
		return;
	path = text("%s/exported.json", outcome->directory);
	expect(outcome, expect_exceptions(outcome, "__main__.Passing", counted(outcome, "thrown")),
	       "some are left out");
	expect(outcome, strstr(outcome->err, "; exceptions were left out in "), "the closing line says so");
	shown = tool("report", outcome->trace);
	expect(shown, strstr(shown->out, " exceptions "), "the table");
	shown = tool("info", outcome->trace);
	expect(shown, strstr(shown->out, "; exceptions were left out in "), "info");
	shown = tool("export", "--format", "chrome", "-o", path, outcome->trace);
	bytes = file_read(path, &size);
	expect(shown, bytes && memmem(bytes, size, said, strlen(said)), "the timeline");
	shown = tool("cut", "--from", text("%.3fs", 0.6 * outcome->seconds), "--to",
		     text("%.3fs", 0.6 * outcome->seconds + 0.02), "-o", path_in(outcome, "part.evp"), outcome->trace);
	expect(shown, shown->status == 0, "a part");
	shown = tool("dump", path_in(outcome, "part.evp"));
	expect(shown, strstr(shown->out, "\texceptions"), "a cut");
}

/* A stretch that begins while functions are thinned: the cut knows which, by their names. */
SCENARIO(budget, holds_in_a_cut, 9)
{
	struct outcome *outcome = can_thin(python) ? run_kind(python, "loops") : NULL, *cut, *dump;

	if (!outcome)
		return;
	/* The program has begun by then, and goes on, however busy the machine is. */
	cut = tool("cut", "--from", text("%.2fs", 0.6 * outcome->seconds), "--to",
		   text("%.2fs", 0.6 * outcome->seconds + 0.02), "-o", path_in(outcome, "part.evp"), outcome->trace);
	expect(cut, cut->status == 0, "a part");
	dump = tool("dump", path_in(outcome, "part.evp"));
	expect(dump, strstr(dump->out, "\tthin\t") || strstr(dump->out, "\tthin_end\t"), "what is thinned");
	expect(dump, strstr(dump->out, "\tlong_loop\t") && !strstr(dump->out, "\t?\t"), "its name");
}

/* Each call of long_one() is exact, and calls tiny() 2,000 times. */
static void expect_part(const char *what, const struct outcome *shown)
{
	json_t *report = json_loads(shown->out, 0, NULL);
	const json_t *row = row_of(report, "tiny");
	double truth = 2000 * json_number_value(json_object_get(row_of(report, "long_one"), "ncalls")),
	       calls = json_number_value(json_object_get(row, "ncalls"));
	const json_t *error = json_object_get(row, "ncalls_error");

	expect(shown, truth > 0 && json_is_true(json_object_get(row, "estimated")), "%s has estimates", what);
	expect(shown, is_near(calls, truth, error), "%s has %.0f calls, estimated are %.0f +- %.0f", what, truth, calls,
	       json_number_value(error));
	json_decref(report);
}

/* Of a stretch at its edge, a part of a trace has a part of the calls that are missing, whoever makes the part. */
SCENARIO(budget, holds_in_a_part, 9)
{
	struct outcome *outcome = can_thin(python) ? run_kind(python, "many") : NULL, *cut;
	const char *from, *to;

	if (!outcome)
		return;
	from = text("%.3fs", 0.5 * outcome->seconds);
	to = text("%.3fs", 0.9 * outcome->seconds);
	expect_part("a time range", tool("report", "--json", "--from", from, "--to", to, outcome->trace));
	to = text("%.3fs", 0.6 * outcome->seconds);
	expect_part("a short one", tool("report", "--json", "--from", from, "--to", to, outcome->trace));
	cut = tool("export", "--format", "chrome", "--from", from, "--to", to, "-o", "-", outcome->trace);
	expect(cut, strstr(cut->out, "not all calls are recorded"), "a timeline");
	cut = tool("cut", "--from", from, "-o", path_in(outcome, "part.evp"), outcome->trace);
	expect(cut, cut->status == 0, "a part");
	expect_part("a cut", tool("report", "--json", path_in(outcome, "part.evp")));
	outcome = run_kind_with(python, "many", "EVPROF_KEEP=400ms");
	expect_part("the last stretch", tool("report", "--json", outcome->trace));
}

/* What comes after a burst is no part of it, also if nothing is thinned any more. Until 3.11 there are few bursts. */
SCENARIO(budget, holds_after_a_quiet_phase, 9)
{
	struct outcome *outcome = can_thin(python) ? run_kind(python, "quiet") : NULL;
	json_t *report;

	if (!outcome)
		return;
	report = expect_numbers(outcome);
	expect_thinned(outcome, report, "tiny");
	expect(outcome,
	       python->minor < 12 ||
		   json_number_value(json_object_get(row_of(report, "tiny"), "ncalls")) > counted(outcome, "tiny") / 4,
	       "the estimate is not of the quiet phase");
	json_decref(report);
}

/* The loop is exact; only the C function that it calls is not. */
SCENARIO(budget, leaves_out_c_functions_below_a_long_caller, 9)
{
	struct outcome *outcome = can_thin(python) ? run_kind(python, "loops") : NULL;
	json_t *report;

	if (!outcome)
		return;
	report = expect_numbers(outcome);
	expect_thinned(outcome, report, "<built-in method builtins.abs>");
	expect(outcome, !json_is_true(json_object_get(row_of(report, "long_loop"), "estimated")), "the loop is exact");
	json_decref(report);
}

/* sys.monitoring reports the call of a class, which costs as much as an event, though it is none. */
SCENARIO(budget, leaves_out_calls_that_are_not_recorded, 12)
{
	struct outcome *outcome = can_thin(python) ? run_kind(python, "classes") : NULL, *dump;
	json_t *report;
	const json_t *row;

	if (!outcome)
		return;
	report = json_loads(tool("report", "--json", outcome->trace)->out, 0, NULL);
	row = row_of(report, "classes");
	dump = tool("dump", outcome->trace);
	expect(dump,
	       strstr(dump->out, text("budget.py:%d\tC calls", (int)json_integer_value(json_object_get(row, "line")))),
	       "they are left out");
	expect(outcome, !json_is_true(json_object_get(row, "estimated")), "their caller is exact");
	expect(outcome, json_number_value(json_object_get(row, "ncalls")) == counted(outcome, "long_loop"),
	       "its calls");
	json_decref(report);
}

static double loop_over_c(const struct python *python, enum job_how how, struct outcome **outcome)
{
	*outcome = run(.python = python, .how = how, .options = {how == JOB_RUN ? "--budget=5%" : NULL},
		       .timeout_s = TIMEOUT_S, .args = {"@budget.py", "computes", SECONDS});
	return counted(*outcome, "loop_over_c");
}

/*
 * A loop that calls nothing has no event, but in 3.10 and 3.11 its instructions are slower while a profile function is
 * set: in 3.11 they take about twice as long.
 */
SCENARIO(budget, slows_no_loop, 9)
{
	struct outcome *bare, *within;
	double truth, ratio;

	if (!can_thin(python))
		return;
	truth = loop_over_c(python, JOB_BARE, &bare);
	ratio = loop_over_c(python, JOB_RUN, &within);
	json_decref(expect_numbers(within));
	expect(within, python->minor >= 12 || (truth > 0 && ratio < 1.4 * truth),
	       "the loop takes %.2f times what the C function does, bare %.2f", ratio, truth);
}
ALSO_CALLS_ONLY(budget, slows_no_loop)

/* Functions that are compiled anew are one: it is thinned once, and new ones are thinned from their first call on. */
SCENARIO(budget, leaves_out_code_that_is_compiled_anew, 9)
{
	struct outcome *outcome = run_checked(python, "compiled_anew", false), *dump;
	json_t *report;

	if (!outcome)
		return;
	report = json_loads(tool("report", "--json", outcome->trace)->out, 0, NULL);
	expect_thinned(outcome, report, "made");
	json_decref(report);
	dump = tool("dump", outcome->trace);
	for (char *line = strtok(dump->out, "\n"); line; line = strtok(NULL, "\n")) {
		const char *made = strstr(line, "\tmade\t");

		expect(dump, !made || !strstr(line, "\tthin") || !strstr(made + 1, "\tmade\t"),
		       "made() is thinned once");
	}
}
ALSO_CALLS_ONLY(budget, leaves_out_code_that_is_compiled_anew)

/* How soon the second phase is thinned depends on how busy the machine is; its numbers are right in either case. */
SCENARIO(budget, follows_the_program, 9)
{
	run_checked(python, "phases", false);
}
ALSO_CALLS_ONLY(budget, follows_the_program)

SCENARIO(budget, counts_in_all_threads, 9)
{
	run_checked(python, "threads", true);
}
ALSO_CALLS_ONLY(budget, counts_in_all_threads)

/* Their events count, too, though their rings are gone. */
SCENARIO(budget, counts_in_short_threads, 9)
{
	struct outcome *outcome = run_checked_with(python, "short_threads", true, "EVPROF_LOG=debug");

	for (const char *line = outcome ? outcome->err : ""; (line = strstr(line, "recording adds ")); line++)
		expect(outcome, strtod(line + strlen("recording adds "), NULL) < 10000, "%.60s", line);
}

/* With EVPROF_LOG=debug each step says what recording has cost, and the CPU time of its process. */
static void expect_no_more_than_there_was(const struct outcome *outcome)
{
	static const char in_all[] = "in all ", of[] = " ms of ";
	char *end;

	expect(outcome, strstr(outcome->err, in_all), "steps");
	for (const char *at = outcome->err; (at = strstr(at, in_all));) {
		double cost = strtod(at + strlen(in_all), &end), all;

		at = end;
		all = strncmp(end, of, strlen(of)) == 0 ? strtod(end + strlen(of), NULL) : 0;
		expect(outcome, cost < all, "recording cost %.1f ms of %.1f", cost, all);
	}
}

/* The child's account is its own: what the calls of thinned functions have cost its parent is not in it. */
SCENARIO(budget, begins_anew_after_a_fork, 9)
{
	struct outcome *outcome = run_checked_with(python, "fork", true, "EVPROF_LOG=debug");

	if (outcome)
		expect_no_more_than_there_was(outcome);
}
ALSO_CALLS_ONLY(budget, begins_anew_after_a_fork)

/* More functions than one event names; a cut names them all. */
#define SPREAD 1500

SCENARIO(budget, leaves_out_many_functions, 9)
{
	struct outcome *outcome = can_thin(python) ? run_kind(python, "spread") : NULL, *cut;
	json_t *report, *part;
	int estimates = 0, in_the_part = 0;

	if (!outcome)
		return;
	report = expect_numbers(outcome);
	cut = tool("cut", "--from", text("%.2fs", 0.6 * outcome->seconds), "-o", path_in(outcome, "part.evp"),
		   outcome->trace);
	expect(cut, cut->status == 0, "a part");
	cut = tool("report", "--json", path_in(outcome, "part.evp"));
	part = json_loads(cut->out, 0, NULL);
	for (int i = 0; i < SPREAD; i++) {
		const char *name = text("spread_%d", i);

		expect_number(outcome, report, name);
		estimates += json_is_true(json_object_get(row_of(report, name), "estimated"));
		in_the_part += json_is_true(json_object_get(row_of(part, name), "estimated"));
	}
	expect(outcome, estimates > SPREAD * 3 / 4, "%d of the functions are thinned", estimates);
	expect(cut, in_the_part > SPREAD / 2, "%d of them in the part", in_the_part);
	json_decref(report);
	json_decref(part);
}
ALSO_CALLS_ONLY(budget, leaves_out_many_functions)

/*
 * No function of this program is short. A long one is left out only because nothing else can be. Within 0.2 % calls of
 * 20 us may fit, where only calls of Python functions are recorded.
 */
SCENARIO(budget, leaves_out_long_functions_if_it_must, 9)
{
	struct outcome *outcome = can_thin(python)
				      ? run(.python = python, .how = JOB_RUN, .options = {"--budget=0.1%"},
					    .timeout_s = TIMEOUT_S, .args = {"@budget.py", "much_time", "2.0"})
				      : NULL;
	json_t *report;

	if (!outcome)
		return;
	report = expect_numbers(outcome);
	expect(outcome, is_thinned(report, "some_time"), "some_time is thinned, though there may be no burst");
	expect(outcome, !is_thinned(report, "much_time"), "the longest is exact");
	expect(outcome, strstr(outcome->err, "; left out were functions of up to "), "the closing line says how long");
	json_decref(report);
}
ALSO_CALLS_ONLY(budget, leaves_out_long_functions_if_it_must)

/* A wait for a processor, of which the program gets a quarter, is not time of the function that waits. */
SCENARIO_SOME(budget, knows_short_functions_on_a_busy_machine, 9)
{
	struct outcome *outcome = can_thin(python)
				      ? run(.python = python, .how = JOB_RUN, .options = {"--budget=0.2%"},
					    .timeout_s = TIMEOUT_S, .args = {"@budget.py", "shares_processors", "1.0"})
				      : NULL;
	double longest, truth;
	json_t *report;

	if (!outcome)
		return;
	report = expect_numbers(outcome);
	expect(outcome, is_thinned(report, "as_long_as_some_time"), "it is thinned, though there may be no burst");
	longest = number_after(outcome, "left out were functions of up to ");
	truth = counted(outcome, "shared_us");
	expect(outcome, longest < 2 * truth, "functions of up to %.1f us, by the program's clock %.1f", longest, truth);
	json_decref(report);
}

/* More functions than can be thinned, and nothing else to do. */
SCENARIO(budget, charges_no_more_than_there_was, 9)
{
	struct outcome *outcome =
	    can_thin(python) ? run(.python = python, .how = JOB_RUN, .options = {"--budget=2%"}, .timeout_s = TIMEOUT_S,
				   .env = {"EVPROF_LOG=debug"}, .args = {"@budget.py", "wide", "0.5"})
			     : NULL;

	if (outcome)
		expect_no_more_than_there_was(outcome);
}

/* Each thread writes what is thinned: that is no event of 600 functions. */
SCENARIO(budget, charges_no_names_as_events, 12)
{
	struct outcome *outcome = can_thin(python) ? run_within(python, "--budget=2%", "wide_threads", NULL) : NULL;
	double share = outcome ? number_after(outcome, "Python's end, ") : 0;

	if (outcome && !built_with_asan()) /* with a sanitizer all costs more */
		expect(outcome, share > 0 && share < 15, "recording cost %.1f %%", share);
}

/* Calls while recording is stopped are neither recorded nor estimated. */
SCENARIO(budget, is_kept_after_a_stop, 9)
{
	run_checked(python, "stop", true);
}
ALSO_CALLS_ONLY(budget, is_kept_after_a_stop)

/* Where recording begins again, nothing is thinned: tiny() is recorded until a line says that it is not. */
SCENARIO(budget, records_all_after_a_start, 9)
{
	struct outcome *outcome, *dump;
	unsigned starts = 0, recorded = 0;

	python_needs(python, "ctypes");
	outcome = can_thin(python) ? run_kind(python, "stops") : NULL;
	if (!outcome)
		return;
	json_decref(expect_numbers(outcome));
	dump = tool("dump", outcome->trace);
	for (const char *at = dump->out; (at = strstr(at, "\tpause\tstart")); starts++) {
		const char *call = strstr(++at, "\tcall\ttiny\t"), *thin = strstr(at, "\tthin\t"),
			   *pause = strstr(at, "\tpause\tstop");

		recorded += call && (!thin || call < thin) && (!pause || call < pause);
	}
	expect(dump, starts && recorded > starts / 2, "it is recorded after %u of %u starts", recorded, starts);
}
ALSO_CALLS_ONLY(budget, records_all_after_a_start)

/* A thread that begins, and raises an audit event, switches nothing on that was off. */
SCENARIO(budget, leaves_out_the_same_in_new_threads, 12)
{
	run_checked(python, "audits", true);
}

/* While lines are recorded nothing is thinned, nor said to be; afterwards it is again. */
SCENARIO(budget, is_kept_after_lines, 9)
{
	struct outcome *outcome;
	const char *path;
	json_t *report;

	if (!can_thin(python))
		return;
	outcome = run_kind_with(python, "lines", text("ORDERS=%s", build_path("evprof")));
	path = text("%s/exported.json", outcome->directory);
	report = expect_numbers(outcome);
	expect_thinned(outcome, report, "tiny");
	tool("export", "--format", "chrome", "-o", path, outcome->trace);
	expect_stretches(outcome, path);
	json_decref(report);
}

/* A program that ends Python and starts it again has its budget there, too. */
SCENARIO(budget, begins_again_with_python, 9)
{
	const char *lives = compile("lives.c", "lives.so", COMPILE_PLAIN);
	struct outcome *outcome;
	const char *second;
	json_t *info;
	long recorded;

	if (!can_thin(python))
		return;
	outcome = run(.python = python, .how = JOB_BARE, .args = {"@lives_budget.py", "2"}, .timeout_s = TIMEOUT_S,
		      .env = {text("LD_PRELOAD=%s %s", build_path("libevprof.so"), lives), "EVPROF_EVENTS=call,c_call",
			      "EVPROF_BUDGET=5%"});
	info = expect_trace(outcome, 1);
	second = strchr(outcome->out, '\n');
	recorded = (long)info_events(info, "call");
	expect(outcome, second && recorded < strtol(second, NULL, 10) / 2, "%ld calls are recorded", recorded);
	json_decref(info);
}

/* What the program's own tools see is in its assertions. more: a variable, or NULL. */
static void check_kind(const struct python *python, const char *kind, const char *more)
{
	struct outcome *outcome;
	json_t *report;

	if (!can_thin(python))
		return;
	outcome = run_kind_with(python, kind, more);
	report = expect_numbers(outcome);
	expect(outcome, json_is_true(json_object_get(report, "estimated")), "functions are thinned");
	json_decref(report);
}

SCENARIO_SOME(budget, with_a_profiler, 9)
{
	check_kind(python, "profiled", NULL);
}
ALSO_CALLS_ONLY(budget, with_a_profiler)

SCENARIO_SOME(budget, with_a_debugger, 9)
{
	check_kind(python, "traced", NULL);
}
ALSO_CALLS_ONLY(budget, with_a_debugger)

/* 3.11: subscripts of sequences written in Python are no calls to the interpreter's frame evaluator. */
SCENARIO_SOME(budget, counts_subscripts, 9)
{
	check_kind(python, "subscripts", NULL);
}
ALSO_CALLS_ONLY(budget, counts_subscripts)

/* Likewise, in a loop whose C functions are left out; what it calls takes long. */
SCENARIO(budget, counts_long_subscripts, 9)
{
	struct outcome *outcome = can_thin(python) ? run_within(python, "--budget=5%", "long_subscripts", NULL) : NULL;
	json_t *report;

	if (!outcome)
		return;
	report = expect_numbers(outcome);
	expect(outcome, !json_is_true(json_object_get(row_of(report, "__getitem__"), "estimated")),
	       "each call is recorded");
	json_decref(report);
}
ALSO_CALLS_ONLY(budget, counts_long_subscripts)

SCENARIO_SOME(budget, counts_what_throws, 9)
{
	check_kind(python, "throws", NULL);
}
ALSO_CALLS_ONLY(budget, counts_what_throws)

/* A coroutine that others await is thinned as other functions are, one that is a task where nothing else suffices. */
SCENARIO(budget, counts_coroutines, 9)
{
	struct outcome *outcome = run_checked(python, "tasks", false);
	struct outcome *report = outcome ? tool("report", "--json", outcome->trace) : NULL;
	json_t *json = report ? json_loads(report->out, 0, NULL) : NULL;

	if (json)
		expect_thinned(outcome, json, "small");
	json_decref(json);
}
ALSO_CALLS_ONLY(budget, counts_coroutines)

/* From 3.11 on, calls between Python functions take no room of the C stack. A budget leaves it so. */
SCENARIO_SOME(budget, lets_a_program_recurse, 9)
{
	check_kind(python, "deep", NULL);
}
ALSO_CALLS_ONLY(budget, lets_a_program_recurse)

SCENARIO_SOME(budget, counts_in_greenlets, 9)
{
	check_kind(python, "switched", package_variable(python, "greenlet"));
}
ALSO_CALLS_ONLY(budget, counts_in_greenlets)

/* torch.compile and debuggers set one, too. */
SCENARIO_SOME(budget, with_another_frame_evaluator, 9)
{
	if (python->minor < 12)
		check_kind(python, "evaluated",
			   text("EVALUATOR=%s", compile("evaluator.c", "evaluator.so", COMPILE_PLAIN)));
}
ALSO_CALLS_ONLY(budget, with_another_frame_evaluator)

/* Places in code of another interpreter cannot be switched on again from here. Nothing of it is left out. */
SCENARIO(budget, ends_with_a_second_interpreter, 12)
{
	struct outcome *outcome = run_checked(python, "interpreters", true);

	if (!outcome)
		return;
	expect(outcome, strstr(outcome->err, "EVPROF_BUDGET ends where a second interpreter begins"), "a line says so");
	expect(outcome, !strstr(outcome->err, "it cost "), "the closing line does not know what it cost");
}

/* One line says what is missing; everything is recorded. */
SCENARIO(budget, needs_local_events, SUPPORTED)
{
	struct outcome *outcome;
	json_t *report;

	if (can_thin(python))
		return;
	outcome = run(.python = python, .args = {"@budget.py", "many", "0.2"}, .env = {"EVPROF_BUDGET=5%"});
	report = expect_numbers(outcome);
	expect(outcome, strstr(outcome->err, "EVPROF_BUDGET needs ") && strstr(outcome->err, "EVPROF_EVENTS=sample"),
	       "a line says so");
	expect(outcome, !json_object_get(report, "estimated"), "nothing is an estimate");
	json_decref(report);
}

/* The timer's signal is not one that the program takes. One that waits for nothing else gets what it is sent. */
SCENARIO(budget, signals_that_are_taken, SUPPORTED)
{
	static const char *const ways[] = {"sigwait", "sigwaitinfo", "sigtimedwait", "signalfd"};

	python_needs(python, "ctypes");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct outcome *outcome = run(.python = python, .args = {"@takes_signals.py", ways[i]},
					      .env = {"EVPROF_BUDGET=5%", "EVPROF_SIGNAL=USR2"});

		expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "15\n23\n"), "%s: it takes its signals",
		       ways[i]);
		json_decref(expect_trace(outcome, 1));
	}
}

/* A program that handles SIGURG gets what it is sent: neither the timer's nor the collector's. */
SCENARIO(budget, signal_that_the_program_handles, SUPPORTED)
{
	static const char *const budgets[] = {NULL, "EVPROF_BUDGET=5%"};
	long calls[2];

	for (size_t i = 0; i < 2; i++) {
		struct outcome *outcome =
		    run(.python = python, .args = {"@handles_urgent.py", python->chrooted ? NULL : "%B/evprof"},
			.env = {budgets[i]});
		json_t *info = expect_trace(outcome, 1);

		expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "0 [23]\n"), "it gets its signal");
		expect(outcome, info_events(info, "pause") == 2 || python->chrooted, "it was stopped and started");
		calls[i] = info_events(info, "call");
		json_decref(info);
	}
	if (can_thin(python))
		cr_expect(calls[1] < calls[0] / 4, "the budget is not kept: %ld of %ld calls", calls[1], calls[0]);
}
