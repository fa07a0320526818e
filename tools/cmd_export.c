/*
 * cmd_export.c - evprof export: the options, the table of formats, and the file that appears when it is whole.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "verbs.h"
#include "visit.h"

const struct export_format export_formats[] = {
    {"chrome", "Chrome trace JSON, for Perfetto's and Chrome's viewers", export_chrome},
    {"pstats", "the table of cProfile as a file, for Python's pstats, snakeviz, gprof2dot", export_pstats},
    {"perfetto", "Perfetto's own format, for ui.perfetto.dev and its trace processor", export_perfetto},
    {"callgrind", "the Callgrind Profile Format, for KCachegrind and callgrind_annotate", export_callgrind},
    {"folded", "folded stacks with their ns, for flamegraph.pl and speedscope", export_folded},
    {"speedscope", "speedscope's JSON with every call", export_speedscope},
    {"speedscope-sampled", "speedscope's JSON with the time of each stack; small", export_speedscope_sampled},
    {"pprof", "pprof's profile.proto, gzip'ed, for go tool pprof", export_pprof},
    {"firefox", "processed profile JSON, for profiler.firefox.com", export_firefox},
};

const size_t export_format_count = sizeof(export_formats) / sizeof(export_formats[0]);

static void print_help(void)
{
	size_t i;

	printf("usage: evprof export --format FORMAT TRACE -o FILE\n"
	       "\n"
	       "Writes a trace in a format of other tools. The file appears when it is whole.\n"
	       "\n"
	       "  -f, --format FORMAT   one of\n");
	for (i = 0; i < export_format_count; i++)
		printf("                          %-18s %s\n", export_formats[i].name, export_formats[i].summary);
	printf("  -o, --output FILE     - is stdout\n"
	       "\n"
	       "%s"
	       "\n"
	       "Exit status: 0; 1 if something is missing from the trace; 2 if it cannot be read or the file not "
	       "written.\n",
	       select_help);
}

static const struct export_format *find_format(const char *name)
{
	size_t i;

	for (i = 0; i < export_format_count; i++)
		if (strcmp(export_formats[i].name, name) == 0)
			return &export_formats[i];
	fprintf(stderr, "evprof export: there is no format \"%s\"; the formats are", name);
	for (i = 0; i < export_format_count; i++)
		fprintf(stderr, "%s %s", i ? "," : "", export_formats[i].name);
	fprintf(stderr, "\n");
	return NULL;
}

static int write_format(const struct export_format *format, const struct export *export, const char *path)
{
	struct progress progress;
	struct output output;
	int error = output_open(&output, path);

	if (error)
		return error;
	progress_begin(&progress, "exporting", visit_events(export->trace, export->select));
	error = format->write(export, &output, &progress);
	progress_end(&progress);
	if (error)
		output_abandon(&output);
	else
		error = output_close(&output);
	return error;
}

static int export(const struct export_format *format, struct export *export, const char *from, const char *to)
{
	struct trace *trace = export->trace = trace_open_or_say(from);
	int status;
	int error;

	if (!trace)
		return TRACE_EXIT_FAILED;
	error = write_format(format, export, to);
	if (error)
		fprintf(stderr, "evprof export: cannot write %s: %s\n", to, strerror(-error));
	status = error ? TRACE_EXIT_FAILED : trace_say_verdict(trace);
	trace_close(trace);
	return status;
}

int cmd_export(int argc, char **argv)
{
	static const struct option options[] = {
	    {"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},
	    {"zip", no_argument, NULL, 'z'},	      SELECT_OPTIONS,
	    {"help", no_argument, NULL, 'h'},	      {0}};
	struct select select = {0};
	struct export request = {.select = &select};
	int status = TRACE_EXIT_FAILED;
	const struct export_format *format = &export_formats[0];
	const char *to = NULL;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "f:o:h", options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			status = TRACE_EXIT_FINE;
			goto done;
		}
		if (select_is_option(option)) {
			if (!select_take(&select, "export", option, optarg))
				goto done;
		} else if (option == 'f')
			format = find_format(optarg);
		else if (option == 'o')
			to = optarg;
		else if (option == 'z')
			request.zip = true;
		else {
			verb_misused("export", "the option %s is not known or lacks its value", argv[optind - 1]);
			goto done;
		}
		if (!format)
			goto done;
	}
	if (optind != argc - 1)
		verb_misused("export", optind == argc ? "a trace is missing" : "one trace at a time");
	else if (request.zip && format->write != export_callgrind)
		verb_misused("export", "--zip is for the format callgrind");
	else if (!to)
		verb_misused("export", "-o FILE is missing (- for stdout)");
	else
		status = export(format, &request, argv[optind], to);
done:
	select_done(&select);
	return status;
}
