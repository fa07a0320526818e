/*
 * export.h - the formats of evprof export. A new format is a file export/NAME.c and a line in the table of
 * cmd/export.c. If it has its own options, it also has a table of them in that file, declared here.
 */
#ifndef EVPROF_TOOLS_EXPORT_EXPORT_H
#define EVPROF_TOOLS_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "replay/filter.h"
#include "trace/reader.h"
#include "util/output.h"
#include "util/progress.h"

struct export
{
	struct trace *trace;
	const struct filter *filter;
	bool by_order;	  /* an option needs the order of events, which only the wall clock has */
	bool beside;	  /* the output's name is derived from the trace's, not given: a link is not followed */
	bool zip;	  /* callgrind: in a zip, with the sources */
	bool all_sources; /* ... of any ending */
	void *options; /* values of the format's options; the first take() allocates them, free_options() frees them */
};

/* An option of one format. Another format may have an option of the same name, with the same kind of value. */
struct export_option {
	const char *name;
	const char *value; /* name of the value in the help; NULL: the option has no value */
	const char *help;  /* lines end with \n */
	/* Stores the value in export->options. False after one line on stderr saying what is wrong with it. */
	bool (*take)(struct export *export, const char *value);
};

struct export_format {
	const char *name;
	const char *summary;
	const char *suffix; /* of output files whose name is derived from the trace's, without the dot */
	/* Writes the trace. Returns 0 or -errno. Errors in writing are kept in output. */
	int (*write)(const struct export *export, struct output *output, struct progress *progress);
	const struct export_option *options;	     /* ended by one without a name; NULL: none */
	void (*free_options)(struct export *export); /* NULL: nothing to do */
	bool any_clock; /* the format adds times up; other formats show a time line, which needs the wall clock */
};

/* All formats; the table is in cmd/export.c. */
extern const struct export_format export_formats[];
extern const size_t export_format_count;

int export_chrome(const struct export *export, struct output *output, struct progress *progress);
int export_perfetto(const struct export *export, struct output *output, struct progress *progress);
int export_pstats(const struct export *export, struct output *output, struct progress *progress);
extern const struct export_option export_folded_options[];
void export_folded_free_options(struct export *export);
int export_folded(const struct export *export, struct output *output, struct progress *progress);
int export_speedscope(const struct export *export, struct output *output, struct progress *progress);
int export_speedscope_sampled(const struct export *export, struct output *output, struct progress *progress);
int export_pprof(const struct export *export, struct output *output, struct progress *progress);
int export_firefox(const struct export *export, struct output *output, struct progress *progress);

extern const struct export_option export_callgrind_options[];
int export_callgrind(const struct export *export, struct output *output, struct progress *progress);

extern const struct export_option export_csv_options[];
int export_csv(const struct export *export, struct output *output, struct progress *progress);
void export_csv_free_options(struct export *export);
int export_html(const struct export *export, struct output *output, struct progress *progress);

#endif
