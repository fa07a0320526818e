/*
 * text_table.c - the report as pstats prints it: table, callers, callees. See print.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/print.h"

int report_percent(double width2, double value, char text[REPORT_PERCENT_BYTES])
{
	double percent = value > 0 ? 100 * sqrt(width2) / value : 0;

	if (percent > 999)
		return snprintf(text, REPORT_PERCENT_BYTES, "±>999%%");
	return snprintf(text, REPORT_PERCENT_BYTES, percent < 10 ? "±%.1f%%" : "±%.0f%%", percent);
}

/* "~1234567 ±2.1%", "~12 ±?". */
static int format_estimate(char text[REPORT_CALLS_BYTES], uint64_t number, double width2, bool unknown)
{
	char percent[REPORT_PERCENT_BYTES] = "±?";

	if (!unknown)
		report_percent(width2, (double)number, percent);
	/* ± has two bytes */
	return snprintf(text, REPORT_CALLS_BYTES, "~%" PRIu64 " %s", number, percent) - 1;
}

/* Likewise; ">=12" of a caller. */
static int format_thinned(char text[REPORT_CALLS_BYTES], const struct profile_times *times)
{
	if (profile_is_least(times))
		return snprintf(text, REPORT_CALLS_BYTES, ">=%" PRIu64, times->calls);
	return format_estimate(text, times->calls, times->calls_width2, times->unknown);
}

int report_format_calls(char text[REPORT_CALLS_BYTES], const struct profile_times *times)
{
	if (times->thinned)
		return format_thinned(text, times);
	if (times->recursive)
		return snprintf(text, REPORT_CALLS_BYTES, "%" PRIu64 "/%" PRIu64, times->calls,
				report_primitive_calls(times));
	return snprintf(text, REPORT_CALLS_BYTES, "%" PRIu64, times->calls);
}

static void print_name(struct output *output, const struct report_row *row)
{
	output_put(output, row->name.at, row->name.length);
}

/* --- the table --- */

static void print_times(struct output *output, const struct profile_times *times)
{
	uint64_t primitive = report_primitive_calls(times);
	double own = report_seconds(times->own_ns), total = report_seconds(times->total_ns);
	char calls[REPORT_CALLS_BYTES];

	report_format_calls(calls, times);
	output_format(output, "%9s %8.3f ", calls, own);
	if (times->calls)
		output_format(output, "%8.3f", own / (double)times->calls);
	else
		terminal_put_spaces(output, 8);
	output_format(output, " %8.3f ", total);
	if (primitive)
		output_format(output, "%8.3f ", total / (double)primitive);
	else
		terminal_put_spaces(output, 9);
}

const char *report_spent(enum cpu_clock clock)
{
	static const char *const spent[] = {
	    [CPU_CLOCK_WALL] = "", [CPU_CLOCK_RAN] = " of CPU time", [CPU_CLOCK_WAITED] = " of waiting"};

	return spent[clock];
}

uint32_t report_count_estimates(const struct report_rows *rows)
{
	uint32_t estimates = 0;

	for (uint32_t i = 0; i < rows->count; i++)
		estimates += profile_is_estimate(&rows->rows[i].times);
	return estimates;
}

static void print_sums(struct output *output, const struct report_style *style, const struct report_table *table)
{
	const struct report_rows *rows = table->rows;
	uint64_t primitive = report_primitive_calls(&rows->sums);
	char sampling[TRACE_SAMPLING_BYTES];

	output_format(output, "         %s%" PRIu64 " function calls", rows->sums.thinned ? "~" : "", rows->sums.calls);
	if (primitive != rows->sums.calls)
		output_format(output, " (%" PRIu64 " primitive calls)", primitive);
	output_format(output, " in %.3f seconds%s\n\n", report_seconds(rows->sums.own_ns), report_spent(style->clock));
	if (rows->sums.thinned)
		output_format(output, "   " REPORT_BUDGET "\n\n", report_count_estimates(rows));
	if (table->sample_rate)
		output_format(output, "   %s\n\n", trace_sampling_text(table->sample_rate, sampling));
	if (table->memory_interval)
		output_format(output, "   %s\n\n", trace_memory_sampling_text(table->memory_interval, sampling));
}

static void print_order(struct output *output, const struct report_style *style, const struct report_table *table)
{
	output_string(output, "   Ordered by: ");
	report_order_print(&style->order, output);
	output_char(output, '\n');
	output_put(output, table->reductions.at, table->reductions.length);
	output_char(output, '\n');
}

static void print_rows(struct output *output, const struct report_style *style, const struct report_table *table)
{
	const struct report_rows *rows = table->rows;

	if (!rows->shown_count)
		return;
	print_order(output, style, table);
	output_format(output, "   ncalls  tottime  percall  cumtime  percall %s%s\n",
		      style->memory ? "   allocs        bytes " : "",
		      style->by == REPORT_BY_MODULE ? "module" : "filename:lineno(function)");
	for (uint32_t i = 0; i < rows->shown_count; i++) {
		const struct report_row *row = &rows->rows[rows->shown[i]];

		print_times(output, &row->times);
		if (style->memory)
			output_format(output, "%9" PRIu64 " %12" PRIu64 " ", row->times.allocations,
				      row->times.allocated_bytes);
		print_name(output, row);
		output_char(output, '\n');
	}
	output_char(output, '\n');
}

/* --- callers and callees --- */

/* The column width in pstats: that of the longest name, of all rows or of the restricted ones. */
static uint32_t widest_row(const struct report_rows *rows)
{
	uint32_t width = 0, i;

	for (i = 0; i < rows->shown_count; i++)
		if (rows->rows[rows->shown[i]].width > width)
			width = rows->rows[rows->shown[i]].width;
	return width;
}

static void print_call(struct output *output, const struct report_row *other, const struct profile_times *times,
		       int calls_width)
{
	char calls[REPORT_CALLS_BYTES];

	report_format_calls(calls, times);
	output_format(output, "%*s %8.3f %8.3f  ", calls_width, calls, report_seconds(times->own_ns),
		      report_seconds(times->total_ns));
	print_name(output, other);
	output_char(output, '\n');
}

/* Prints a row with its callers or callees: the first on its line, the others below. */
static void print_calls_of(struct output *output, const struct report_rows *rows, uint32_t number, uint32_t width,
			   bool callers)
{
	struct report_calls calls = report_calls(rows, number, callers);
	const struct report_row *row = &rows->rows[number];

	print_name(output, row);
	terminal_put_spaces(output, width - row->width);
	output_string(output, callers ? "<- " : "-> ");
	for (size_t i = 0; i < calls.count; i++) {
		if (i)
			terminal_put_spaces(output, width + 1);
		print_call(output, &rows->rows[calls.at[i].other], &calls.at[i].times, i ? 9 : 7);
	}
	if (!calls.count)
		output_char(output, '\n');
}

static void print_calls(struct output *output, const struct report_style *style, const struct report_table *table,
			bool callers)
{
	const struct report_rows *rows = table->rows;
	uint32_t width = widest_row(rows) + 2;

	if (!rows->shown_count)
		return;
	print_order(output, style, table);
	output_string(output, "Function ");
	terminal_put_spaces(output, width > 9 ? width - 9 : 0);
	output_string(output, callers ? "was called by...\n" : "called...\n");
	if (rows->call_count) {
		terminal_put_spaces(output, width);
		output_string(output, "    ncalls  tottime  cumtime\n");
	}
	for (uint32_t i = 0; i < rows->shown_count; i++)
		print_calls_of(output, rows, rows->shown[i], width, callers);
	output_char(output, '\n');
}

/* --- the process or thread of a table --- */

void report_print_owner(struct output *output, const struct report_style *style, const struct report_table *table)
{
	const struct trace_process *process = table->process;

	if (!process)
		return;
	if (table->thread) {
		output_format(output, "thread %u", table->thread->tid);
		if (table->thread->name) {
			output_string(output, " \"");
			output_line(output, text_of(table->thread->name));
			output_char(output, '"');
		}
		output_string(output, " of ");
	}
	output_format(output, "process %lld: ", (long long)process->pid);
	output_line(output, text_of(trace_process_name(process)));
	if (style->several) {
		output_string(output, " in ");
		output_line(output, text_of(table->trace->path));
	}
	output_string(output, "\n\n");
}

static void print_exceptions(struct output *output, const struct profile_exceptions *exceptions)
{
	char raised[REPORT_CALLS_BYTES];

	format_estimate(raised, exceptions->raised, exceptions->width2, exceptions->unknown);
	output_format(output, "   of %s exceptions %" PRIu64 " were recorded\n", raised, exceptions->recorded);
}

void report_print_losses(struct output *output, const struct report_table *table)
{
	const struct native_stack_counts *native_stacks = &table->rows->profile->native_stacks;
	uint64_t lost = table->rows->profile->lost;

	if (lost)
		output_format(output, "   %" PRIu64 " events were lost: counts and times are too small\n", lost);
	if (table->rows->profile->exceptions.left_out)
		print_exceptions(output, &table->rows->profile->exceptions);
	if (native_stacks->without)
		output_format(output, "   %" PRIu64 " of %" PRIu64 " allocations have no native stack\n",
			      native_stacks->without, native_stacks->allocations);
}

void report_print_cut(struct output *output, const struct report_table *table)
{
	if (table->cut)
		output_format(output, "   %u of %u rows; --limit all shows them all, --limit N the first N\n",
			      table->rows->shown_count, table->rows->shown_count + table->cut);
}

static void print_table(struct output *output, const struct report_style *style, const struct report_table *table)
{
	report_print_owner(output, style, table);
	if (!style->callers && !style->callees)
		print_sums(output, style, table);
	report_print_losses(output, table);
	if (style->callers)
		print_calls(output, style, table, true);
	if (style->callees)
		print_calls(output, style, table, false);
	if (!style->callers && !style->callees)
		print_rows(output, style, table);
	report_print_cut(output, table);
}

const struct report_format report_text = {"text", NULL, print_table, NULL};
