/*
 * config.c - reads the EVPROF_* variables.
 *
 * A bad value or an unknown name prints one line that names it and what is allowed, and the default is used: somebody
 * else's program must run on. Only the first process of a tree prints, not each of its children.
 */
#include "base/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log_line.h"
#include "base/text.h"
#include "evprof/control.h"

struct config config;

#define SETTINGS_BYTES (16 * 1024)

static char settings[SETTINGS_BYTES]; /* lines that end with NUL; an empty one ends them */

static const char *const known_names[] = {
    ENV_SWITCH,	  ENV_OUTPUT,	    ENV_SOCKET,		 ENV_EVENTS,	   ENV_RING_SIZE, ENV_ON_FULL,
    ENV_CHILDREN, ENV_LOG,	    ENV_SESSION,	 ENV_INCLUDE,	   ENV_EXCLUDE,	  ENV_EXCLUDE_SYSPATH,
    ENV_FORMAT,	  ENV_CALIBRATE,    ENV_SAMPLE_RATE,	 ENV_NATIVE,	   ENV_FALLBACK,  ENV_READER_LIBRARY,
    ENV_PAGER,	  ENV_PROGRAM_ONLY, ENV_MEMORY_INTERVAL, ENV_MEMORY_LINES, ENV_START,	  ENV_SIGNAL,
    ENV_KEEP,	  ENV_TRIGGER,	    ENV_BUDGET};

const char *const config_event_names[CONFIG_EVENTS] = SETTING_EVENT_NAMES;

#define ON_FULL_DEFAULT_MS 1000

bool config_use(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	config.attached = text != NULL;
	if (length + 2 > sizeof(settings))
		return false;
	memcpy(settings, text ? text : "", length);
	memset(settings + length, 0, 2);
	for (size_t i = 0; i < length; i++)
		if (settings[i] == '\n')
			settings[i] = 0;
	return true;
}

const char *config_variable(const char *name)
{
	size_t length = strlen(name);

	if (!config.attached)
		return getenv(name);
	for (const char *line = settings; *line; line += strlen(line) + 1)
		if (!strncmp(line, name, length) && line[length] == '=')
			return line + length + 1;
	return NULL;
}

static void complain_of(bool complain, const char *name, const char *value, const char *allowed)
{
	char shown[TEXT_SHOWN_BYTES];

	if (complain)
		log_line(LOG_ERROR, "%s=%s is not understood; allowed: %s; the default is used", name,
			 text_shown(value, shown), allowed);
}

bool config_switch(const char *name, bool fallback, bool complain)
{
	const char *value = config_variable(name);

	if (!value || !*value)
		return fallback;
	if (!strcmp(value, "0") || !strcmp(value, "1"))
		return value[0] == '1';
	complain_of(complain, name, value, "0 (off) or 1 (on)");
	return fallback;
}

/* The value of the variable, or NULL if it is unset or empty. */
static const char *value_of(const char *name)
{
	const char *value = config_variable(name);

	return value && *value ? value : NULL;
}

/* parse: of settings.h; if it returns what is allowed, it leaves the result unchanged. */
#define READ(result, fallback, name, parse)                                                                            \
	do {                                                                                                           \
		const char *value = value_of(name), *allowed;                                                          \
		result = fallback;                                                                                     \
		allowed = value ? parse(value, &(result)) : NULL;                                                      \
		if (allowed)                                                                                           \
			complain_of(complain, name, value, allowed);                                                   \
	} while (0)

static void read_alive(bool complain)
{
	if (!config.keep.alive)
		return;
	if (!config.socket[0] && !strcmp(config.output, OUTPUT_NOWHERE)) {
		if (complain)
			log_line(LOG_ERROR,
				 "%s=alive needs a file for what is alive, not %s=%s; the last stretch is kept",
				 ENV_KEEP, ENV_OUTPUT, SETTING_OUTPUT_NONE);
		config.keep.alive = false;
		return;
	}
	if (setting_may_keep_alive(config.events))
		return;
	if (complain)
		log_line(LOG_ERROR,
			 "%s=alive needs memory without calls: %s=mem,malloc; the trace keeps its last stretch",
			 ENV_KEEP, ENV_EVENTS);
	config.keep.alive = false;
}

static void read_trigger(bool complain)
{
	const char *value = value_of(ENV_TRIGGER);
	struct triggers triggers;
	const char *allowed = value ? setting_triggers(value, &triggers) : NULL;

	if (allowed && complain) {
		char shown[TEXT_SHOWN_BYTES];

		log_line(LOG_ERROR, "%s=%s is not understood; it is %s; no copy is made by it", ENV_TRIGGER,
			 text_shown(value, shown), allowed);
	}
	snprintf(config.trigger, sizeof(config.trigger), "%s", value && !allowed ? value : "");
}

/*
 * Stores the working directory and a slash. For a template, % signs in it are doubled. Returns the length, 0 on
 * failure.
 */
static size_t read_cwd(char out[PATH_MAX], bool is_template)
{
	char cwd[PATH_MAX];
	size_t used = 0;

	if (!getcwd(cwd, sizeof(cwd)))
		return 0;
	for (const char *c = cwd; *c; c++) {
		if (used + 3 >= PATH_MAX)
			return 0;
		out[used++] = *c;
		if (*c == '%' && is_template)
			out[used++] = '%';
	}
	out[used++] = '/';
	return used;
}

/*
 * Makes a path or template absolute, because the collector has another working directory. Keeps an abstract socket
 * name.
 */
static bool read_path(char *out, const char *value, bool is_template)
{
	bool relative = value[0] != '/' && (value[0] != '@' || is_template);
	char directory[PATH_MAX];
	size_t used = relative ? read_cwd(directory, is_template) : 0;

	if ((relative && !used) || used + strlen(value) >= PATH_MAX)
		return false;
	memcpy(out, directory, used);
	strcpy(out + used, value);
	return true;
}

/* Uses the root directory. In a tree with a session, the first process has already set the path. */
static void use_root(bool complain)
{
	strcpy(config.output, "/" OUTPUT_DEFAULT);
	if (complain && !config.session[0])
		log_line(LOG_ERROR,
			 "the working directory has no path; the trace goes to %s; set %s to an absolute path",
			 config.output, ENV_OUTPUT);
}

static void read_paths(bool complain)
{
	const char *output = value_of(ENV_OUTPUT);
	const char *allowed = output ? setting_output(output) : NULL;

	if (allowed)
		complain_of(complain, ENV_OUTPUT, output, allowed);
	if (!output || allowed)
		output = OUTPUT_DEFAULT;
	if (setting_output_is_none(output))
		output = OUTPUT_NOWHERE;
	if (!read_path(config.output, output, true)) {
		if (strlen(output) + 1 >= PATH_MAX)
			complain_of(complain, ENV_OUTPUT, output, "a path of less than 4096 bytes");
		if (!read_path(config.output, OUTPUT_DEFAULT, true))
			use_root(complain);
	}
}

static void read_socket(bool complain)
{
	const char *path = value_of(ENV_SOCKET);

	config.socket[0] = 0;
	if (!path)
		return;
	if (read_path(config.socket, path, false) &&
	    strlen(config.socket) < sizeof(((struct sockaddr_un *)0)->sun_path))
		return;
	config.socket[0] = 0;
	complain_of(complain, ENV_SOCKET, path,
		    "a path that is at most 107 bytes with its folders, or @ and an abstract name");
}

/* "<session>:<first>:<owner>:<socket>"; any other value counts as unset. */
static void read_session(void)
{
	const char *value = config_variable(ENV_SESSION);
	char *end;

	config.session[0] = 0;
	if (!value || strspn(value, "0123456789abcdef") != CONTROL_SESSION_DIGITS ||
	    value[CONTROL_SESSION_DIGITS] != ':')
		return;
	config.session_first = (pid_t)strtol(value + CONTROL_SESSION_DIGITS + 1, &end, 10);
	if (*end != ':')
		return;
	config.session_owner = (pid_t)strtol(end + 1, &end, 10);
	if (*end != ':' || !end[1] || strlen(end + 1) >= sizeof(config.session_socket))
		return;
	strcpy(config.session_socket, end + 1);
	memcpy(config.session, value, CONTROL_SESSION_DIGITS);
	config.session[CONTROL_SESSION_DIGITS] = 0;
}

static void complain_of_unknown_names(void)
{
	for (char **variable = environ; variable && *variable; variable++) {
		size_t length = strcspn(*variable, "=");
		char name[TEXT_SHOWN_BYTES], shown[TEXT_SHOWN_BYTES];
		bool known = false;

		if (strncmp(*variable, ENV_SWITCH "_", sizeof(ENV_SWITCH)))
			continue;
		for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++)
			known |= strlen(known_names[i]) == length && !strncmp(known_names[i], *variable, length);
		snprintf(name, sizeof(name), "%.*s", (int)length, *variable);
		if (!known)
			log_line(
			    LOG_ERROR,
			    "%s is not a variable of evprof; the variables are EVPROF, EVPROF_OUTPUT, EVPROF_SOCKET, "
			    "EVPROF_EVENTS, EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH, EVPROF_RING_SIZE, "
			    "EVPROF_ON_FULL, EVPROF_CHILDREN, EVPROF_CALIBRATE, EVPROF_NATIVE, EVPROF_SAMPLE_RATE, "
			    "EVPROF_MEMORY_INTERVAL, EVPROF_MEMORY_LINES, EVPROF_BUDGET, EVPROF_FORMAT, "
			    "EVPROF_PROGRAM_ONLY, EVPROF_START, EVPROF_SIGNAL, EVPROF_KEEP, EVPROF_TRIGGER, "
			    "EVPROF_FALLBACK and EVPROF_LOG",
			    text_shown(name, shown));
	}
}

static void complain_of_settings_without_samples(void)
{
	for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++) {
		const char *value = value_of(known_names[i]), *instead = setting_without_samples(known_names[i]);

		if (instead && value && strcmp(value, "0") != 0)
			log_line(LOG_ERROR, "%s does nothing with %s=sample: %s", known_names[i], ENV_EVENTS, instead);
	}
}

/* Keeps the known formats, so that a typo in one does not drop the others. */
static void read_formats(bool complain)
{
	const char *value = value_of(ENV_FORMAT);
	char known[CONTROL_FORMATS_MAX_BYTES];
	const char *allowed = value ? setting_formats(value, known, sizeof(known)) : NULL;
	char shown[TEXT_SHOWN_BYTES];
	size_t used = 0;

	config.formats[0] = 0;
	for (const char *p = value ? value : ""; *p;) {
		size_t length = strcspn(p, ",");

		if (setting_is_format(p, length) && used + length + 2 < sizeof(config.formats)) {
			if (used)
				config.formats[used++] = ',';
			memcpy(config.formats + used, p, length);
			config.formats[used += length] = 0;
		}
		p += length + (p[length] == ',');
	}
	if (allowed && complain)
		log_line(LOG_ERROR, "%s=%s has a format that is not known; allowed: %s; the known ones are written",
			 ENV_FORMAT, text_shown(value, shown), allowed);
}

void config_read(bool complain)
{
	uint32_t level;

	read_session();
	complain &= !config.session[0] || config.session_first == getpid();
	READ(level, LOG_WARNING, ENV_LOG, setting_log_level);
	log_level = (enum log_level)level;
	config.enabled = config_switch(ENV_SWITCH, true, complain);
	config.children = config_switch(ENV_CHILDREN, true, complain);
	config.fallback = config_switch(ENV_FALLBACK, false, complain);
	config.start = config_switch(ENV_START, true, complain);
	config.calibrate = config_switch(ENV_CALIBRATE, false, complain);
	config.native_stacks = config_switch(ENV_NATIVE, false, complain);
	config.memory_lines = config_switch(ENV_MEMORY_LINES, false, complain);
	READ(config.events, SETTING_EVENTS_DEFAULT, ENV_EVENTS, setting_events);
	config.program_only = config_switch(ENV_PROGRAM_ONLY, false, complain) && !(config.events & EVENT_SAMPLE);
	READ(config.ring_bytes, RING_BYTES_DEFAULT, ENV_RING_SIZE, setting_ring_bytes);
	READ(config.wait_ms, ON_FULL_DEFAULT_MS, ENV_ON_FULL, setting_on_full);
	READ(config.signal, 0, ENV_SIGNAL, setting_signal);
	config.signal_snapshot = config.signal & SETTING_SIGNAL_SNAPSHOT;
	config.signal &= ~SETTING_SIGNAL_SNAPSHOT;
	READ(config.sample_rate, SAMPLING_RATE_DEFAULT, ENV_SAMPLE_RATE, setting_sample_rate);
	READ(config.budget, 0, ENV_BUDGET, setting_budget);
	READ(config.keep, (struct setting_keep){0}, ENV_KEEP, setting_keep);
	config.events = setting_recorded_events(config.events,
						&(const struct setting_choice){.listed = value_of(ENV_EVENTS) != NULL,
									       .program_only = config.program_only,
									       .budget = config.budget != 0,
									       .alive = config.keep.alive});
	read_paths(complain);
	read_socket(complain);
	read_alive(complain);
	READ(config.memory_interval, 0, ENV_MEMORY_INTERVAL, setting_memory_interval);
	if (!(config.events & EVENT_MEM))
		config.memory_interval = 0;
	read_trigger(complain);
	read_formats(complain);
	if (complain && config.enabled && !config.attached)
		complain_of_unknown_names();
	if (complain && config.enabled && config.events & EVENT_SAMPLE)
		complain_of_settings_without_samples();
}
