/*
 * rows.h - the rows of one table of the report: names, order, callers and callees.
 *
 * Made from a profile (analysis/profile.h), used by the printers (print.h, export/pstats.c). order.h sorts the rows,
 * restrict.h removes some.
 */
#ifndef EVPROF_TOOLS_REPORT_ROWS_H
#define EVPROF_TOOLS_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/profile.h"
#include "util/text.h"

struct report_row {
	struct text name;	   /* as printed: "file:line(name)", "{builtins.len}"; one line, terminated */
	uint32_t width;		   /* of the name, in code points */
	uint32_t rank;		   /* among all rows by file, line, name */
	const struct label *label; /* without directories, if these were stripped */
	struct profile_times times;
};

struct report_call {
	uint32_t caller; /* row indices */
	uint32_t callee;
	struct profile_times times;
};

/* A part of an array of calls. */
struct report_calls {
	const struct report_call *at;
	size_t count;
};

struct report_rows {
	struct report_row *rows; /* all rows, in the order of their names with directories */
	uint32_t count;
	uint32_t *shown; /* row indices, in the requested order */
	uint32_t shown_count;
	struct report_call *calls_by_callee; /* sorted by callee, then by the caller's rank */
	struct report_call *calls_by_caller; /* sorted by caller, then by the callee's rank */
	size_t call_count;
	struct profile_times sums;
	const struct profile *profile; /* not owned */
	struct labels labels;
	char *names;
};

/*
 * Makes the rows of all functions of a profile (or modules, if it counts these), in the order of their printed names.
 * The profile must stay valid. Returns 0 or -ENOMEM; call report_rows_done() in both cases.
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
