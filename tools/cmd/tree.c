/*
 * tree.c - evprof tree: the call tree of a trace as text. analysis/call_tree.h counts, report/tree.h prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "report/tree.h"
#include "trace/process_end.h"
#include "util/terminal.h"

static const char help_text[] =
    "usage: evprof tree [options] TRACE\n"
    "\n"
    "Prints who called whom, each stack once below its caller: the time of the call with everything in it, its share\n"
    "of all, its own time, and the number of calls, or of samples. What takes most time comes first.\n"
    "\n"
    "      --min-percent N   leave out what takes less than N per cent of all (default: 1)\n"
    "\n";

static const char help_end[] =
    "\n"
    "A terminal gets lines that fit, in colour, and a pager (EVPROF_PAGER or PAGER; "
    "NO_COLOR: no colours). For programs:\n"
    "evprof export --format folded.\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read; 3 if it is still being written.\n";

struct request {
	struct filter filter;
	double min_percent;
};

static bool take_min_percent(void *owner, const struct verb_option *option, const char *text)
{
	struct request *request = owner;
	char *end;

	(void)option;
	request->min_percent = strtod(text, &end);
	if (end == text || *end || !(request->min_percent >= 0 && request->min_percent <= 100))
		return cli_misused("tree", "--min-percent wants a number from 0 to 100, not \"%s\"", text);
	return true;
}

static const struct verb_option options_known[] = {
    VERB_TAKE("min-percent", 0, required_argument, take_min_percent, 0),
    VERB_FILTER_OPTIONS(verb_take_filter),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"tree", options_known, {help_text, filter_help, help_end}};

static int print_tree(const struct request *request, struct trace *trace, struct call_tree *tree)
{
	struct report_tree report = {.tree = tree,
				     .terminal = terminal_find(STDOUT_FILENO),
				     .min_percent = request->min_percent,
				     .clock = request->filter.clock,
				     .sample_rate = trace_sample_rate(trace)};
	struct output output;
	int error = terminal_open(&report.terminal, &output);

	if (error)
		return error;
	report.terminal.columns = report.terminal.is ? report.terminal.columns : 0;
	report.output = &output;
	error = report_tree_print(&report);
	if (!error)
		return terminal_close(&output);
	terminal_abandon(&output);
	return error;
}

static int tree_trace(const struct request *request, const char *path)
{
	struct trace *trace = verb_open("tree", &request->filter, path, NULL);
	struct call_tree tree = {0};
	struct progress progress;
	int error;

	if (!trace)
		return CLI_FAILED;
	trace_warn_of_budget(trace);
	progress_begin(&progress, "counting", walk_events(trace, &request->filter));
	error = call_tree_read(&tree, trace, &request->filter, &progress);
	progress_end(&progress);
	if (!error)
		error = print_tree(request, trace, &tree);
	if (error)
		output_message("evprof tree: %s: %s", path, strerror(-error));
	else
		process_end_warn(trace);
	call_tree_done(&tree);
	return verb_close(trace, error);
}

int cmd_tree(int argc, char **argv)
{
	struct request request = {.min_percent = 1};
	int status = verb_parse(&usage, argc, argv, &request, &request.filter);

	if (status == VERB_PARSED)
		status = verb_has_one_trace("tree", argc) ? tree_trace(&request, argv[optind]) : CLI_FAILED;
	filter_done(&request.filter);
	return status;
}
