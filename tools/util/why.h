/* why.h - why something failed, in one line, for who prints it. */
#ifndef EVPROF_TOOLS_UTIL_WHY_H
#define EVPROF_TOOLS_UTIL_WHY_H

#include <stddef.h>

/* Sets the line, cut at `bytes`. Returns -1, so that a function can end with it. */
int complain(char *why, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
