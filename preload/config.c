/*
 * config.c - reads the EVPROF_* variables.
 *
 * A bad value or an unknown name costs one line that names it and what is allowed, and the default holds: somebody
 * else's program must run on. Only the first process of a tree complains, not each of its children.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/ring.h"
#include "evprof/sampling.h"
#include "log.h"

struct config config;

static const char *const known_names[] = {ENV_SWITCH,  ENV_OUTPUT,	    ENV_SOCKET, ENV_EVENTS,    ENV_RING_SIZE,
					  ENV_ON_FULL, ENV_CHILDREN,	    ENV_LOG,	ENV_SESSION,   ENV_INCLUDE,
					  ENV_EXCLUDE, ENV_EXCLUDE_SYSPATH, ENV_FORMAT, ENV_CALIBRATE, ENV_SAMPLE_RATE};

const char *const config_event_names[CONFIG_EVENTS] = {"call", "c_call", "exception", "mem", "line", "cpu", "sample"};

#define ON_FULL_DEFAULT_MS 1000
#define ON_FULL_MAX_MS 60000

static void complain_of(bool complain, const char *name, const char *value, const char *allowed)
{
	if (complain)
		log_line(LOG_ERROR, "%s=%s is not understood; allowed: %s; the default is used", name, value, allowed);
}

static bool read_switch(const char *name, bool fallback, bool complain)
{
	const char *value = getenv(name);

	if (!value || !*value)
		return fallback;
	if (!strcmp(value, "0") || !strcmp(value, "1"))
		return value[0] == '1';
	complain_of(complain, name, value, "0 (off) or 1 (on)");
	return fallback;
}

static unsigned event_by_name(const char *name, size_t length)
{
	for (size_t i = 0; i < CONFIG_EVENTS; i++)
		if (strlen(config_event_names[i]) == length && !strncmp(config_event_names[i], name, length))
			return 1u << i;
	return 0;
}

static unsigned read_events(bool complain)
{
	const unsigned all = EVENT_CALL | EVENT_C_CALL | EVENT_EXCEPTION | EVENT_MEM;
	const char *value = getenv(ENV_EVENTS);
	unsigned events = 0;

	if (!value || !*value)
		return all;
	for (const char *p = value; *p;) {
		size_t length = strcspn(p, ",");
		unsigned event = event_by_name(p, length);

		if (!event) {
			complain_of(complain, ENV_EVENTS, value,
				    "a list, with commas, of call, c_call, exception, mem, line, cpu, sample");
			return all;
		}
		events |= event;
		p += length + (p[length] == ',');
	}
	if (events & EVENT_SAMPLE && events & ~(unsigned)(EVENT_SAMPLE | EVENT_CPU)) {
		complain_of(complain, ENV_EVENTS, value, "sample alone or with cpu, or a list without it");
		return all;
	}
	/* A line event says the line only: its function is the one on top of the stack. */
	return events & EVENT_LINE ? events | EVENT_CALL : events;
}

/* "<digits>[KMG]" in bytes; 0 if it is not that. */
static uint64_t parse_size(const char *value)
{
	unsigned long long number;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)*value))
		return 0;
	errno = 0;
	number = strtoull(value, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'G':
		shift += 10;
		/* fallthrough */
	case 'M':
		shift += 10;
		/* fallthrough */
	case 'K':
		shift += 10;
		end++;
	}
	return errno || *end || number > (UINT64_MAX >> shift) ? 0 : (uint64_t)number << shift;
}

static uint64_t read_ring_bytes(bool complain)
{
	const char *value = getenv(ENV_RING_SIZE);
	uint64_t bytes, rounded = RING_BYTES_MIN;

	if (!value || !*value)
		return RING_BYTES_DEFAULT;
	bytes = parse_size(value);
	if (bytes < RING_BYTES_MIN || bytes > RING_BYTES_MAX) {
		complain_of(complain, ENV_RING_SIZE, value, "64K to 1G, in bytes or with K, M or G");
		return RING_BYTES_DEFAULT;
	}
	while (rounded < bytes)
		rounded *= 2;
	return rounded;
}

static uint32_t read_on_full(bool complain)
{
	const char *value = getenv(ENV_ON_FULL);
	char *end;
	long ms;

	if (!value || !*value || !strcmp(value, "wait"))
		return ON_FULL_DEFAULT_MS;
	if (!strcmp(value, "drop"))
		return 0;
	if (!strncmp(value, "wait:", 5) && isdigit((unsigned char)value[5])) {
		errno = 0;
		ms = strtol(value + 5, &end, 10);
		if (!errno && !*end && ms > 0 && ms <= ON_FULL_MAX_MS)
			return (uint32_t)ms;
	}
	complain_of(complain, ENV_ON_FULL, value, "wait, wait:MILLISECONDS (1 to 60000) or drop");
	return ON_FULL_DEFAULT_MS;
}

static uint32_t read_sample_rate(bool complain)
{
	const char *value = getenv(ENV_SAMPLE_RATE);
	char *end;
	long rate;

	if (!value || !*value)
		return SAMPLING_RATE_DEFAULT;
	errno = 0;
	rate = strtol(value, &end, 10);
	if (!errno && !*end && rate > 0 && rate <= SAMPLING_RATE_MAX)
		return (uint32_t)rate;
	complain_of(complain, ENV_SAMPLE_RATE, value, "1 to 10000, samples a second");
	return SAMPLING_RATE_DEFAULT;
}

static enum log_level read_log_level(bool complain)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	const char *value = getenv(ENV_LOG);

	if (!value || !*value)
		return LOG_WARNING;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(value, names[i]))
			return (enum log_level)i;
	complain_of(complain, ENV_LOG, value, "error, warning, info or debug");
	return LOG_WARNING;
}

/* The working directory and a slash. In a template its own % signs are doubled. Returns the length, 0 on failure. */
static size_t read_cwd(char *out, bool is_template)
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

/* A path or template made absolute, because the collector stands elsewhere. An abstract socket name stays. */
static bool read_path(char *out, const char *value, bool is_template)
{
	bool relative = value[0] != '/' && (value[0] != '@' || is_template);
	size_t used = relative ? read_cwd(out, is_template) : 0;

	if ((relative && !used) || used + strlen(value) >= PATH_MAX)
		return false;
	strcpy(out + used, value);
	return true;
}

static void read_paths(bool complain)
{
	const char *output = getenv(ENV_OUTPUT), *path = getenv(ENV_SOCKET);

	if (!output || !*output)
		output = OUTPUT_DEFAULT;
	if (!read_path(config.output, output, true)) {
		complain_of(complain, ENV_OUTPUT, output, "a path of less than 4096 bytes");
		if (!read_path(config.output, OUTPUT_DEFAULT, true))
			strcpy(config.output, "/" OUTPUT_DEFAULT);
	}
	config.socket[0] = 0;
	if (path && *path && !read_path(config.socket, path, false))
		complain_of(complain, ENV_SOCKET, path, "a path of less than 108 bytes, or @ and an abstract name");
}

/* "<session>:<first>:<owner>:<socket>"; anything else is as if it were not set. */
static void read_session(void)
{
	const char *value = getenv(ENV_SESSION);
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
	for (char **variable = environ; *variable; variable++) {
		size_t length = strcspn(*variable, "=");
		bool known = false;

		if (strncmp(*variable, ENV_SWITCH "_", sizeof(ENV_SWITCH)))
			continue;
		for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++)
			known |= strlen(known_names[i]) == length && !strncmp(known_names[i], *variable, length);
		if (!known)
			log_line(
			    LOG_ERROR,
			    "%.*s is no variable of evprof; there are EVPROF, EVPROF_OUTPUT, EVPROF_SOCKET, "
			    "EVPROF_EVENTS, EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH, EVPROF_RING_SIZE, "
			    "EVPROF_ON_FULL, EVPROF_CHILDREN, EVPROF_CALIBRATE, EVPROF_SAMPLE_RATE, EVPROF_FORMAT and "
			    "EVPROF_LOG",
			    (int)length, *variable);
	}
}

static const char *const format_names[] = CONTROL_FORMAT_NAMES;
#define FORMATS (sizeof(format_names) / sizeof(format_names[0]))

static bool is_format(const char *name, size_t length)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (strlen(format_names[i]) == length && !strncmp(format_names[i], name, length))
			return true;
	return false;
}

static void complain_of_formats(const char *value)
{
	char known[CONTROL_FORMATS_MAX_BYTES];
	size_t used = 0;

	for (size_t i = 0; i < FORMATS && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", format_names[i]);
	log_line(
	    LOG_ERROR,
	    "%s=%s has a format that is not known; allowed: a list, with commas, of %s; the known ones are written",
	    ENV_FORMAT, value, known);
}

/* Those that are known, so that a slip of the pen in one does not cost the others. */
static void read_formats(bool complain)
{
	const char *value = getenv(ENV_FORMAT);
	size_t used = 0;
	bool good = true;

	config.formats[0] = 0;
	for (const char *p = value ? value : ""; *p;) {
		size_t length = strcspn(p, ",");

		if (is_format(p, length) && used + length + 2 < sizeof(config.formats)) {
			if (used)
				config.formats[used++] = ',';
			memcpy(config.formats + used, p, length);
			config.formats[used += length] = 0;
		} else {
			good = false;
		}
		p += length + (p[length] == ',');
	}
	if (!good && complain)
		complain_of_formats(value);
}

void config_read(bool complain)
{
	read_session();
	complain &= !config.session[0] || config.session_first == getpid();
	log_level = read_log_level(complain);
	config.enabled = read_switch(ENV_SWITCH, true, complain);
	config.children = read_switch(ENV_CHILDREN, true, complain);
	config.calibrate = read_switch(ENV_CALIBRATE, false, complain);
	config.events = read_events(complain);
	config.ring_bytes = read_ring_bytes(complain);
	config.wait_ms = read_on_full(complain);
	config.sample_rate = read_sample_rate(complain);
	read_paths(complain);
	read_formats(complain);
	if (complain && config.enabled)
		complain_of_unknown_names();
}
