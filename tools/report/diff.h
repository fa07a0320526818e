/*
 * diff.h - the output of evprof diff, as a table, JSON, CSV or Markdown.
 *
 * The pairs are sorted; the first diff->limit of them are written.
 */
#ifndef EVPROF_TOOLS_REPORT_DIFF_H
#define EVPROF_TOOLS_REPORT_DIFF_H

#include "analysis/function_diff.h"
#include "util/output.h"

/* Two traces: a and b. */
struct report_diff {
	const char *paths[2];
	struct function_totals totals[2];
	uint64_t lost[2];    /* events */
	bool sites;	     /* the functions are sites of memory */
	bool native[2];	     /* sites: native memory was recorded */
	unsigned unknown[2]; /* sites: diff_unknown_of_sites() */
	struct diff_rules rules;
	size_t regressed; /* functions */
	const struct diff_measure *sort;
	int64_t limit; /* number of functions; -1: all */
	bool all;      /* list what did not change, too */
};

/* Write the pairs that changed. Those that did not are removed. */
void report_diff_table(struct output *output, const struct report_diff *diff, struct function_pairs *pairs);
/* As a table in GitHub's Markdown. Files below the working directory are relative to it. */
void report_diff_markdown(struct output *output, const struct report_diff *diff, struct function_pairs *pairs);
/* Write all pairs. A value that a trace does not have is null, or empty. */
void report_diff_json(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs);
void report_diff_csv(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs);

/* For the formats: the measures there are, as bits; whether both traces have one, and which pairs are written. */
unsigned report_diff_measures(const struct report_diff *diff);
/* Whether a side has the measure. */
bool report_diff_has(const struct report_diff *diff, size_t measure, size_t side);
bool report_diff_shows(const struct report_diff *diff, size_t measure);
/* "function" or "site", in the plural for more than one. */
const char *report_diff_noun(const struct report_diff *diff, size_t count);
size_t report_diff_limit(const struct report_diff *diff, const struct function_pairs *pairs);
size_t report_diff_remove_unchanged(const struct report_diff *diff, struct function_pairs *pairs);
/* The sum of all functions as a pair. */
unsigned report_diff_total_regressions(const struct report_diff *diff);

#endif
