/*
 * memory.c - evprof memory: what a program allocated, what was alive when that was most, and what is left.
 *
 * analysis/memory.h counts, report/memory.h writes. This file has the options.
 */
#include <errno.h>
#include <inttypes.h>
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

struct request {
	struct filter filter;
	struct memory_options options;
	struct report_memory report;
	bool by_given, order_given, limit_given;
	bool temporary;
	bool all_kinds; /* --leaks=all */
	const char *at;
	char *between; /* copy of the argument of --between; the mark names point into it */
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
			       "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or has no memory "
			       "events.\n";

struct word {
	const char *name;
	unsigned value;
};

static const struct word by_words[] = {
    {"line", MEMORY_BY_LINE},
    {"function", MEMORY_BY_FUNCTION},
    {"module", MEMORY_BY_MODULE},
    {"thread", MEMORY_BY_THREAD},
    {"task", MEMORY_BY_TASK},
    {"library", MEMORY_BY_LIBRARY},
    {0},
};
static const struct word order_words[] = {
    {"peak", MEMORY_BY_PEAK},		{"end", MEMORY_BY_END},
    {"allocated", MEMORY_BY_ALLOCATED}, {"allocations", MEMORY_BY_ALLOCATIONS},
    {"temporary", MEMORY_BY_TEMPORARY}, {0},
};
static const struct word format_words[] = {{"text", MEMORY_TEXT}, {"json", MEMORY_JSON}, {"csv", MEMORY_CSV}, {0}};

/* The number of the word; -1 after a message that names all. */
static int find_word(const struct word *words, const char *option, const char *given)
{
	char known[128] = "";

	for (size_t i = 0; words[i].name; i++) {
		size_t used = strlen(known);

		if (strcmp(words[i].name, given) == 0)
			return (int)words[i].value;
		snprintf(known + used, sizeof(known) - used, "%s%s",
			 !i		     ? ""
			 : words[i + 1].name ? ", "
					     : " or ",
			 words[i].name);
	}
	cli_misused("memory", "%s wants %s, not \"%s\"", option, known, given);
	return -1;
}

static bool take_by(void *owner, size_t which, const char *value)
{
	struct request *request = owner;
	int by = find_word(by_words, "--by", value);

	(void)which;
	request->by_given = true;
	request->options.by = by < 0 ? MEMORY_BY_LINE : (enum memory_by)by;
	return by >= 0;
}

static bool take_sort(void *owner, size_t which, const char *value)
{
	struct request *request = owner;
	int order = find_word(order_words, "--sort", value);

	(void)which;
	request->order_given = true;
	request->report.order = order < 0 ? MEMORY_BY_PEAK : (enum memory_order)order;
	return order >= 0;
}

static bool take_format(void *owner, size_t which, const char *value)
{
	struct request *request = owner;
	int format = value ? find_word(format_words, "--format", value) : MEMORY_JSON; /* --json */

	(void)which;
	request->report.format = format < 0 ? MEMORY_TEXT : (enum memory_format)format;
	return format >= 0;
}

static bool take_limit(void *owner, size_t which, const char *value)
{
	struct request *request = owner;

	(void)which;
	request->limit_given = true;
	request->report.limit = -1;
	return strcmp(value, "all") == 0 || cli_number("memory", "--limit", value, 0, &request->report.limit);
}

static bool take_leaks(void *owner, size_t which, const char *value)
{
	struct request *request = owner;

	(void)which;
	request->report.leaks = true;
	request->all_kinds = value != NULL;
	if (value && strcmp(value, "all") != 0)
		return cli_misused("memory", "--leaks may be --leaks=all, not \"%s\"", value);
	return true;
}

static bool take_at(void *owner, size_t which, const char *value)
{
	struct request *request = owner;

	(void)which;
	request->at = value;
	return filter_duration("memory", "--at", value, &request->filter.to_ns);
}

static bool take_between(void *owner, size_t which, const char *value)
{
	struct request *request = owner;
	char *comma;

	(void)which;
	free(request->between);
	request->between = strdup(value);
	comma = request->between ? strchr(request->between, ',') : NULL;
	if (!comma)
		return cli_misused("memory", "--between wants two marks with a comma between, not \"%s\"", value);
	*comma = 0;
	request->options.mark_begin = request->between;
	request->options.mark_end = comma + 1;
	return true;
}

static const struct verb_option options_known[] = {
    {"leaks", 0, optional_argument, take_leaks, 0},
    {"temporary", 0, no_argument, NULL, offsetof(struct request, temporary)},
    {"histogram", 0, no_argument, NULL, offsetof(struct request, report.sizes)},
    {"summary", 0, no_argument, NULL, offsetof(struct request, report.summary)},
    {"by", 0, required_argument, take_by, 0},
    {"at", 0, required_argument, take_at, 0},
    {"between", 0, required_argument, take_between, 0},
    {"sort", 's', required_argument, take_sort, 0},
    {"limit", 'n', required_argument, take_limit, 0},
    {"format", 0, required_argument, take_format, 0},
    {"json", 0, no_argument, take_format, 0},
    VERB_FILTER_OPTIONS(verb_take_filter),
    {"help", 'h', no_argument, NULL, 0},
    {0},
};

/* Checks the options together. */
static bool fits_together(const struct request *request, int traces)
{
	const struct filter *filter = &request->filter;

	if (traces != 1)
		cli_misused("memory", traces ? "one trace at a time" : "a trace is missing");
	else if (filter->min_duration_ns || filter->clock != CPU_CLOCK_WALL)
		cli_misused("memory", "--min-duration and --clock are not for memory");
	else if (request->report.leaks + request->temporary + request->report.sizes > 1)
		cli_misused("memory", "--leaks, --temporary and --histogram exclude each other");
	else if (request->report.sizes && request->by_given)
		cli_misused("memory", "--histogram has no --by");
	else if (request->report.summary && (request->report.sizes || request->by_given))
		cli_misused("memory", "--summary has no --histogram and no --by");
	else if (request->at && filter->to_given)
		cli_misused("memory", "--at and --to exclude each other");
	else if (request->between && (filter->from_given || filter->to_given || request->at))
		cli_misused("memory", "--between and --at, --from or --to exclude each other");
	else
		return true;
	return false;
}

/* What follows from the options that are given. */
static void complete(struct request *request)
{
	struct report_memory *report = &request->report;
	bool later = request->at || request->between || report->leaks;

	if (request->at)
		request->filter.to_given = true;
	if (!request->by_given)
		request->options.by = report->format == MEMORY_JSON ? MEMORY_BY_SITE : MEMORY_BY_LINE;
	if (!request->order_given)
		report->order = request->temporary ? MEMORY_BY_TEMPORARY : later ? MEMORY_BY_END : MEMORY_BY_PEAK;
	if (!request->limit_given)
		report->limit = report->format == MEMORY_TEXT ? ROWS_MAX : -1;
	if (report->leaks && !request->all_kinds)
		request->options.kinds = 1u << MEMORY_OF_PROGRAM;
	report->at = request->at || request->between ? "then" : "end";
	request->options.filter = &request->filter;
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
	warn_of_unseen(trace);
	return terminal_close(&output);
}

/* False after a message: what the options ask for cannot be known. */
static bool can_show(const struct request *request, const struct trace *trace)
{
	if (request->report.order != MEMORY_BY_TEMPORARY || !trace_memory_interval(trace))
		return true;
	output_message("evprof memory: memory was sampled, which cannot show temporary allocations; record without "
		       "EVPROF_MEMORY_INTERVAL");
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
	struct request request = {.options.by = MEMORY_BY_LINE};
	int status;

	request.report.terminal = terminal_find(STDOUT_FILENO);
	status = verb_parse("memory", "s:n:h", options_known, argc, argv, &request, &request.filter);
	if (status == CLI_FINE)
		printf("%s%s%s", help_text, filter_help, help_end);
	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		if (fits_together(&request, argc - optind)) {
			complete(&request);
			request.report.terminal.is &= request.report.format == MEMORY_TEXT;
			request.report.terminal.columns =
			    request.report.terminal.is ? request.report.terminal.columns : 0;
			status = memory_of_trace(&request, argv[optind]);
		}
	}
	filter_done(&request.filter);
	free(request.between);
	return status;
}
