/*
 * restrict.h - which rows of a report are shown: pstats' restrictions, applied in order.
 *
 *   20        the first 20 rows
 *   0.1       the first tenth of the rows
 *   text      the rows whose printed name matches this regular expression
 */
#ifndef EVPROF_TOOLS_REPORT_RESTRICT_H
#define EVPROF_TOOLS_REPORT_RESTRICT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/rows.h"
#include "util/output.h"

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
};

/* Adds a restriction. text must stay valid. False: an error is printed on stderr. */
bool report_restrictions_add(struct report_restrictions *restrictions, const char *text);
/* Adds the restriction to the first `count` rows. Returns 0 or -ENOMEM. */
int report_restrictions_limit(struct report_restrictions *restrictions, uint32_t count);
void report_restrictions_done(struct report_restrictions *restrictions);

/*
 * Removes rows from the shown ones. output may be NULL; it gets a line for each restriction that removed anything, as
 * pstats prints it.
 */
void report_rows_restrict(struct report_rows *rows, const struct report_restrictions *restrictions,
			  struct output *output);

#endif
