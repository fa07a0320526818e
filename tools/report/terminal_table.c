/*
 * terminal_table.c - the report on a terminal: it fits the width, with readable names and numbers with units. See
 * print.h.
 *
 *      ncalls   tottime   cumtime  function
 *          12    123 ms    1.50 s  JSONDecoder.raw_decode  json/decoder.py:343
 *
 * The columns of times per call are left out where there are less than 100 columns, the cumulative time below 60.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "report/print.h"
#include "report/readable.h"

/* --- columns --- */

#define NUMBER_COLUMNS 9 /* with one column in front */

struct column {
	const char *title;
	void (*format)(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES]);
	unsigned from; /* columns of the terminal */
	bool memory;
	bool calls; /* also for callers and callees */
};

static void format_own(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES])
{
	terminal_time((double)times->own_ns, out);
}

static void format_total(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES])
{
	terminal_time((double)times->total_ns, out);
}

static void format_each(uint64_t ns, uint64_t calls, char out[TERMINAL_NUMBER_BYTES])
{
	out[0] = 0;
	if (calls)
		terminal_time((double)ns / (double)calls, out);
}

static void format_own_each(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES])
{
	format_each(times->own_ns, times->calls, out);
}

static void format_total_each(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES])
{
	format_each(times->total_ns, report_primitive_calls(times), out);
}

static void format_allocations(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES])
{
	snprintf(out, TERMINAL_NUMBER_BYTES, "%" PRIu64, times->allocations);
}

static void format_bytes(const struct profile_times *times, char out[TERMINAL_NUMBER_BYTES])
{
	terminal_bytes(times->allocated_bytes, out);
}

static const struct column columns_known[] = {
    {"tottime", format_own, 0, false, true},	    {"percall", format_own_each, 100, false, false},
    {"cumtime", format_total, 60, false, true},	    {"percall", format_total_each, 100, false, false},
    {"allocs", format_allocations, 0, true, false}, {"bytes", format_bytes, 0, true, false},
};

#define COLUMNS (sizeof(columns_known) / sizeof(columns_known[0]))

/* The layout of a table. */
struct layout {
	const struct report_style *style;
	struct output *output;
	struct readable readable;
	bool edges;	       /* rows are callers or callees */
	unsigned indent;       /* in front of all columns */
	unsigned calls;	       /* width of the number of calls */
	unsigned name_columns; /* of the function's name */
	unsigned rest;	       /* columns of the whole function */
};

static bool has_column(const struct layout *layout, const struct column *column)
{
	return layout->style->terminal.columns >= column->from && (!column->memory || layout->style->memory) &&
	       (column->calls || !layout->edges);
}

/* Widens the columns for one more row. place_width: of the widest so far. */
static void widen(struct layout *layout, const struct report_row *row, const struct profile_times *times,
		  unsigned *place_width)
{
	char calls[REPORT_CALLS_BYTES];

	layout->calls = MAX(layout->calls, (unsigned)report_format_calls(calls, times));
	readable_set_label(&layout->readable, row->label);
	layout->name_columns = MAX(layout->name_columns, layout->readable.name_width);
	*place_width = MAX(*place_width, layout->readable.place_width);
}

/* Divides the terminal's width. */
static void divide(struct layout *layout, unsigned place_width)
{
	unsigned numbers = layout->indent + layout->calls + 2, all = layout->style->terminal.columns;

	for (size_t i = 0; i < COLUMNS; i++)
		numbers += has_column(layout, &columns_known[i]) ? NUMBER_COLUMNS : 0;
	layout->rest = all > numbers + 10 ? all - numbers : 10;
	layout->name_columns = readable_name_columns(layout->name_columns, place_width, layout->rest);
}

static void put_titles(const struct layout *layout, const char *last)
{
	const struct terminal *terminal = &layout->style->terminal;

	terminal_style(terminal, layout->output, TERMINAL_BOLD);
	output_format(layout->output, "%*s%*s", (int)layout->indent, "", (int)layout->calls, "ncalls");
	for (size_t i = 0; i < COLUMNS; i++)
		if (has_column(layout, &columns_known[i]))
			output_format(layout->output, "%*s", NUMBER_COLUMNS, columns_known[i].title);
	output_format(layout->output, "  %s", last);
	terminal_style(terminal, layout->output, TERMINAL_PLAIN);
	output_char(layout->output, '\n');
}

static void put_line(struct layout *layout, const struct report_row *row, const struct profile_times *times, bool hot)
{
	const struct terminal *terminal = &layout->style->terminal;
	struct output *output = layout->output;
	char text[REPORT_CALLS_BYTES];
	int columns;

	columns = report_format_calls(text, times);
	output_format(output, "%*s%s", (int)(layout->indent + layout->calls) - columns, "", text);
	for (size_t i = 0; i < COLUMNS; i++) {
		if (!has_column(layout, &columns_known[i]))
			continue;
		columns_known[i].format(times, text);
		if (hot && !i)
			terminal_style(terminal, output, TERMINAL_HOT);
		output_format(output, "%*s", NUMBER_COLUMNS, text);
		if (hot && !i)
			terminal_style(terminal, output, TERMINAL_PLAIN);
	}
	output_string(output, "  ");
	readable_set_label(&layout->readable, row->label);
	readable_put(&layout->readable, terminal, output, layout->name_columns, layout->rest);
	output_char(output, '\n');
}

/* --- the tables --- */

static void put_rows(struct layout *layout, const struct report_rows *rows)
{
	unsigned place_width = 0;

	for (uint32_t i = 0; i < rows->shown_count; i++)
		widen(layout, &rows->rows[rows->shown[i]], &rows->rows[rows->shown[i]].times, &place_width);
	divide(layout, place_width);
	put_titles(layout, layout->style->by == REPORT_BY_MODULE ? "module" : "function");
	for (uint32_t i = 0; i < rows->shown_count; i++) {
		const struct report_row *row = &rows->rows[rows->shown[i]];

		/* Functions with a tenth of the time stand out. */
		put_line(layout, row, &row->times, row->times.own_ns && row->times.own_ns >= rows->sums.own_ns / 10);
	}
}

/* Each function on a line, and below it those that call it, or that it calls. */
static void put_calls(struct layout *layout, const struct report_rows *rows, bool callers)
{
	const struct terminal *terminal = &layout->style->terminal;
	unsigned place_width = 0;

	layout->edges = true;
	layout->indent = 2;
	for (uint32_t i = 0; i < rows->shown_count; i++) {
		struct report_calls calls = report_calls(rows, rows->shown[i], callers);

		for (size_t k = 0; k < calls.count; k++)
			widen(layout, &rows->rows[calls.at[k].other], &calls.at[k].times, &place_width);
	}
	divide(layout, place_width);
	put_titles(layout, callers ? "called by" : "called");
	for (uint32_t i = 0; i < rows->shown_count; i++) {
		struct report_calls calls = report_calls(rows, rows->shown[i], callers);

		readable_set_label(&layout->readable, rows->rows[rows->shown[i]].label);
		terminal_style(terminal, layout->output, TERMINAL_BOLD);
		readable_put(&layout->readable, terminal, layout->output, layout->readable.name_width,
			     terminal->columns);
		terminal_style(terminal, layout->output, TERMINAL_PLAIN);
		output_char(layout->output, '\n');
		for (size_t k = 0; k < calls.count; k++)
			put_line(layout, &rows->rows[calls.at[k].other], &calls.at[k].times, false);
	}
}

static void put_table(struct output *output, const struct report_style *style, const struct report_rows *rows,
		      void (*put)(struct layout *layout, const struct report_rows *rows))
{
	struct layout layout = {.style = style, .output = output, .calls = (unsigned)strlen("ncalls")};

	if (!rows->shown_count)
		return;
	if (readable_init(&layout.readable) < 0) {
		output->error = output->error ? output->error : -ENOMEM;
		return;
	}
	put(&layout, rows);
	output_char(output, '\n');
	readable_done(&layout.readable);
}

static void put_callers(struct layout *layout, const struct report_rows *rows)
{
	put_calls(layout, rows, true);
}

static void put_callees(struct layout *layout, const struct report_rows *rows)
{
	put_calls(layout, rows, false);
}

static void put_sums(struct output *output, const struct report_style *style, const struct report_table *table)
{
	const struct profile_times *sums = &table->rows->sums;
	uint64_t primitive = report_primitive_calls(sums);
	char text[TERMINAL_NUMBER_BYTES], sampling[TRACE_SAMPLING_BYTES];

	output_format(output, "%s%" PRIu64 " function calls", sums->thinned ? "~" : "", sums->calls);
	if (primitive != sums->calls)
		output_format(output, " (%" PRIu64 " primitive calls)", primitive);
	output_format(output, " in %s%s", terminal_time((double)sums->own_ns, text), report_spent(style->clock));
	if (style->memory) {
		output_format(output, ", %" PRIu64 " allocations", sums->allocations);
		output_format(output, " of %s", terminal_bytes(sums->allocated_bytes, text));
	}
	output_string(output, "; ordered by ");
	report_order_print(&style->order, output);
	output_char(output, '\n');
	if (sums->thinned)
		output_format(output, REPORT_BUDGET "\n", report_count_estimates(table->rows));
	if (table->sample_rate)
		output_format(output, "%s\n", trace_sampling_text(table->sample_rate, sampling));
	if (table->memory_interval)
		output_format(output, "%s\n", trace_memory_sampling_text(table->memory_interval, sampling));
	output_put(output, table->reductions.at, table->reductions.length);
}

static void print_table(struct output *output, const struct report_style *style, const struct report_table *table)
{
	report_print_owner(output, style, table);
	put_sums(output, style, table);
	report_print_losses(output, table);
	output_char(output, '\n');
	if (style->callers)
		put_table(output, style, table->rows, put_callers);
	if (style->callees)
		put_table(output, style, table->rows, put_callees);
	if (!style->callers && !style->callees)
		put_table(output, style, table->rows, put_rows);
	report_print_cut(output, table);
}

const struct report_format report_terminal = {"terminal", NULL, print_table, NULL};
