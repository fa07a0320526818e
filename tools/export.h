/*
 * export.h - the formats of evprof export. A new one is a file export_NAME.c and a line in the table of cmd_export.c.
 */
#ifndef EVPROF_TOOLS_EXPORT_H
#define EVPROF_TOOLS_EXPORT_H

#include "output.h"
#include "progress.h"
#include "trace_reader.h"

struct export_format {
	const char *name;
	const char *summary;
	/* Writes the trace. Returns 0 or -ENOMEM; what fails in writing is kept in output. */
	int (*write)(struct trace *trace, struct output *output, struct progress *progress);
};

int export_chrome(struct trace *trace, struct output *output, struct progress *progress);

#endif
