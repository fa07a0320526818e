/*
 * span_table.h - the table of spans: evprof report --by span.
 *
 *   text   count, total, own, mean, p50, p90 and max in seconds, name; on a terminal with units
 *   json   {"spans": [{"span": ..., "count": ..., "unfinished": ..., "total_ns": ...}]}
 *   csv    the same columns, with a line of titles
 *
 * A row without own time has a dash, null or nothing there.
 */
#ifndef EVPROF_TOOLS_REPORT_SPAN_TABLE_H
#define EVPROF_TOOLS_REPORT_SPAN_TABLE_H

#include "analysis/span_totals.h"
#include "report/print.h"

/* most: the number of rows at most; negative: all. The totals are sorted. */
void span_table_print(struct output *output, const struct report_format *format, const struct terminal *terminal,
		      const struct span_totals *totals, int64_t most);

#endif
