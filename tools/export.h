/*
 * export.h - the formats of evprof export. A new one is a file export_NAME.c and a line in the table of cmd_export.c.
 */
#ifndef EVPROF_TOOLS_EXPORT_H
#define EVPROF_TOOLS_EXPORT_H

#include "output.h"
#include "progress.h"
#include "select.h"
#include "trace_reader.h"

struct export
{
	struct trace *trace;
	const struct select *select;
};

struct export_format {
	const char *name;
	const char *summary;
	/* Writes the trace. Returns 0 or -errno; what fails in writing is kept in output. */
	int (*write)(const struct export *export, struct output *output, struct progress *progress);
};

int export_chrome(const struct export *export, struct output *output, struct progress *progress);
int export_html(const struct export *export, struct output *output, struct progress *progress);

#endif
