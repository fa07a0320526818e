/*
 * export.h - the formats of evprof export. A new format is a file export/NAME.c and a line in the table of
 * cmd/export.c. If it has its own options, it also has a table of them in that file, declared here.
 */
#ifndef EVPROF_TOOLS_EXPORT_EXPORT_H
#define EVPROF_TOOLS_EXPORT_EXPORT_H

#include <regex.h>
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
	bool by_order; /* an option needs the order of events, which only the wall clock has */
	bool beside;   /* the output's name is derived from the trace's, not given: a link is not followed */
	bool quiet;    /* no notes on stderr about what the output lacks: of a library */
	/* Options of callgrind: in a zip, with the sources; with sources of any ending. */
	bool zip;
	bool all_sources;
	/* Options of csv. The formats' free_options() frees what the first two own. */
	struct csv_clean *cleans;
	size_t clean_count;
	bool since_start;
	bool no_freed_sizes;
	/* Options of folded. */
	unsigned weight;    /* see folded.c; 0: time */
	uint32_t max_stack; /* 0: the default */
};

/* One --clean-file-name. */
struct csv_clean {
	char *prefix; /* NULL: use expression */
	regex_t expression;
};

/* An option of one format. Another format may have an option of the same name, with the same kind of value. */
struct export_option {
	const char *name;
	const char *value; /* name of the value in the help; NULL: the option has no value */
	const char *help;  /* lines end with \n */
	/* Stores the value. False after one line on stderr saying what is wrong with it. NULL: `flag` is set. */
	bool (*take)(struct export *export, const char *value);
	size_t flag; /* offset of a bool in struct export */
};

/* Writes the trace. Returns 0 or -errno. Errors in writing are kept in output. */
typedef int export_write(const struct export *export, struct output *output, struct progress *progress);

struct export_format {
	const char *name;
	const char *summary;
	const char *suffix; /* of output files whose name is derived from the trace's, without the dot */
	export_write *write;
	const struct export_option *options;	     /* ended by one without a name; NULL: none */
	void (*free_options)(struct export *export); /* NULL: nothing to do */
	bool any_clock;	 /* the format adds times up; other formats show a time line, which needs the wall clock */
	bool only_times; /* without times of functions there is nothing to show, or marks alone */
};

/* --- what several formats write (shared.c) --- */

/* The title or program of a process; "python" if neither is known. */
const char *export_program(const struct trace_process *process);
/* Argument i of the command line; NULL: there is none. */
const char *export_argument(const struct trace_process *process, size_t i);
/* Writes " (sampled ...)" if the rate is not 0. */
void export_put_sampling(struct output *output, int64_t rate);

/* Whether memory was recorded and calls were not: functions have no times. */
bool export_is_memory_alone(const struct trace *trace);

/* Names of the events that are shown as instants, and of their argument; NULL: none. */
struct export_instant {
	const char *name;
	const char *argument;
};

extern const struct export_instant export_instants[WIRE_KINDS];

/* The argument as it is shown: of an exit, the status. */
static inline uint32_t export_instant_number(unsigned kind, uint32_t argument)
{
	return kind == WIRE_EXIT ? argument & 0xff : argument;
}

/* --- the formats --- */

/* All formats; the table is in cmd/export.c. */
extern const struct export_format export_formats[];
extern const size_t export_format_count;

export_write export_chrome, export_perfetto, export_pstats, export_csv, export_callgrind, export_folded;
export_write export_speedscope, export_speedscope_sampled, export_pprof, export_firefox, export_html;
extern const struct export_option export_folded_options[], export_callgrind_options[], export_csv_options[];
void export_csv_free_options(struct export *export);
/* Sets the weight of folded; false: there is none of that name. */
bool export_folded_weight(struct export *export, const char *name);

/* The name of a stretch in which functions were thinned (EVPROF_BUDGET), in all timelines. */
#define EXPORT_THINNED "not all calls are recorded (budget)"

#endif
