/*
 * formats.h - has evprof(1) write a finished trace in other formats, next to it (EVPROF_FORMAT, --format).
 *
 * The collector knows no format: it starts `evprof export --beside` and waits for its end in the loop, serving others
 * meanwhile.
 */
#ifndef COLLECTOR_FORMATS_H
#define COLLECTOR_FORMATS_H

#include <stdbool.h>

#include "base/loop.h"

struct formats {
	struct loop_source source; /* fd: the pidfd of evprof, owned */
	struct loop *loop;
	bool running;
	bool failed; /* it could not be started, or its exit status was not 0 */
};

/*
 * Starts the export. *formats: zeros. list: names with commas. Errors set `failed`; a failure to start is also logged.
 */
void formats_start(struct formats *formats, struct loop *loop, const char *list, const char *trace);

/* Ends an export that still runs. */
void formats_stop(struct formats *formats);

#endif
