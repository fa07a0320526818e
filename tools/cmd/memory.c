/*
 * memory.c - evprof memory: what a program allocated, what was alive when that was most, and what is left.
 *
 * analysis/memory.h counts, report/memory.h writes. This file has the options.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "replay/window.h"
#include "report/memory.h"
#include "trace/process_end.h"
#include "util/cli.h"
#include "util/terminal.h"

#define ROWS_MAX 30 /* of a table, without --limit */
#define ORDER_UNSET UINT_MAX

struct request {
	struct filter filter;
	struct memory_options options;
	struct report_memory report;
	unsigned order; /* enum memory_order, or ORDER_UNSET */
	bool temporary;
	bool all_kinds; /* --leaks=all */
	const char *at;
	const char *marks[2]; /* of --between */
};

/* --- options --- */

static const char help_text[] =
    "usage: evprof memory [options] TRACE\n"
    "\n"
    "Prints what a program allocated: what was alive at the peak of the heap and at the end, how much was allocated "
    "in\n"
    "all, how many allocations were temporary (freed before the thread's next one), and the largest sites. A site is\n"
    "the innermost Python function, at its line where lines were recorded (\"?\": not).\n"
    "\n"
    "      --leaks           what is alive at the end, and by whom; --leaks=all: also of imports, of Python's caches,\n"
    "                        interned strings, and of the interpreter, which are only summed up otherwise\n"
    "      --temporary       what makes most temporary allocations\n"
    "      --histogram       the sizes of allocations instead of sites\n"
    "      --summary         what each process has in all, without sites; as csv a row for each number\n"
    "      --by WHAT         line (default), function, module, thread, task, library: a row for each. library is that\n"
    "                        of the innermost native frame (EVPROF_NATIVE)\n"
    "      --at T            what was alive at that time, since the start of the trace: 20ms, 1.5s\n"
    "      --between A,B     allocations between the marks A and B (evprof_mark), and what of them is alive at B\n"
    "  -s, --sort KEY        peak (default), end, allocated, allocations, temporary\n"
    "  -n, --limit N         the first N rows of each process; all: every row (default: 30 in the text)\n"
    "      --format FORMAT   text (default), json or csv; --json is --format json, by line and native frames\n"
    "\n";

static const char help_end[] = "\n"
			       "--min-duration and --clock are not for memory.\n"
			       "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or has no memory\n"
			       "events; 3 if it is still being written.\n";

static const char *const order_words[] = {
    [MEMORY_BY_PEAK] = "peak",		 [MEMORY_BY_END] = "end",
    [MEMORY_BY_ALLOCATED] = "allocated", [MEMORY_BY_ALLOCATIONS] = "allocations",
    [MEMORY_BY_TEMPORARY] = "temporary", NULL,
};
static const char *const format_words[] = {[MEMORY_TEXT] = "text", [MEMORY_JSON] = "json", [MEMORY_CSV] = "csv", NULL};

static bool take_leaks(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;

	(void)option;
	request->report.leaks = true;
	request->all_kinds = value != NULL;
	if (value && strcmp(value, "all") != 0)
		return cli_misused("memory", "--leaks may be --leaks=all, not \"%s\"", value);
	return true;
}

static bool take_at(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;

	(void)option;
	request->at = value;
	return filter_duration("memory", "--at", value, &request->filter.to_ns);
}

static const struct verb_option options_known[] = {
    VERB_TAKE("leaks", 0, optional_argument, take_leaks, 0),
    VERB_FLAG("temporary", 0, request, temporary),
    VERB_FLAG("histogram", 0, request, report.sizes),
    VERB_FLAG("summary", 0, request, report.summary),
    VERB_WORD("by", 0, required_argument, request, options.by, memory_by_names),
    VERB_TAKE("at", 0, required_argument, take_at, 0),
    VERB_TAKE("between", 0, required_argument, verb_take_marks, offsetof(struct request, marks)),
    VERB_WORD("sort", 's', required_argument, request, order, order_words),
    VERB_TAKE("limit", 'n', required_argument, verb_take_limit, offsetof(struct request, report.limit)),
    VERB_WORD("format", 0, required_argument, request, report.format, format_words),
    VERB_WORD("json", 0, no_argument, request, report.format, format_words),
    VERB_FILTER_OPTIONS(verb_take_filter),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"memory", options_known, {help_text, filter_help, help_end}};

/* Checks the options together. */
static bool fits_together(const struct request *request)
{
	const struct filter *filter = &request->filter;

	if (filter->min_duration_ns || filter->clock != CPU_CLOCK_WALL)
		cli_misused("memory", "--min-duration and --clock are not for memory");
	else if (request->report.leaks + request->temporary + request->report.sizes > 1)
		cli_misused("memory", "--leaks, --temporary and --histogram exclude each other");
	else if (request->report.sizes && request->options.by)
		cli_misused("memory", "--histogram has no --by");
	else if (request->report.summary && (request->report.sizes || request->options.by))
		cli_misused("memory", "--summary has no --histogram and no --by");
	else if (request->at && filter->to_given)
		cli_misused("memory", "--at and --to exclude each other");
	else if (request->marks[0] && (filter->from_given || filter->to_given || request->at))
		cli_misused("memory", "--between and --at, --from or --to exclude each other");
	else
		return true;
	return false;
}

/* What follows from the options that are given. */
static void complete(struct request *request)
{
	struct report_memory *report = &request->report;
	bool later = request->at || request->marks[0] || report->leaks;

	if (request->at)
		request->filter.to_given = true;
	if (request->options.by == MEMORY_BY_SITE && report->format != MEMORY_JSON)
		request->options.by = MEMORY_BY_LINE;
	report->order = request->order != ORDER_UNSET ? (enum memory_order)request->order
			: request->temporary	      ? MEMORY_BY_TEMPORARY
			: later			      ? MEMORY_BY_END
						      : MEMORY_BY_PEAK;
	if (report->limit == VERB_LIMIT_UNSET)
		report->limit = report->format == MEMORY_TEXT ? ROWS_MAX : -1;
	if (report->leaks && !request->all_kinds)
		request->options.kinds = 1u << MEMORY_OF_PROGRAM;
	report->at = request->at || request->marks[0] ? "then" : "end";
	report->terminal = terminal_find(STDOUT_FILENO);
	report->terminal.is &= report->format == MEMORY_TEXT;
	report->terminal.columns = report->terminal.is ? report->terminal.columns : 0;
	request->options.filter = &request->filter;
	request->options.mark_begin = request->marks[0];
	request->options.mark_end = request->marks[1];
}

/* --- the trace --- */

/* What is written, and what it lacks. */
struct writing {
	struct report_memory *report;
	bool events_missing;
};

static int write_process(void *owner, struct memory *memory)
{
	struct writing *writing = owner;

	writing->events_missing |= memory->live.missing;
	return report_memory_process(writing->report, memory);
}

/* False after a message: nothing of the kind is in the trace. */
static bool has_memory(const struct request *request, const struct memory *memory, const char *path)
{
	const struct memory_options *options = &request->options;

	if (!request->report.processes)
		output_message("evprof memory: %s has no memory events; record them with --events call,c_call,mem",
			       path);
	else if (options->mark_begin && memory->marks != (WINDOW_MARK_BEGINS | WINDOW_MARK_ENDS))
		output_message("evprof memory: no mark \"%s\" was set",
			       memory->marks & WINDOW_MARK_BEGINS ? options->mark_end : options->mark_begin);
	else
		return true;
	return false;
}

static void warn_of_unseen(const struct trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++) {
		if (!trace->processes[i] || !trace_process_misses_malloc(trace->processes[i]))
			continue;
		fprintf(stderr,
			"evprof memory: native allocations of process %" PRId64
			" are not seen: the program has its own malloc()\n",
			trace->processes[i]->pid);
		return;
	}
}

/* Tasks are known by the calls that run them. */
static void warn_of_tasks(const struct request *request, const struct trace *trace)
{
	if (request->options.by == MEMORY_BY_TASK && !trace_records(trace, "call"))
		fprintf(stderr, "evprof memory: tasks are known only where calls are recorded, too: --memory --events "
				"call\n");
}

static int write_memory(struct request *request, struct trace *trace, const char *path, bool *has)
{
	struct report_memory *report = &request->report;
	struct writing writing = {.report = report};
	struct memory memory;
	struct progress progress;
	struct output output;
	int error = terminal_open(&report->terminal, &output);

	if (error)
		return error;
	report->output = &output;
	report->any_native = trace_records(trace, "malloc");
	report_memory_begin(report, &request->options);
	progress_begin(&progress, "counting", walk_events(trace, &request->filter));
	error = memory_visit(&memory, trace, &request->options, &progress, write_process, &writing);
	progress_end(&progress);
	*has = !error && has_memory(request, &memory, path);
	memory_done(&memory);
	report_memory_end(report);
	if (!*has) {
		terminal_abandon(&output);
		return error;
	}
	if (writing.events_missing)
		fprintf(stderr,
			"evprof memory: events are missing; a block that was freed by one of them counts as alive\n");
	if (trace_left_out(trace))
		fprintf(stderr, "evprof memory: %llu processes that ended before these are not in the trace\n",
			(unsigned long long)trace_left_out(trace));
	warn_of_unseen(trace);
	warn_of_tasks(request, trace);
	if (report->format == MEMORY_CSV)
		trace_warn_of_memory_sampling(trace);
	return terminal_close(&output);
}

/* Whether the trace keeps no events that the options ask for. */
static bool wants_more_than_alive(const struct request *request)
{
	const struct filter *filter = &request->filter;

	return request->order == MEMORY_BY_PEAK || request->marks[0] || filter->from_given || filter->to_given ||
	       filter->tid || filter->threads.count || request->options.by == MEMORY_BY_THREAD;
}

/* False after a message: what the options ask for cannot be known. */
static bool can_show(struct request *request, const struct trace *trace)
{
	if (request->report.order == MEMORY_BY_TEMPORARY && trace_memory_interval(trace)) {
		output_message("evprof memory: memory was sampled, which cannot show temporary allocations; record "
			       "without EVPROF_MEMORY_INTERVAL");
		return false;
	}
	if (!trace_is_alive_only(trace))
		return true;
	if (request->report.order == MEMORY_BY_PEAK)
		request->report.order = MEMORY_BY_END;
	if (!wants_more_than_alive(request))
		return true;
	output_message(
	    "evprof memory: the trace keeps what is alive at its end, and sums by stack: no peak, no stretch "
	    "of time, no threads; record without EVPROF_KEEP=alive");
	return false;
}

static int memory_of_trace(struct request *request, const char *path)
{
	struct trace *trace = verb_open("memory", &request->filter, path, NULL);
	bool has = false;
	int error, status;

	if (!trace)
		return CLI_FAILED;
	if (!can_show(request, trace)) {
		trace_close(trace);
		return CLI_FAILED;
	}
	error = write_memory(request, trace, path, &has);
	if (error)
		output_message("evprof memory: %s: %s", path, strerror(-error));
	else if (has)
		process_end_warn(trace);
	status = verb_close(trace, error);
	return has ? status : CLI_FAILED;
}

int cmd_memory(int argc, char **argv)
{
	struct request request = {.order = ORDER_UNSET, .report.limit = VERB_LIMIT_UNSET};
	int status = verb_parse(&usage, argc, argv, &request, &request.filter);

	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		if (verb_has_one_trace("memory", argc) && fits_together(&request)) {
			complete(&request);
			status = memory_of_trace(&request, argv[optind]);
		}
	}
	filter_done(&request.filter);
	return status;
}
