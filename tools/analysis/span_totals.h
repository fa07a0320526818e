/*
 * span_totals.h - how many spans of each name there were, and how long they took.
 *
 * Read in the order of time, all threads of a process at once, because a span may end in another thread. Memory: the
 * open spans, and a histogram of durations for each name.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_SPAN_TOTALS_H
#define EVPROF_TOOLS_ANALYSIS_SPAN_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/filter.h"
#include "trace/reader.h"
#include "util/progress.h"
#include "util/text.h"
#include "util/u64_map.h"

/* Durations by powers of two from 2^6 ns on, each in 64 parts: a quantile is exact to 1/128. */
#define SPAN_PARTS 64
#define SPAN_POWERS 58

struct span_total {
	struct text name;
	char *bytes;	/* of the name */
	uint64_t count; /* of spans that have ended */
	uint64_t unfinished;
	uint64_t total_ns, own_ns; /* of those that have ended; own: without the spans within them */
	bool no_own;		   /* some are of a process without calls, where spans that take turns look nested */
	uint64_t least_ns, most_ns;
	uint64_t *parts[SPAN_POWERS]; /* numbers of durations, or NULL */
};

struct span_totals {
	struct span_total *at;
	size_t count, allocated;
	struct u64_map names; /* hash of the name to index + 1 */
};

/* Adds the spans of a trace. Returns 0 or -ENOMEM. */
int span_totals_add(struct span_totals *totals, struct trace *trace, const struct filter *filter,
		    struct progress *progress);
void span_totals_done(struct span_totals *totals);

/* Sorts by total time, the longest first. */
void span_totals_sort(struct span_totals *totals);

/* The duration that a fraction of the spans does not exceed; 0 without spans. */
uint64_t span_quantile(const struct span_total *total, double fraction);

#endif
