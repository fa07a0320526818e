/*
 * cli.h - the command line conventions of all verbs: exit statuses, options, and error messages.
 */
#ifndef EVPROF_TOOLS_UTIL_CLI_H
#define EVPROF_TOOLS_UTIL_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of evprof. */
enum cli_status {
	CLI_FINE = 0,
	CLI_DAMAGED = 1, /* a part of the trace is missing; the rest was used */
	CLI_FAILED = 2,
	CLI_GROWING = 3, /* the trace is intact, but still being written */
};

/* The status for several traces: a growing one is better than a damaged one. */
static inline int cli_status_worst(int a, int b)
{
	static const int badness[] = {[CLI_FINE] = 0, [CLI_GROWING] = 1, [CLI_DAMAGED] = 2, [CLI_FAILED] = 3};

	return badness[a] > badness[b] ? a : b;
}

/* Prints an error in the command line on stderr, with a pointer to the help. Returns CLI_FAILED. */
int cli_misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* getopt_long() with these options, which cli_option_wrong() uses for suggestions. */
int cli_getopt(int argc, char **argv, const char *letters, const struct option *options);
/* The word of the option that cli_getopt() returned last, also if it holds several letters. */
const char *cli_option(char *const *argv);
/* Prints that the word is not an option, or lacks its value, and suggests the nearest option. Returns false. */
bool cli_option_wrong(const char *verb, const char *word);
/* Parses a whole number, at least lowest, for an option. False: an error is printed. */
bool cli_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value);
#endif
