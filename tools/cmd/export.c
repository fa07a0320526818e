/*
 * export.c - evprof export: the options, the table of formats, and the output file, which appears when it is complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/export_tables.h"
#include "cmd/verbs.h"
#include "export/export.h"
#include "replay/call_walk.h"
#include "util/cli.h"
#include "util/output.h"

const struct export_format export_formats[] = {
    {"chrome", "Chrome trace JSON, for Perfetto's and Chrome's viewers", "json", export_chrome, NULL, NULL, false,
     false},
    {"perfetto", "Perfetto's own format, for ui.perfetto.dev and its trace processor", "pftrace", export_perfetto, NULL,
     NULL, false, false},
    {"pstats", "the table of cProfile as a file, for Python's pstats, snakeviz, gprof2dot", "pstats", export_pstats,
     NULL, NULL, true, true},
    {"csv", "one table of all calls and allocations, with the columns of EventProfiler", "csv", export_csv,
     export_csv_options, export_csv_free_options, false, false},
    {"callgrind", "the Callgrind Profile Format, for KCachegrind and callgrind_annotate", "callgrind", export_callgrind,
     export_callgrind_options, NULL, true, true},
    {"folded", "folded stacks with their ns, for flamegraph.pl and speedscope", "folded", export_folded,
     export_folded_options, NULL, true, true},
    {"speedscope", "speedscope's JSON with every call", "speedscope.json", export_speedscope, NULL, NULL, false, true},
    {"speedscope-sampled", "speedscope's JSON with the time of each stack; small", "sampled.speedscope.json",
     export_speedscope_sampled, NULL, NULL, true, true},
    {"pprof", "pprof's profile.proto, gzip'ed, for go tool pprof", "pb.gz", export_pprof, NULL, NULL, true, false},
    {"firefox", "processed profile JSON, for profiler.firefox.com", "firefox.json", export_firefox, NULL, NULL, false,
     true},
    {"html", "one page with timeline, flame graph and table, for any browser, without a network", "html", export_html,
     NULL, NULL, false, false},
};

const size_t export_format_count = sizeof(export_formats) / sizeof(export_formats[0]);

static const char tables_help[] =
    "\n"
    "Only with --format parquet and arrow:\n"
    "      --tables LIST         some of calls,events,allocations,samples,functions (default: all). A file of each is\n"
    "                            FOLDER/TABLE/day=DAY/service=SERVICE/host=HOST/TRACE.parquet\n"
    "      --service NAME        the service (default: the program), --host NAME: the host (default: that of the "
    "trace)\n"
    "      --python PYTHON       a Python from 3.8 on with pyarrow (default: python3)\n";

static void print_help(void)
{
	const struct export_option *option;

	printf("usage: evprof export [--format FORMAT] TRACE -o FILE\n"
	       "\n"
	       "Writes a trace in a format of other tools. The file appears when it is complete.\n"
	       "\n"
	       "  -f, --format FORMAT   one of these; default: by the suffix of FILE (x.html)\n");
	for (size_t i = 0; i < export_format_count; i++)
		printf("                          %-18s %s\n", export_formats[i].name, export_formats[i].summary);
	printf(
	    "                          parquet, arrow     tables in a folder, for DuckDB, Polars, pandas, Spark, "
	    "ClickHouse\n"
	    "  -o, --output FILE     - is stdout; of parquet and arrow a folder\n"
	    "      --beside          next to the trace, with its name and the suffix of the format; --format may be a\n"
	    "                        list with commas\n"
	    "\n"
	    "%s",
	    filter_help);
	for (size_t i = 0; i < export_format_count; i++) {
		if (!export_formats[i].options)
			continue;
		printf("\nOnly with --format %s:\n", export_formats[i].name);
		for (option = export_formats[i].options; option->name; option++)
			printf("      --%s%s%s\n%s", option->name, option->value ? " " : "",
			       option->value ? option->value : "", option->help);
	}
	fputs(tables_help, stdout);
	printf("\n"
	       "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or the file not written; 3 if it\n"
	       "is still being written.\n");
}

static bool ends_with(const char *name, const char *ending)
{
	size_t length = strlen(name), tail = strlen(ending);

	return length > tail && name[length - tail - 1] == '.' && strcmp(name + length - tail, ending) == 0;
}

static const struct export_format *format_named(const char *name)
{
	for (size_t i = 0; i < export_format_count; i++)
		if (strcmp(export_formats[i].name, name) == 0)
			return &export_formats[i];
	return NULL;
}

/* The format for the file name's suffix: a format's own, the longest match first, or one of other tools. */
static const struct export_format *format_of_file(const char *path)
{
	static const struct {
		const char *ending, *format;
	} others[] = {{"prof", "pstats"}, {"perfetto-trace", "perfetto"}};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const struct export_format *found = NULL;

	if (strncmp(name, "callgrind.out", strlen("callgrind.out")) == 0)
		return format_named("callgrind");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (ends_with(name, others[i].ending))
			return format_named(others[i].format);
	for (size_t i = 0; i < export_format_count; i++) {
		const char *suffix = export_formats[i].suffix;

		/* The suffix .json is ambiguous: several tools read JSON. */
		if (strcmp(suffix, "json") != 0 && ends_with(name, suffix) &&
		    (!found || strlen(suffix) > strlen(found->suffix)))
			found = &export_formats[i];
	}
	return found;
}

static void print_formats(void)
{
	for (size_t i = 0; i < export_format_count; i++)
		fprintf(stderr, " %s,", export_formats[i].name);
	fprintf(stderr, " parquet, arrow\n");
}

static const struct export_format *find_format(const char *name)
{
	const struct export_format *found = format_named(name);

	if (!found) {
		fprintf(stderr, "evprof export: there is no format \"%s\"; the formats are", name);
		print_formats();
	}
	return found;
}

static int write_format(const struct export_format *format, const struct export *export, const char *from,
			const char *path)
{
	struct progress progress;
	struct output output;
	int error = export->beside ? output_open_beside(&output, path) : output_open(&output, path);

	if (error)
		return error;
	if (export->beside)
		output_let_read_like(&output, from);
	progress_begin(&progress, "exporting", walk_events(export->trace, export->filter));
	error = format->write(export, &output, &progress);
	progress_end(&progress);
	if (error)
		output_abandon(&output);
	else
		error = output_close(&output);
	return error;
}

static int export_to(const struct export_format *format, struct export *export, const char *from, const char *to)
{
	struct trace *trace;
	int error;

	if (export->filter->clock != CPU_CLOCK_WALL && !format->any_clock) {
		cli_misused("export",
			    "%s shows events at their times; --clock is for pstats, callgrind, folded, "
			    "speedscope-sampled and pprof",
			    format->name);
		return CLI_FAILED;
	}
	if (export->filter->clock != CPU_CLOCK_WALL && export->by_order) {
		cli_misused("export",
			    "live blocks need the wall clock; --clock is for --weight time, bytes and allocations");
		return CLI_FAILED;
	}
	trace = export->trace = verb_open("export", export->filter, from, export->beside ? NULL : to);
	if (!trace)
		return CLI_FAILED;
	error = write_format(format, export, from, to);
	if (error)
		output_message("evprof export: cannot write %s: %s", to, strerror(-error));
	else if (format->write == export_pstats && trace_budget(trace) > 0)
		trace_warn_of_estimates(trace);
	else if (format->write != export_html && trace_budget(trace) > 0)
		trace_warn_of_budget(trace);
	else if (format->only_times && !export->weight && export_is_memory_alone(trace))
		output_message("evprof export: %s has no events of calls, so there are no times to show; record with "
			       "--events call,c_call,mem",
			       from);
	else if (!format->any_clock) /* others count stacks, which says it where memory is among them */
		trace_warn_of_memory_sampling(trace);
	return verb_close(trace, error);
}

/* --- options --- */

/* The options of the command line. Options of a format are kept until the format is known. */
#define FORMATS_MAX 16

struct request {
	const struct export_format *formats[FORMATS_MAX]; /* more than one only with --beside */
	size_t format_count;
	bool beside;
	const char *to;
	struct export_tables tables;	    /* format is NULL: none of them */
	const char *names, *service, *host; /* of the tables */
	struct filter filter;
	struct verb_option options[VERB_OPTIONS_MAX];
	struct given {
		const char *name, *value;
	} * given;
	size_t given_count;
};

/* Passes the format its options. False after one line on stderr. */
static bool take_format_options(const struct request *request, struct export *export)
{
	const struct export_format *format = request->formats[0];
	const struct export_option *option;

	for (size_t i = 0; i < request->given_count; i++) {
		const char *name = request->given[i].name;

		for (option = format->options; option && option->name; option++)
			if (strcmp(option->name, name) == 0)
				break;
		if (!option || !option->name)
			return cli_misused("export", "the format %s has no option --%s", format->name, name);
		if (!option->take)
			*(bool *)((char *)export + option->flag) = true;
		else if (!option->take(export, request->given[i].value))
			return false;
	}
	return true;
}

/* Parses comma-separated names. */
static bool take_formats(void *owner, const struct verb_option *option, const char *names)
{
	struct request *request = owner;
	char *state = NULL;

	(void)option;
	request->format_count = 0;
	request->tables.format = export_tables_has(names) ? names : NULL;
	if (request->tables.format)
		return true;
	for (char *name = strtok_r((char *)names, ",", &state); name; name = strtok_r(NULL, ",", &state)) {
		const struct export_format *format = find_format(name);

		if (!format)
			return false;
		if (request->format_count == FORMATS_MAX)
			return cli_misused("export", "there are at most %d formats at a time", FORMATS_MAX);
		request->formats[request->format_count++] = format;
	}
	if (!request->format_count)
		cli_misused("export", "--format wants a name");
	return request->format_count > 0;
}

static bool keep_option(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;

	request->given[request->given_count++] = (struct given){option->name, value};
	return true;
}

/* Makes the table of the common options and those of all formats. */
static void make_options(struct request *request)
{
	static const struct verb_option common[] = {
	    VERB_TAKE("format", 'f', required_argument, take_formats, 0),
	    VERB_TEXT("output", 'o', request, to),
	    VERB_FLAG("beside", 0, request, beside),
	    VERB_TEXT("tables", 0, request, names),
	    VERB_TEXT("service", 0, request, service),
	    VERB_TEXT("host", 0, request, host),
	    VERB_TEXT("python", 0, request, tables.python),
	    VERB_FILTER_OPTIONS(verb_take_filter),
	    VERB_OPTIONS_END,
	};
	size_t count = sizeof(common) / sizeof(common[0]) - 1;
	const struct export_option *option;

	memcpy(request->options, common, sizeof(common));
	for (size_t i = 0; i < export_format_count; i++)
		for (option = export_formats[i].options; option && option->name && count + 1 < VERB_OPTIONS_MAX;
		     option++, count++)
			request->options[count] = (struct verb_option)VERB_TAKE(
			    option->name, 0, option->value ? required_argument : no_argument, keep_option, 0);
}

/* Changes a/b.evp to a/b.pstats for suffix pstats. The caller frees it. */
static char *sibling_path(const char *trace, const char *suffix)
{
	size_t length = strlen(trace);
	char *path = malloc(length + strlen(suffix) + 2);

	if (length > 4 && strcmp(trace + length - 4, ".evp") == 0)
		length -= 4;
	if (path)
		sprintf(path, "%.*s.%s", (int)length, trace, suffix);
	return path;
}

static int export_siblings(const struct request *request, struct export *what, const char *trace)
{
	int worst = CLI_FINE;

	what->beside = true;
	umask(077); /* only the owner may read the contents of a trace */

	for (size_t i = 0; i < request->format_count; i++) {
		char *path = sibling_path(trace, request->formats[i]->suffix);
		int status = path ? export_to(request->formats[i], what, trace, path) : CLI_FAILED;

		worst = cli_status_worst(status, worst);
		free(path);
	}
	return worst;
}

/* False after a line with the list of formats. */
static bool knows_format(struct request *request)
{
	if (!request->formats[0])
		request->formats[0] = format_of_file(request->to);
	if (request->formats[0])
		return true;
	fprintf(stderr,
		"evprof export: --format FORMAT is missing, as the name of the file means none; the formats are");
	print_formats();
	return false;
}

static int run_tables(const struct request *request, int argc)
{
	if (!verb_has_one_trace("export", argc))
		;
	else if (!request->to || request->beside)
		cli_misused("export", "--format %s needs -o FOLDER", request->tables.format);
	else if (request->given_count)
		cli_misused("export", "the format %s has no option --%s", request->tables.format,
			    request->given[0].name);
	else if (request->filter.clock != CPU_CLOCK_WALL)
		cli_misused("export", "%s shows events at their times; it has no --clock", request->tables.format);
	else
		return export_tables_run(&request->tables);
	return CLI_FAILED;
}

static int run_request(struct request *request, int argc, char **argv)
{
	struct export what = {.filter = &request->filter};
	int status = CLI_FAILED;

	if (request->tables.format)
		return run_tables(request, argc);
	if (!verb_has_one_trace("export", argc))
		;
	else if (request->names || request->service || request->host)
		cli_misused("export", "--tables, --service and --host are for --format parquet and arrow");
	else if (request->beside && request->to)
		cli_misused("export", "--beside and -o exclude each other");
	else if (request->beside && strcmp(argv[optind], "-") == 0)
		cli_misused("export", "--beside needs a trace with a name");
	else if (request->beside && request->formats[0] && take_format_options(request, &what))
		status = export_siblings(request, &what, argv[optind]);
	else if (!request->beside && request->format_count > 1)
		cli_misused("export", "several formats at a time need --beside");
	else if (request->beside && !request->formats[0])
		cli_misused("export", "--format FORMAT is missing");
	else if (!request->to && !request->beside)
		cli_misused("export", "-o FILE is missing (- for stdout)");
	else if (!request->beside && !knows_format(request))
		;
	else if (!request->beside && take_format_options(request, &what))
		status = export_to(request->formats[0], &what, argv[optind], request->to);
	if (request->formats[0] && request->formats[0]->free_options)
		request->formats[0]->free_options(&what);
	return status;
}

int cmd_export(int argc, char **argv)
{
	struct request request = {.given = calloc((size_t)argc + 1, sizeof(*request.given))};
	const struct verb_usage usage = {"export", request.options, {NULL}};
	int status = CLI_FAILED;

	make_options(&request);
	request.tables.count = argc - 1;
	request.tables.arguments = argv + 1;
	if (request.given)
		status = verb_parse(&usage, argc, argv, &request, &request.filter);
	else
		fprintf(stderr, "evprof export: out of memory\n");
	if (status == CLI_FINE)
		print_help();
	else if (status == VERB_PARSED)
		status = run_request(&request, argc, argv);
	filter_done(&request.filter);
	free(request.given);
	return status;
}
