/*
 * print.h - how a report looks: the formats of evprof report, one file each.
 *
 *   text_table.c   as Python's pstats prints
 *   json.c   one JSON object
 *   csv.c    a table with a line of titles
 *
 * A report is one table, or with --by process or thread one for each of these. A format gets begin(), table() for each,
 * and end(). Rows are in their order and restricted when it gets them.
 */
#ifndef EVPROF_TOOLS_REPORT_PRINT_H
#define EVPROF_TOOLS_REPORT_PRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/order.h"
#include "report/rows.h"
#include "trace/reader.h"
#include "util/output.h"

enum report_by {
	REPORT_BY_FUNCTION,
	REPORT_BY_MODULE,  /* rows are modules */
	REPORT_BY_PROCESS, /* a table for each */
	REPORT_BY_THREAD,
};

/* What the options said. */
struct report_style {
	struct report_order order;
	enum report_by by;
	bool callers; /* who calls the rows, for text instead of their times */
	bool callees;
	bool several; /* traces */
	enum cpu_clock clock;
};

struct report_table {
	const struct report_rows *rows;
	struct text reductions; /* pstats' lines about restrictions */
	size_t number;		/* of the tables of this report, from 0 */
	uint32_t cut;		/* so many rows are not shown, as a terminal has little room */
	int sample_rate;	/* of a process that was sampled; 0: none was */
	/* Whose calls are in it: NULL for all. */
	const struct trace *trace;
	const struct trace_process *process;
	const struct trace_thread *thread;
};

struct report_format {
	const char *name;
	void (*begin)(struct output *output, const struct report_style *style);
	void (*table)(struct output *output, const struct report_style *style, const struct report_table *table);
	void (*end)(struct output *output, const struct report_style *style);
};

extern const struct report_format report_text, report_json, report_csv;

static inline double report_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* The module of a row, with --by module: its file, or the class or module of a C function. */
static inline struct text report_module(const struct label *label)
{
	if (!label->name.length)
		return label->file;
	return (struct text){label->name.at + 1, label->name.length - 2};
}

#endif
