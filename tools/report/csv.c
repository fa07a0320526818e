/*
 * csv.c - the report as comma-separated values, one row a line. See print.h.
 *
 * The first line names the columns. Texts are quoted; control characters and backslashes in them are escaped as in the
 * table, so a row is always one line. Times are seconds. With callers or callees each row is a function and one of its
 * callers or callees.
 */
#include <inttypes.h>

#include "report/print.h"

void report_csv_text(struct output *output, struct text text)
{
	output_char(output, '"');
	while (text.length) {
		const char *quote = memchr(text.at, '"', text.length);
		size_t length = quote ? (size_t)(quote - text.at) : text.length;

		output_line(output, (struct text){text.at, length});
		output_string(output, quote ? "\"\"" : "");
		length += quote != NULL;
		text = (struct text){text.at + length, text.length - length};
	}
	output_string(output, "\",");
}

static void put_label(struct output *output, const struct report_style *style, const struct label *label)
{
	if (style->by == REPORT_BY_MODULE) {
		report_csv_text(output, report_module(label));
		return;
	}
	report_csv_text(output, label->file);
	output_format(output, "%u,", label->line);
	report_csv_text(output, label->name);
}

static void put_times(struct output *output, const struct profile_times *times)
{
	output_format(output, "%" PRIu64 ",%" PRIu64 ",%.9f,%.9f", times->calls, report_primitive_calls(times),
		      report_seconds(times->own_ns), report_seconds(times->total_ns));
}

static void put_owner(struct output *output, const struct report_table *table)
{
	if (!table->process)
		return;
	report_csv_text(output, text_of(table->trace->path));
	output_format(output, "%lld,", (long long)table->process->pid);
	if (!table->thread)
		return;
	output_format(output, "%u,", table->thread->tid);
	report_csv_text(output, text_of(table->thread->name ? table->thread->name : ""));
}

static void put_calls(struct output *output, const struct report_style *style, const struct report_table *table,
		      uint32_t row)
{
	const struct report_rows *rows = table->rows;
	struct report_calls calls = report_calls(rows, row, style->callers);

	for (size_t i = 0; i < calls.count; i++) {
		put_owner(output, table);
		put_label(output, style, rows->rows[row].label);
		put_label(output, style, rows->rows[calls.at[i].other].label);
		put_times(output, &calls.at[i].times);
		output_char(output, '\n');
	}
}

static void put_table(struct output *output, const struct report_style *style, const struct report_table *table)
{
	const struct report_rows *rows = table->rows;

	for (uint32_t i = 0; i < rows->shown_count; i++) {
		if (style->callers || style->callees) {
			put_calls(output, style, table, rows->shown[i]);
			continue;
		}
		put_owner(output, table);
		put_label(output, style, rows->rows[rows->shown[i]].label);
		put_times(output, &rows->rows[rows->shown[i]].times);
		if (style->memory)
			output_format(output, ",%" PRIu64 ",%" PRIu64, rows->rows[rows->shown[i]].times.allocations,
				      rows->rows[rows->shown[i]].times.allocated_bytes);
		output_char(output, '\n');
	}
}

static void put_title(struct output *output, const struct report_style *style, const char *of)
{
	if (style->by == REPORT_BY_MODULE)
		output_format(output, "%smodule,", of);
	else
		output_format(output, "%sfile,%sline,%sfunction,", of, of, of);
}

static void begin_csv(struct output *output, const struct report_style *style)
{
	if (style->by == REPORT_BY_PROCESS)
		output_string(output, "trace,pid,");
	if (style->by == REPORT_BY_THREAD)
		output_string(output, "trace,pid,tid,thread,");
	put_title(output, style, "");
	if (style->callers || style->callees)
		put_title(output, style, style->callers ? "caller_" : "callee_");
	output_string(output, "ncalls,primitive_calls,tottime,cumtime");
	output_string(output, style->memory ? ",allocations,allocated_bytes\n" : "\n");
}

const struct report_format report_csv = {"csv", begin_csv, put_table, NULL};
