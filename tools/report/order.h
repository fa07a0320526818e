/*
 * order.h - the order of the rows of a report: the sort keys of Python's pstats.
 */
#ifndef EVPROF_TOOLS_REPORT_ORDER_H
#define EVPROF_TOOLS_REPORT_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "report/rows.h"

#define REPORT_ORDER_KEYS 16

/* The sort keys, the most important first. */
struct report_order {
	const struct report_key *keys[REPORT_ORDER_KEYS];
	size_t count;
};

/*
 * Parses a comma-separated list of keys: names, unambiguous prefixes of names, or one of pstats' old numbers, -1 to 2.
 * False: an error is printed on stderr.
 */
bool report_order_parse(struct report_order *order, const char *text);

/* Prints "call count, internal time", as pstats does. */
struct output;
void report_order_print(const struct report_order *order, struct output *output);

/* Sorts the shown rows. Rows with equal keys stay in the order of their names; reverse also reverses that. */
void report_rows_sort(struct report_rows *rows, const struct report_order *order, bool reverse);

#endif
