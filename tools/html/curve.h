/*
 * curve.h - a curve of any number of points in bounded memory: the lowest, the highest and the last value of each
 * interval. If there are too many intervals, each two are merged into one.
 *
 * Used by export_html.c for the heap.
 */
#ifndef EVPROF_TOOLS_HTML_CURVE_H
#define EVPROF_TOOLS_HTML_CURVE_H

#include <stdint.h>

#include "html/pack.h"

#define HTML_CURVE_POINTS 32768

struct html_curve_point {
	uint64_t stretch; /* interval number: time >> shift */
	uint64_t low;
	uint64_t high;
	uint64_t last;
};

struct html_curve {
	unsigned shift; /* an interval is 2^shift ns */
	uint32_t count;
	struct html_curve_point points[HTML_CURVE_POINTS];
};

/* Adds a point. Times must not decrease. */
void html_curve_add(struct html_curve *curve, int64_t ns, uint64_t value);

enum { HTML_CURVE_COLUMNS = 4 };

/* Writes columns: interval (difference to the last), low, high - low, last - low. */
void html_curve_columns(const struct html_curve *curve, struct html_column *columns);

#endif
