/*
 * evprof.c - evprof(1): the table of verbs, and main().
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "evprof/version.h"
#include "cmd/verbs.h"
#include "trace/reader.h"
#include "util/cli.h"

const struct verb verbs[] = {
    {"run", cmd_run, "run a program and record what Python does in it"},
    {"status", cmd_status, "the collectors of this host, and the processes that they record"},
    {"top", cmd_top, "what they do now, refreshed each second"},
    {"serve", cmd_serve, "the same on a page for browsers of this machine"},
    {"push", cmd_push, "profiles by stack to OpenTelemetry, continuously"},
    {"watch", cmd_watch, "the calls of a trace that took longer than a bound, as they end"},
    {"stop", cmd_stop, "stop the recording of running processes"},
    {"start", cmd_start, "start it again"},
    {"mark", cmd_mark, "set a mark in the traces of running processes"},
    {"snapshot", cmd_snapshot, "copy what is recorded of running processes, as a trace"},
    {"stack", cmd_stack, "what all threads of a running Python do now, recorded or not"},
    {"record", cmd_record, "a stretch of a running Python as a trace, recorded or not"},
    {"attach", cmd_attach, "record a running Python that was started without evprof"},
    {"detach", cmd_detach, "end that, and leave it as it was"},
    {"report", cmd_report, "the table of cProfile: calls and times by function"},
    {"tree", cmd_tree, "who called whom, with times, as an indented text"},
    {"memory", cmd_memory, "what was alive at the peak and at the end, and who allocated it"},
    {"info", cmd_info, "the contents of a trace: processes, threads, events, losses"},
    {"dump", cmd_dump, "every event, one a line"},
    {"export", cmd_export, "write a trace in a format of other tools"},
    {"annotate", cmd_annotate, "the sources with calls and times next to each line"},
    {"diff", cmd_diff, "compare two traces: calls, times, allocations by function"},
    {"check", cmd_check, "hold a trace against limits, for CI"},
    {"cut", cmd_cut, "a stretch of a trace, a span, as a trace of its own"},
    {"redact", cmd_redact, "a trace without the texts that patterns match"},
    {"ship", cmd_ship, "hand finished traces to a command, with retries"},
    {"completion", cmd_completion, "what makes a shell complete evprof's options"},
    {NULL, NULL, NULL},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]) - 1)

static void print_verbs(FILE *stream)
{
	for (size_t i = 0; i < VERBS; i++)
		fprintf(stream, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
}

static int print_help(void)
{
	printf("usage: evprof VERB [options] ...\n\n");
	print_verbs(stdout);
	printf("\nevprof VERB --help shows the options of a verb. evprof --version prints the version.\n"
	       "\n"
	       "examples:\n"
	       "  evprof run -o app.evp -- python app.py                 record a program and its children\n"
	       "  evprof report --sort cumulative app.evp                its functions, as cProfile prints them\n"
	       "  evprof export --format html app.evp -o app.html        a page with flame graph and timeline\n");
	return CLI_FINE;
}

/* The verb that a file was meant for, with its name behind it, or NULL: there is no such file. */
static const char *verb_of_file(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (access(name, F_OK) < 0)
		return NULL;
	return dot && strcmp(dot, ".evp") == 0 ? "evprof report " : "evprof run ";
}

static int unknown_verb(const char *name)
{
	const char *meant = name ? cli_nearest(name, verbs, sizeof(verbs[0])) : NULL;
	const char *verb = name && !meant ? verb_of_file(name) : NULL;

	fprintf(stderr, "evprof: ");
	if (name)
		fprintf(stderr, "there is no verb \"%s\"", name);
	else
		fprintf(stderr, "a verb is missing");
	if (meant || verb)
		fprintf(stderr, " (did you mean %s%s?)", verb ? verb : "", verb ? name : meant);
	fprintf(stderr, "; the verbs are");
	cli_print_names(verbs, sizeof(verbs[0]));
	return CLI_FAILED;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < VERBS; i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	return NULL;
}

/* Runs "evprof help VERB". */
static int print_verb_help(char *name)
{
	const struct verb *verb = find_verb(name);
	char option[] = "--help";

	return verb ? verb->main(2, (char *[]){name, option, NULL}) : unknown_verb(name);
}

/* Checks the output of help and version. Verbs with results use util/output.h. */
static int close_stdout(int status)
{
	if (fflush(stdout) == 0 || status)
		return status;
	fprintf(stderr, "evprof: cannot write: %s\n", strerror(errno));
	return CLI_FAILED;
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	if (argc < 2)
		return unknown_verb(NULL);
	if (argc == 3 && strcmp(argv[1], "help") == 0)
		return close_stdout(print_verb_help(argv[2]));
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
		return close_stdout(print_help());
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("evprof %s\n", EVPROF_VERSION);
		return close_stdout(CLI_FINE);
	}
	verb = find_verb(argv[1]);
	if (verb && verb->main != cmd_run) /* a write above the limit of file sizes fails instead, which is reported */
		signal(SIGXFSZ, SIG_IGN);
	return verb ? close_stdout(verb->main(argc - 1, argv + 1)) : unknown_verb(argv[1]);
}
