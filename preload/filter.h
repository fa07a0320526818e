/*
 * filter.h - which functions are recorded at all (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH).
 *
 * The decision is taken once for each code object and C function, when it gets its id. A function that is left out is
 * as if it were part of its caller. Constant after filter_read().
 */
#ifndef PRELOAD_FILTER_H
#define PRELOAD_FILTER_H

#include <stdbool.h>
#include <stddef.h>

extern bool filter_any; /* some functions are left out */

/* Reads the environment; once. complain: say what is wrong with it, a line each. */
void filter_read(bool complain);

/* Names as in filter.h; native: a C function. */
bool filter_function(const char *const names[4], bool native);

#endif
