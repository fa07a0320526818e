/*
 * settings.h - the options of evprof run that set a variable of the library. Used by cmd/run.c and program.c.
 *
 * The library uses the default for an invalid value, because it must not stop the program. On the command line an
 * invalid value is an error before the program starts.
 */
#ifndef EVPROF_TOOLS_RUN_SETTINGS_H
#define EVPROF_TOOLS_RUN_SETTINGS_H

#include <stdbool.h>

#include "evprof/settings.h"

struct run_settings {
	unsigned given; /* bits of the table: options given by the user, not by the environment */
	bool sample;
};

enum run_setting {
	RUN_EVENTS,
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
	RUN_PROGRAM_ONLY,
	RUN_NO_CHILDREN,
	RUN_MEMORY_INTERVAL,
	RUN_MEMORY,
	RUN_STOPPED,
	RUN_KEEP,
	RUN_MEMORY_LINES,
	RUN_TRIGGER,
	RUN_BUDGET
};

/* Sets the variable of the option; value is NULL if it has none. False after one line on stderr. */
bool run_settings_take(struct run_settings *settings, enum run_setting setting, const char *value);
/* Checks all options together. False after one line on stderr: they contradict each other. */
bool run_settings_finish(const struct run_settings *settings);
/*
 * The events of the environment (enum setting_event), as the library decides, which reports values that it does not
 * understand. keep: gets the stretch that is kept; all zeros before.
 */
unsigned run_settings_recorded(struct setting_keep *keep);
/* Checks the template of the trace's path. False after one line on stderr. */
bool run_settings_output_is_good(const char *output);

#endif
