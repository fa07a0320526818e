/*
 * redact.c - evprof redact: a trace without the texts that patterns match. cut/redact.c writes it.
 */
#include "cut/redact.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/verbs.h"
#include "util/output.h"

static const char help_text[] =
    "usage: evprof redact [--pattern EXPRESSION]... [--argv] TRACE -o FILE | --in-place\n"
    "\n"
    "Writes a trace in which each byte of a text that an expression matches is '*': in names and files of functions,\n"
    "types, threads, marks and spans, in text arguments of spans, and in the command line, paths, host and title of\n"
    "processes. Events, times and lengths stay. Functions whose names become the same are one row in a report.\n"
    "\n"
    "  -e, --pattern EXPRESSION  a POSIX extended regular expression, anywhere in a text; may come again\n"
    "      --argv                all words of command lines and titles but the first, too\n"
    "  -o, --output FILE         the trace to write; it appears when it is complete. Its name is not redacted\n"
    "      --in-place            it takes the place of the trace\n"
    "\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or the file not written; 3 if it is still\n"
    "being written.\n";

struct request {
	struct filter filter; /* nothing is filtered */
	struct redact redact;
	const char *to;
	bool in_place;
};

static bool take_pattern(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;
	char why[128];
	const char *wrong = redact_add(&request->redact, value, why, sizeof(why));

	(void)option;
	return !wrong || cli_misused("redact", "the expression \"%s\" cannot be used: %s", value, wrong);
}

static const struct verb_option options_known[] = {
    VERB_TAKE("pattern", 'e', required_argument, take_pattern, 0),
    VERB_FLAG("argv", 0, request, redact.arguments),
    VERB_TEXT("output", 'o', request, to),
    VERB_FLAG("in-place", 0, request, in_place),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"redact", options_known, {help_text}};

static int redact_trace(const struct request *request, const char *path)
{
	const char *to = request->in_place ? path : request->to;
	struct trace *trace = verb_open("redact", &request->filter, path, request->in_place ? NULL : to);
	int error;

	if (!trace)
		return CLI_FAILED;
	umask(077); /* only the owner may read the contents of a trace */
	error = redact_write_file(&request->redact, trace, to, request->in_place);
	if (error)
		output_complain("redact", to, error);
	return verb_close(trace, error);
}

static bool fits_together(const struct request *request, const char *path)
{
	if (!request->redact.count && !request->redact.arguments)
		return cli_misused("redact", "--pattern EXPRESSION or --argv is missing");
	if (request->in_place ? request->to || !strcmp(path, "-") : !request->to || !strcmp(request->to, "-"))
		return cli_misused("redact", "-o FILE or --in-place is missing; a trace needs a file");
	return true;
}

int cmd_redact(int argc, char **argv)
{
	struct request request = {0};
	int status = verb_parse(&usage, argc, argv, &request, &request.filter);

	if (status == VERB_PARSED)
		status = verb_has_one_trace("redact", argc) && fits_together(&request, argv[optind])
			     ? redact_trace(&request, argv[optind])
			     : CLI_FAILED;
	redact_done(&request.redact);
	filter_done(&request.filter);
	return status;
}
