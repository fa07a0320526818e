/*
 * restrict.h - which rows of a report are shown: pstats' restrictions, one after the other.
 *
 *   20        the first 20 rows
 *   0.1       the first tenth of them
 *   text      those whose printed name has a match of this regular expression
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
	const char *text; /* of the pattern as it was given; not owned */
};

struct report_restrictions {
	struct report_restriction *at;
	size_t count;
};

/* Takes one more, whose text must stay. False after saying on stderr what is wrong with it. */
bool report_restrictions_add(struct report_restrictions *restrictions, const char *text);
/* The first so many rows. Returns 0 or -ENOMEM. */
int report_restrictions_limit(struct report_restrictions *restrictions, uint32_t count);
void report_restrictions_done(struct report_restrictions *restrictions);

/*
 * Leaves rows out of what is shown. Where output is given, it gets a line for each restriction that changed anything,
 * as pstats writes it.
 */
void report_rows_restrict(struct report_rows *rows, const struct report_restrictions *restrictions,
			  struct output *output);

#endif
