/*
 * annotate.c - evprof annotate: source code with hits and time on each line, and the calls below it.
 *
 * analysis/line_costs.c collects the data, analysis/line_table.c sorts it, report/annotate.c writes it.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "report/annotate.h"
#include "trace/source.h"
#include "util/cli.h"
#include "util/progress.h"
#include "util/terminal.h"

struct request {
	struct filter filter;
	char *const *files; /* patterns; NULL at the end */
	bool *ran;	    /* for each pattern: whether a file with calls matches */
	const char *to;
	struct report_annotate report;
};

static bool matches_file(const char *pattern, const char *name)
{
	size_t length = strlen(name), tail = strlen(pattern);

	if (fnmatch(pattern, name, 0) == 0)
		return true;
	return length > tail && name[length - tail - 1] == '/' && strcmp(name + length - tail, pattern) == 0;
}

static bool is_wanted(const struct request *request, struct text file)
{
	char *name = strndup(file.at, file.length);
	bool wanted = !request->files[0];

	for (size_t i = 0; name && request->files[i]; i++)
		if (matches_file(request->files[i], name))
			wanted = request->ran[i] = true;
	free(name);
	return wanted;
}

/* By place: 1 if it is a file of Python code to show. The caller frees it. */
static uint8_t *wanted_files(const struct request *request, const struct line_costs *costs)
{
	uint8_t *wanted = calloc((size_t)costs->place_count + 1, 1);

	for (uint32_t i = 0; wanted && i < costs->labels.count && i < costs->functions_allocated; i++)
		if (costs->functions[i].known && !costs->functions[i].c_function)
			wanted[costs->functions[i].file] = 1;
	for (uint32_t i = 0; wanted && i < costs->place_count; i++)
		wanted[i] = wanted[i] && is_wanted(request, costs->places[i].name);
	return wanted;
}

static uint64_t duration_ns(const struct trace *trace, const struct filter *filter)
{
	int64_t from = filter_from(filter), to = filter_to(filter), whole = trace->end_ns - trace->start_ns;

	to = to < whole ? to : whole;
	return from < to ? (uint64_t)(to - from) : 0;
}

static void report_unmatched_files(const struct request *request)
{
	for (size_t i = 0; request->files[i]; i++)
		if (!request->ran[i])
			output_message("evprof annotate: no file that matches %s ran in the shown part of the trace; "
				       "evprof report lists those that ran",
				       request->files[i]);
}

/* walk: its thread; NULL without threads. */
static int write_table(struct request *request, const struct line_costs *costs, const struct call_walk *walk)
{
	uint8_t *wanted = wanted_files(request, costs);
	struct line_table table = {0};
	int error = wanted ? line_table_make(&table, costs, wanted) : -ENOMEM;

	if (!error)
		error = report_annotate_table(&request->report, &table, walk);
	line_table_done(&table);
	free(wanted);
	return error;
}

static int write_thread(void *owner, struct line_costs *costs, const struct call_walk *walk)
{
	int error = write_table(owner, costs, walk);

	line_costs_clear(costs);
	return error;
}

static int write_tables(struct request *request)
{
	const struct report_annotate *report = &request->report;
	struct line_costs costs = {0};
	struct progress progress;
	int error;

	progress_begin(&progress, "annotating", walk_events(report->trace, &request->filter));
	report_annotate_begin(report);
	error = line_costs_add(&costs, report->trace, &request->filter, &progress,
			       report->by_thread ? write_thread : NULL, request);
	progress_end(&progress);
	if (!error && !report->by_thread)
		error = write_table(request, &costs, NULL);
	report_annotate_end(report);
	line_costs_done(&costs);
	return error;
}

static int annotate_trace(struct request *request, const char *path)
{
	struct report_annotate *report = &request->report;
	struct trace *trace = report->trace = verb_open("annotate", &request->filter, path, request->to);
	struct terminal terminal = terminal_find(STDOUT_FILENO);
	struct output output;
	int error;

	if (!trace)
		return CLI_FAILED;
	trace_warn_of_budget(trace);
	report->output = &output;
	report->filter = &request->filter;
	report->duration_ns = duration_ns(trace, &request->filter);
	report->by_line = line_costs_by_line(trace, &request->filter);
	terminal.is &= !report->json;
	error = strcmp(request->to, "-") == 0 ? terminal_open(&terminal, &output) : output_open(&output, request->to);
	if (!error) {
		error = write_tables(request);
		if (error && !output.error)
			terminal_abandon(&output);
		else
			error = terminal_close(&output);
	}
	if (error)
		output_message("evprof annotate: cannot write %s: %s", request->to, strerror(-error));
	else
		report_unmatched_files(request);
	report->trace = NULL;
	report->output = NULL;
	return verb_close(trace, error);
}

static const char help_text[] =
    "usage: evprof annotate [options] TRACE [FILE...]\n"
    "\n"
    "Prints the sources of the files that ran, with hits and time next to each line and the calls below it. FILE is\n"
    "the end of a path, or a pattern for all of it, such as \"*/app/*.py\". The time of a line is in seconds, without\n"
    "its calls; the time of a call includes everything in it.\n"
    "\n"
    "  -f, --format FORMAT   text (default) or json\n"
    "      --by thread       one table for each thread\n"
    "      --all-sources     also files of which neither the suffix nor the first line names Python\n"
    "  -o, --output FILE     - is stdout, the default\n"
    "\n";

static const char help_end[] =
    "\n"
    "Sources are read now: numbers stand next to wrong lines if a file has changed since the recording.\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read; 3 if it is still being written.\n";

static bool take_format(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;

	(void)option;
	request->report.json = strcmp(value, "json") == 0;
	if (request->report.json || strcmp(value, "text") == 0)
		return true;
	return cli_misused("annotate", "the formats are text and json, not \"%s\"", value);
}

static bool take_by(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;

	(void)option;
	request->report.by_thread = strcmp(value, "thread") == 0;
	if (!request->report.by_thread)
		cli_misused("annotate", "--by wants \"thread\", not \"%s\"", value);
	return request->report.by_thread;
}

static const struct verb_option options_known[] = {
    VERB_TAKE("format", 'f', required_argument, take_format, 0),
    VERB_TAKE("by", 0, required_argument, take_by, 0),
    VERB_FLAG(SOURCE_ALL_OPTION, 0, request, report.all_sources),
    VERB_TEXT("output", 'o', request, to),
    VERB_FILTER_OPTIONS(verb_take_filter),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"annotate", options_known, {help_text, filter_help, help_end}};

int cmd_annotate(int argc, char **argv)
{
	struct request request = {.to = "-"};
	int status = verb_parse(&usage, argc, argv, &request, &request.filter);

	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		request.files = argv + optind + 1;
		request.ran = calloc((size_t)argc, sizeof(*request.ran));
		if (optind == argc)
			cli_misused("annotate", "a trace is missing");
		else if (!request.ran)
			fprintf(stderr, "evprof annotate: out of memory\n");
		else
			status = annotate_trace(&request, argv[optind]);
	}
	free(request.ran);
	filter_done(&request.filter);
	return status;
}
