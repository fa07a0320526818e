/*
 * print.h - the formats of evprof report, one file each.
 *
 *   text_table.c       as Python's pstats prints
 *   terminal_table.c   for a terminal
 *   json.c   one JSON object
 *   csv.c    a table with a line of titles
 *
 * A report is one table; with --by process or thread it is one for each process or thread. A format is called with
 * begin(), table() for each table, and end(). Its rows are already sorted and restricted.
 */
#ifndef EVPROF_TOOLS_REPORT_PRINT_H
#define EVPROF_TOOLS_REPORT_PRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/rows.h"
#include "trace/reader.h"
#include "util/output.h"
#include "util/terminal.h"

enum report_by {
	REPORT_BY_FUNCTION,
	REPORT_BY_MODULE,  /* rows are modules */
	REPORT_BY_PROCESS, /* one table for each process */
	REPORT_BY_THREAD,
	REPORT_BY_SPAN, /* rows are names of spans (span_table.h) */
};

/* The options of the report. */
struct report_style {
	struct report_order order;
	enum report_by by;
	bool callers; /* text: print the callers of the rows instead of their times */
	bool callees;
	bool memory;  /* allocations and bytes too, except with callers or callees */
	bool several; /* several traces */
	enum cpu_clock clock;
	struct terminal terminal; /* for report_terminal */
};

struct report_table {
	const struct report_rows *rows;
	struct text reductions;	  /* pstats' lines about restrictions */
	size_t number;		  /* index of the table in the report, from 0 */
	uint32_t cut;		  /* number of rows hidden, because the output is a terminal */
	int sample_rate;	  /* of a sampled process; 0: none was sampled */
	uint64_t memory_interval; /* of a process whose allocations were sampled, if they are shown; else 0 */
	/* The source of the calls. NULL: all. */
	const struct trace *trace;
	const struct trace_process *process;
	const struct trace_thread *thread;
};

struct report_format {
	const char *name;
	/* begin and end may be NULL */
	void (*begin)(struct output *output, const struct report_style *style);
	void (*table)(struct output *output, const struct report_style *style, const struct report_table *table);
	void (*end)(struct output *output, const struct report_style *style);
};

extern const struct report_format report_text, report_terminal, report_json, report_csv;

/*
 * "12/3": all calls and primitive calls, if they differ (text_table.c); "~1200000 ±2.1%" where they are an estimate,
 * ">=12" where only a part was recorded (profile.h). Returns the number of columns.
 */
#define REPORT_CALLS_BYTES 48
int report_format_calls(char text[REPORT_CALLS_BYTES], const struct profile_times *times);

/* Of EVPROF_BUDGET: the number of functions whose calls are estimates, and a line about it. */
uint32_t report_count_estimates(const struct report_rows *rows);
/* An argument: report_count_estimates(). */
#define REPORT_BUDGET                                                                                                  \
	"recorded within a budget: calls and times of %u of the functions are estimates (~), which the own times of "  \
	"their callers hold, too"

/* "±2.1%": half of an interval, squared, of a value. Returns the number of bytes. */
#define REPORT_PERCENT_BYTES 16
int report_percent(double width2, double value, char text[REPORT_PERCENT_BYTES]);

/* Parts that the tables for people have in common (text_table.c): what the times are, "" for wall-clock time; */
const char *report_spent(enum cpu_clock clock);
/* the process or thread of a table, and an empty line, if it has one; */
void report_print_owner(struct output *output, const struct report_style *style, const struct report_table *table);
/* lines about what is missing; */
void report_print_losses(struct output *output, const struct report_table *table);
/* a line about rows that are not shown. */
void report_print_cut(struct output *output, const struct report_table *table);

/* A text as a cell of comma-separated values, and a comma (csv.c). */
void report_csv_text(struct output *output, struct text text);

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
