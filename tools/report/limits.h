/*
 * limits.h - the results of evprof check: a line for each limit, and JUnit XML.
 *
 * The limits are judged. The functions return 0 or -errno of writing.
 */
#ifndef EVPROF_TOOLS_REPORT_LIMITS_H
#define EVPROF_TOOLS_REPORT_LIMITS_H

#include "analysis/limits.h"

/* The option of each kind of limit. */
extern const char *const limit_options[];

/* Prints a line for each limit on stdout. */
int report_limits(const struct limits *limits);
/* Writes a file of JUnit: a test for each limit, and one that fails if something is missing from the trace ("": no). */
int report_limits_junit(const struct limits *limits, const char *trace, const char *missing, const char *path);

#endif
