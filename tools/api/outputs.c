/*
 * outputs.c - texts that the verbs of the tool write: the report, and files of exporters. See trace_texts.h.
 */
#include <errno.h>
#include <string.h>

#include "analysis/profile.h"
#include "api/trace_texts.h"
#include "export/export.h"
#include "report/print.h"

/* --- the report --- */

/* What report_order_parse() takes, so that it does not complain on stderr. */
static bool is_order(const char *text)
{
	static const char known[] =
	    ",allocations,bytes,calls,cumtime,cumulative,file,filename,line,module,name,ncalls,nfl,pcalls,stdname,time,"
	    "tottime,";
	size_t words = 0;

	while (words++ < REPORT_ORDER_KEYS) {
		char word[16] = ",";
		size_t length = strcspn(text, ",");

		if (!length || length > sizeof(word) - 3)
			return false;
		memcpy(word + 1, text, length);
		memcpy(word + 1 + length, ",", 2);
		if (!strstr(known, word))
			return false;
		if (!text[length])
			return true;
		text += length + 1;
	}
	return false;
}

static int write_table(const struct options *options, struct report_style *style, struct profile *profile,
		       const struct trace *trace, struct output *output)
{
	struct report_restrictions restrictions = {.limit = options->limit};
	struct report_table table = {.sample_rate = trace_sample_rate(trace)};
	struct report_rows rows;
	struct output reductions;
	int error = report_rows_init(&rows, profile, style->by == REPORT_BY_MODULE, options->strip_dirs);

	if (!error)
		error = output_open_memory(&reductions);
	if (!error) {
		report_rows_sort(&rows, &style->order, options->reverse);
		report_rows_restrict(&rows, &restrictions, &reductions);
		table.rows = &rows;
		table.reductions = (struct text){reductions.buffer, reductions.used};
		if (report_text.begin)
			report_text.begin(output, style);
		report_text.table(output, style, &table);
		if (report_text.end)
			report_text.end(output, style);
		output_abandon(&reductions);
	}
	report_rows_done(&rows);
	return error;
}

int text_report(struct evprof_trace *handle, const struct options *options, struct output *output,
		const struct why *why)
{
	const char *sort = options->sort ? options->sort : "time";
	bool modules = options->by && strcmp(options->by, "module") == 0;
	struct report_style style = {.by = modules ? REPORT_BY_MODULE : REPORT_BY_FUNCTION,
				     .callers = options->callers,
				     .callees = options->callees,
				     .clock = options->filter.clock};
	struct profile_options counted = {
	    .filter = &options->filter, .edges = options->callers || options->callees, .modules = modules};
	struct profile profile = {0};
	struct progress progress = {0};
	int error;

	if (options->by && !modules && strcmp(options->by, "function") != 0)
		return why_set(why, -EINVAL, "evprof: by is function or module, not \"%s\"", options->by);
	if (!is_order(sort) || !report_order_parse(&style.order, sort))
		return why_set(why, -EINVAL,
			       "evprof: sort is one or several of time, cumulative, calls, pcalls, bytes, allocations, "
			       "name, file, "
			       "line, nfl and stdname, not \"%s\"",
			       sort);
	counted.memory = report_order_has_memory(&style.order);
	style.memory = counted.memory && !counted.edges;
	if (counted.memory && (options->filter.min_duration_ns || !trace_records(handle->trace, "mem")))
		return why_set(why, -EINVAL,
			       "evprof: sort by %s needs recorded allocations (mem), and excludes min_duration", sort);
	error = profile_add(&profile, handle->trace, &counted, &progress);
	if (!error)
		error = write_table(options, &style, &profile, handle->trace, output);
	profile_done(&profile);
	return error;
}

/* --- exporters --- */

int text_folded(struct evprof_trace *handle, const struct options *options, struct output *output,
		const struct why *why)
{
	static const char *const weights[] = {"time", "bytes", "allocations", "live", "peak"};
	struct export export = {.trace = handle->trace, .filter = &options->filter};
	struct progress progress = {0};
	bool known = !options->weight;
	int error;

	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]) && !known; i++)
		known = strcmp(options->weight, weights[i]) == 0;
	if (!known)
		return why_set(why, -EINVAL, "evprof: weight is time, bytes, allocations, live or peak, not \"%s\"",
			       options->weight);
	if (options->weight && !export_folded_options[0].take(&export, options->weight))
		return -ENOMEM;
	if (export.by_order && options->filter.clock != CPU_CLOCK_WALL)
		error = why_set(why, -EINVAL, "evprof: weights live and peak exclude clock");
	else
		error = export_folded(&export, output, &progress);
	return error;
}

int text_html(struct evprof_trace *handle, const struct options *options, struct output *output, const struct why *why)
{
	const struct export export = {.trace = handle->trace, .filter = &options->filter};
	struct progress progress = {0};

	if (options->filter.clock != CPU_CLOCK_WALL)
		return why_set(why, -EINVAL, "evprof: the page has a time line, which excludes clock");
	return export_html(&export, output, &progress);
}
