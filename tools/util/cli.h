/*
 * cli.h - what the verbs of evprof share on the command line: exit statuses, options, and what is said of wrong ones.
 */
#ifndef EVPROF_TOOLS_UTIL_CLI_H
#define EVPROF_TOOLS_UTIL_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of evprof. */
enum cli_status {
	CLI_FINE = 0,
	CLI_DAMAGED = 1, /* something is missing from the trace; the rest was used */
	CLI_FAILED = 2,
	CLI_GROWING = 3, /* nothing is wrong with the trace, but it is still being written */
};

/* Of several traces: one that grows is better than a damaged one. */
static inline int cli_status_worst(int a, int b)
{
	static const int badness[] = {[CLI_FINE] = 0, [CLI_GROWING] = 1, [CLI_DAMAGED] = 2, [CLI_FAILED] = 3};

	return badness[a] > badness[b] ? a : b;
}

/* Says on stderr what is wrong with the command line and where help is. Returns CLI_FAILED. */
int cli_misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* getopt_long() by these options, of which cli_option_wrong() knows then. */
int cli_getopt(int argc, char **argv, const char *letters, const struct option *options);
/* The word that cli_getopt() has just read an option from: also where that is a letter with others behind it. */
const char *cli_option(char *const *argv);
/* Says that this word is no option, or one without its value, and which one may be meant. Returns false. */
bool cli_option_wrong(const char *verb, const char *word);
/* A whole number, at least lowest, for an option; false after saying what is wrong. */
bool cli_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value);
#endif
