/*
 * annotate.c - evprof annotate: source code with hits and time on each line, and the calls below it.
 *
 * The table is that of pprofile: Line #, Hits, Time, Time per hit, %, Source code, and a "(call)" line for each
 * function that a line called. analysis/line_costs.c collects the data; this file has the options, the order and the
 * output. Sources are read line by line while they are printed.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/line_costs.h"
#include "cmd/verbs.h"
#include "trace/source.h"
#include "util/cli.h"
#include "util/output.h"

struct request {
	struct filter filter;
	char *const *files; /* patterns; NULL at the end */
	bool *ran;	    /* for each pattern: whether a file with calls matches */
	const char *to;
	bool json;
	bool by_thread;
	bool all_sources;
};

/* A line of a file, the sum of all functions in it. */
struct row {
	uint32_t file;
	uint32_t line;
	uint64_t hits;
	uint64_t own_ns;
};

struct call_row {
	uint32_t file;
	uint32_t line;
	const struct cost_call *call;
};

struct file_rows {
	uint32_t file;
	uint64_t own_ns;
	const struct row *rows;
	size_t row_count;
	const struct call_row *calls;
	size_t call_count;
};

/* One output: the whole trace, or one thread. */
struct table {
	const struct line_costs *costs;
	struct row *rows;
	size_t row_count;
	struct call_row *calls;
	size_t call_count;
	struct file_rows *files;
	size_t file_count;
};

struct annotate {
	const struct request *request;
	struct trace *trace;
	struct output *output;
	uint64_t duration_ns;
	bool by_line;
	bool any; /* the JSON array is not empty */
};

/* --- which file, which line --- */

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
	size_t i;

	for (i = 0; name && request->files[i]; i++)
		if (matches_file(request->files[i], name))
			wanted = request->ran[i] = true;
	free(name);
	return wanted;
}

/* By place: 1 if it is a file of Python code to show. The caller frees it. */
static uint8_t *wanted_files(const struct request *request, const struct line_costs *costs)
{
	uint8_t *wanted = calloc((size_t)costs->place_count + 1, 1);
	uint32_t i;

	for (i = 0; wanted && i < costs->labels.count && i < costs->functions_allocated; i++)
		if (costs->functions[i].known && !costs->functions[i].c_function)
			wanted[costs->functions[i].file] = 1;
	for (i = 0; wanted && i < costs->place_count; i++)
		wanted[i] = wanted[i] && is_wanted(request, costs->places[i].name);
	return wanted;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_place(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return a->file != b->file ? compare_numbers(a->file, b->file) : compare_numbers(a->line, b->line);
}

/* The most expensive call first. */
static int by_site(const void *left, const void *right)
{
	const struct call_row *a = left, *b = right;

	if (a->file != b->file)
		return compare_numbers(a->file, b->file);
	if (a->line != b->line)
		return compare_numbers(a->line, b->line);
	if (a->call->total_ns != b->call->total_ns)
		return compare_numbers(b->call->total_ns, a->call->total_ns);
	return compare_numbers(a->call->callee, b->call->callee);
}

static int by_time(const void *left, const void *right, void *owner)
{
	const struct line_costs *costs = owner;
	const struct file_rows *a = left, *b = right;

	if (a->own_ns != b->own_ns)
		return compare_numbers(b->own_ns, a->own_ns);
	return text_compare(costs->places[a->file].name, costs->places[b->file].name);
}

static void fill_rows(struct table *table, const uint8_t *wanted, bool by_line)
{
	const struct line_costs *costs = table->costs;
	size_t i, count = 0;

	for (i = 0; i < costs->line_count; i++) {
		const struct cost_line *line = &costs->lines[i];
		uint32_t file = costs->functions[line->function].file;

		if (wanted[file])
			table->rows[count++] = (struct row){.file = file,
							    .line = line->line,
							    .hits = by_line ? line->hits : line->starts,
							    .own_ns = line->own_ns};
	}
	qsort(table->rows, count, sizeof(*table->rows), by_place);
	for (i = 0; i < count; i++) {
		struct row *last = table->row_count ? &table->rows[table->row_count - 1] : NULL;

		if (last && by_place(last, &table->rows[i]) == 0) {
			last->hits += table->rows[i].hits;
			last->own_ns += table->rows[i].own_ns;
		} else {
			table->rows[table->row_count++] = table->rows[i];
		}
	}
}

static void fill_calls(struct table *table, const uint8_t *wanted)
{
	const struct line_costs *costs = table->costs;
	size_t i;

	for (i = 0; i < costs->call_count; i++) {
		const struct cost_call *call = &costs->calls[i];
		const struct cost_line *from = call->from == LINE_COSTS_NOBODY ? NULL : &costs->lines[call->from];

		if (from && wanted[costs->functions[from->function].file])
			table->calls[table->call_count++] = (struct call_row){
			    .file = costs->functions[from->function].file, .line = from->line, .call = call};
	}
	qsort(table->calls, table->call_count, sizeof(*table->calls), by_site);
}

static void fill_files(struct table *table)
{
	size_t i, call = 0;

	for (i = 0; i < table->row_count; i++) {
		struct file_rows *file = &table->files[table->file_count - (table->file_count > 0)];

		if (!table->file_count || file->file != table->rows[i].file) {
			file = &table->files[table->file_count++];
			*file = (struct file_rows){
			    .file = table->rows[i].file, .rows = &table->rows[i], .calls = &table->calls[call]};
		}
		file->row_count++;
		file->own_ns += table->rows[i].own_ns;
		for (; call < table->call_count && table->calls[call].file == file->file; call++)
			file->call_count++;
	}
	qsort_r(table->files, table->file_count, sizeof(*table->files), by_time, (void *)table->costs);
}

static void table_done(struct table *table)
{
	free(table->rows);
	free(table->calls);
	free(table->files);
}

static int table_make(struct table *table, const struct annotate *annotate, const struct line_costs *costs)
{
	uint8_t *wanted = wanted_files(annotate->request, costs);

	*table = (struct table){.costs = costs};
	table->rows = malloc(((size_t)costs->line_count + 1) * sizeof(*table->rows));
	table->calls = malloc(((size_t)costs->call_count + 1) * sizeof(*table->calls));
	table->files = malloc(((size_t)costs->line_count + 1) * sizeof(*table->files));
	if (!wanted || !table->rows || !table->calls || !table->files) {
		free(wanted);
		table_done(table);
		return -ENOMEM;
	}
	fill_rows(table, wanted, annotate->by_line);
	fill_calls(table, wanted);
	fill_files(table);
	free(wanted);
	return 0;
}

/* --- sources --- */

/* The lines of a file in order; none if the file does not exist. */
struct lines {
	FILE *file;
	char *buffer;
	size_t allocated;
};

static void lines_open(struct lines *lines, const struct annotate *annotate, const struct cost_place *place)
{
	int fd;

	*lines = (struct lines){0};
	if (!source_is_file(place->name))
		return;
	fd = source_open(annotate->trace, place->process, place->name, annotate->request->all_sources);
	if (fd >= 0) {
		if (source_is_newer(annotate->trace, fd))
			source_warn_newer("annotate", place->name);
		lines->file = fdopen(fd, "r");
		if (!lines->file)
			close(fd);
	} else {
		source_warn_missing("annotate", place->name, "shown", fd);
	}
}

/* Reads a line, without white space at its end. False at the end. */
static bool lines_next(struct lines *lines, struct text *line)
{
	ssize_t length = lines->file ? getline(&lines->buffer, &lines->allocated, lines->file) : -1;

	while (length > 0 && strchr(" \t\r\n\f", lines->buffer[length - 1]))
		length--;
	*line = (struct text){lines->buffer, length < 0 ? 0 : (size_t)length};
	return length >= 0;
}

static void lines_close(struct lines *lines)
{
	if (lines->file)
		fclose(lines->file);
	free(lines->buffer);
}

/* Writes source code unchanged, except characters that a terminal would interpret. */
static void put_code(struct output *output, struct text code)
{
	while (code.length) {
		struct text one = code;
		size_t plain = text_plain(code);

		if (!plain)
			text_next(&code);
		one.length = plain ? plain : (size_t)(code.at - one.at);
		if (plain) {
			code.at += plain;
			code.length -= plain;
		}
		if (plain || one.at[0] == '\t' || one.at[0] == '\\' || one.at[0] == '"')
			output_put(output, one.at, one.length);
		else
			output_line(output, one);
	}
}

/* --- text --- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double percent(const struct annotate *annotate, uint64_t ns)
{
	return annotate->duration_ns ? (double)ns * 100 / (double)annotate->duration_ns : 0;
}

static void put_numbers(const struct annotate *annotate, uint64_t hits, uint64_t ns)
{
	output_format(annotate->output, "|%10llu|%13g|%13g|%6.2f%%|", (unsigned long long)hits, seconds(ns),
		      hits ? seconds(ns) / (double)hits : 0, percent(annotate, ns));
}

static void put_call(const struct annotate *annotate, const struct line_costs *costs, const struct cost_call *call)
{
	const struct label *callee = &costs->labels.at[call->callee];

	output_string(annotate->output, "(call)");
	put_numbers(annotate, call->calls, call->total_ns);
	output_string(annotate->output, "# ");
	output_line(annotate->output, callee->file);
	output_format(annotate->output, ":%u ", callee->line);
	output_line(annotate->output, callee->name);
	output_char(annotate->output, '\n');
}

static void put_line(const struct annotate *annotate, uint32_t number, const struct row *row, struct text code)
{
	if (number)
		output_format(annotate->output, "%6u", number);
	else
		output_string(annotate->output, "     ?");
	put_numbers(annotate, row ? row->hits : 0, row ? row->own_ns : 0);
	put_code(annotate->output, code);
	output_char(annotate->output, '\n');
}

/* Writes every line of the source; without the source, those with data. */
static void put_lines(const struct annotate *annotate, const struct line_costs *costs, const struct file_rows *file,
		      struct lines *lines)
{
	const struct row *row = file->rows, *rows_end = file->rows + file->row_count;
	const struct call_row *call = file->calls, *calls_end = file->calls + file->call_count;
	bool more = true;
	uint32_t number;

	/* A function without a known line has line 0. */
	for (number = 0; more || row < rows_end; number++) {
		struct text code = {0};
		bool has = row < rows_end && row->line == number;

		if (number && more)
			more = lines_next(lines, &code);
		if (!more && !has) {
			if (row == rows_end)
				break;
			number = row->line - 1;
			continue;
		}
		if (number || has)
			put_line(annotate, number, has ? row : NULL, code);
		row += has;
		for (; call < calls_end && call->line == number; call++)
			put_call(annotate, costs, call->call);
	}
}

static void put_file(const struct annotate *annotate, const struct table *table, const struct file_rows *file)
{
	const struct cost_place *place = &table->costs->places[file->file];
	struct output *output = annotate->output;
	struct lines lines;

	output_string(output, "File: ");
	output_line(output, place->name);
	output_format(output, "\nFile duration: %gs (%.2f%%)\n", seconds(file->own_ns),
		      percent(annotate, file->own_ns));
	output_string(output, "Line #|      Hits|         Time| Time per hit|      %|Source code\n"
			      "------+----------+-------------+-------------+-------+-----------\n");
	lines_open(&lines, annotate, place);
	put_lines(annotate, table->costs, file, &lines);
	lines_close(&lines);
}

/* --- JSON --- */

static void json_calls(const struct annotate *annotate, const struct line_costs *costs, const struct call_row *call,
		       size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct label *callee = &costs->labels.at[call[i].call->callee];

		output_string(annotate->output, i ? ",\n     {\"file\": \"" : "\n     {\"file\": \"");
		output_json(annotate->output, callee->file);
		output_format(annotate->output, "\", \"line\": %u, \"function\": \"", callee->line);
		output_json(annotate->output, callee->name);
		output_format(annotate->output, "\", \"calls\": %llu, \"total_ns\": %llu}",
			      (unsigned long long)call[i].call->calls, (unsigned long long)call[i].call->total_ns);
	}
}

static void json_line(const struct annotate *annotate, const struct row *row, bool known, struct text code)
{
	output_format(annotate->output, "{\"line\": %u, \"hits\": %llu, \"own_ns\": %llu, \"source\": ", row->line,
		      (unsigned long long)row->hits, (unsigned long long)row->own_ns);
	if (known) {
		output_char(annotate->output, '"');
		output_json(annotate->output, code);
		output_char(annotate->output, '"');
	} else {
		output_string(annotate->output, "null");
	}
	output_string(annotate->output, ", \"calls\": [");
}

static void json_file(const struct annotate *annotate, const struct table *table, const struct file_rows *file)
{
	const struct cost_place *place = &table->costs->places[file->file];
	const struct call_row *call = file->calls, *calls_end = file->calls + file->call_count;
	struct lines lines;
	uint32_t number = 0;
	bool more = true;
	size_t i, calls;

	output_string(annotate->output, "{\"file\": \"");
	output_json(annotate->output, place->name);
	output_format(annotate->output, "\", \"own_ns\": %llu, \"lines\": [", (unsigned long long)file->own_ns);
	lines_open(&lines, annotate, place);
	for (i = 0; i < file->row_count; i++) {
		const struct row *row = &file->rows[i];
		struct text code = {0};

		for (; more && number < row->line; number++)
			more = lines_next(&lines, &code);
		for (calls = 0; call + calls < calls_end && call[calls].line == row->line;)
			calls++;
		output_string(annotate->output, i ? ",\n    " : "\n    ");
		json_line(annotate, row, more && row->line, code);
		json_calls(annotate, table->costs, call, calls);
		output_string(annotate->output, "]}");
		call += calls;
	}
	lines_close(&lines);
	output_string(annotate->output, "]}");
}

static void json_files(const struct annotate *annotate, const struct table *table)
{
	size_t i;

	output_string(annotate->output, "\"files\": [");
	for (i = 0; i < table->file_count; i++) {
		output_string(annotate->output, i ? ",\n   " : "\n   ");
		json_file(annotate, table, &table->files[i]);
	}
	output_char(annotate->output, ']');
}

/* --- head, threads, foot --- */

static const struct trace_process *first_process(const struct annotate *annotate)
{
	uint32_t i;

	for (i = 0; i < annotate->trace->process_count; i++) {
		const struct trace_process *process = annotate->trace->processes[i];

		if (process && filter_process(&annotate->request->filter, process))
			return process;
	}
	return NULL;
}

static void put_head(const struct annotate *annotate)
{
	const struct trace_process *process = first_process(annotate);
	const json_t *arguments = process ? json_object_get(process->meta, "argv") : NULL, *argument;
	struct output *output = annotate->output;
	size_t i;

	if (annotate->request->json) {
		output_format(output, "{\"duration_ns\": %llu, \"by\": \"%s\",\n ",
			      (unsigned long long)annotate->duration_ns, annotate->by_line ? "line" : "function");
		output_string(output, annotate->request->by_thread ? "\"threads\": [" : "");
		return;
	}
	output_string(output, "Command line:");
	json_array_foreach((json_t *)arguments, i, argument)
	{
		output_char(output, ' ');
		output_argument(output, text_of(json_string_value(argument)));
	}
	output_format(output, "\nTotal duration: %gs\n", seconds(annotate->duration_ns));
	if (!annotate->by_line)
		output_string(output,
			      "By function: there are no line events; calls and own time of a function stand at its "
			      "first line\n");
}

static void json_thread(const struct annotate *annotate, const struct call_walk *walk)
{
	output_format(annotate->output, "%s\n  {\"pid\": %lld, \"tid\": %u, \"name\": \"", annotate->any ? "," : "",
		      (long long)walk->process->pid, walk->thread->tid);
	output_json(annotate->output, text_of(walk->thread->name));
	output_string(annotate->output, "\", ");
}

static void put_thread(const struct annotate *annotate, const struct call_walk *walk)
{
	output_format(annotate->output, "Thread: %u of process %lld", walk->thread->tid, (long long)walk->process->pid);
	if (walk->thread->name && walk->thread->name[0]) {
		output_string(annotate->output, ", ");
		output_line(annotate->output, text_of(walk->thread->name));
	}
	output_char(annotate->output, '\n');
}

/* walk: its thread; NULL without threads. */
static int put_table(struct annotate *annotate, const struct line_costs *costs, const struct call_walk *walk)
{
	struct table table;
	int error = table_make(&table, annotate, costs);
	size_t i;

	if (error)
		return error;
	if (walk && annotate->request->json && table.file_count)
		json_thread(annotate, walk);
	else if (walk && table.file_count)
		put_thread(annotate, walk);
	if (annotate->request->json && (!walk || table.file_count))
		json_files(annotate, &table);
	for (i = 0; i < table.file_count && !annotate->request->json; i++)
		put_file(annotate, &table, &table.files[i]);
	if (walk && annotate->request->json && table.file_count)
		output_char(annotate->output, '}');
	annotate->any |= table.file_count > 0;
	table_done(&table);
	return annotate->output->error;
}

static int annotate_thread(void *owner, struct line_costs *costs, const struct call_walk *walk)
{
	int error = put_table(owner, costs, walk);

	line_costs_clear(costs);
	return error;
}

static int write_tables(struct annotate *annotate, struct progress *progress)
{
	const struct request *request = annotate->request;
	struct line_costs costs = {0};
	int error;

	put_head(annotate);
	error = line_costs_add(&costs, annotate->trace, &request->filter, progress,
			       request->by_thread ? annotate_thread : NULL, annotate);
	progress_end(progress);
	if (!error && !request->by_thread)
		error = put_table(annotate, &costs, NULL);
	if (request->json)
		output_string(annotate->output, request->by_thread ? "]}\n" : "}\n");
	line_costs_done(&costs);
	return error;
}

/* --- the verb --- */

static uint64_t duration_ns(const struct trace *trace, const struct filter *filter)
{
	int64_t from = filter_from(filter), to = filter_to(filter), whole = trace->end_ns - trace->start_ns;

	to = to < whole ? to : whole;
	return from < to ? (uint64_t)(to - from) : 0;
}

static void report_unmatched_files(const struct request *request)
{
	size_t i;

	for (i = 0; request->files[i]; i++)
		if (!request->ran[i])
			output_message("evprof annotate: no file that matches %s ran in the shown part of the trace; "
				       "evprof report lists those that ran",
				       request->files[i]);
}

static int annotate_trace(struct request *request, const char *path)
{
	struct annotate annotate = {.request = request, .trace = filter_open(&request->filter, "annotate", path)};
	struct progress progress;
	struct output output;
	int status, error;

	if (!annotate.trace || verb_overwrites("annotate", annotate.trace, request->to)) {
		trace_close(annotate.trace);
		return CLI_FAILED;
	}
	annotate.output = &output;
	annotate.duration_ns = duration_ns(annotate.trace, &request->filter);
	annotate.by_line = line_costs_by_line(annotate.trace, &request->filter);
	error = output_open(&output, request->to);
	if (!error) {
		progress_begin(&progress, "annotating", walk_events(annotate.trace, &request->filter));
		error = write_tables(&annotate, &progress);
		if (error)
			output_abandon(&output);
		else
			error = output_close(&output);
	}
	if (error)
		output_message("evprof annotate: cannot write %s: %s", request->to, strerror(-error));
	else
		report_unmatched_files(request);
	status = error ? CLI_FAILED : trace_print_verdict(annotate.trace);
	trace_close(annotate.trace);
	return status;
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
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read.\n";

enum { OPTION_BY = 256, OPTION_ALL_SOURCES };

static const struct option options_known[] = {
    {"format", required_argument, NULL, 'f'},
    {"by", required_argument, NULL, OPTION_BY},
    {SOURCE_ALL_OPTION, no_argument, NULL, OPTION_ALL_SOURCES},
    {"output", required_argument, NULL, 'o'},
    FILTER_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool take_option(struct request *request, int option, const char *word)
{
	if (filter_is_option(option))
		return filter_take(&request->filter, "annotate", option, optarg);
	switch (option) {
	case 'f':
		request->json = strcmp(optarg, "json") == 0;
		if (!request->json && strcmp(optarg, "text") != 0)
			cli_misused("annotate", "the formats are text and json, not \"%s\"", optarg);
		return request->json || strcmp(optarg, "text") == 0;
	case OPTION_BY:
		request->by_thread = strcmp(optarg, "thread") == 0;
		if (!request->by_thread)
			cli_misused("annotate", "--by wants \"thread\", not \"%s\"", optarg);
		return request->by_thread;
	case OPTION_ALL_SOURCES:
		return request->all_sources = true;
	case 'o':
		request->to = optarg;
		return true;
	}
	return cli_option_wrong("annotate", word);
}

int cmd_annotate(int argc, char **argv)
{
	struct request request = {.to = "-"};
	int status = CLI_FAILED;
	int option;

	opterr = 0;
	while ((option = cli_getopt(argc, argv, "f:o:h", options_known)) != -1) {
		if (option == 'h') {
			printf("%s%s%s", help_text, filter_help, help_end);
			status = CLI_FINE;
			goto done;
		}
		if (!take_option(&request, option, cli_option(argv)))
			goto done;
	}
	request.files = argv + optind + 1;
	request.ran = calloc((size_t)argc, sizeof(*request.ran));
	if (optind == argc)
		cli_misused("annotate", "a trace is missing");
	else if (!request.ran)
		fprintf(stderr, "evprof annotate: out of memory\n");
	else
		status = annotate_trace(&request, argv[optind]);
done:
	free(request.ran);
	filter_done(&request.filter);
	return status;
}
