/*
 * cmd_report.c - evprof report: the table of cProfile. Counting is in profile.c; here are the window's options, the
 * order and the print.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "profile.h"
#include "progress.h"
#include "trace_reader.h"
#include "verbs.h"

struct row {
	const struct label *label;
	const struct profile_times *times;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_standard_name(const void *a, const void *b)
{
	return label_compare(((const struct row *)a)->label, ((const struct row *)b)->label);
}

/* Rows that are equal in what was asked for stand in order of their names. */
static int or_name(int order, const void *a, const void *b)
{
	return order ? order : by_standard_name(a, b);
}

static int by_calls(const void *a, const void *b)
{
	return or_name(compare_u64(((const struct row *)b)->times->calls, ((const struct row *)a)->times->calls), a, b);
}

static uint64_t primitive_calls(const struct profile_times *times)
{
	return times->calls - times->recursive;
}

static int by_primitive_calls(const void *a, const void *b)
{
	return or_name(compare_u64(primitive_calls(((const struct row *)b)->times),
				   primitive_calls(((const struct row *)a)->times)),
		       a, b);
}

static int by_own(const void *a, const void *b)
{
	return or_name(compare_u64(((const struct row *)b)->times->own_ns, ((const struct row *)a)->times->own_ns), a,
		       b);
}

static int by_total(const void *a, const void *b)
{
	return or_name(compare_u64(((const struct row *)b)->times->total_ns, ((const struct row *)a)->times->total_ns),
		       a, b);
}

static int by_file(const void *a, const void *b)
{
	return or_name(text_compare(((const struct row *)a)->label->file, ((const struct row *)b)->label->file), a, b);
}

static int by_line(const void *a, const void *b)
{
	return or_name(compare_u64(((const struct row *)a)->label->line, ((const struct row *)b)->label->line), a, b);
}

static int by_name(const void *a, const void *b)
{
	return or_name(text_compare(((const struct row *)a)->label->name, ((const struct row *)b)->label->name), a, b);
}

/* The names of pstats. */
static const struct order {
	const char *name;
	int (*compare)(const void *a, const void *b);
	const char *title;
} orders[] = {
    {"time", by_own, "internal time"},
    {"tottime", by_own, "internal time"},
    {"cumulative", by_total, "cumulative time"},
    {"cumtime", by_total, "cumulative time"},
    {"calls", by_calls, "call count"},
    {"ncalls", by_calls, "call count"},
    {"pcalls", by_primitive_calls, "primitive call count"},
    {"name", by_name, "function name"},
    {"nfl", by_name, "name/file/line"},
    {"file", by_file, "file name"},
    {"filename", by_file, "file name"},
    {"module", by_file, "file name"},
    {"line", by_line, "line number"},
    {"stdname", by_standard_name, "standard name"},
};

#define ORDERS (sizeof(orders) / sizeof(orders[0]))

struct request {
	struct select select;
	struct profile_options options;
	const struct order *order;
	int64_t limit; /* -1: all */
	bool json;
	char *between; /* the copy that the names of the marks point into */
};

static const char help_text[] =
    "usage: evprof report [options] TRACE...\n"
    "\n"
    "Prints the table of cProfile. Several traces are added up; functions are the same if file, line and name are.\n"
    "\n"
    "  -s, --sort KEY        time or tottime (default), cumulative or cumtime, calls or ncalls, pcalls, name, file,\n"
    "                        module, line, nfl, stdname\n"
    "  -n, --limit N         the first N functions only\n"
    "      --json            for programs: {\"functions\": [{\"file\", \"line\", \"function\", \"ncalls\", ...}], "
    "...}\n"
    "      --between A,B     count between the marks A and B (evprof_mark), in each process that sets them\n";

static const char help_end[] =
    "\n"
    "Calls that were already running when the window begins are not counted, as with cProfile.\n"
    "Exit status: 0; 1 if something is missing from a trace; 2 if one cannot be read.\n";

static const struct order *find_order(const char *name)
{
	size_t i;

	for (i = 0; i < ORDERS; i++)
		if (strcmp(orders[i].name, name) == 0)
			return &orders[i];
	fprintf(stderr, "evprof report: there is no order \"%s\"; the orders are", name);
	for (i = 0; i < ORDERS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", orders[i].name);
	fprintf(stderr, "\n");
	return NULL;
}

static bool set_between(struct request *request, const char *text)
{
	char *comma;

	free(request->between);
	request->between = strdup(text);
	comma = request->between ? strchr(request->between, ',') : NULL;
	if (!comma) {
		verb_misused("report", "--between wants two marks with a comma between, not \"%s\"", text);
		return false;
	}
	*comma = 0;
	request->options.mark_begin = request->between;
	request->options.mark_end = comma + 1;
	return true;
}

enum { OPTION_JSON = 256, OPTION_BETWEEN };

static const struct option options_known[] = {
    {"sort", required_argument, NULL, 's'},
    {"limit", required_argument, NULL, 'n'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"between", required_argument, NULL, OPTION_BETWEEN},
    SELECT_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool take_option(struct request *request, int option)
{
	if (select_is_option(option))
		return select_take(&request->select, "report", option, optarg);
	switch (option) {
	case 's':
		request->order = find_order(optarg);
		return request->order != NULL;
	case 'n':
		return verb_number("report", "--limit", optarg, 0, &request->limit);
	case OPTION_JSON:
		request->json = true;
		return true;
	case OPTION_BETWEEN:
		return set_between(request, optarg);
	}
	verb_misused("report", "this option is not known or lacks its value");
	return false;
}

static struct row *make_rows(const struct profile *profile, const struct request *request, size_t *count)
{
	struct row *rows = calloc((size_t)profile->labels.count + 1, sizeof(*rows));
	uint32_t i;

	*count = 0;
	for (i = 0; rows && i < profile->labels.count && i < profile->times_allocated; i++) {
		const struct profile_times *times = &profile->times[i];

		if (times->calls || times->own_ns || times->total_ns)
			rows[(*count)++] = (struct row){&profile->labels.at[i], times};
	}
	if (rows)
		qsort(rows, *count, sizeof(*rows), request->order->compare);
	return rows;
}

struct sums {
	uint64_t calls;
	uint64_t primitive;
	uint64_t own_ns;
};

static struct sums sum_rows(const struct row *rows, size_t count)
{
	struct sums sums = {0};
	size_t i;

	for (i = 0; i < count; i++) {
		sums.calls += rows[i].times->calls;
		sums.primitive += primitive_calls(rows[i].times);
		sums.own_ns += rows[i].times->own_ns;
	}
	return sums;
}

static void print_row(struct output *output, const struct row *row)
{
	const struct profile_times *times = row->times;
	uint64_t primitive = primitive_calls(times);
	char calls[48];

	if (times->recursive)
		snprintf(calls, sizeof(calls), "%llu/%llu", (unsigned long long)times->calls,
			 (unsigned long long)primitive);
	else
		snprintf(calls, sizeof(calls), "%llu", (unsigned long long)times->calls);
	output_format(output, "%9s %8.3f ", calls, (double)times->own_ns / 1e9);
	if (times->calls)
		output_format(output, "%8.3f", (double)times->own_ns / 1e9 / (double)times->calls);
	else
		output_format(output, "%8s", "");
	output_format(output, " %8.3f ", (double)times->total_ns / 1e9);
	if (primitive)
		output_format(output, "%8.3f ", (double)times->total_ns / 1e9 / (double)primitive);
	else
		output_format(output, "%8s ", "");
	label_print(row->label, output);
	output_char(output, '\n');
}

static void print_table(struct output *output, const struct profile *profile, const struct request *request,
			const struct row *rows, size_t count)
{
	struct sums sums = sum_rows(rows, count);
	size_t shown = request->limit >= 0 && (size_t)request->limit < count ? (size_t)request->limit : count;
	size_t i;

	output_format(output, "         %llu function calls", (unsigned long long)sums.calls);
	if (sums.primitive != sums.calls)
		output_format(output, " (%llu primitive calls)", (unsigned long long)sums.primitive);
	output_format(output, " in %.3f seconds\n\n", (double)sums.own_ns / 1e9);
	if (profile->lost)
		output_format(output, "   %llu events were lost: counts and times are too small\n",
			      (unsigned long long)profile->lost);
	output_format(output, "   Ordered by: %s\n", request->order->title);
	if (shown < count)
		output_format(output, "   List reduced from %zu to %zu due to restriction <%zu>\n", count, shown,
			      shown);
	output_string(output, "\n   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n");
	for (i = 0; i < shown; i++)
		print_row(output, &rows[i]);
	output_string(output, "\n");
}

static void json_row(struct output *output, const struct row *row)
{
	const struct profile_times *times = row->times;

	output_string(output, "{\"file\": \"");
	output_json(output, row->label->file);
	output_format(output, "\", \"line\": %u, \"function\": \"", row->label->line);
	output_json(output, row->label->name);
	output_format(output,
		      "\", \"ncalls\": %llu, \"primitive_calls\": %llu, \"tottime\": %.9f, \"cumtime\": %.9f, "
		      "\"tottime_ns\": %llu, \"cumtime_ns\": %llu}",
		      (unsigned long long)times->calls, (unsigned long long)primitive_calls(times),
		      (double)times->own_ns / 1e9, (double)times->total_ns / 1e9, (unsigned long long)times->own_ns,
		      (unsigned long long)times->total_ns);
}

static void print_json(struct output *output, const struct profile *profile, const struct request *request,
		       const struct row *rows, size_t count)
{
	struct sums sums = sum_rows(rows, count);
	size_t shown = request->limit >= 0 && (size_t)request->limit < count ? (size_t)request->limit : count;
	size_t i;

	output_format(output,
		      "{\"calls\": %llu, \"primitive_calls\": %llu, \"tottime\": %.9f, \"lost\": %llu, "
		      "\"unmatched\": %llu, \"open\": %llu,\n \"functions\": [",
		      (unsigned long long)sums.calls, (unsigned long long)sums.primitive, (double)sums.own_ns / 1e9,
		      (unsigned long long)profile->lost, (unsigned long long)profile->unmatched,
		      (unsigned long long)profile->open);
	for (i = 0; i < shown; i++) {
		output_string(output, i ? ",\n  " : "\n  ");
		json_row(output, &rows[i]);
	}
	output_string(output, "\n]}\n");
}

static int print_profile(const struct profile *profile, const struct request *request)
{
	struct output output;
	size_t count;
	struct row *rows = make_rows(profile, request, &count);
	int error = rows ? output_open(&output, "-") : -ENOMEM;

	if (!error) {
		if (request->json)
			print_json(&output, profile, request, rows, count);
		else
			print_table(&output, profile, request, rows, count);
		error = output_close(&output);
	}
	free(rows);
	return error;
}

/* Returns the exit status that this trace asks for. */
static int add_trace(struct profile *profile, const char *path, const struct request *request)
{
	struct trace *trace = trace_open_or_say(path);
	struct progress progress;
	uint64_t events = 0;
	int status;
	size_t i;

	if (!trace)
		return TRACE_EXIT_FAILED;
	for (i = 0; i < trace->place_count; i++)
		events += trace->places[i].type == TRACE_CHUNK_EVENTS ? trace->places[i].events : 0;
	progress_begin(&progress, "counting", events);
	status = profile_add(profile, trace, &request->options, &progress);
	progress_end(&progress);
	if (status < 0)
		fprintf(stderr, "evprof report: %s: %s\n", path, strerror(-status));
	status = status < 0 ? TRACE_EXIT_FAILED : trace_say_verdict(trace);
	trace_close(trace);
	return status;
}

static int report(const struct request *request, char *const *paths, int count)
{
	struct profile profile = {0};
	int status = TRACE_EXIT_FINE;
	int failed = 0;
	int error;
	int i;

	for (i = 0; i < count; i++) {
		int one = add_trace(&profile, paths[i], request);

		failed += one == TRACE_EXIT_FAILED;
		status = one > status ? one : status;
	}
	if (failed == count) {
		profile_done(&profile);
		return TRACE_EXIT_FAILED;
	}
	if (request->options.mark_begin && !profile.mark_seen) {
		fprintf(stderr, "evprof report: no mark \"%s\" was set; evprof dump shows the marks of a trace\n",
			request->options.mark_begin);
		profile_done(&profile);
		return TRACE_EXIT_FAILED;
	}
	error = print_profile(&profile, request);
	if (error)
		fprintf(stderr, "evprof report: cannot write the report: %s\n", strerror(-error));
	profile_done(&profile);
	return error ? TRACE_EXIT_FAILED : status;
}

int cmd_report(int argc, char **argv)
{
	struct request request = {.order = &orders[0], .limit = -1};
	int status = TRACE_EXIT_FAILED;
	int option;

	opterr = 0;
	request.options.select = &request.select;
	while ((option = getopt_long(argc, argv, "s:n:h", options_known, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s", help_text, select_help, help_end);
			status = TRACE_EXIT_FINE;
			goto done;
		}
		if (!take_option(&request, option))
			goto done;
	}
	if (optind == argc)
		verb_misused("report", "a trace is missing");
	else if (request.options.mark_begin && (request.select.from_given || request.select.to_given))
		verb_misused("report", "--between and --from or --to exclude each other");
	else
		status = report(&request, argv + optind, argc - optind);
done:
	select_done(&request.select);
	free(request.between);
	return status;
}
