/*
 * choose.h - which functions are recorded at all (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH).
 *
 * The decision is taken once for each code object and C function, when it gets its id. A function that is left out is
 * as if it were part of its caller. Constant after choose_read().
 */
#ifndef PRELOAD_CHOOSE_H
#define PRELOAD_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

extern bool choose_any; /* some functions are left out */

/* Reads the environment; once. complain: say what is wrong with it, a line each. */
void choose_read(bool complain);

/* Names as in choice.h; native: a C function. */
bool choose_function(const char *const names[4], bool native);

#endif
