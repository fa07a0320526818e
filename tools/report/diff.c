/*
 * diff.c - the table, the JSON and the CSV of evprof diff. See diff.h.
 */
#include "report/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

static size_t shown_pairs(const struct report_diff *diff, const struct function_pairs *pairs)
{
	return diff->limit >= 0 && (size_t)diff->limit < pairs->count ? (size_t)diff->limit : pairs->count;
}

/* Whether a side has the measure. A trace without memory events has no allocations, so no column compares them. */
static bool has_measure(const struct report_diff *diff, const struct diff_measure *measure, size_t side)
{
	return !measure->memory || diff->totals[side].memory;
}

static bool shows_measure(const struct report_diff *diff, const struct diff_measure *measure)
{
	return has_measure(diff, measure, 0) && has_measure(diff, measure, 1);
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

static bool is_changed(const struct report_diff *diff, const struct function_pair *pair)
{
	bool changed = !pair->a || !pair->b;

	for (size_t i = 0; i < DIFF_MEASURES; i++)
		changed |= shows_measure(diff, &diff_measures[i]) && diff_change(&diff_measures[i], pair) != 0;
	return changed;
}

/* Removes pairs in which no shown measure changed. The order stays. Returns the number of removed pairs. */
static size_t remove_unchanged(const struct report_diff *diff, struct function_pairs *pairs)
{
	size_t before = pairs->count;

	pairs->count = 0;
	for (size_t i = 0; i < before; i++)
		if (is_changed(diff, &pairs->at[i]))
			pairs->at[pairs->count++] = pairs->at[i];
	return before - pairs->count;
}

/* Prints the function as cProfile does, with its qualified name. */
static void print_place(struct output *output, const struct function_side *side)
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

static void print_row(struct output *output, const struct report_diff *diff, const struct function_pair *pair,
		      const struct widths *widths)
{
	for (size_t i = 0; i < DIFF_MEASURES; i++) {
		struct cell cell = cell_of(&diff_measures[i], pair);

		if (shows_measure(diff, &diff_measures[i]))
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
	output_char(output, '\n');
}

static void print_trace(struct output *output, const struct report_diff *diff, size_t side)
{
	const struct function_total *sum = &diff->totals[side].sum;

	output_format(output, "%s %s: %" PRIu64 " function calls in %.3f seconds", side ? "B" : "A", diff->paths[side],
		      sum->calls, (double)sum->own_ns / 1e9);
	if (diff->totals[side].memory)
		output_format(output, ", %" PRIu64 " allocations of %" PRIu64 " bytes", sum->allocations,
			      sum->allocated_bytes);
	else if (diff->totals[!side].memory)
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
		if (shows_measure(diff, &diff_measures[i]))
			output_format(output, " %*s %*s ", widths->of[i][0], diff_measures[i].head, widths->of[i][1],
				      "change");
	output_string(output, "filename:lineno(function)\n");
}

void report_diff_table(struct output *output, const struct report_diff *diff, struct function_pairs *pairs)
{
	size_t same = remove_unchanged(diff, pairs), shown = shown_pairs(diff, pairs), i;
	struct widths widths = find_widths(pairs->at, shown);

	print_trace(output, diff, 0);
	print_trace(output, diff, 1);
	output_format(output, "\n   Ordered by: change of %s\n", diff->sort->title);
	if (same)
		output_format(output, "   %zu functions are the same in both and not listed\n", same);
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

static void json_number(struct output *output, size_t measure, bool known, int64_t number)
{
	output_format(output, "%s\"%s\": ", measure ? ", " : "", diff_measures[measure].key);
	if (known)
		output_i64(output, number);
	else
		output_string(output, "null");
}

static void json_counts(struct output *output, const struct report_diff *diff, size_t side,
			const struct function_total *counts)
{
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		json_number(output, i, has_measure(diff, &diff_measures[i], side),
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
		json_number(output, i, shows_measure(diff, &diff_measures[i]), diff_change(&diff_measures[i], pair));
	output_string(output, "}}");
}

static void json_trace(struct output *output, const struct report_diff *diff, size_t side)
{
	output_format(output, "\"%s\": {\"trace\": \"", side ? "b" : "a");
	output_json(output, text_of(diff->paths[side]));
	output_format(output, "\", \"lost\": %" PRIu64 ", \"memory\": %s, ", diff->lost[side],
		      diff->totals[side].memory ? "true" : "false");
	json_counts(output, diff, side, &diff->totals[side].sum);
	output_string(output, "}");
}

void report_diff_json(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs)
{
	size_t shown = shown_pairs(diff, pairs), i;

	output_char(output, '{');
	json_trace(output, diff, 0);
	output_string(output, ",\n ");
	json_trace(output, diff, 1);
	output_string(output, ",\n \"functions\": [");
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
		output_char(output, ',');
		if (has_measure(diff, &diff_measures[i], 0))
			output_u64(output, diff_value(&diff_measures[i], pair->a));
		output_char(output, ',');
		if (has_measure(diff, &diff_measures[i], 1))
			output_u64(output, diff_value(&diff_measures[i], pair->b));
		output_char(output, ',');
		if (shows_measure(diff, &diff_measures[i]))
			output_i64(output, diff_change(&diff_measures[i], pair));
	}
	output_string(output, "\r\n");
}

void report_diff_csv(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs)
{
	size_t shown = shown_pairs(diff, pairs), i;

	output_string(output, "function,file,line,in");
	for (i = 0; i < DIFF_MEASURES; i++)
		output_format(output, ",%s_a,%s_b,%s_change", diff_measures[i].key, diff_measures[i].key,
			      diff_measures[i].key);
	output_string(output, "\r\n");
	for (i = 0; i < shown; i++)
		csv_row(output, diff, &pairs->at[i]);
}
