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
int cmd_serve(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_stack(int argc, char **argv);
int cmd_record(int argc, char **argv);
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
int cmd_redact(int argc, char **argv);
int cmd_ship(int argc, char **argv);
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
	bool (*take)(void *request, const struct verb_option *option, const char *value);
	size_t which;
	const char *const *words; /* of verb_take_word(); NULL at the end */
};

#define VERB_OPTIONS_MAX 64  /* in a table */
#define VERB_LAST_OPTION 256 /* without a name: requires an argument, and ends the options */

/* Options of a request, which is a struct `type`: a bool; a text; what take() does with the value. */
#define VERB_FLAG(name, letter, type, member) VERB_TAKE(name, letter, no_argument, NULL, offsetof(struct type, member))
#define VERB_TEXT(name, letter, type, member)                                                                          \
	VERB_TAKE(name, letter, required_argument, NULL, offsetof(struct type, member))
#define VERB_TAKE(name, letter, argument, take, which)                                                                 \
	{                                                                                                              \
		name, letter, argument, take, which, NULL                                                              \
	}
/* One of several words, as its index in an enum or unsigned. Without argument: the word is the option's name. */
#define VERB_WORD(name, letter, argument, type, member, words)                                                         \
	{                                                                                                              \
		name, letter, argument, verb_take_word, offsetof(struct type, member), words                           \
	}
/* --help, and the end of the table. */
#define VERB_OPTIONS_END VERB_TAKE("help", 'h', no_argument, NULL, 0), VERB_TAKE(NULL, 0, no_argument, NULL, 0)

/* The options of a filter. */
#define VERB_FILTER_OPTION(name, which) VERB_TAKE(name, 0, required_argument, verb_take_filter, which)
/* All options of a filter; take_min_duration is verb_take_filter, or what refuses that option. */
#define VERB_FILTER_OPTIONS(take_min_duration)                                                                         \
	VERB_FILTER_OPTION("clock", FILTER_CLOCK), VERB_FILTER_OPTION("include", FILTER_INCLUDE),                      \
	    VERB_FILTER_OPTION("exclude", FILTER_EXCLUDE),                                                             \
	    VERB_TAKE("exclude-syspath", 0, no_argument, verb_take_filter, FILTER_EXCLUDE_SYSPATH),                    \
	    VERB_FILTER_OPTION("process", FILTER_PROCESS), VERB_FILTER_OPTION("thread", FILTER_THREAD),                \
	    VERB_FILTER_OPTION("from", FILTER_FROM), VERB_FILTER_OPTION("to", FILTER_TO),                              \
	    VERB_TAKE("min-duration", 0, required_argument, take_min_duration, FILTER_MIN_DURATION),                   \
	    VERB_FILTER_OPTION("max-depth", FILTER_MAX_DEPTH)

/* For take: an option of the filter; */
bool verb_take_filter(void *request, const struct verb_option *option, const char *value);
/* one of the words; "" is none; */
bool verb_take_word(void *request, const struct verb_option *option, const char *value);
/* a number from 1 on, as an int64_t; */
bool verb_take_count(void *request, const struct verb_option *option, const char *value);
/* a number of rows, as an int64_t: from 0 on, or "all", VERB_ALL; */
bool verb_take_limit(void *request, const struct verb_option *option, const char *value);
#define VERB_ALL (-1)
#define VERB_LIMIT_UNSET INT64_MIN /* before the options are parsed */
/* seconds between two refreshes, as an int of ms; */
bool verb_take_interval(void *request, const struct verb_option *option, const char *value);
#define VERB_INTERVAL(type, member)                                                                                    \
	VERB_TAKE("interval", 0, required_argument, verb_take_interval, offsetof(struct type, member))
#define VERB_INTERVAL_MS 1000 /* before the options are parsed */
/* what is recorded of a running process, a list as in EVPROF_EVENTS, as a const char *; */
bool verb_take_events(void *request, const struct verb_option *option, const char *value);
#define VERB_EVENTS(type) VERB_TAKE("events", 0, required_argument, verb_take_events, offsetof(struct type, events))
/* A,B as a const char *[2]. The value is taken apart where it is. */
bool verb_take_marks(void *request, const struct verb_option *option, const char *value);

#define VERB_PARSED (-1)
#define VERB_HELPS 3

struct verb_usage {
	const char *verb;
	const struct verb_option *options;
	const char *help[VERB_HELPS]; /* printed one after the other, up to a NULL */
};

/*
 * Parses the command line; optind is that of getopt_long(). filter is for the options of a filter, NULL without.
 * Returns VERB_PARSED, CLI_FINE after the help, or CLI_FAILED after one line on stderr.
 */
int verb_parse(const struct verb_usage *usage, int argc, char **argv, void *request, struct filter *filter);
/* Whether one trace is left behind the options; false after one line on stderr. */
bool verb_has_one_trace(const char *verb, int argc);
/* Sets the process or program that is left behind the options, if there is one. False after one line on stderr. */
bool verb_take_target(const char *verb, int argc, char **argv, const char **target);
/* Whether a target is the number of a process, and no program's name. */
bool verb_is_pid(const char *target);

/* While set, verb_parse() passes each table of options to it, before it parses. For evprof completion. */
extern void (*verb_options_visitor)(const struct verb_option *options);

/* Whether the output would overwrite the trace itself; true after one line on stderr. */
bool verb_overwrites(const char *verb, const struct trace *trace, const char *to);
/*
 * Like filter_open(). An error, too, is an output that would overwrite the trace itself; to is its path, NULL: no file.
 */
struct trace *verb_open(const char *verb, const struct filter *filter, const char *path, const char *to);
/* Closes the trace, after a line if it is not complete. Returns the exit status; error: the verb has failed. */
int verb_close(struct trace *trace, int error);

/* Makes the folders of a trace that is written later. False after one line on stderr: it could not be written. */
bool verb_can_write(const char *verb, const char *path);

#endif
