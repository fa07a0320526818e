/*
 * diff.c - evprof diff: calls, times and allocations of two traces by function.
 *
 * analysis/function_diff.c matches the functions, report/diff.c writes the result.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/verbs.h"
#include "report/diff.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct request {
	struct filter filter;
	struct report_diff diff;
	enum format format;
};

static const char help_text[] =
    "usage: evprof diff [options] A B\n"
    "\n"
    "Compares two traces function by function: the numbers of A, and their change in B. Functions are the same if "
    "file,\n"
    "line and qualified name are, else if file and name are, else if the file's base name and the name are. The table\n"
    "lists those that changed; --json and --csv list all.\n"
    "\n"
    "  -s, --sort KEY        by the change of: time (default), cumtime, calls, allocs, bytes\n"
    "  -n, --limit N         the first N functions only\n"
    "      --json            for programs\n"
    "      --csv             for spreadsheets\n"
    "\n"
    "%s"
    "\n"
    "--min-duration is not for diff.\n"
    "Exit status: 0; 1 if a trace is incomplete; 2 if one cannot be read.\n";

static const struct diff_measure *find_measure(const char *name)
{
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		if (strcmp(diff_measures[i].sort, name) == 0)
			return &diff_measures[i];
	fprintf(stderr, "evprof diff: there is no order \"%s\"; the orders are", name);
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		fprintf(stderr, "%s %s", i ? "," : "", diff_measures[i].sort);
	fprintf(stderr, "\n");
	return NULL;
}

static bool take_sort(void *request, size_t which, const char *value)
{
	(void)which;
	return (((struct request *)request)->diff.sort = find_measure(value)) != NULL;
}

static bool take_limit(void *request, size_t which, const char *value)
{
	(void)which;
	return cli_number("diff", "--limit", value, 0, &((struct request *)request)->diff.limit);
}

static bool take_format(void *request, size_t format, const char *value)
{
	(void)value;
	((struct request *)request)->format = (enum format)format;
	return true;
}

/*
 * With --min-duration, allocations would count for the wrong function: a call is known to be long enough at its end
 * only.
 */
static bool refuse_min_duration(void *request, size_t which, const char *value)
{
	(void)request;
	(void)which;
	(void)value;
	return cli_misused("diff", "--min-duration is not for diff");
}

static const struct verb_option options_known[] = {
    {"sort", 's', required_argument, take_sort, 0},
    {"limit", 'n', required_argument, take_limit, 0},
    {"json", 0, no_argument, take_format, FORMAT_JSON},
    {"csv", 0, no_argument, take_format, FORMAT_CSV},
    VERB_FILTER_OPTIONS(refuse_min_duration),
    {"help", 'h', no_argument, NULL, 0},
    {0},
};

static int write_diff(const struct request *request, struct function_pairs *pairs)
{
	struct output output;
	int error = output_open(&output, "-");

	if (error)
		return error;
	if (request->format == FORMAT_JSON)
		report_diff_json(&output, &request->diff, pairs);
	else if (request->format == FORMAT_CSV)
		report_diff_csv(&output, &request->diff, pairs);
	else
		report_diff_table(&output, &request->diff, pairs);
	return output_close(&output);
}

static int compare_totals(const struct request *request)
{
	const struct report_diff *diff = &request->diff;
	struct function_pairs pairs = {0};
	int error = function_pairs_match(&pairs, &diff->totals[0], &diff->totals[1]);

	if (!error) {
		function_pairs_sort(&pairs, diff->sort);
		error = write_diff(request, &pairs);
	}
	function_pairs_done(&pairs);
	if (error)
		output_message("evprof diff: cannot write the result: %s", strerror(-error));
	return error;
}

/* Returns the exit status for this trace. */
static int count_trace(struct request *request, size_t side)
{
	struct trace *trace = filter_open(&request->filter, "diff", request->diff.paths[side]);
	struct trace_totals totals = {0};
	struct progress progress;
	int error;

	if (!trace)
		return CLI_FAILED;
	progress_begin(&progress, "counting", walk_events(trace, &request->filter));
	error = function_totals_count(&request->diff.totals[side], trace, &request->filter, &progress);
	progress_end(&progress);
	if (!error)
		error = trace_count_totals(trace, &totals);
	request->diff.lost[side] = totals.lost;
	request->diff.totals[side].memory |= trace_records(trace, "mem");
	if (error)
		output_message("evprof diff: %s: %s", request->diff.paths[side], strerror(-error));
	return verb_close(trace, error);
}

static int diff_traces(struct request *request)
{
	int a = count_trace(request, 0);
	int b = a == CLI_FAILED ? a : count_trace(request, 1);
	int status = cli_status_worst(a, b);

	if (status != CLI_FAILED && compare_totals(request) < 0)
		status = CLI_FAILED;
	function_totals_done(&request->diff.totals[0]);
	function_totals_done(&request->diff.totals[1]);
	return status;
}

int cmd_diff(int argc, char **argv)
{
	struct request request = {.diff = {.sort = &diff_measures[1], .limit = -1}};
	int status = verb_parse("diff", "s:n:h", options_known, argc, argv, &request, &request.filter);

	if (status == CLI_FINE)
		printf(help_text, filter_help);
	if (status != VERB_PARSED)
		goto done;
	status = CLI_FAILED;
	if (optind != argc - 2) {
		cli_misused("diff", "two traces are wanted, not %d", argc - optind);
		goto done;
	}
	request.diff.paths[0] = argv[optind];
	request.diff.paths[1] = argv[optind + 1];
	status = diff_traces(&request);
done:
	filter_done(&request.filter);
	return status;
}
