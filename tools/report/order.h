/*
 * order.h - in which order the rows of a report stand: the keys of Python's pstats.
 */
#ifndef EVPROF_TOOLS_REPORT_ORDER_H
#define EVPROF_TOOLS_REPORT_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "report/rows.h"

#define REPORT_ORDER_KEYS 16

/* What to order by: the most important first. */
struct report_order {
	const struct report_key *keys[REPORT_ORDER_KEYS];
	size_t count;
};

/*
 * A list of keys with commas: names, beginnings of names that can mean one order only, or one of pstats' old numbers,
 * -1 to 2. False after saying on stderr what is wrong.
 */
bool report_order_parse(struct report_order *order, const char *text);

/* "call count, internal time", as pstats prints it. */
struct output;
void report_order_print(const struct report_order *order, struct output *output);

/*
 * Orders what is shown. Rows that are equal in all keys stay in the order of their names; reverse turns that round too.
 */
void report_rows_sort(struct report_rows *rows, const struct report_order *order, bool reverse);

#endif
