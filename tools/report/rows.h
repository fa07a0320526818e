/*
 * rows.h - the rows of one table of the report: names, callers and callees, order, and which of them are shown.
 *
 * Made from a profile (analysis/profile.h), used by the printers (print.h, export/pstats.c).
 */
#ifndef EVPROF_TOOLS_REPORT_ROWS_H
#define EVPROF_TOOLS_REPORT_ROWS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/profile.h"
#include "util/output.h"
#include "util/text.h"

struct report_row {
	struct text name;	   /* as printed: "file:line(name)", "{builtins.len}"; one line, terminated */
	uint32_t width;		   /* of the name, in code points */
	uint32_t rank;		   /* among all rows by file, line, name */
	const struct label *label; /* without directories, if these were stripped */
	struct profile_times times;
};

struct report_call {
	uint32_t row;	/* index of the row that it is listed for */
	uint32_t other; /* index of the row that calls it, or that it calls */
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
	struct report_call *callers; /* each call, of the callee; sorted by row, then by the other's rank */
	struct report_call *callees; /* each call, of the caller; sorted likewise */
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

/* The callers of a row, or its callees. */
struct report_calls report_calls(const struct report_rows *rows, uint32_t row, bool callers);

static inline uint64_t report_primitive_calls(const struct profile_times *times)
{
	return times->calls - times->recursive;
}

/* --- order: the sort keys of pstats, allocations and bytes (order.c) --- */

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

/* Whether a key needs the profile's allocations. */
bool report_order_has_memory(const struct report_order *order);

/* Prints "call count, internal time", as pstats does. */
void report_order_print(const struct report_order *order, struct output *output);

/* Sorts the shown rows. Rows with equal keys stay in the order of their names; reverse also reverses that. */
void report_rows_sort(struct report_rows *rows, const struct report_order *order, bool reverse);

/*
 * --- restrictions: which rows are shown, as in pstats, applied in order (restrict.c) ---
 *
 *   20        the first 20 rows
 *   0.1       the first tenth of the rows
 *   text      the rows whose printed name matches this regular expression
 */

enum report_restriction_kind { RESTRICT_COUNT, RESTRICT_FRACTION, RESTRICT_PATTERN };

struct report_restriction {
	enum report_restriction_kind kind;
	uint32_t count;
	double fraction; /* 0 to 1 */
	regex_t pattern;
	const char *text; /* the pattern as given; not owned */
};

struct report_restrictions {
	struct report_restriction *at;
	size_t count;
	int64_t limit; /* the last restriction: to the first `limit` rows; negative: none */
};

/* Adds a restriction. text must stay valid. False: an error is printed on stderr. */
bool report_restrictions_add(struct report_restrictions *restrictions, const char *text);
void report_restrictions_done(struct report_restrictions *restrictions);

/*
 * Removes rows from the shown ones. output gets a line for each restriction that removed anything, as
 * pstats prints it.
 */
void report_rows_restrict(struct report_rows *rows, const struct report_restrictions *restrictions,
			  struct output *output);

#endif
