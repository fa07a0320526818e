/*
 * export.h - the formats of evprof export. A new one is a file export_NAME.c and a line in the table of cmd/export.c;
 * if it has options of its own, a table of them in that file and a declaration here.
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
	bool by_order;	  /* an option asks for what was in which order, for which only the wall's clock will do */
	bool beside;	  /* the trace, by a name that nobody has given: no link is followed there */
	bool zip;	  /* callgrind: in a zip, with the sources */
	bool all_sources; /* ... of any ending */
	void *options;	  /* what the format's own options said: made by the first of them, freed by free_options() */
};

/* An option that one format has; another format may have one of the same name, with the same kind of value. */
struct export_option {
	const char *name;
	const char *value; /* what the help calls its value; NULL: it has none */
	const char *help;  /* lines end with \n */
	/* Puts the value into export->options. False after one line on stderr saying what is wrong with it. */
	bool (*take)(struct export *export, const char *value);
};

struct export_format {
	const char *name;
	const char *summary;
	const char *suffix; /* of files that are written beside the trace, without the point */
	/* Writes the trace. Returns 0 or -errno; what fails in writing is kept in output. */
	int (*write)(const struct export *export, struct output *output, struct progress *progress);
	const struct export_option *options;	     /* up to one without a name; NULL: none */
	void (*free_options)(struct export *export); /* NULL: nothing to do */
	bool any_clock; /* it adds times up; the others show what was when, for which only the wall's clock will do */
};

/* All of them; the table is in cmd/export.c. */
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
