/*
 * diff_markdown.c - evprof diff as a table in GitHub's Markdown, for the comment of a pull request. See diff.h.
 *
 * Names come from a trace. They stand in code spans, in which a viewer interprets nothing but the end of the span and
 * of the table's cell.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/diff.h"

/* Writes a code span: one line, valid UTF-8, without what would end the span or the cell. */
static void put_code(struct output *output, struct text text)
{
	while (text.length) {
		uint32_t code;
		struct text one = text_next_valid(&text, &code);

		if (code == '`')
			output_char(output, '\'');
		else if (code == '|')
			output_string(output, "\\|");
		else if (code < 0x20 || code == 0x7f)
			output_char(output, ' ');
		else
			output_put(output, one.at, one.length);
	}
}

/* The path below the folder, or all of it. */
static struct text below(struct text path, const char *folder)
{
	size_t length = folder ? strlen(folder) : 0;

	if (!length || path.length <= length + 1 || memcmp(path.at, folder, length) != 0 || path.at[length] != '/')
		return path;
	return (struct text){path.at + length + 1, path.length - length - 1};
}

static void put_place(struct output *output, const struct function_side *side, const char *folder)
{
	output_char(output, '`');
	put_code(output, text_of(side->display));
	output_char(output, '`');
	if (!side->file.length || (!side->line && text_same(side->file, text_of("~"))))
		return;
	output_string(output, " `");
	put_code(output, below(side->file, folder));
	output_format(output, ":%u`", side->line);
}

static void put_value(struct output *output, const struct diff_measure *measure, uint64_t value)
{
	if (measure->seconds)
		output_format(output, "%.3f", (double)value / 1e9);
	else
		output_u64(output, value);
}

/* The growth in percent. Tenths where whole percents would hide it. */
static void put_percent(struct output *output, uint64_t a, uint64_t b)
{
	double percent = a ? ((double)b - (double)a) * 100 / (double)a : 0;

	if (!a || a == b)
		return;
	output_format(output, fabs(percent) < 10 ? " (%+.1f %%)" : " (%+.0f %%)", percent);
}

/* The values of a and b; of a change that does not count, b's only. */
static void put_cells(struct output *output, const struct report_diff *diff, const struct function_total *a,
		      const struct function_total *b, unsigned regressions)
{
	const struct function_total none = {0};
	unsigned changes = diff_count_changes(&diff->rules, a, b);

	a = a ? a : &none;
	b = b ? b : &none;
	for (size_t i = 0; i < DIFF_MEASURES; i++) {
		const struct diff_measure *measure = &diff_measures[i];
		const char *bold = regressions & 1u << i ? "**" : "";

		if (!report_diff_shows(diff, i))
			continue;
		output_format(output, " %s", bold);
		if (changes & 1u << i) {
			put_value(output, measure, diff_measured(measure, a));
			output_string(output, " → ");
		}
		put_value(output, measure, diff_measured(measure, b));
		if (changes & 1u << i)
			put_percent(output, diff_measured(measure, a), diff_measured(measure, b));
		output_format(output, "%s |", bold);
	}
	output_char(output, '\n');
}

static void put_row(struct output *output, const struct report_diff *diff, const struct function_pair *pair,
		    const char *folder)
{
	output_string(output, "| ");
	put_place(output, diff_shown_side(pair), folder);
	output_string(output, !pair->a ? " (new) |" : !pair->b ? " (gone) |" : " |");
	put_cells(output, diff, pair->a ? pair->a->counts : NULL, pair->b ? pair->b->counts : NULL,
		  diff_regressions(&diff->rules, pair));
}

static void put_head(struct output *output, const struct report_diff *diff)
{
	output_format(output, "\n| %s |", report_diff_noun(diff, 1));
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		if (report_diff_shows(diff, i))
			output_format(output, " %s%s |", diff_measures[i].sort, diff_measures[i].seconds ? " (s)" : "");
	output_string(output, "\n|---|");
	for (size_t i = 0; i < DIFF_MEASURES; i++)
		if (report_diff_shows(diff, i))
			output_string(output, "--:|");
	output_char(output, '\n');
}

static void put_summary(struct output *output, const struct report_diff *diff, size_t changed, size_t same)
{
	bool total = report_diff_total_regressions(diff) != 0;

	if (diff->all)
		output_format(output, "%zu %s", changed, report_diff_noun(diff, 2));
	else
		output_format(output, "%zu of %zu %s changed", changed, changed + same, report_diff_noun(diff, 2));
	if (diff->regressed)
		output_format(output, ", **regressions in %zu of them**", diff->regressed);
	if (total)
		output_format(output, "%s",
			      diff->regressed ? " **and in their sum**" : ", **a regression in their sum**");
	output_string(output, ".\n");
	for (size_t side = 0; side < 2; side++)
		if (diff->lost[side])
			output_format(output,
				      "\n%" PRIu64 " events of `%s` were lost: its counts and times are too small.\n",
				      diff->lost[side], side ? "B" : "A");
	for (size_t side = 0; side < 2; side++)
		if (diff->sites && !diff->native[side])
			output_format(output, "\nNative memory (malloc, mmap) of `%s` was not recorded.\n",
				      side ? "B" : "A");
}

void report_diff_markdown(struct output *output, const struct report_diff *diff, struct function_pairs *pairs)
{
	size_t same = report_diff_remove_unchanged(diff, pairs), shown = report_diff_limit(diff, pairs);
	char *folder = getcwd(NULL, 0);

	put_summary(output, diff, pairs->count, same);
	put_head(output, diff);
	output_format(output, "| all %s |", report_diff_noun(diff, 2));
	put_cells(output, diff, &diff->totals[0].sum, &diff->totals[1].sum, report_diff_total_regressions(diff));
	for (size_t i = 0; i < shown; i++)
		put_row(output, diff, &pairs->at[i], folder);
	if (shown < pairs->count)
		output_format(output, "\n%zu more %s are not listed.\n", pairs->count - shown,
			      report_diff_noun(diff, 2));
	free(folder);
}
