/*
 * report.c - evprof report: cProfile's table. This file has the options and the steps from traces to tables.
 *
 *   analysis/profile.h  counts
 *   report/rows.h       names, sorts and restricts the rows
 *   report/print.h      prints the rest
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/profile.h"
#include "cmd/verbs.h"
#include "replay/call_walk.h"
#include "report/print.h"
#include "report/rows.h"
#include "report/span_table.h"
#include "trace/calibration.h"
#include "trace/process_end.h"
#include "trace/reader.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"
#include "util/terminal.h"

struct request {
	struct filter filter;
	struct profile_options options;
	struct report_style style;
	struct report_restrictions restrictions;
	unsigned format;   /* in formats[] */
	bool short_tables; /* no number of rows is given, and the output is a terminal */
	bool reverse;
	bool strip_dirs;
	const char *marks[2]; /* of --between */
};

/* --- options --- */

static const char help_text[] =
    "usage: evprof report [options] TRACE...\n"
    "\n"
    "Prints cProfile's table. Several traces are added up; functions are the same if file, line and name are.\n"
    "\n"
    "  -s, --sort KEY[,KEY...]\n"
    "                        time or tottime (default), cumulative or cumtime, calls or ncalls, pcalls, name, file,\n"
    "                        filename or module, line, nfl (name, file, line), stdname; their beginnings; -1, 0, 1, "
    "2;\n"
    "                        bytes, allocations: with two more columns, of the memory that a function allocates\n"
    "      --reverse         the other way round\n"
    "      --restrict WHAT   as in pstats: the first 20 rows, a fraction of them (0.1), or those whose name matches a\n"
    "                        regular expression; several are applied in turn\n"
    "  -n, --limit N         the first N of these rows; all: every row (default, but 30 on a terminal)\n"
    "      --callers         who calls the functions, instead of their times\n"
    "      --callees         whom they call\n"
    "      --by WHAT         module, span: a row for each; process, thread: a table for each\n"
    "      --strip-dirs      files without their directories\n"
    "      --calibrate       subtract the overhead, which EVPROF_CALIBRATE=1 measured\n"
    "      --format FORMAT   text, json or csv; --json is --format json. Default: text; for a terminal a table that\n"
    "                        fits its width, in colour and with a pager\n"
    "      --between A,B     count between the marks A and B (evprof_mark), in each process that sets them\n"
    "                        and in those that it starts\n"
    "\n";

static const char help_end[] =
    "\n"
    "EVPROF_PAGER or PAGER: the pager; NO_COLOR: no colours.\n"
    "What runs at --from counts with its time from there on, and with no call. Between marks only what is called\n"
    "there counts, as with cProfile.\n"
    "--clock is not for --by span.\n"
    "Exit status: 0; 1 if a trace is incomplete; 2 if one cannot be read; 3 if one is still being written.\n";

static const char *const by_words[] = {
    [REPORT_BY_FUNCTION] = "function", [REPORT_BY_MODULE] = "module", [REPORT_BY_PROCESS] = "process",
    [REPORT_BY_THREAD] = "thread",     [REPORT_BY_SPAN] = "span",     NULL,
};

/* The last one has no name: it is the default, on a terminal. */
enum { FORMAT_TEXT, FORMAT_TERMINAL = 3 };
static const char *const format_words[] = {"text", "json", "csv", NULL};
static const struct report_format *const formats[] = {&report_text, &report_json, &report_csv, &report_terminal};

static bool take_sort(void *request, const struct verb_option *option, const char *value)
{
	(void)option;
	return report_order_parse(&((struct request *)request)->style.order, value);
}

static bool take_restriction(void *request, const struct verb_option *option, const char *value)
{
	(void)option;
	return report_restrictions_add(&((struct request *)request)->restrictions, value);
}

static const struct verb_option options_known[] = {
    VERB_TAKE("sort", 's', required_argument, take_sort, 0),
    VERB_TAKE("limit", 'n', required_argument, verb_take_limit, offsetof(struct request, restrictions.limit)),
    VERB_WORD("json", 0, no_argument, request, format, format_words),
    VERB_TAKE("between", 0, required_argument, verb_take_marks, offsetof(struct request, marks)),
    VERB_FLAG("reverse", 0, request, reverse),
    VERB_TAKE("restrict", 0, required_argument, take_restriction, 0),
    VERB_FLAG("callers", 0, request, style.callers),
    VERB_FLAG("callees", 0, request, style.callees),
    VERB_WORD("by", 0, required_argument, request, style.by, by_words),
    VERB_FLAG("strip-dirs", 0, request, strip_dirs),
    VERB_FLAG("calibrate", 0, request, options.calibrate),
    VERB_WORD("format", 0, required_argument, request, format, format_words),
    VERB_FILTER_OPTIONS(verb_take_filter),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"report", options_known, {help_text, filter_help, help_end}};

static const struct report_format *format_of(const struct request *request)
{
	return formats[request->format];
}

/* --- tables --- */

/* A report being printed. */
struct report {
	const struct request *request;
	const struct trace *trace;
	struct output output;
	size_t tables;
	bool begins, ends;   /* a trace has the begin mark, the end mark, of --between */
	struct output marks; /* names of the marks in the traces */
	struct span_totals spans;
	int sample_rate; /* of a sampled process; 0: none was sampled */
	uint64_t memory_interval;
};

#define TERMINAL_ROWS 30u

static int print_table(struct report *report, const struct profile *profile, const struct trace_process *process,
		       const struct trace_thread *thread)
{
	const struct request *request = report->request;
	struct report_table table = {.number = report->tables,
				     .sample_rate = report->sample_rate,
				     .memory_interval = report->memory_interval,
				     .trace = report->trace,
				     .process = process,
				     .thread = thread};
	struct report_rows rows;
	struct output reductions;
	int error = report_rows_init(&rows, profile, request->options.modules, request->strip_dirs);

	if (!error)
		error = output_open_memory(&reductions);
	if (!error) {
		report_rows_sort(&rows, &request->style.order, request->reverse);
		report_rows_restrict(&rows, &request->restrictions, &reductions);
		if (request->short_tables && rows.shown_count > TERMINAL_ROWS) {
			table.cut = rows.shown_count - TERMINAL_ROWS;
			rows.shown_count = TERMINAL_ROWS;
		}
		table.rows = &rows;
		table.reductions = (struct text){reductions.buffer, reductions.used};
		if (!report->tables && format_of(request)->begin)
			format_of(request)->begin(&report->output, &request->style);
		format_of(request)->table(&report->output, &request->style, &table);
		report->tables++;
		output_abandon(&reductions);
	}
	report_rows_done(&rows);
	return error;
}

static void print_spans(struct report *report)
{
	const struct request *request = report->request;
	int64_t most = request->restrictions.limit;

	span_totals_sort(&report->spans);
	span_table_print(&report->output, format_of(request), &request->style.terminal, &report->spans,
			 most < 0 && request->short_tables ? TERMINAL_ROWS : most);
}

/* Prints the table of a process or thread, unless it has no call, for example outside the window. */
static int take_part(void *owner, const struct profile *profile, const struct trace_process *process,
		     const struct trace_thread *thread)
{
	struct report *report = owner;

	return profile->labels.count || profile->lost ? print_table(report, profile, process, thread) : 0;
}

/* --- traces --- */

static bool is_split(const struct request *request)
{
	return request->style.by == REPORT_BY_PROCESS || request->style.by == REPORT_BY_THREAD;
}

/* False after one line on stderr: the trace has no measured overhead. */
static bool can_calibrate(const struct trace *trace, const char *path)
{
	switch (calibration_state(trace)) {
	case CALIBRATION_GOOD:
		return true;
	case CALIBRATION_UNSTABLE:
		output_message("evprof report: %s: the overhead was not measured: the machine was too busy, lines were "
			       "recorded, or functions were filtered (EVPROF_INCLUDE, EVPROF_EXCLUDE); record again",
			       path);
		return false;
	case CALIBRATION_NONE:
		break;
	}
	output_message("evprof report: %s: the cost of the hooks was not measured; record with EVPROF_CALIBRATE=1",
		       path);
	return false;
}

/* False after one line on stderr: the trace has no allocations. */
static bool has_memory(const struct trace *trace, const char *path)
{
	if (trace_records(trace, "mem"))
		return true;
	output_message("evprof report: %s: no allocations were recorded; --sort bytes and allocations need mem in "
		       "EVPROF_EVENTS",
		       path);
	return false;
}

#define MARKS_NAMED_BYTES 400

static bool is_named(const struct output *marks, struct text name)
{
	return memmem(marks->buffer, marks->used, name.at, name.length) != NULL;
}

static void note_mark(struct report *report, struct text name)
{
	const struct profile_options *options = &report->request->options;
	char quoted[80];

	report->begins |= text_same(name, text_of(options->mark_begin));
	report->ends |= text_same(name, text_of(options->mark_end));
	if (report->marks.used > MARKS_NAMED_BYTES || !name.length || name.length > sizeof(quoted) - 3)
		return;
	snprintf(quoted, sizeof(quoted), "\"%.*s\"", (int)name.length, name.at);
	if (is_named(&report->marks, text_of(quoted)))
		return;
	output_string(&report->marks, report->marks.used ? ", " : "");
	output_line(&report->marks, text_of(quoted));
}

static void note_marks(struct report *report, const struct trace *trace)
{
	uint32_t i, id;

	for (i = 0; i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];

		for (id = 1; process && id < process->marks.count; id++)
			if (process->marks.at[id])
				note_mark(report, trace_string(process->marks.at[id], 1));
	}
}

/* False after a line about a mark of --between that no trace has. */
static bool has_marks(const struct report *report)
{
	const struct profile_options *options = &report->request->options;

	if (!options->mark_begin || (report->begins && report->ends))
		return true;
	output_message("evprof report: no mark \"%s\" was set; %s%.*s%s",
		       report->begins ? options->mark_end : options->mark_begin,
		       report->marks.used ? "there are " : "there are no marks", (int)report->marks.used,
		       report->marks.buffer, report->marks.used > MARKS_NAMED_BYTES ? ", ..." : "");
	return false;
}

/* CSV has no room for what the other formats say of numbers that are not exact. */
static void warn_for_csv(const struct report *report, const struct trace *trace)
{
	if (report->memory_interval)
		trace_warn_of_memory_sampling(trace);
	trace_warn_of_sampling(trace);
	trace_warn_of_estimates(trace);
}

/* Returns the exit status for this trace. */
static int add_trace(struct report *report, struct profile *profile, const char *path)
{
	const struct request *request = report->request;
	struct trace *trace = filter_open(&request->filter, "report", path);
	struct progress progress;
	int status;

	if (!trace)
		return CLI_FAILED;
	if ((request->options.calibrate && !can_calibrate(trace, path)) ||
	    (request->options.memory && !has_memory(trace, path))) {
		trace_close(trace);
		return CLI_FAILED;
	}
	report->trace = trace;
	if (!report->sample_rate)
		report->sample_rate = trace_sample_rate(trace);
	if (!report->memory_interval && request->options.memory)
		report->memory_interval = trace_memory_interval(trace);
	if (format_of(request) == &report_csv && request->style.by != REPORT_BY_SPAN)
		warn_for_csv(report, trace);
	if (request->options.mark_begin)
		note_marks(report, trace);
	progress_begin(&progress, "counting", walk_events(trace, &request->filter));
	if (request->style.by == REPORT_BY_SPAN)
		status = span_totals_add(&report->spans, trace, &request->filter, &progress);
	else if (is_split(request))
		status = profile_each(trace, &request->options, request->style.by == REPORT_BY_THREAD, &progress,
				      take_part, report);
	else
		status = profile_add(profile, trace, &request->options, &progress);
	progress_end(&progress);
	if (status < 0)
		output_message("evprof report: %s: %s", path, strerror(-status));
	status = status < 0 ? CLI_FAILED : trace_print_verdict(trace);
	process_end_warn(trace);
	report->trace = NULL;
	trace_close(trace);
	return status;
}

/* Returns the worst status of the traces; CLI_FAILED with *any false if no trace could be read. */
static int add_traces(struct report *report, struct profile *profile, char *const *paths, int count, bool *any)
{
	int status = CLI_FINE;

	*any = false;
	for (int i = 0; i < count; i++) {
		int one = add_trace(report, profile, paths[i]);

		*any |= one != CLI_FAILED;
		status = cli_status_worst(one, status);
	}
	if (*any && !has_marks(report)) {
		*any = false;
		status = CLI_FAILED;
	}
	return status;
}

static int report_traces(const struct request *request, char *const *paths, int count)
{
	struct report report = {.request = request};
	struct profile profile = {0};
	int error = output_open_memory(&report.marks);
	int status;
	bool any;

	if (!error)
		error = terminal_open(&request->style.terminal, &report.output);
	if (error) {
		output_message("evprof report: %s", strerror(-error));
		output_abandon(&report.marks);
		return CLI_FAILED;
	}
	status = add_traces(&report, &profile, paths, count, &any);
	if (any && request->style.by == REPORT_BY_SPAN)
		print_spans(&report);
	else if (any && !is_split(request))
		error = print_table(&report, &profile, NULL, NULL);
	if (any && !error) {
		bool spans = request->style.by == REPORT_BY_SPAN;

		if (!report.tables && format_of(request)->begin && !spans)
			format_of(request)->begin(&report.output, &request->style);
		if (format_of(request)->end && !spans)
			format_of(request)->end(&report.output, &request->style);
		error = terminal_close(&report.output);
	} else {
		terminal_abandon(&report.output);
	}
	if (error) {
		output_message("evprof report: cannot write the report: %s", strerror(-error));
		status = CLI_FAILED;
	}
	output_abandon(&report.marks);
	profile_done(&profile);
	span_totals_done(&report.spans);
	return status;
}

/* --- the command line --- */

/* Checks the options together. */
static bool fits_together(struct request *request, int traces)
{
	if (!traces)
		cli_misused("report", "a trace is missing");
	else if (request->options.mark_begin && (request->filter.from_given || request->filter.to_given))
		cli_misused("report", "--between and --from or --to exclude each other");
	else if (request->options.mark_begin && request->filter.clock != CPU_CLOCK_WALL)
		cli_misused("report",
			    "--between has no --clock; evprof cut --between makes a trace of that part first");
	else if (request->options.calibrate &&
		 (request->options.mark_begin || request->filter.from_given || request->filter.to_given))
		cli_misused("report", "--calibrate is for a whole trace; evprof cut makes one of that part first");
	else if (request->style.by == REPORT_BY_SPAN &&
		 (request->options.mark_begin || request->style.callers || request->style.callees))
		cli_misused("report", "--by span has no --between, --callers or --callees");
	else if (request->style.by == REPORT_BY_SPAN && request->filter.clock != CPU_CLOCK_WALL)
		cli_misused("report", "--by span needs the wall clock, as each thread has its own CPU time and a span "
				      "may end in another thread; leave --clock out");
	else if (request->options.memory && request->filter.min_duration_ns)
		cli_misused("report", "--sort bytes or allocations and --min-duration exclude each other");
	else if (format_of(request) == &report_csv && request->style.callers && request->style.callees)
		cli_misused("report", "--format csv has room for --callers or --callees, not for both");
	else
		return true;
	return false;
}

/* What follows from the options that are given. */
static void complete(struct request *request, int traces)
{
	struct report_style *style = &request->style;
	struct profile_options *options = &request->options;

	options->filter = &request->filter;
	options->mark_begin = request->marks[0];
	options->mark_end = request->marks[1];
	options->modules = style->by == REPORT_BY_MODULE;
	options->edges = style->callers || style->callees;
	options->memory = style->by != REPORT_BY_SPAN && report_order_has_memory(&style->order);
	style->memory = options->memory && !options->edges;
	style->clock = request->filter.clock;
	style->several = traces > 1;
	style->terminal = terminal_find(STDOUT_FILENO);
	if (request->format == FORMAT_TERMINAL && !style->terminal.is)
		request->format = FORMAT_TEXT;
	style->terminal.is &= request->format == FORMAT_TEXT || request->format == FORMAT_TERMINAL;
	request->short_tables =
	    style->terminal.is && !request->restrictions.count && request->restrictions.limit == VERB_LIMIT_UNSET;
}

int cmd_report(int argc, char **argv)
{
	struct request request = {.restrictions.limit = VERB_LIMIT_UNSET, .format = FORMAT_TERMINAL};
	int status;

	report_order_parse(&request.style.order, "time");
	status = verb_parse(&usage, argc, argv, &request, &request.filter);
	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		complete(&request, argc - optind);
		if (fits_together(&request, argc - optind))
			status = report_traces(&request, argv + optind, argc - optind);
	}
	filter_done(&request.filter);
	report_restrictions_done(&request.restrictions);
	return status;
}
