/*
 * diff.c - evprof diff: calls, times and allocations of two traces by function.
 *
 * Functions are matched in three rounds. Each round takes what the previous ones left:
 *
 *   1. same file, line and qualified name
 *   2. same file and qualified name: the line moved
 *   3. same base name of the file and qualified name: the file moved, too
 *
 * Several functions that are equal in a round (lambdas of one file) are matched in order of file and line. If one trace
 * has no qualified names, because its Python is older than 3.11, plain names are compared.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/function_totals.h"
#include "cmd/verbs.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"

/* A function of one of the traces. */
struct side {
	struct text file;
	struct text name; /* the compared name: qualified or plain */
	uint32_t line;
	const struct label *label;
	const char *display;
	const struct function_total *counts;
	bool matched;
};

struct sides {
	struct side *at;
	size_t count;
};

/* A row: a function of a, of b, or of both. */
struct row {
	const struct side *a;
	const struct side *b;
};

struct rows {
	struct row *at;
	size_t count;
};

static const struct function_total nothing;

static const struct function_total *counts_of(const struct side *side)
{
	return side ? side->counts : &nothing;
}

/* --- matching --- */

static int compare_lines(const struct side *a, const struct side *b)
{
	return (a->line > b->line) - (a->line < b->line);
}

static int by_place(const struct side *a, const struct side *b)
{
	int order = text_compare(a->file, b->file);

	if (!order)
		order = text_compare(a->name, b->name);
	return order ? order : compare_lines(a, b);
}

static int by_file_and_name(const struct side *a, const struct side *b)
{
	int order = text_compare(a->file, b->file);

	return order ? order : text_compare(a->name, b->name);
}

static int by_base_and_name(const struct side *a, const struct side *b)
{
	int order = text_compare(text_base_name(a->file), text_base_name(b->file));

	return order ? order : text_compare(a->name, b->name);
}

typedef int comparison(const struct side *a, const struct side *b);

/* Sorts by what the round compares, then by place. */
static int sort_sides(const void *a, const void *b, void *same)
{
	comparison *compare = *(comparison **)same;
	const struct side *const *left = a, *const *right = b;
	int order = compare(*left, *right);

	return order ? order : by_place(*left, *right);
}

/* The unmatched functions of a side, sorted. */
static struct side **unmatched_sides(const struct sides *sides, comparison *compare, size_t *count)
{
	struct side **list = malloc((sides->count + 1) * sizeof(struct side *));
	size_t i;

	*count = 0;
	for (i = 0; list && i < sides->count; i++)
		if (!sides->at[i].matched)
			list[(*count)++] = &sides->at[i];
	if (list)
		qsort_r(list, *count, sizeof(struct side *), sort_sides, &compare);
	return list;
}

static int match_round(struct rows *rows, const struct sides *a, const struct sides *b, comparison *compare)
{
	size_t a_count, b_count, i = 0, k = 0;
	struct side **left = unmatched_sides(a, compare, &a_count);
	struct side **right = unmatched_sides(b, compare, &b_count);

	while (left && right && i < a_count && k < b_count) {
		int order = compare(left[i], right[k]);

		if (!order) {
			left[i]->matched = right[k]->matched = true;
			rows->at[rows->count++] = (struct row){left[i], right[k]};
		}
		i += order <= 0;
		k += order >= 0;
	}
	free(left);
	free(right);
	return left && right ? 0 : -ENOMEM;
}

static int match_sides(struct rows *rows, const struct sides *a, const struct sides *b)
{
	static comparison *const rounds[] = {by_place, by_file_and_name, by_base_and_name};
	int error = 0;
	size_t i;

	rows->at = calloc(a->count + b->count + 1, sizeof(*rows->at));
	if (!rows->at)
		return -ENOMEM;
	for (i = 0; !error && i < sizeof(rounds) / sizeof(rounds[0]); i++)
		error = match_round(rows, a, b, rounds[i]);
	for (i = 0; i < a->count; i++)
		if (!a->at[i].matched)
			rows->at[rows->count++] = (struct row){&a->at[i], NULL};
	for (i = 0; i < b->count; i++)
		if (!b->at[i].matched)
			rows->at[rows->count++] = (struct row){NULL, &b->at[i]};
	return error;
}

static int list_sides(struct sides *sides, const struct function_totals *totals, bool qualified)
{
	uint32_t i;

	sides->at = calloc((size_t)totals->functions.count + 1, sizeof(*sides->at));
	if (!sides->at)
		return -ENOMEM;
	for (i = 0; i < totals->functions.count; i++) {
		const struct stack_function *function = &totals->functions.at[i];
		const struct label *label = &totals->functions.labels.at[i];

		sides->at[sides->count++] = (struct side){
		    .file = function->file,
		    .name = qualified || function->is_c ? text_of(function->name) : label->name,
		    .line = function->line,
		    .label = label,
		    .display = function->name,
		    .counts = &totals->counts[i],
		};
	}
	return 0;
}

/* --- order --- */

static uint64_t calls_of(const struct function_total *counts)
{
	return counts->calls;
}

static uint64_t own_of(const struct function_total *counts)
{
	return counts->own_ns;
}

static uint64_t total_of(const struct function_total *counts)
{
	return counts->total_ns;
}

static uint64_t allocations_of(const struct function_total *counts)
{
	return counts->allocations;
}

static uint64_t bytes_of(const struct function_total *counts)
{
	return counts->allocated_bytes;
}

/* The measures, in the order of the columns. */
static const struct measure {
	const char *sort; /* for --sort */
	const char *key;  /* for JSON and CSV */
	const char *title;
	uint64_t (*of)(const struct function_total *counts);
	bool seconds; /* in ns; the table shows seconds */
	bool memory;
} measures[] = {
    {"calls", "ncalls", "call count", calls_of, false, false},
    {"time", "tottime_ns", "internal time", own_of, true, false},
    {"cumtime", "cumtime_ns", "cumulative time", total_of, true, false},
    {"allocs", "allocs", "number of allocations", allocations_of, false, true},
    {"bytes", "bytes", "allocated bytes", bytes_of, false, true},
};

#define MEASURES (sizeof(measures) / sizeof(measures[0]))

static int64_t change_of(const struct measure *measure, const struct row *row)
{
	return (int64_t)(measure->of(counts_of(row->b)) - measure->of(counts_of(row->a)));
}

static const struct side *shown_side(const struct row *row)
{
	return row->b ? row->b : row->a;
}

/* The largest change first, increase or decrease. */
static int sort_rows(const void *a, const void *b, void *by)
{
	const struct row *left = a, *right = b;
	int64_t first = change_of(by, left), second = change_of(by, right);
	uint64_t first_size = first < 0 ? -(uint64_t)first : (uint64_t)first;
	uint64_t second_size = second < 0 ? -(uint64_t)second : (uint64_t)second;

	if (first_size != second_size)
		return first_size > second_size ? -1 : 1;
	if (first != second)
		return first > second ? -1 : 1;
	return label_compare(shown_side(left)->label, shown_side(right)->label);
}

/* --- options --- */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct request {
	struct filter filter;
	const struct measure *sort;
	int64_t limit; /* -1: all */
	enum format format;
	const char *paths[2];
	struct function_totals totals[2];
	uint64_t lost[2];
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

enum { OPTION_JSON = 256, OPTION_CSV };

static const struct option options_known[] = {
    {"sort", required_argument, NULL, 's'},
    {"limit", required_argument, NULL, 'n'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"csv", no_argument, NULL, OPTION_CSV},
    FILTER_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const struct measure *find_measure(const char *name)
{
	size_t i;

	for (i = 0; i < MEASURES; i++)
		if (strcmp(measures[i].sort, name) == 0)
			return &measures[i];
	fprintf(stderr, "evprof diff: there is no order \"%s\"; the orders are", name);
	for (i = 0; i < MEASURES; i++)
		fprintf(stderr, "%s %s", i ? "," : "", measures[i].sort);
	fprintf(stderr, "\n");
	return NULL;
}

static bool take_option(struct request *request, int option, const char *word)
{
	if (option == FILTER_MIN_DURATION) {
		/*
		 * With --min-duration, allocations would count for the wrong function: a call is known to be long
		 * enough at its end only.
		 */
		cli_misused("diff", "--min-duration is not for diff");
		return false;
	}
	if (filter_is_option(option))
		return filter_take(&request->filter, "diff", option, optarg);
	switch (option) {
	case 's':
		request->sort = find_measure(optarg);
		return request->sort != NULL;
	case 'n':
		return cli_number("diff", "--limit", optarg, 0, &request->limit);
	case OPTION_JSON:
		request->format = FORMAT_JSON;
		return true;
	case OPTION_CSV:
		request->format = FORMAT_CSV;
		return true;
	}
	return cli_option_wrong("diff", word);
}

/* --- the table --- */

static const char *const heads[MEASURES] = {"ncalls", "tottime", "cumtime", "allocs", "bytes"};

static size_t shown_rows(const struct request *request, const struct rows *rows)
{
	return request->limit >= 0 && (size_t)request->limit < rows->count ? (size_t)request->limit : rows->count;
}

/* Whether a side has the measure. A trace without memory events has no allocations, so no column compares them. */
static bool has_measure(const struct request *request, const struct measure *measure, size_t side)
{
	return !measure->memory || request->totals[side].memory;
}

static bool shows_measure(const struct request *request, const struct measure *measure)
{
	return has_measure(request, measure, 0) && has_measure(request, measure, 1);
}

/* The widths of the two columns of each measure. */
struct widths {
	int of[MEASURES][2];
};

struct cell {
	char value[32], change[32];
};

static struct cell cell_of(const struct measure *measure, const struct row *row)
{
	uint64_t value = measure->of(counts_of(row->a));
	int64_t change = change_of(measure, row);
	struct cell cell;

	if (measure->seconds) {
		snprintf(cell.value, sizeof(cell.value), "%.3f", (double)value / 1e9);
		snprintf(cell.change, sizeof(cell.change), change ? "%+.3f" : "%.0f", (double)change / 1e9);
	} else {
		snprintf(cell.value, sizeof(cell.value), "%" PRIu64, value);
		snprintf(cell.change, sizeof(cell.change), change ? "%+" PRId64 : "%" PRId64, change);
	}
	return cell;
}

static int max_width(int width, const char *text)
{
	int length = (int)strlen(text);

	return length > width ? length : width;
}

static struct widths find_widths(const struct row *rows, size_t shown)
{
	struct widths widths = {0};
	size_t i, k;

	for (k = 0; k < MEASURES; k++) {
		int *width = widths.of[k];

		width[0] = max_width(0, heads[k]);
		width[1] = max_width(0, "change");
		for (i = 0; i < shown; i++) {
			struct cell cell = cell_of(&measures[k], &rows[i]);

			width[0] = max_width(width[0], cell.value);
			width[1] = max_width(width[1], cell.change);
		}
	}
	return widths;
}

/* Whether any shown measure changed. Rows without a change are hidden. */
static bool row_differs(const struct request *request, const struct row *row)
{
	bool differs = !row->a || !row->b;
	size_t i;

	for (i = 0; i < MEASURES; i++)
		differs |= shows_measure(request, &measures[i]) && change_of(&measures[i], row) != 0;
	return differs;
}

/* Removes rows without a change. The order stays. Returns the number of removed rows. */
static size_t drop_equal_rows(const struct request *request, struct rows *rows)
{
	size_t before = rows->count, i;

	rows->count = 0;
	for (i = 0; i < before; i++)
		if (row_differs(request, &rows->at[i]))
			rows->at[rows->count++] = rows->at[i];
	return before - rows->count;
}

/* Prints the function as cProfile does, with its qualified name. */
static void print_place(struct output *output, const struct side *side)
{
	if (!side->line && text_same(side->file, text_of("~"))) {
		label_print(side->label, output);
		return;
	}
	output_line(output, side->file);
	output_format(output, ":%u(", side->line);
	output_line(output, text_of(side->display));
	output_char(output, ')');
}

static void print_row(struct output *output, const struct request *request, const struct row *row,
		      const struct widths *widths)
{
	size_t i;

	for (i = 0; i < MEASURES; i++) {
		struct cell cell = cell_of(&measures[i], row);

		if (shows_measure(request, &measures[i]))
			output_format(output, " %*s %*s ", widths->of[i][0], cell.value, widths->of[i][1], cell.change);
	}
	print_place(output, shown_side(row));
	if (!row->a)
		output_string(output, " (new)");
	else if (!row->b)
		output_string(output, " (gone)");
	else if (row->a->line != row->b->line || !text_same(row->a->file, row->b->file)) {
		output_string(output, " (was ");
		print_place(output, row->a);
		output_char(output, ')');
	}
	output_char(output, '\n');
}

static void print_sums(struct output *output, const struct request *request, size_t side)
{
	const struct function_total *sum = &request->totals[side].sum;

	output_format(output, "%s %s: %" PRIu64 " function calls in %.3f seconds", side ? "B" : "A",
		      request->paths[side], sum->calls, (double)sum->own_ns / 1e9);
	if (request->totals[side].memory)
		output_format(output, ", %" PRIu64 " allocations of %" PRIu64 " bytes", sum->allocations,
			      sum->allocated_bytes);
	else if (request->totals[!side].memory)
		output_string(output, ", allocations not recorded");
	if (request->lost[side])
		output_format(output, "; %" PRIu64 " events were lost: counts and times are too small",
			      request->lost[side]);
	output_char(output, '\n');
}

static void print_head(struct output *output, const struct request *request, const struct widths *widths)
{
	size_t i;

	output_char(output, '\n');
	for (i = 0; i < MEASURES; i++)
		if (shows_measure(request, &measures[i]))
			output_format(output, " %*s %*s ", widths->of[i][0], heads[i], widths->of[i][1], "change");
	output_string(output, "filename:lineno(function)\n");
}

static void print_table(struct output *output, const struct request *request, struct rows *rows)
{
	size_t same = drop_equal_rows(request, rows), shown = shown_rows(request, rows), i;
	struct widths widths = find_widths(rows->at, shown);

	print_sums(output, request, 0);
	print_sums(output, request, 1);
	output_format(output, "\n   Ordered by: change of %s\n", request->sort->title);
	if (same)
		output_format(output, "   %zu functions are the same in both and not listed\n", same);
	if (shown < rows->count)
		output_format(output, "   List reduced from %zu to %zu due to restriction <%zu>\n", rows->count, shown,
			      shown);
	if (shown)
		print_head(output, request, &widths);
	for (i = 0; i < shown; i++)
		print_row(output, request, &rows->at[i], &widths);
	output_char(output, '\n');
}

/* --- JSON --- */

static void json_counts(struct output *output, const struct request *request, size_t side,
			const struct function_total *counts)
{
	size_t i;

	for (i = 0; i < MEASURES; i++) {
		output_format(output, "%s\"%s\": ", i ? ", " : "", measures[i].key);
		if (has_measure(request, &measures[i], side))
			output_u64(output, measures[i].of(counts));
		else
			output_string(output, "null");
	}
}

static void json_side(struct output *output, const struct request *request, size_t number, const struct side *side)
{
	output_format(output, "\"%s\": ", number ? "b" : "a");
	if (!side) {
		output_string(output, "null");
		return;
	}
	output_string(output, "{\"file\": \"");
	output_json(output, side->file);
	output_format(output, "\", \"line\": %u, ", side->line);
	json_counts(output, request, number, side->counts);
	output_char(output, '}');
}

static void json_row(struct output *output, const struct request *request, const struct row *row)
{
	const struct side *side = shown_side(row);
	size_t i;

	output_string(output, "{\"function\": \"");
	output_json(output, text_of(side->display));
	output_string(output, "\", ");
	json_side(output, request, 0, row->a);
	output_string(output, ", ");
	json_side(output, request, 1, row->b);
	output_string(output, ", \"change\": {");
	for (i = 0; i < MEASURES; i++) {
		output_format(output, "%s\"%s\": ", i ? ", " : "", measures[i].key);
		if (shows_measure(request, &measures[i]))
			output_i64(output, change_of(&measures[i], row));
		else
			output_string(output, "null");
	}
	output_string(output, "}}");
}

static void json_trace(struct output *output, const struct request *request, size_t side)
{
	output_format(output, "\"%s\": {\"trace\": \"", side ? "b" : "a");
	output_json(output, text_of(request->paths[side]));
	output_format(output, "\", \"lost\": %" PRIu64 ", \"memory\": %s, ", request->lost[side],
		      request->totals[side].memory ? "true" : "false");
	json_counts(output, request, side, &request->totals[side].sum);
	output_string(output, "}");
}

static void print_json(struct output *output, const struct request *request, const struct rows *rows, size_t shown)
{
	size_t i;

	output_char(output, '{');
	json_trace(output, request, 0);
	output_string(output, ",\n ");
	json_trace(output, request, 1);
	output_string(output, ",\n \"functions\": [");
	for (i = 0; i < shown; i++) {
		output_string(output, i ? ",\n  " : "\n  ");
		json_row(output, request, &rows->at[i]);
	}
	output_string(output, "\n]}\n");
}

/* --- CSV --- */

/* Writes a quoted field: valid UTF-8, one line. */
static void csv_text(struct output *output, struct text text)
{
	output_char(output, '"');
	while (text.length) {
		const char *start = text.at;
		uint32_t code = text_next(&text);

		if (code == TEXT_INVALID || (code >= 0xd800 && code <= 0xdfff))
			output_string(output, "\xef\xbf\xbd");
		else if (code == '"')
			output_string(output, "\"\"");
		else if (code < 0x20 || code == 0x7f)
			output_char(output, ' ');
		else
			output_put(output, start, (size_t)(text.at - start));
	}
	output_char(output, '"');
}

static void csv_count(struct output *output, const struct request *request, const struct measure *measure, size_t side,
		      const struct side *counted)
{
	output_char(output, ',');
	if (has_measure(request, measure, side))
		output_u64(output, measure->of(counts_of(counted)));
}

/* Unknown values are empty. */
static void csv_row(struct output *output, const struct request *request, const struct row *row)
{
	const struct side *side = shown_side(row);
	size_t i;

	csv_text(output, text_of(side->display));
	output_char(output, ',');
	csv_text(output, side->file);
	output_format(output, ",%u,%s", side->line, row->a && row->b ? "both" : row->a ? "a" : "b");
	for (i = 0; i < MEASURES; i++) {
		csv_count(output, request, &measures[i], 0, row->a);
		csv_count(output, request, &measures[i], 1, row->b);
		output_char(output, ',');
		if (shows_measure(request, &measures[i]))
			output_i64(output, change_of(&measures[i], row));
	}
	output_string(output, "\r\n");
}

static void print_csv(struct output *output, const struct request *request, const struct rows *rows, size_t shown)
{
	size_t i;

	output_string(output, "function,file,line,in");
	for (i = 0; i < MEASURES; i++)
		output_format(output, ",%s_a,%s_b,%s_change", measures[i].key, measures[i].key, measures[i].key);
	output_string(output, "\r\n");
	for (i = 0; i < shown; i++)
		csv_row(output, request, &rows->at[i]);
}

/* --- all --- */

static int print_rows(const struct request *request, struct rows *rows)
{
	size_t shown = shown_rows(request, rows);
	struct output output;
	int error = output_open(&output, "-");

	if (error)
		return error;
	if (request->format == FORMAT_JSON)
		print_json(&output, request, rows, shown);
	else if (request->format == FORMAT_CSV)
		print_csv(&output, request, rows, shown);
	else
		print_table(&output, request, rows);
	return output_close(&output);
}

static int compare_totals(const struct request *request)
{
	bool qualified = request->totals[0].qualified && request->totals[1].qualified;
	struct sides a = {0}, b = {0};
	struct rows rows = {0};
	int error = list_sides(&a, &request->totals[0], qualified);

	if (!error)
		error = list_sides(&b, &request->totals[1], qualified);
	if (!error)
		error = match_sides(&rows, &a, &b);
	if (!error) {
		qsort_r(rows.at, rows.count, sizeof(*rows.at), sort_rows, (void *)request->sort);
		error = print_rows(request, &rows);
	}
	free(a.at);
	free(b.at);
	free(rows.at);
	if (error)
		output_message("evprof diff: cannot write the result: %s", strerror(-error));
	return error;
}

/* Returns the exit status for this trace. */
static int count_trace(struct request *request, size_t side)
{
	struct trace *trace = filter_open(&request->filter, "diff", request->paths[side]);
	struct trace_totals totals = {0};
	struct progress progress;
	int error, status;

	if (!trace)
		return CLI_FAILED;
	progress_begin(&progress, "counting", walk_events(trace, &request->filter));
	error = function_totals_count(&request->totals[side], trace, &request->filter, &progress);
	progress_end(&progress);
	if (!error)
		error = trace_count_totals(trace, &totals);
	request->lost[side] = totals.lost;
	request->totals[side].memory |= trace_records(trace, "mem");
	if (error)
		output_message("evprof diff: %s: %s", request->paths[side], strerror(-error));
	status = error ? CLI_FAILED : trace_print_verdict(trace);
	trace_close(trace);
	return status;
}

static int diff_traces(struct request *request)
{
	int a = count_trace(request, 0);
	int b = a == CLI_FAILED ? a : count_trace(request, 1);
	int status = cli_status_worst(a, b);

	if (status != CLI_FAILED && compare_totals(request) < 0)
		status = CLI_FAILED;
	function_totals_done(&request->totals[0]);
	function_totals_done(&request->totals[1]);
	return status;
}

int cmd_diff(int argc, char **argv)
{
	struct request request = {.sort = &measures[1], .limit = -1};
	int status = CLI_FAILED;
	int option;

	opterr = 0;
	while ((option = cli_getopt(argc, argv, "s:n:h", options_known)) != -1) {
		if (option == 'h') {
			printf(help_text, filter_help);
			status = CLI_FINE;
			goto done;
		}
		if (!take_option(&request, option, cli_option(argv)))
			goto done;
	}
	if (optind != argc - 2) {
		cli_misused("diff", "two traces are wanted, not %d", argc - optind);
		goto done;
	}
	request.paths[0] = argv[optind];
	request.paths[1] = argv[optind + 1];
	status = diff_traces(&request);
done:
	filter_done(&request.filter);
	return status;
}
