/*
 * rows.c - makes named and sorted rows from a profile. See rows.h.
 */
#include "report/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"
#include "util/output.h"

/* --- names --- */

static bool is_c_function(const struct label *label)
{
	return label->line == 0 && text_same(label->file, text_of("~"));
}

static void print_name(const struct label *label, bool modules, struct output *output)
{
	if (modules && !is_c_function(label))
		output_line(output, label->file);
	else
		label_print(label, output);
}

static uint32_t width_of(struct text text)
{
	uint32_t width = 0;

	while (text.length) {
		text_next(&text);
		width++;
	}
	return width;
}

/* Makes the printed names of rows from their labels, one after the other in a buffer that moves while it grows. */
static int make_names(struct report_rows *rows, bool modules)
{
	struct output names;
	char *at;
	int error = output_open_memory(&names);

	for (uint32_t i = 0; i < rows->count && !error; i++) {
		size_t start = names.used;

		print_name(rows->rows[i].label, modules, &names);
		rows->rows[i].name.length = names.used - start;
		output_char(&names, 0);
		error = names.error;
	}
	free(rows->names);
	rows->names = at = names.buffer;
	for (uint32_t i = 0; i < rows->count && !error; i++) {
		struct report_row *row = &rows->rows[i];

		row->name.at = at;
		row->width = width_of(row->name);
		at += row->name.length + 1;
	}
	return error;
}

static int by_name(const void *left, const void *right)
{
	const struct report_row *a = left;
	const struct report_row *b = right;
	int order = text_compare(a->name, b->name);

	/* Different functions with the same printed name: they keep the order of their labels. */
	return order ? order : (a->label > b->label) - (a->label < b->label);
}

/* --- rows --- */

static void add_times(struct profile_times *sum, const struct profile_times *times)
{
	sum->calls += times->calls;
	sum->recursive += times->recursive;
	sum->own_ns += times->own_ns;
	sum->total_ns += times->total_ns;
	sum->allocations += times->allocations;
	sum->allocated_bytes += times->allocated_bytes;
	sum->thinned |= times->thinned;
	sum->unknown |= times->unknown;
	sum->missing_calls += times->missing_calls;
	sum->missing_own_ns += times->missing_own_ns;
	sum->calls_width2 += times->calls_width2;
	sum->own_width2 += times->own_width2;
	sum->total_width2 += times->total_width2;
}

/* Makes the rows, in the order of their names, and the row index of each label of the profile. */
static int rows_of_labels(struct report_rows *rows, uint32_t *row_of_label, bool modules)
{
	const struct profile *profile = rows->profile;
	int error;

	rows->count = profile->labels.count;
	for (uint32_t i = 0; i < rows->count; i++)
		rows->rows[i] = (struct report_row){.label = &profile->labels.at[i], .times = profile->times[i]};
	error = make_names(rows, modules);
	if (error)
		return error;
	qsort(rows->rows, rows->count, sizeof(*rows->rows), by_name);
	for (uint32_t i = 0; i < rows->count; i++)
		row_of_label[rows->rows[i].label - profile->labels.at] = i;
	return 0;
}

/*
 * Removes directories and adds up rows that are then equal, as pstats' strip_dirs() does. The sum takes the place of
 * its first row. Works in place, because the number of rows does not grow.
 */
static int strip_rows(struct report_rows *rows, uint32_t *row_of_label, bool modules)
{
	uint32_t *moved = malloc((rows->count + 1) * sizeof(*moved));
	uint32_t kept = 0, i;

	if (!moved)
		return -ENOMEM;
	for (i = 0; i < rows->count; i++) {
		struct profile_times times = rows->rows[i].times;
		struct label label = *rows->rows[i].label;

		label.file = text_base_name(label.file);
		moved[i] = labels_add(&rows->labels, &label);
		if (moved[i] == UINT32_MAX) {
			free(moved);
			return -ENOMEM;
		}
		if (moved[i] == kept)
			rows->rows[kept++] = (struct report_row){0};
		add_times(&rows->rows[moved[i]].times, &times);
	}
	for (i = 0; i < rows->count; i++)
		row_of_label[i] = moved[row_of_label[i]];
	free(moved);
	rows->count = kept;
	for (i = 0; i < kept; i++)
		rows->rows[i].label = &rows->labels.at[i];
	return make_names(rows, modules);
}

static int by_place(const void *left, const void *right, void *owner)
{
	const struct report_row *rows = owner;
	uint32_t i = *(const uint32_t *)left, k = *(const uint32_t *)right;
	const struct label *a = rows[i].label, *b = rows[k].label;

	return text_compare(a->file, b->file) ?: compare_u64(a->line, b->line) ?: text_compare(a->name, b->name)
		   ?: compare_u64(i, k);
}

/* Sets the ranks. Uses `shown` as scratch space. */
static void rank_rows(struct report_rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++)
		rows->shown[i] = i;
	qsort_r(rows->shown, rows->count, sizeof(*rows->shown), by_place, rows->rows);
	for (uint32_t i = 0; i < rows->count; i++)
		rows->rows[rows->shown[i]].rank = i;
}

/* --- calls --- */

static int by_row(const void *left, const void *right, void *owner)
{
	const struct report_row *rows = owner;
	const struct report_call *a = left, *b = right;

	return compare_u64(a->row, b->row) ?: compare_u64(rows[a->other].rank, rows[b->other].rank);
}

/* Adds up calls between the same two rows, which are adjacent. */
static size_t add_up_calls(struct report_call *calls, size_t count)
{
	size_t kept = 0, i;

	for (i = 0; i < count; i++) {
		struct report_call *last = kept ? &calls[kept - 1] : NULL;

		if (last && last->row == calls[i].row && last->other == calls[i].other)
			add_times(&last->times, &calls[i].times);
		else
			calls[kept++] = calls[i];
	}
	return kept;
}

static int make_calls(struct report_rows *rows, const uint32_t *row_of_label)
{
	const struct profile *profile = rows->profile;
	size_t bytes = ((size_t)profile->edge_count + 1) * sizeof(struct report_call);
	uint32_t i;

	rows->callers = malloc(bytes);
	rows->callees = malloc(bytes);
	if (!rows->callers || !rows->callees)
		return -ENOMEM;
	for (i = 0; i < profile->edge_count; i++) {
		const struct profile_edge *edge = &profile->edges[i];

		rows->callers[i] =
		    (struct report_call){row_of_label[edge->callee], row_of_label[edge->caller], edge->times};
	}
	qsort_r(rows->callers, i, sizeof(*rows->callers), by_row, rows->rows);
	rows->call_count = add_up_calls(rows->callers, i);
	for (i = 0; i < rows->call_count; i++) {
		const struct report_call *call = &rows->callers[i];

		rows->callees[i] = (struct report_call){call->other, call->row, call->times};
	}
	qsort_r(rows->callees, i, sizeof(*rows->callees), by_row, rows->rows);
	return 0;
}

/* The first of the sorted calls that is not of an earlier row. */
static size_t first_call(const struct report_call *calls, size_t count, uint32_t row)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (calls[middle].row < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct report_calls report_calls(const struct report_rows *rows, uint32_t row, bool callers)
{
	const struct report_call *calls = callers ? rows->callers : rows->callees;
	size_t first = first_call(calls, rows->call_count, row);

	return (struct report_calls){calls + first, first_call(calls, rows->call_count, row + 1) - first};
}

/* --- all rows --- */

int report_rows_init(struct report_rows *rows, const struct profile *profile, bool modules, bool strip_dirs)
{
	size_t labels = (size_t)profile->labels.count + 1;
	uint32_t *row_of_label = malloc(labels * sizeof(*row_of_label));
	int error = 0;

	*rows = (struct report_rows){.profile = profile};
	rows->rows = calloc(labels, sizeof(*rows->rows));
	rows->shown = malloc(labels * sizeof(*rows->shown));
	if (!row_of_label || !rows->rows || !rows->shown)
		error = -ENOMEM;
	if (!error)
		error = rows_of_labels(rows, row_of_label, modules);
	if (!error && strip_dirs)
		error = strip_rows(rows, row_of_label, modules);
	if (!error) {
		rank_rows(rows);
		error = make_calls(rows, row_of_label);
	}
	free(row_of_label);
	for (uint32_t i = 0; i < rows->count && !error; i++) {
		rows->shown[i] = i;
		add_times(&rows->sums, &rows->rows[i].times);
	}
	rows->sums.own_ns -= rows->sums.missing_own_ns; /* the time of all */
	rows->shown_count = rows->count;
	return error;
}

void report_rows_done(struct report_rows *rows)
{
	labels_done(&rows->labels);
	free(rows->rows);
	free(rows->shown);
	free(rows->callers);
	free(rows->callees);
	free(rows->names);
	memset(rows, 0, sizeof(*rows));
}
