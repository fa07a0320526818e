/*
 * span_table.c - see span_table.h.
 */
#include "report/span_table.h"

#include <inttypes.h>
#include <stdio.h>

#define OWN 1 /* place among the times of a row */
#define OWN_BYTES 24

/* none: what the format has for a number that is not known. */
static const char *own_text(const struct span_total *total, const char *none, char out[OWN_BYTES])
{
	if (total->no_own)
		return none;
	snprintf(out, OWN_BYTES, "%" PRIu64, total->own_ns);
	return out;
}

static uint64_t mean_of(const struct span_total *total)
{
	return total->count ? total->total_ns / total->count : 0;
}

static void put_text_row(struct output *output, const struct span_total *total, bool units)
{
	const uint64_t times[] = {total->total_ns,	     total->own_ns, mean_of(total), span_quantile(total, 0.5),
				  span_quantile(total, 0.9), total->most_ns};
	char text[TERMINAL_NUMBER_BYTES];

	output_format(output, "%9" PRIu64, total->count);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (i == OWN && total->no_own)
			output_format(output, " %*s", units ? 8 : 11, "-");
		else if (units)
			output_format(output, " %8s", terminal_time((double)times[i], text));
		else
			output_format(output, " %11.6f", (double)times[i] / 1e9);
	output_char(output, ' ');
	output_line(output, total->name);
	if (total->unfinished)
		output_format(output, " (and %" PRIu64 " unfinished)", total->unfinished);
	output_char(output, '\n');
}

static void put_json_row(struct output *output, const struct span_total *total, bool first)
{
	char own[OWN_BYTES];

	output_string(output, first ? "\n  {\"span\": \"" : ",\n  {\"span\": \"");
	output_json(output, total->name);
	output_format(output,
		      "\", \"count\": %" PRIu64 ", \"unfinished\": %" PRIu64 ", \"total_ns\": %" PRIu64
		      ", \"own_ns\": %s, \"mean_ns\": %" PRIu64 ", \"p50_ns\": %" PRIu64 ", \"p90_ns\": %" PRIu64
		      ", \"max_ns\": %" PRIu64 "}",
		      total->count, total->unfinished, total->total_ns, own_text(total, "null", own), mean_of(total),
		      span_quantile(total, 0.5), span_quantile(total, 0.9), total->most_ns);
}

/* A name in double quotes, as in RFC 4180. */
static void put_quoted(struct output *output, struct text name)
{
	output_char(output, '"');
	for (size_t i = 0; i < name.length; i++) {
		if (name.at[i] == '"')
			output_char(output, '"');
		output_char(output, name.at[i] ? name.at[i] : '?');
	}
	output_char(output, '"');
}

static void put_csv_row(struct output *output, const struct span_total *total)
{
	char own[OWN_BYTES];

	put_quoted(output, total->name);
	output_format(output,
		      ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
		      total->count, total->unfinished, total->total_ns, own_text(total, "", own), mean_of(total),
		      span_quantile(total, 0.5), span_quantile(total, 0.9), total->most_ns);
}

/* terminal: NULL: without colours */
static void put_titles(struct output *output, const struct terminal *terminal, int width)
{
	static const char *const titles[] = {"total", "own", "mean", "p50", "p90", "max"};

	if (terminal)
		terminal_style(terminal, output, TERMINAL_BOLD);
	output_format(output, "%9s", "count");
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		output_format(output, " %*s", width, titles[i]);
	output_string(output, " span");
	if (terminal)
		terminal_style(terminal, output, TERMINAL_PLAIN);
	output_char(output, '\n');
}

void span_table_print(struct output *output, const struct report_format *format, const struct terminal *terminal,
		      const struct span_totals *totals, int64_t most)
{
	bool json = format == &report_json, csv = format == &report_csv, units = format == &report_terminal;
	size_t count = most >= 0 && (uint64_t)most < totals->count ? (size_t)most : totals->count;

	if (json)
		output_string(output, "{\"spans\": [");
	else if (csv)
		output_string(output, "span,count,unfinished,total_ns,own_ns,mean_ns,p50_ns,p90_ns,max_ns\n");
	else
		put_titles(output, units ? terminal : NULL, units ? 8 : 11);
	for (size_t i = 0; i < count; i++) {
		if (json)
			put_json_row(output, &totals->at[i], i == 0);
		else if (csv)
			put_csv_row(output, &totals->at[i]);
		else
			put_text_row(output, &totals->at[i], units);
	}
	if (json)
		output_string(output, "\n]}\n");
	else if (!csv && count < totals->count)
		output_format(output, "%zu more; --limit all shows them\n", totals->count - count);
}
