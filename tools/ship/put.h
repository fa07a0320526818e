/* put.h - a trace as an object of a store: one PUT by libcurl, in a process of its own. For ship.c. */
#ifndef EVPROF_TOOLS_SHIP_PUT_H
#define EVPROF_TOOLS_SHIP_PUT_H

#include <stdbool.h>

#include "ship/store.h"

/* Loads libcurl. Returns NULL, or why it cannot do it. */
const char *put_open(void);

/* Sends the file as the trace with that name. Returns whether the store has it, or false after a line on stderr. */
bool put_file(const struct store *store, const char *path, const char *name, int timeout_ms);

#endif
