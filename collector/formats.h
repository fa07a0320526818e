/*
 * formats.h - has evprof(1) write a finished trace in other formats, beside it (EVPROF_FORMAT, --format).
 *
 * The collector knows no format: it starts `evprof export --beside` and waits for its end in the loop, so that it
 * serves others meanwhile.
 */
#ifndef COLLECTOR_FORMATS_H
#define COLLECTOR_FORMATS_H

#include <stdbool.h>

#include "loop.h"

struct formats {
	struct loop_source source; /* fd: the pidfd of evprof, owned */
	struct loop *loop;
	bool running;
	bool failed; /* it could not be started, or did not end with status 0 */
};

/* Starts with a struct of zeros. list: names with commas. What goes wrong ends in `failed`, with a line in the log. */
void formats_start(struct formats *formats, struct loop *loop, const char *list, const char *trace);

/* Gives up what still runs. */
void formats_stop(struct formats *formats);

#endif
