/*
 * diff.h - the output of evprof diff, as a table, JSON or CSV.
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
	uint64_t lost[2]; /* events */
	const struct diff_measure *sort;
	int64_t limit; /* number of functions; -1: all */
};

/* Removes pairs without a change, and writes the others. */
void report_diff_table(struct output *output, const struct report_diff *diff, struct function_pairs *pairs);
/* Write all pairs. A value that a trace does not have is null, or empty. */
void report_diff_json(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs);
void report_diff_csv(struct output *output, const struct report_diff *diff, const struct function_pairs *pairs);

#endif
