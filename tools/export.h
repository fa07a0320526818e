/*
 * export.h - the formats of evprof export. A new one is a file export_NAME.c and a line in the table of cmd_export.c.
 */
#ifndef EVPROF_TOOLS_EXPORT_H
#define EVPROF_TOOLS_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "output.h"
#include "progress.h"
#include "select.h"
#include "trace_reader.h"

struct export
{
	struct trace *trace;
	const struct select *select;
	bool zip; /* callgrind only: in a zip, with the sources */
};

struct export_format {
	const char *name;
	const char *summary;
	/* Writes the trace. Returns 0 or -errno; what fails in writing is kept in output. */
	int (*write)(const struct export *export, struct output *output, struct progress *progress);
};

/* All of them; the table is in cmd_export.c. */
extern const struct export_format export_formats[];
extern const size_t export_format_count;

int export_chrome(const struct export *export, struct output *output, struct progress *progress);
int export_pstats(const struct export *export, struct output *output, struct progress *progress);
int export_perfetto(const struct export *export, struct output *output, struct progress *progress);
int export_callgrind(const struct export *export, struct output *output, struct progress *progress);
int export_folded(const struct export *export, struct output *output, struct progress *progress);
int export_speedscope(const struct export *export, struct output *output, struct progress *progress);
int export_speedscope_sampled(const struct export *export, struct output *output, struct progress *progress);
int export_pprof(const struct export *export, struct output *output, struct progress *progress);
int export_firefox(const struct export *export, struct output *output, struct progress *progress);

#endif
