/*
 * cmd_export.c - evprof export: the options, the table of formats, and the file that appears when it is whole.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "verbs.h"

static const struct export_format formats[] = {
    {"chrome", "Chrome trace JSON, for Perfetto's and Chrome's viewers", export_chrome},
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static void print_help(void)
{
	size_t i;

	printf("usage: evprof export --format FORMAT TRACE -o FILE\n"
	       "\n"
	       "Writes a trace in a format of other tools. The file appears when it is whole.\n"
	       "\n"
	       "  -f, --format FORMAT   one of\n");
	for (i = 0; i < FORMATS; i++)
		printf("                          %-8s %s\n", formats[i].name, formats[i].summary);
	printf("  -o, --output FILE     - is stdout\n"
	       "\n"
	       "Exit status: 0; 1 if something is missing from the trace; 2 if it cannot be read or the file not "
	       "written.\n");
}

static const struct export_format *find_format(const char *name)
{
	size_t i;

	for (i = 0; i < FORMATS; i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	fprintf(stderr, "evprof export: there is no format \"%s\"; the formats are", name);
	for (i = 0; i < FORMATS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", formats[i].name);
	fprintf(stderr, "\n");
	return NULL;
}

static int write_format(const struct export_format *format, struct trace *trace, const char *path)
{
	struct progress progress;
	struct output output;
	uint64_t events = 0;
	int error = output_open(&output, path);
	size_t i;

	if (error)
		return error;
	for (i = 0; i < trace->place_count; i++)
		events += trace->places[i].type == TRACE_CHUNK_EVENTS ? trace->places[i].events : 0;
	progress_begin(&progress, "exporting", events);
	error = format->write(trace, &output, &progress);
	progress_end(&progress);
	if (error)
		output_abandon(&output);
	else
		error = output_close(&output);
	return error;
}

static int export(const struct export_format *format, const char *from, const char *to)
{
	struct trace *trace = trace_open_or_say(from);
	int status;
	int error;

	if (!trace)
		return TRACE_EXIT_FAILED;
	error = write_format(format, trace, to);
	if (error)
		fprintf(stderr, "evprof export: cannot write %s: %s\n", to, strerror(-error));
	status = error ? TRACE_EXIT_FAILED : trace_say_verdict(trace);
	trace_close(trace);
	return status;
}

int cmd_export(int argc, char **argv)
{
	static const struct option options[] = {{"format", required_argument, NULL, 'f'},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	const struct export_format *format = &formats[0];
	const char *to = NULL;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "f:o:h", options, NULL)) != -1) {
		if (option == 'h') {
			print_help();
			return TRACE_EXIT_FINE;
		}
		if (option == 'f')
			format = find_format(optarg);
		else if (option == 'o')
			to = optarg;
		else
			return verb_misused("export", "the option %s is not known or lacks its value",
					    argv[optind - 1]);
		if (!format)
			return TRACE_EXIT_FAILED;
	}
	if (optind != argc - 1)
		return verb_misused("export", optind == argc ? "a trace is missing" : "one trace at a time");
	if (!to)
		return verb_misused("export", "-o FILE is missing (- for stdout)");
	return export(format, argv[optind], to);
}
