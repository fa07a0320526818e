/*
 * rows.h - the rows of one table of the report: names, order, and who calls whom.
 *
 * Between a profile (analysis/profile.h) and what prints it (print.h, export/pstats.c). order.h and
 * restrict.h put them in order and leave some out.
 */
#ifndef EVPROF_TOOLS_REPORT_ROWS_H
#define EVPROF_TOOLS_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/profile.h"
#include "util/text.h"

struct report_row {
	struct text name; /* as it is printed: "file:line(name)", "{builtins.len}"; one line, with a NUL behind */
	uint32_t width;	  /* of the name, in code points */
	uint32_t rank;	  /* among all rows by file, line, name */
	const struct label *label; /* without directories, if they were stripped */
	struct profile_times times;
};

struct report_call {
	uint32_t caller; /* indices of rows */
	uint32_t callee;
	struct profile_times times;
};

/* A piece of an array of calls. */
struct report_calls {
	const struct report_call *at;
	size_t count;
};

struct report_rows {
	struct report_row *rows; /* all, in the order of their names with directories */
	uint32_t count;
	uint32_t *shown; /* indices of rows, in the order that was asked for */
	uint32_t shown_count;
	struct report_call *calls_by_callee; /* of one callee in the order of the callers' ranks */
	struct report_call *calls_by_caller; /* of one caller in the order of the callees' ranks */
	size_t call_count;
	struct profile_times sums;
	const struct profile *profile; /* not owned */
	struct labels labels;
	char *names;
};

/*
 * All functions of a profile (or modules, if it counted these), in the order of their printed names. The profile must
 * stay. Returns 0 or -ENOMEM; report_rows_done() in either case.
 */
int report_rows_init(struct report_rows *rows, const struct profile *profile, bool modules, bool strip_dirs);
void report_rows_done(struct report_rows *rows);

struct report_calls report_callers(const struct report_rows *rows, uint32_t row);
struct report_calls report_callees(const struct report_rows *rows, uint32_t row);

static inline uint64_t report_primitive_calls(const struct profile_times *times)
{
	return times->calls - times->recursive;
}

#endif
