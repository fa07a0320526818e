/*
 * diff.c - the table, the JSON and the CSV of evprof diff, and what all its formats share. See diff.h.
 */
#include "report/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

size_t report_diff_limit(const struct report_diff *diff, const struct function_pairs *pairs)
{
	return diff->limit >= 0 && (size_t)diff->limit < pairs->count ? (size_t)diff->limit : pairs->count;
}

/* A trace without memory events has no allocations, so no column compares them. */
bool report_diff_has(const struct report_diff *diff, size_t measure, size_t side)
{
	if (diff->unknown[side] & 1u << measure)
		return false;
	return !diff_measures[measure].memory || diff->totals[side].memory;
}

unsigned report_diff_measures(const struct report_diff *diff)
{
	return diff->sites ? DIFF_OF_SITES : DIFF_OF_FUNCTIONS;
}

const char *report_diff_noun(const struct report_diff *diff, size_t count)
{
	if (diff->sites)
		return count == 1 ? "site" : "sites";
	return count == 1 ? "function" : "functions";
}

bool report_diff_shows(const struct report_diff *diff, size_t measure)
{
	return diff->rules.compared & 1u << measure;
}

unsigned report_diff_total_regressions(const struct report_diff *diff)
{
	return diff_total_regressions(&diff->rules, &diff->totals[0].sum, &diff->totals[1].sum);
}

/* The widths of the two columns of each measure. */
struct widths {
	int of[DIFF_MEASURES][2];
};

struct cell {
	char value[32], change[32];
};

static struct cell cell_of(const struct diff_measure *measure, const struct function_pair *pair)
{
	uint64_t value = diff_value(measure, pair->a);
	int64_t change = diff_change(measure, pair);
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

static struct widths find_widths(const struct function_pair *pairs, size_t shown)
{
	struct widths widths;

	for (size_t k = 0; k < DIFF_MEASURES; k++) {
		int value = (int)strlen(diff_measures[k].head), change = (int)strlen("change");

		for (size_t i = 0; i < shown; i++) {
			struct cell cell = cell_of(&diff_measures[k], &pairs[i]);

			value = MAX(value, (int)strlen(cell.value));
			change = MAX(change, (int)strlen(cell.change));
		}
		widths.of[k][0] = value;
		widths.of[k][1] = change;
	}
	return widths;
}

size_t report_diff_remove_unchanged(const struct report_diff *diff, struct function_pairs *pairs)
{
	size_t before = pairs->count;

	if (diff->all)
		return 0;
	pairs->count = 0;
	for (size_t i = 0; i < before; i++)
		if (diff_changes(&diff->rules, &pairs->at[i]))
			pairs->at[pairs->count++] = pairs->at[i];
	return before - pairs->count;
}

/* Prints the function as cProfile does, with its qualified name. */
static void print_place(struct output *output, const struct function_side *side)
{
	if (!side->file.length) { /* a module, a thread, ... */
		output_line(output, text_of(side->display));
		return;
	}
	if (!side->line && text_same(side->file, text_of("~"))) {
		label_print(side->label, output);
		return;
	}
	output_line(output, side->file);
	output_format(output, ":%u(", side->line);
	output_line(output, text_of(side->display));
	output_char(output, ')');
}

static void print_measures(struct output *output, unsigned measures)
{
	const char *before = "";

	for (size_t i = 0; i < DIFF_MEASURES; i++) {
		if (!(measures & 1u << i))
			continue;
		output_format(output, "%s%s", before, diff_measures[i].sort);
		before = ", ";
	}
}

static void print_regressions(struct output *output, const struct report_diff *diff)
{
	unsigned total = report_diff_total_regressions(diff);

	if (diff->regressed)
		output_format(output, "   Regressions in %zu %s, listed first\n", diff->regressed,
			      report_diff_noun(diff, diff->regressed));
	if (!total)
		return;
	output_format(output, "   Regressions in the sum of all %s: ", report_diff_noun(diff, 2));
	print_measures(output, total);
	output_char(output, '\n');
}

static void print_row(struct output *output, const struct report_diff *diff, const struct function_pair *pair,
		      const struct widths *widths)
{
	unsigned regressions = diff_regressions(&diff->rules, pair);

	for (size_t i = 0; i < DIFF_MEASURES; i++) {
		struct cell cell = cell_of(&diff_measures[i], pair);

		if (report_diff_shows(diff, i))
			output_format(output, " %*s %*s ", widths->of[i][0], cell.value, widths->of[i][1], cell.change);
	}
	print_place(output, diff_shown_side(pair));
	if (!pair->a)
		output_string(output, " (new)");
	else if (!pair->b)
		output_string(output, " (gone)");
	else if (pair->a->line != pair->b->line || !text_same(pair->a->file, pair->b->file)) {
		output_string(output, " (was ");
		print_place(output, pair->a);
		output_char(output, ')');
	}
	if (regressions) {
		output_string(output, " (regression: ");
		print_measures(output, regressions);
		output_char(output, ')');
	}
	output_char(output, '\n');
}

static void print_memory(struct output *output, const struct report_diff *diff, size_t side)
{
	const struct function_total *sum = &diff->totals[side].sum;

	if (report_diff_has(diff, DIFF_PEAK, side))
		output_format(output, "%" PRIu64 " bytes at the peak, %" PRIu64 " at the end", sum->peak_bytes,
			      sum->end_bytes);
	else
		output_format(output, "%" PRIu64 " bytes at the end", sum->end_bytes);
	output_format(output, ", %" PRIu64 " allocations of %" PRIu64 " bytes", sum->allocations, sum->allocated_bytes);
	if (report_diff_has(diff, DIFF_TEMPORARY, side))
		output_format(output, ", %" PRIu64 " of them temporary", sum->temporary);
	if (!diff->native[side])
		output_string(output, "; without native memory, which was not recorded");
	if (diff->unknown[side] & 1u << DIFF_TEMPORARY)
		output_string(output, "; estimates, as memory was sampled");
	if (diff->unknown[side] & 1u << DIFF_PEAK)
		output_string(output, "; the peak is not known, as only what is alive was kept");
}

static void print_trace(struct output *output, const struct report_diff *diff, size_t side)
{
	const struct function_total *sum = &diff->totals[side].sum;

	output_format(output, "%s %s: ", side ? "B" : "A", diff->paths[side]);
	if (diff->sites)
		print_memory(output, diff, side);
	else
		output_format(output, "%" PRIu64 " function calls in %.3f seconds", sum->calls,
			      (double)sum->own_ns / 1e9);
	if (!diff->sites && diff->totals[side].memory)
		output_format(output, ", %" PRIu64 " allocations of %" PRIu64 " bytes", sum->allocations,
			      sum->allocated_bytes);
	else if (!diff->sites && diff->totals[!side].memory)
		output_string(output, ", allocations not recorded");
	if (diff->lost[side])
		output_format(output, "; %" PRIu64 " events were lost: counts and times are too small",
			      diff->lost[side]);
	output_char(output, '\n');
}

static void print_head(struct output *output, const struct report_diff *diff, const struct widths *widths)
{
	output_char(output, '\n');
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		if (report_diff_shows(diff, i))
			output_format(output, " %*s %*s ", widths->of[i][0], diff_measures[i].head, widths->of[i][1],
				      "change");
	output_format(output, "%s\n", diff->sites ? "site" : "filename:lineno(function)");
}

void report_diff_table(struct output *output, const struct report_diff *diff, struct function_pairs *pairs)
{
	size_t same = report_diff_remove_unchanged(diff, pairs), shown = report_diff_limit(diff, pairs), i;
	struct widths widths = find_widths(pairs->at, shown);

	print_trace(output, diff, 0);
	print_trace(output, diff, 1);
	output_format(output, "\n   Ordered by: change of %s\n", diff->sort->title);
	if (same)
		output_format(output, "   %zu %s did not change and %s not listed; --all lists them\n", same,
			      report_diff_noun(diff, same), same == 1 ? "is" : "are");
	print_regressions(output, diff);
	if (shown < pairs->count)
		output_format(output, "   List reduced from %zu to %zu due to restriction <%zu>\n", pairs->count, shown,
			      shown);
	if (shown)
		print_head(output, diff, &widths);
	for (i = 0; i < shown; i++)
		print_row(output, diff, &pairs->at[i], &widths);
	output_char(output, '\n');
}

/* --- JSON --- */

static void json_number(struct output *output, const struct report_diff *diff, size_t measure, bool known,
			int64_t number)
{
	unsigned all = report_diff_measures(diff);

	if (!(all & 1u << measure))
		return;
	output_format(output, "%s\"%s\": ", measure > (unsigned)__builtin_ctz(all) ? ", " : "",
		      diff_measures[measure].key);
	if (known)
		output_i64(output, number);
	else
		output_string(output, "null");
}

static void json_counts(struct output *output, const struct report_diff *diff, size_t side,
			const struct function_total *counts)
{
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		json_number(output, diff, i, report_diff_has(diff, i, side),
			    (int64_t)diff_measured(&diff_measures[i], counts));
}

static void json_side(struct output *output, const struct report_diff *diff, size_t number,
		      const struct function_side *side)
{
	output_format(output, "\"%s\": ", number ? "b" : "a");
	if (!side) {
		output_string(output, "null");
		return;
	}
	output_string(output, "{\"file\": \"");
	output_json(output, side->file);
	output_format(output, "\", \"line\": %u, ", side->line);
	json_counts(output, diff, number, side->counts);
	output_char(output, '}');
}

static void json_measures(struct output *output, const char *name, unsigned measures)
{
	const char *before = "";

	output_format(output, "\"%s\": [", name);
	for (size_t i = 0; i < DIFF_MEASURES; i++) {
		if (!(measures & 1u << i))
			continue;
		output_format(output, "%s\"%s\"", before, diff_measures[i].key);
		before = ", ";
	}
	output_char(output, ']');
}

static void json_row(struct output *output, const struct report_diff *diff, const struct function_pair *pair)
{
	const struct function_side *side = diff_shown_side(pair);

	output_string(output, "{\"function\": \"");
	output_json(output, text_of(side->display));
	output_string(output, "\", ");
	json_side(output, diff, 0, pair->a);
	output_string(output, ", ");
	json_side(output, diff, 1, pair->b);
	output_string(output, ", \"change\": {");
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		json_number(output, diff, i, report_diff_shows(diff, i), diff_change(&diff_measures[i], pair));
	output_format(output, "}, \"changed\": %s, ", diff_changes(&diff->rules, pair) ? "true" : "false");
	json_measures(output, "regressions", diff_regressions(&diff->rules, pair));
	output_char(output, '}');
}

static void json_trace(struct output *output, const struct report_diff *diff, size_t side)
{
	output_format(output, "\"%s\": {\"trace\": \"", side ? "b" : "a");
	output_json(output, text_of(diff->paths[side]));
	output_format(output, "\", \"lost\": %" PRIu64 ", \"memory\": %s, ", diff->lost[side],
		      diff->totals[side].memory ? "true" : "false");
	if (diff->sites)
		output_format(output, "\"native\": %s, \"sampled\": %s, ", diff->native[side] ? "true" : "false",
			      diff->unknown[side] & 1u << DIFF_TEMPORARY ? "true" : "false");
	json_counts(output, diff, side, &diff->totals[side].sum);
	output_string(output, "}");
}

void report_diff_json(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs)
{
	size_t shown = report_diff_limit(diff, pairs), i;

	output_char(output, '{');
	json_trace(output, diff, 0);
	output_string(output, ",\n ");
	json_trace(output, diff, 1);
	output_string(output, ",\n ");
	json_measures(output, "total_regressions", report_diff_total_regressions(diff));
	output_format(output, ",\n \"%s\": [", report_diff_noun(diff, 2));
	for (i = 0; i < shown; i++) {
		output_string(output, i ? ",\n  " : "\n  ");
		json_row(output, diff, &pairs->at[i]);
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

/* Unknown values are empty. */
static void csv_row(struct output *output, const struct report_diff *diff, const struct function_pair *pair)
{
	const struct function_side *side = diff_shown_side(pair);

	csv_text(output, text_of(side->display));
	output_char(output, ',');
	csv_text(output, side->file);
	output_format(output, ",%u,%s", side->line, pair->a && pair->b ? "both" : pair->a ? "a" : "b");
	for (size_t i = 0; i < DIFF_MEASURES; i++) {
		if (!(report_diff_measures(diff) & 1u << i))
			continue;
		output_char(output, ',');
		if (report_diff_has(diff, i, 0))
			output_u64(output, diff_value(&diff_measures[i], pair->a));
		output_char(output, ',');
		if (report_diff_has(diff, i, 1))
			output_u64(output, diff_value(&diff_measures[i], pair->b));
		output_char(output, ',');
		if (report_diff_shows(diff, i))
			output_i64(output, diff_change(&diff_measures[i], pair));
	}
	output_string(output, "\r\n");
}

void report_diff_csv(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs)
{
	size_t shown = report_diff_limit(diff, pairs), i;

	output_string(output, "function,file,line,in");
	for (i = 0; i < DIFF_MEASURES; i++)
		if (report_diff_measures(diff) & 1u << i)
			output_format(output, ",%s_a,%s_b,%s_change", diff_measures[i].key, diff_measures[i].key,
				      diff_measures[i].key);
	output_string(output, "\r\n");
	for (i = 0; i < shown; i++)
		csv_row(output, diff, &pairs->at[i]);
}
