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

static const struct export_format formats[] = {
    {"chrome", "Chrome trace JSON, for Perfetto's and Chrome's viewers", export_chrome},
    {"html", "one page with timeline, flame graph and table, for any browser, without a network", export_html},
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
	       "%s"
	       "\n"
	       "Exit status: 0; 1 if something is missing from the trace; 2 if it cannot be read or the file not "
	       "written.\n",
	       select_help);
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
	static const struct option options[] = {{"format", required_argument, NULL, 'f'},
						{"output", required_argument, NULL, 'o'},
						SELECT_OPTIONS,
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct select select = {0};
	struct export request = {.select = &select};
	int status = TRACE_EXIT_FAILED;
	const struct export_format *format = &formats[0];
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
		else {
			verb_misused("export", "the option %s is not known or lacks its value", argv[optind - 1]);
			goto done;
		}
		if (!format)
			goto done;
	}
	if (optind != argc - 1)
		verb_misused("export", optind == argc ? "a trace is missing" : "one trace at a time");
	else if (!to)
		verb_misused("export", "-o FILE is missing (- for stdout)");
	else
		status = export(format, &request, argv[optind], to);
done:
	select_done(&select);
	return status;
}
