/*
 * verbs.h - the verbs of evprof(1), one file each, and what they share on the command line.
 *
 * A verb gets argv from its own name on and returns the exit status of evprof.
 */
#ifndef EVPROF_TOOLS_VERBS_H
#define EVPROF_TOOLS_VERBS_H

#include <stdbool.h>
#include <stdint.h>

struct trace;

int cmd_run(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_check(int argc, char **argv);

/* Says on stderr what is wrong with the command line and where help is. Returns TRACE_EXIT_FAILED. */
int verb_misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct option;

/* getopt_long() by these options, of which verb_option_wrong() knows then. */
int verb_getopt(int argc, char **argv, const char *letters, const struct option *options);
/* The word that verb_getopt() has just read an option from: also where that is a letter with others behind it. */
const char *verb_option(char *const *argv);
/* Says that this word is no option, or one without its value, and which one may be meant. Returns false. */
bool verb_option_wrong(const char *verb, const char *word);
/* A whole number, at least lowest, for an option; false after saying what is wrong. */
bool verb_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value);
/* True after saying that the output would replace the trace it is made of; path may be NULL: none. */
bool verb_overwrites(const char *verb, const struct trace *trace, const char *path);

#endif
