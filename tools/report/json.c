/*
 * json.c - the report as one JSON object. See print.h.
 *
 *   {"calls": ..., "functions": [{"file": ..., "line": ..., "function": ..., "ncalls": ..., "callers": [...]}]}
 *   {"calls": ..., "modules": [{"module": ..., "ncalls": ...}]}                           --by module
 *   {"processes": [{"trace": ..., "pid": ..., "program": ..., "title": ..., and the first line}]}
 *   {"threads": [{"trace": ..., "pid": ..., "program": ..., "tid": ..., "thread": ..., and the first line}]}
 */
#include <inttypes.h>
#include <math.h>

#include "report/print.h"

static void put_text(struct output *output, const char *name, struct text text)
{
	output_format(output, "\"%s\": \"", name);
	output_json(output, text);
	output_string(output, "\", ");
}

static void put_label(struct output *output, const struct report_style *style, const struct label *label)
{
	if (style->by == REPORT_BY_MODULE) {
		put_text(output, "module", report_module(label));
		return;
	}
	put_text(output, "file", label->file);
	output_format(output, "\"line\": %u, ", label->line);
	put_text(output, "function", label->name);
}

static void put_times(struct output *output, const struct profile_times *times)
{
	output_format(output,
		      "\"ncalls\": %" PRIu64 ", \"primitive_calls\": %" PRIu64
		      ", \"tottime\": %.9f, \"cumtime\": %.9f, "
		      "\"tottime_ns\": %" PRIu64 ", \"cumtime_ns\": %" PRIu64,
		      times->calls, report_primitive_calls(times), report_seconds(times->own_ns),
		      report_seconds(times->total_ns), times->own_ns, times->total_ns);
}

static void put_width(struct output *output, const char *name, const struct profile_times *times, double width2)
{
	if (times->unknown)
		output_format(output, ", \"%s\": null", name);
	else
		output_format(output, ", \"%s\": %.0f", name, ceil(sqrt(width2)));
}

/* Of a function: its numbers are estimates, with half of their intervals. Of a caller: they are the least. */
static void put_thinned(struct output *output, const struct profile_times *times, bool estimated)
{
	if (!times->thinned)
		return;
	output_string(output, estimated ? ", \"estimated\": true" : ", \"at_least\": true");
	if (!estimated)
		return;
	put_width(output, "ncalls_error", times, times->calls_width2);
	put_width(output, "tottime_ns_error", times, times->own_width2);
	put_width(output, "cumtime_ns_error", times, times->total_width2);
}

/* Of a function or module, behind its times. */
static void put_memory(struct output *output, const struct profile_times *times)
{
	output_format(output, ", \"allocations\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64, times->allocations,
		      times->allocated_bytes);
}

static void put_calls(struct output *output, const struct report_style *style, const struct report_rows *rows,
		      uint32_t row, bool callers)
{
	struct report_calls calls = report_calls(rows, row, callers);

	output_format(output, ",\n    \"%s\": [", callers ? "callers" : "callees");
	for (size_t i = 0; i < calls.count; i++) {
		output_string(output, i ? ",\n      {" : "\n      {");
		put_label(output, style, rows->rows[calls.at[i].other].label);
		put_times(output, &calls.at[i].times);
		put_thinned(output, &calls.at[i].times, false);
		output_char(output, '}');
	}
	output_char(output, ']');
}

static void put_row(struct output *output, const struct report_style *style, const struct report_rows *rows,
		    uint32_t row)
{
	output_char(output, '{');
	put_label(output, style, rows->rows[row].label);
	put_times(output, &rows->rows[row].times);
	put_thinned(output, &rows->rows[row].times, true);
	if (style->memory)
		put_memory(output, &rows->rows[row].times);
	if (style->callers)
		put_calls(output, style, rows, row, true);
	if (style->callees)
		put_calls(output, style, rows, row, false);
	output_char(output, '}');
}

static void put_owner(struct output *output, const struct report_table *table)
{
	if (!table->process)
		return;
	put_text(output, "trace", text_of(table->trace->path));
	output_format(output, "\"pid\": %lld, ", (long long)table->process->pid);
	put_text(output, "program", text_of(trace_process_text(table->process, "program")));
	if (trace_process_text(table->process, "title")[0])
		put_text(output, "title", text_of(trace_process_text(table->process, "title")));
	if (!table->thread)
		return;
	output_format(output, "\"tid\": %u, ", table->thread->tid);
	if (table->thread->name)
		put_text(output, "thread", text_of(table->thread->name));
	else
		output_string(output, "\"thread\": null, ");
}

static void put_exceptions(struct output *output, const struct profile_exceptions *exceptions)
{
	output_format(output, "\"exceptions\": {\"raised\": %" PRIu64 ", \"raised_error\": ", exceptions->raised);
	if (exceptions->unknown)
		output_string(output, "null");
	else
		output_format(output, "%.1f", sqrt(exceptions->width2));
	output_format(output, ", \"recorded\": %" PRIu64 "}, ", exceptions->recorded);
}

static void put_table(struct output *output, const struct report_style *style, const struct report_table *table)
{
	const struct report_rows *rows = table->rows;
	const struct profile *profile = rows->profile;

	output_string(output, table->number ? ",\n{" : "{");
	put_owner(output, table);
	if (table->sample_rate)
		output_format(output, "\"sample_rate\": %d, ", table->sample_rate);
	if (table->memory_interval)
		output_format(output, "\"memory_interval\": %" PRIu64 ", ", table->memory_interval);
	if (rows->sums.thinned)
		output_string(output, "\"estimated\": true, ");
	if (profile->exceptions.left_out)
		put_exceptions(output, &profile->exceptions);
	if (profile->native_stacks.allocations)
		output_format(output, "\"native_stacks\": {\"allocations\": %" PRIu64 ", \"without\": %" PRIu64 "}, ",
			      profile->native_stacks.allocations, profile->native_stacks.without);
	output_format(output,
		      "\"calls\": %" PRIu64 ", \"primitive_calls\": %" PRIu64 ", \"tottime\": %.9f, \"lost\": %" PRIu64
		      ", \"unmatched\": %" PRIu64 ", \"open\": %" PRIu64 ",\n \"%s\": [",
		      rows->sums.calls, report_primitive_calls(&rows->sums), report_seconds(rows->sums.own_ns),
		      profile->lost, profile->unmatched, profile->open,
		      style->by == REPORT_BY_MODULE ? "modules" : "functions");
	for (uint32_t i = 0; i < rows->shown_count; i++) {
		output_string(output, i ? ",\n  " : "\n  ");
		put_row(output, style, rows, rows->shown[i]);
	}
	output_string(output, "\n]}");
}

static void begin_json(struct output *output, const struct report_style *style)
{
	if (style->by == REPORT_BY_PROCESS)
		output_string(output, "{\"processes\": [\n");
	if (style->by == REPORT_BY_THREAD)
		output_string(output, "{\"threads\": [\n");
}

static void end_json(struct output *output, const struct report_style *style)
{
	bool many = style->by == REPORT_BY_PROCESS || style->by == REPORT_BY_THREAD;

	output_string(output, many ? "\n]}\n" : "\n");
}

const struct report_format report_json = {"json", begin_json, put_table, end_json};
