/*
 * line_table.h - the costs of lines (line_costs.h) by file and line, whatever function they are in.
 *
 * Used by evprof annotate.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_LINE_TABLE_H
#define EVPROF_TOOLS_ANALYSIS_LINE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/line_costs.h"

/* A line of a file, the sum of all functions in it. */
struct line_row {
	uint32_t file;
	uint32_t line;
	uint64_t hits;
	uint64_t own_ns;
};

/* Calls of a function from a line. */
struct line_call {
	uint32_t file;
	uint32_t line;
	const struct cost_call *call;
};

/* The lines of a file, by number, and the calls from them, by line, the most expensive first. */
struct file_lines {
	uint32_t file;
	uint64_t own_ns;
	const struct line_row *rows;
	size_t row_count;
	const struct line_call *calls;
	size_t call_count;
};

/* The lines and calls of files: of the whole trace, or of one thread. */
struct line_table {
	const struct line_costs *costs;
	struct line_row *rows;
	size_t row_count;
	struct line_call *calls;
	size_t call_count;
	struct file_lines *files; /* the most expensive first */
	size_t file_count;
};

/*
 * Makes a table of the files for which wanted[place] is not 0. A hit is a line event, or without line events a call at
 * the first line of its function. The costs must outlive the table. Returns 0 or -ENOMEM; in
 * both cases line_table_done() follows.
 */
int line_table_make(struct line_table *table, const struct line_costs *costs, const uint8_t *wanted);
void line_table_done(struct line_table *table);

#endif
