/*
 * annotate.h - the tables of evprof annotate, as text or JSON.
 *
 * The text is that of pprofile: Line #, Hits, Time, Time per hit, %, Source code, and a "(call)" line for each function
 * that a line called.
 */
#ifndef EVPROF_TOOLS_REPORT_ANNOTATE_H
#define EVPROF_TOOLS_REPORT_ANNOTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/line_table.h"
#include "replay/call_walk.h"
#include "util/output.h"

struct report_annotate {
	struct trace *trace;
	const struct filter *filter;
	struct output *output;
	uint64_t duration_ns; /* of the shown time range */
	bool by_line;	      /* there are line events */
	bool json;
	bool by_thread;
	bool all_sources; /* also files that do not look like Python */
	bool any;	  /* a table has a file */
};

/* What is before all tables, and after them. */
void report_annotate_begin(const struct report_annotate *annotate);
void report_annotate_end(const struct report_annotate *annotate);
/* Writes a table; walk: its thread, NULL without threads. Returns 0 or -errno of writing. */
int report_annotate_table(struct report_annotate *annotate, const struct line_table *table,
			  const struct call_walk *walk);

#endif
