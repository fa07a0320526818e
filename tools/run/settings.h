/*
 * settings.h - the options of evprof run that set a variable of the library. Used by cmd/run.c.
 *
 * The library uses the default for an invalid value, because it must not stop the program. On the command line an
 * invalid value is an error before the program starts.
 */
#ifndef EVPROF_TOOLS_RUN_SETTINGS_H
#define EVPROF_TOOLS_RUN_SETTINGS_H

#include <getopt.h>
#include <stdbool.h>

struct run_settings {
	unsigned given; /* bits of the table: options given by the user, not by the environment */
	bool sample;
};

enum {
	RUN_EVENTS = 0x100,
	RUN_SAMPLE,
	RUN_RING_SIZE,
	RUN_ON_FULL,
	RUN_LOG,
	RUN_FORMAT,
	RUN_INCLUDE,
	RUN_EXCLUDE,
	RUN_EXCLUDE_SYSPATH,
	RUN_CALIBRATE,
	RUN_NATIVE,
	RUN_NO_CHILDREN,
	RUN_END,
};

/* For the table of getopt_long(). */
#define RUN_SETTINGS                                                                                                   \
	{"events", required_argument, NULL, RUN_EVENTS}, {"sample", optional_argument, NULL, RUN_SAMPLE},              \
	    {"ring-size", required_argument, NULL, RUN_RING_SIZE}, {"on-full", required_argument, NULL, RUN_ON_FULL},  \
	    {"log", required_argument, NULL, RUN_LOG}, {"format", required_argument, NULL, RUN_FORMAT},                \
	    {"include", required_argument, NULL, RUN_INCLUDE}, {"exclude", required_argument, NULL, RUN_EXCLUDE},      \
	    {"exclude-syspath", no_argument, NULL, RUN_EXCLUDE_SYSPATH},                                               \
	    {"calibrate", no_argument, NULL, RUN_CALIBRATE}, {"native", no_argument, NULL, RUN_NATIVE},                \
	{                                                                                                              \
		"no-children", no_argument, NULL, RUN_NO_CHILDREN                                                      \
	}

static inline bool run_is_setting(int option)
{
	return option >= RUN_EVENTS && option < RUN_END;
}

/* Sets the variable of the option; value is NULL if it has none. False after one line on stderr. */
bool run_settings_take(struct run_settings *settings, int option, const char *value);
/* Checks all options together. False after one line on stderr: they contradict each other. */
bool run_settings_finish(const struct run_settings *settings);
/* Checks the template of the trace's path. False after one line on stderr. */
bool run_settings_output_is_good(const char *output);

#endif
