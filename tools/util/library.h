/* library.h - a shared library that evprof works without: found when it is needed, and declared without its headers. */
#ifndef EVPROF_TOOLS_UTIL_LIBRARY_H
#define EVPROF_TOOLS_UTIL_LIBRARY_H

#include <stdbool.h>

struct library_symbol {
	const char *name;
	void *place; /* of the pointer that gets its address */
};

/*
 * Loads the first of the libraries that has all symbols, and keeps it loaded. Both lists end with NULL. False: there is
 * none; some of the pointers may be set.
 */
bool library_load(const char *const *names, const struct library_symbol *symbols);

#endif
