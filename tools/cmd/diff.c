/*
 * diff.c - evprof diff: calls, times and allocations of two traces by function, or their memory by site.
 *
 * analysis/function_diff.c matches the functions or sites, report/diff.c writes the result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "report/diff.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"
#include "util/terminal.h"

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV, FORMAT_MARKDOWN };

struct request {
	struct filter filter;
	struct report_diff diff;
	enum format format;
	enum memory_by by; /* of --memory; MEMORY_BY_SITE: not given */
	bool sampled;
	bool calls[2], c_calls[2]; /* were recorded */
	bool budget[2];
	bool begun_before[2]; /* its beginning has left the trace (EVPROF_KEEP) */
};

static const char help_text[] =
    "usage: evprof diff [options] A B\n"
    "\n"
    "Compares two traces function by function: the numbers of A, and their change in B. Functions are the same if "
    "file,\n"
    "line and qualified name are, else if file and name are, else if the file's base name and the name are. The "
    "tables\n"
    "list those that changed; --json and --csv list all.\n"
    "\n"
    "      --memory          compares memory by site instead: what each line had at the peak and has at the end, its\n"
    "                        allocations, and how many of them were temporary (evprof memory)\n"
    "      --by WHAT         with --memory: line (default), function, module, thread, task, library\n"
    "  -s, --sort KEY        by the change of: time (default), cumtime, calls, allocs, bytes; with --memory: peak\n"
    "                        (default; end, where a trace has no peak), end, allocs, bytes, temporary\n"
    "  -n, --limit N         the first N functions only\n"
    "      --all             list the functions that did not change, too\n"
    "      --threshold KEY=AMOUNT[,AMOUNT]\n"
    "                        a change of KEY counts if it is more than AMOUNT: 10%, 5ms, 100, 64K; of two, more than\n"
    "                        both. The default for time and cumtime is 10%,1ms, for the others 0\n"
    "      --fail-on KEY,... exit status 4 if KEY grew by more than its threshold in a function, or total-KEY in the\n"
    "                        sum of all functions\n"
    "      --json            for programs\n"
    "      --csv             for spreadsheets\n"
    "      --markdown        for the comment of a pull request\n"
    "\n";

static const char help_end[] =
    "\n"
    "--min-duration is not for diff.\n"
    "Exit status: 0; 4 if --fail-on found a regression; 1 if a trace is incomplete; 2 if one cannot be read, or "
    "cannot\n"
    "show that there is no regression; 3 if one is still being written.\n";

/* The index of the measure; DIFF_MEASURES after a message. what: "order" or the like. */
static size_t find_measure(const char *name, size_t length, const char *what)
{
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		if (strlen(diff_measures[i].sort) == length && memcmp(diff_measures[i].sort, name, length) == 0)
			return i;
	fprintf(stderr, "evprof diff: there is no %s \"%.*s\"; there are", what, (int)length, name);
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		fprintf(stderr, "%s %s", i ? "," : "", diff_measures[i].sort);
	fprintf(stderr, "\n");
	return DIFF_MEASURES;
}

static bool take_sort(void *request, const struct verb_option *option, const char *value)
{
	size_t measure = find_measure(value, strlen(value), "order");

	(void)option;
	if (measure == DIFF_MEASURES)
		return false;
	((struct request *)request)->diff.sort = &diff_measures[measure];
	return true;
}

/* Parses "10%", or an amount of the measure. */
static bool parse_one(struct diff_threshold *threshold, const struct diff_measure *measure, const char *text)
{
	const struct unit *units = measure->seconds ? units_seconds : measure->bytes ? units_bytes : units_none;
	static const struct unit per_mille_of_percent[] = {{"%", 1000}, {NULL, 0}};
	uint64_t value;

	if (parse_amount(text, &value, 9e18, per_mille_of_percent))
		threshold->percent = (double)value / 1000;
	else if (!parse_amount(text, &threshold->amount, 9e18, units))
		return cli_misused("diff", "--threshold %s wants a percentage or an amount such as %s, not \"%s\"",
				   measure->sort, measure->seconds ? "5ms" : "100", text);
	return true;
}

static bool take_threshold(void *request, const struct verb_option *option, const char *value)
{
	struct diff_rules *rules = &((struct request *)request)->diff.rules;
	size_t length = strcspn(value, "="), measure;
	struct diff_threshold threshold = {0};
	char *amounts, *rest, *one;
	bool fine = true;

	(void)option;
	if (!value[length])
		return cli_misused("diff", "--threshold wants KEY=AMOUNT, not \"%s\"", value);
	measure = find_measure(value, length, "key");
	amounts = rest = measure < DIFF_MEASURES ? strdup(value + length + 1) : NULL;
	while (fine && rest && (one = strsep(&rest, ",")) != NULL)
		fine = parse_one(&threshold, &diff_measures[measure], one);
	if (fine && amounts)
		rules->thresholds[measure] = threshold;
	free(amounts);
	return fine && amounts;
}

static bool take_fail_on(void *request, const struct verb_option *option, const char *value)
{
	struct diff_rules *rules = &((struct request *)request)->diff.rules;

	(void)option;
	for (;;) {
		size_t length = strcspn(value, ","), prefix = strncmp(value, "total-", 6) == 0 ? 6 : 0, measure;

		measure = find_measure(value + prefix, length - prefix, "key");
		if (measure == DIFF_MEASURES)
			return false;
		*(prefix ? &rules->fail_on_total : &rules->fail_on) |= 1u << measure;
		if (!value[length])
			return true;
		value += length + 1;
	}
}

static bool take_limit(void *request, const struct verb_option *option, const char *value)
{
	(void)option;
	return cli_number("diff", "--limit", value, 0, &((struct request *)request)->diff.limit);
}

/*
 * With --min-duration, allocations would count for the wrong function: a call is known to be long enough at its end
 * only.
 */
static bool refuse_min_duration(void *request, const struct verb_option *option, const char *value)
{
	(void)request;
	(void)option;
	(void)value;
	return cli_misused("diff", "--min-duration is not for diff");
}

static const char *const format_words[] = {
    [FORMAT_TABLE] = "", [FORMAT_JSON] = "json", [FORMAT_CSV] = "csv", [FORMAT_MARKDOWN] = "markdown", NULL};

static const struct verb_option options_known[] = {
    VERB_FLAG("memory", 0, request, diff.sites),
    VERB_WORD("by", 0, required_argument, request, by, memory_by_names),
    VERB_TAKE("sort", 's', required_argument, take_sort, 0),
    VERB_TAKE("limit", 'n', required_argument, take_limit, 0),
    VERB_FLAG("all", 0, request, diff.all),
    VERB_TAKE("threshold", 0, required_argument, take_threshold, 0),
    VERB_TAKE("fail-on", 0, required_argument, take_fail_on, 0),
    VERB_WORD("json", 0, no_argument, request, format, format_words),
    VERB_WORD("csv", 0, no_argument, request, format, format_words),
    VERB_WORD("markdown", 0, no_argument, request, format, format_words),
    VERB_FILTER_OPTIONS(refuse_min_duration),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"diff", options_known, {help_text, filter_help, help_end}};

/* --fail-on names a measure that a trace does not have. */
static void report_unknown(const struct report_diff *diff, unsigned measure)
{
	const char *path = diff->paths[report_diff_has(diff, measure, 0) ? 1 : 0], *sort = diff_measures[measure].sort;

	if (diff->sites)
		output_message("evprof diff: --fail-on %s compares nothing, as %s %s", sort, path,
			       measure == DIFF_PEAK ? "keeps only what is alive, and no peak"
						    : "has samples, which show no temporary allocations");
	else
		output_message("evprof diff: %s has no memory events, which --fail-on %s compares; record with "
			       "--events call,c_call,mem",
			       path, sort);
}

static int write_diff(const struct request *request, struct function_pairs *pairs)
{
	struct terminal terminal = terminal_find(STDOUT_FILENO);
	struct output output;
	int error;

	terminal.is &= request->format == FORMAT_TABLE || request->format == FORMAT_MARKDOWN;
	error = terminal_open(&terminal, &output);
	if (error)
		return error;
	if (request->format == FORMAT_JSON)
		report_diff_json(&output, &request->diff, pairs);
	else if (request->format == FORMAT_CSV)
		report_diff_csv(&output, &request->diff, pairs);
	else if (request->format == FORMAT_MARKDOWN)
		report_diff_markdown(&output, &request->diff, pairs);
	else
		report_diff_table(&output, &request->diff, pairs);
	return terminal_close(&output);
}

static int compare_totals(struct request *request)
{
	struct report_diff *diff = &request->diff;
	struct function_pairs pairs = {0};
	int error = function_pairs_match(&pairs, &diff->totals[0], &diff->totals[1]);
	int64_t regressed = 0;

	if (!error) {
		function_pairs_sort(&pairs, diff->sort);
		regressed = function_pairs_put_regressions_first(&pairs, &diff->rules);
		error = regressed < 0 ? (int)regressed : 0;
	}
	if (!error) {
		diff->regressed = (size_t)regressed;
		error = write_diff(request, &pairs);
	}
	function_pairs_done(&pairs);
	if (error)
		output_message("evprof diff: cannot write the result: %s", strerror(-error));
	return error;
}

/* Whether calls and times of both traces can be compared; false after a message. */
static bool shows_calls(const struct request *request)
{
	const char *const *paths = request->diff.paths;

	if (!request->calls[0] || !request->calls[1])
		output_message("evprof diff: %s has no events of calls, which --fail-on compares; record with "
			       "--events call,c_call",
			       paths[request->calls[0]]);
	else if (request->c_calls[0] != request->c_calls[1])
		output_message(
		    "evprof diff: %s has no calls of C functions (c_call), which %s has, so --fail-on compares "
		    "nothing",
		    paths[request->c_calls[0]], paths[request->c_calls[1]]);
	else
		return true;
	return false;
}

/*
 * Whether both traces have what happened; false after a message. What has left a trace does not matter from a time on,
 * but for blocks that are alive. Calls that a budget leaves out are missing, and what happens in them is their
 * callers': only the sums of allocations are right.
 */
static bool shows_all(const struct request *request)
{
	const struct report_diff *diff = &request->diff;
	unsigned wanted = diff->rules.fail_on | diff->rules.fail_on_total;
	unsigned of_calls = 1u << DIFF_CALLS | 1u << DIFF_TIME | 1u << DIFF_CUMTIME;
	bool from_time = request->filter.from_given && !diff->sites;

	if (wanted && !from_time && (request->begun_before[0] || request->begun_before[1])) {
		output_message("evprof diff: %s has only its last stretch, so --fail-on compares nothing; record "
			       "without --keep",
			       diff->paths[!request->begun_before[0]]);
		return false;
	}
	if (diff->sites || !(request->budget[0] || request->budget[1]) ||
	    !(diff->rules.fail_on || diff->rules.fail_on_total & of_calls))
		return true;
	output_message("evprof diff: %s was recorded within a budget, so what --fail-on compares is in part missing; "
		       "record without --budget",
		       diff->paths[!request->budget[0]]);
	return false;
}

/* Finds out what can be compared. False after a message: --fail-on names what cannot. */
static bool find_compared(struct request *request)
{
	struct report_diff *diff = &request->diff;
	struct diff_rules *rules = &diff->rules;
	unsigned wanted = rules->fail_on | rules->fail_on_total;

	for (unsigned i = 0; i < DIFF_MEASURES; i++) {
		if (!(report_diff_measures(diff) & 1u << i))
			continue;
		if (report_diff_has(diff, i, 0) && report_diff_has(diff, i, 1))
			rules->compared |= 1u << i;
		else if (wanted & 1u << i)
			report_unknown(diff, i);
	}
	if (wanted & 1u << DIFF_CALLS && request->sampled)
		output_message("evprof diff: stacks were sampled, which counts no calls; record with --events "
			       "call,c_call for --fail-on calls");
	if (wanted && !diff->totals[0].functions.count && !diff->totals[1].functions.count) {
		output_message("evprof diff: neither trace has a %s that is shown, so --fail-on compares nothing",
			       report_diff_noun(diff, 1));
		return false;
	}
	if (wanted && diff->sites && diff->native[0] != diff->native[1]) {
		output_message(
		    "evprof diff: %s has no native memory (malloc), which %s has, so --fail-on compares nothing",
		    diff->paths[diff->native[0]], diff->paths[diff->native[1]]);
		return false;
	}
	if (wanted & (1u << DIFF_CALLS | 1u << DIFF_TIME | 1u << DIFF_CUMTIME) && !shows_calls(request))
		return false;
	if (!shows_all(request))
		return false;
	return !(wanted & ~rules->compared) && !(wanted & 1u << DIFF_CALLS && request->sampled);
}

/* Sets the order that was not given. False after a message: one that was given is by what a trace does not have. */
static bool find_order(struct report_diff *diff)
{
	size_t sites_order = report_diff_shows(diff, DIFF_PEAK) ? DIFF_PEAK : DIFF_END;

	if (!diff->sort)
		diff->sort = &diff_measures[diff->sites ? sites_order : DIFF_TIME];
	if (!diff->sites || report_diff_shows(diff, (size_t)(diff->sort - diff_measures)))
		return true;
	output_message("evprof diff: --sort %s: one of the traces does not have that", diff->sort->sort);
	return false;
}

/* The exit status of --fail-on; status: that of reading the traces. */
static int judge(const struct report_diff *diff, int status)
{
	if (diff->regressed || report_diff_total_regressions(diff))
		return CLI_REGRESSED;
	if (!diff->rules.fail_on && !diff->rules.fail_on_total)
		return status;
	if (diff->lost[0] || diff->lost[1]) {
		output_message("evprof diff: events were lost, so there may be a regression that does not show");
		return CLI_FAILED;
	}
	return status;
}

/* Returns the exit status for this trace. */
static int count_trace(struct request *request, size_t side)
{
	struct trace *trace = filter_open(&request->filter, "diff", request->diff.paths[side]);
	const struct memory_options options = {.filter = &request->filter,
					       .by = request->by ? request->by : MEMORY_BY_LINE};
	struct trace_totals totals = {0};
	struct progress progress;
	int error;

	if (!trace)
		return CLI_FAILED;
	progress_begin(&progress, "counting", walk_events(trace, &request->filter));
	if (request->diff.sites)
		error = site_totals_count(&request->diff.totals[side], trace, &options, &progress);
	else
		error = function_totals_count(&request->diff.totals[side], trace, &request->filter, &progress);
	progress_end(&progress);
	if (!error)
		error = trace_count_totals(trace, &totals);
	request->diff.lost[side] = totals.lost;
	request->diff.totals[side].memory |= trace_records(trace, "mem");
	request->diff.native[side] = trace_records(trace, "malloc");
	request->diff.unknown[side] = request->diff.sites ? diff_unknown_of_sites(trace) : 0;
	request->sampled |= trace_sample_rate(trace) != 0;
	request->calls[side] = trace_records(trace, "call");
	request->c_calls[side] = trace_records(trace, "c_call");
	request->budget[side] = trace_budget(trace) > 0;
	request->begun_before[side] = trace_lacks_beginning(trace);
	if (!request->diff.sites)
		trace_warn_of_budget(trace);
	if (error)
		output_message("evprof diff: %s: %s", request->diff.paths[side], strerror(-error));
	return verb_close(trace, error);
}

/* Whether both traces have memory to compare; false after a message. */
static bool has_memory(const struct request *request)
{
	for (size_t side = 0; side < 2; side++)
		if (!request->diff.totals[side].memory) {
			output_message("evprof diff: %s has no memory events; record with --memory",
				       request->diff.paths[side]);
			return false;
		}
	return true;
}

static int diff_traces(struct request *request)
{
	int a = count_trace(request, 0);
	int b = a == CLI_FAILED ? a : count_trace(request, 1);
	int status = cli_status_worst(a, b);

	if (request->diff.sites && status != CLI_FAILED && !has_memory(request))
		status = CLI_FAILED;
	if (status != CLI_FAILED)
		status = find_compared(request) && find_order(&request->diff) && compare_totals(request) == 0
			     ? judge(&request->diff, status)
			     : CLI_FAILED;
	function_totals_done(&request->diff.totals[0]);
	function_totals_done(&request->diff.totals[1]);
	return status;
}

/* Checks the options together. */
static bool fits_together(const struct request *request, int traces)
{
	const struct report_diff *diff = &request->diff;
	unsigned wanted =
	    diff->rules.fail_on | diff->rules.fail_on_total | (diff->sort ? 1u << (diff->sort - diff_measures) : 0);
	unsigned wrong = wanted & ~report_diff_measures(diff);

	if (traces != 2)
		return cli_misused("diff", "two traces are wanted, not %d", traces);
	if (request->by && !diff->sites)
		return cli_misused("diff", "--by is for --memory");
	if (diff->sites && request->filter.clock != CPU_CLOCK_WALL)
		return cli_misused("diff", "--clock is not for --memory");
	if (wrong)
		return cli_misused("diff", "%s is %s --memory", diff_measures[__builtin_ctz(wrong)].sort,
				   diff->sites ? "not compared with" : "for");
	return true;
}

int cmd_diff(int argc, char **argv)
{
	/* Times differ from run to run. The table prints them to the ms. */
	const struct diff_threshold noise = {.amount = 1000000, .percent = 10};
	struct request request = {.diff = {.limit = -1}};
	int status;

	request.diff.rules.thresholds[DIFF_TIME] = request.diff.rules.thresholds[DIFF_CUMTIME] = noise;
	status = verb_parse(&usage, argc, argv, &request, &request.filter);
	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		if (fits_together(&request, argc - optind)) {
			request.diff.paths[0] = argv[optind];
			request.diff.paths[1] = argv[optind + 1];
			status = diff_traces(&request);
		}
	}
	filter_done(&request.filter);
	return status;
}
