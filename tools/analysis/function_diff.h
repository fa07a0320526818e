/*
 * function_diff.h - the functions of two traces, matched, and what changed. Used by evprof diff, which has sites of
 * memory as functions, too.
 *
 * Functions are matched in three rounds. Each round takes what the previous ones left:
 *
 *   1. same file, line and qualified name
 *   2. same file and qualified name: the line moved
 *   3. same base name of the file and qualified name: the file moved, too
 *
 * In rounds 2 and 3 a site at a line of a function matches one that is as many lines below the function's first.
 *
 * Several functions that are equal in a round (lambdas of one file) are matched in order of file and line. If one trace
 * has no qualified names, because its Python is older than 3.11, plain names are compared.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FUNCTION_DIFF_H
#define EVPROF_TOOLS_ANALYSIS_FUNCTION_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/function_totals.h"

/* A function of one of the traces. Its texts are those of the totals. */
struct function_side {
	struct text file;
	struct text name; /* the compared name: qualified or plain */
	uint32_t line;
	uint32_t offset; /* of a site: lines below the first one of its function */
	const struct label *label;
	const char *display;
	const struct function_total *counts;
	bool matched;
};

struct function_sides {
	struct function_side *at;
	size_t count;
};

/* A function of a, of b, or of both; the other is NULL. */
struct function_pair {
	const struct function_side *a;
	const struct function_side *b;
};

/* All zeros: empty. */
struct function_pairs {
	struct function_pair *at;
	size_t count;
	struct function_sides sides[2];
};

/* Matches all functions of two traces, whose totals must outlive the pairs. Returns 0 or -ENOMEM. */
int function_pairs_match(struct function_pairs *pairs, const struct function_totals *a,
			 const struct function_totals *b);
void function_pairs_done(struct function_pairs *pairs);

/* What is compared, in the order of the columns. */
struct diff_measure {
	const char *sort; /* for --sort */
	const char *key;  /* for JSON and CSV */
	const char *head; /* of the table's column */
	const char *title;
	size_t offset; /* in struct function_total */
	bool seconds;  /* in ns; the table shows seconds */
	bool memory;
	bool bytes;
};

enum {
	DIFF_CALLS,
	DIFF_TIME,
	DIFF_CUMTIME,
	DIFF_PEAK,
	DIFF_END,
	DIFF_ALLOCS,
	DIFF_BYTES,
	DIFF_TEMPORARY,
	DIFF_MEASURES
};
/* Those of functions, and of sites, as bits. */
#define DIFF_OF_FUNCTIONS                                                                                              \
	(1u << DIFF_CALLS | 1u << DIFF_TIME | 1u << DIFF_CUMTIME | 1u << DIFF_ALLOCS | 1u << DIFF_BYTES)
#define DIFF_OF_SITES (1u << DIFF_PEAK | 1u << DIFF_END | 1u << DIFF_ALLOCS | 1u << DIFF_BYTES | 1u << DIFF_TEMPORARY)
extern const struct diff_measure diff_measures[DIFF_MEASURES];

/*
 * The measures that the sites of a trace do not have, as bits: temporary allocations where memory was sampled, the peak
 * where only what is alive was kept.
 */
unsigned diff_unknown_of_sites(const struct trace *trace);

static inline uint64_t diff_measured(const struct diff_measure *measure, const struct function_total *counts)
{
	return *(const uint64_t *)((const char *)counts + measure->offset);
}

/* The value of a side, 0 for NULL; b's value without a's; and the side that names the pair: b, or else a. */
uint64_t diff_value(const struct diff_measure *measure, const struct function_side *side);
int64_t diff_change(const struct diff_measure *measure, const struct function_pair *pair);
const struct function_side *diff_shown_side(const struct function_pair *pair);

/* Sorts by change, increase or decrease, the largest first. */
void function_pairs_sort(struct function_pairs *pairs, const struct diff_measure *measure);

/* A difference counts as a change if it is larger than both. */
struct diff_threshold {
	uint64_t amount;
	double percent; /* of the value in a; any growth from 0 is larger */
};

/* What counts as a change, and which growth is a regression. Sets of measures are bits, by index. */
struct diff_rules {
	struct diff_threshold thresholds[DIFF_MEASURES];
	unsigned compared;	/* measures that both traces have */
	unsigned fail_on;	/* in any function */
	unsigned fail_on_total; /* in the sum of all functions */
};

/* The measures that changed; NULL: the function is not in that trace. */
unsigned diff_count_changes(const struct diff_rules *rules, const struct function_total *a,
			    const struct function_total *b);
/* The same of a pair, and the measures whose growth is a regression. */
unsigned diff_changes(const struct diff_rules *rules, const struct function_pair *pair);
unsigned diff_regressions(const struct diff_rules *rules, const struct function_pair *pair);
/* The measures whose sum over all functions is a regression from a to b. */
unsigned diff_total_regressions(const struct diff_rules *rules, const struct function_total *a,
				const struct function_total *b);
/* Moves the pairs with a regression to the front. The order stays otherwise. Returns their number, or -ENOMEM. */
int64_t function_pairs_put_regressions_first(struct function_pairs *pairs, const struct diff_rules *rules);

#endif
