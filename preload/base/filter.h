/*
 * filter.h - which functions are recorded at all (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH).
 *
 * Each code object and C function is matched once, when it gets its id. A function that is left out counts as part of
 * its caller. Constant after filter_read().
 */
#ifndef PRELOAD_FILTER_H
#define PRELOAD_FILTER_H

#include <stdbool.h>

extern bool filter_any;	  /* some functions are left out */
extern bool filter_hides; /* likewise, or the package evprof, which is left out, has run */

/* Reads the environment, once. complain: print a line for each error in it. */
void filter_read(bool complain);

/* Whether a function is recorded. names: as in evprof/filter.h. c_function: it is one. */
bool filter_function(const char *const names[4], bool c_function);

#endif
