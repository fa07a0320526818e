/*
 * verbs.h - the verbs of evprof(1), one file each, and what they share: options, the trace they read, its end.
 *
 * A verb is called with argv from its own name on, and returns the exit status of evprof.
 */
#ifndef EVPROF_TOOLS_CMD_VERBS_H
#define EVPROF_TOOLS_CMD_VERBS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/filter.h"

int cmd_run(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_stack(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_tree(int argc, char **argv);
int cmd_memory(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_cut(int argc, char **argv);
int cmd_completion(int argc, char **argv);

/* All verbs, ended by one without a name (evprof.c). */
struct verb {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
};
extern const struct verb verbs[];

/*
 * An option of a verb. Without take(), `which` is an offset in the request: of a bool to set, or with required_argument
 * of a const char * to point to the value. take() gets the value, NULL if there is none, and returns false after one
 * line on stderr.
 */
struct verb_option {
	const char *name; /* NULL: it has a letter only */
	char letter;	  /* 0: none; without name and letter: the end of the table */
	int argument;	  /* no_argument, required_argument, optional_argument, or VERB_LAST_OPTION */
	bool (*take)(void *request, size_t which, const char *value);
	size_t which;
};

#define VERB_OPTIONS_MAX 64  /* in a table */
#define VERB_LAST_OPTION 256 /* without a name: requires an argument, and ends the options */

/* The options of a filter. */
#define VERB_FILTER_OPTION(name, which)                                                                                \
	{                                                                                                              \
		name, 0, required_argument, verb_take_filter, which                                                    \
	}
/* All options of a filter; take_min_duration is verb_take_filter, or what refuses that option. */
#define VERB_FILTER_OPTIONS(take_min_duration)                                                                         \
	VERB_FILTER_OPTION("clock", FILTER_CLOCK), VERB_FILTER_OPTION("include", FILTER_INCLUDE),                      \
	    VERB_FILTER_OPTION("exclude", FILTER_EXCLUDE),                                                             \
	    {"exclude-syspath", 0, no_argument, verb_take_filter, FILTER_EXCLUDE_SYSPATH},                             \
	    VERB_FILTER_OPTION("process", FILTER_PROCESS), VERB_FILTER_OPTION("thread", FILTER_THREAD),                \
	    VERB_FILTER_OPTION("from", FILTER_FROM), VERB_FILTER_OPTION("to", FILTER_TO),                              \
	    {"min-duration", 0, required_argument, take_min_duration, FILTER_MIN_DURATION},                            \
	    VERB_FILTER_OPTION("max-depth", FILTER_MAX_DEPTH)

bool verb_take_filter(void *request, size_t which, const char *value);
/*
 * Splits the value of --between, A,B, into a copy, which the caller frees. False after one line on stderr.
 */
bool verb_take_marks(const char *verb, const char *value, char **copy, const char **begin, const char **end);

#define VERB_PARSED (-1)

/*
 * Parses the command line: letters and optind are those of getopt_long(). filter is for the options of a filter, NULL
 * without. Returns VERB_PARSED, CLI_FINE if help is wanted, or CLI_FAILED after one line on stderr.
 */
int verb_parse(const char *verb, const char *letters, const struct verb_option *options, int argc, char **argv,
	       void *request, struct filter *filter);

/* While set, verb_parse() passes each table of options to it, before it parses. For evprof completion. */
extern void (*verb_options_visitor)(const struct verb_option *options);

/*
 * Like filter_open(). An error, too, is an output that would overwrite the trace itself; to is its path, NULL: no file.
 */
struct trace *verb_open(const char *verb, const struct filter *filter, const char *path, const char *to);
/* Closes the trace, after a line if it is not complete. Returns the exit status; error: the verb has failed. */
int verb_close(struct trace *trace, int error);

#endif
