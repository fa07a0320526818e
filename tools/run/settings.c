/*
 * settings.c - see settings.h.
 */
#include "run/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/control.h"
#include "evprof/filter.h"
#include "evprof/settings.h"

#include "util/cli.h"

/* Returns the text of the allowed values if the value is invalid; room is space for a composed text. */
static const char *allowed_events(const char *value, char *room)
{
	unsigned events;

	(void)room;
	return setting_events(value, &events);
}

static const char *allowed_ring_size(const char *value, char *room)
{
	uint64_t bytes;

	(void)room;
	return setting_ring_bytes(value, &bytes);
}

static const char *allowed_on_full(const char *value, char *room)
{
	uint32_t ms;

	(void)room;
	return setting_on_full(value, &ms);
}

static const char *allowed_rate(const char *value, char *room)
{
	uint32_t rate;

	(void)room;
	return setting_sample_rate(value, &rate);
}

static const char *allowed_log(const char *value, char *room)
{
	unsigned level;

	(void)room;
	return setting_log_level(value, &level);
}

static const char *allowed_formats(const char *value, char *room)
{
	return setting_formats(value, room, CONTROL_FORMATS_MAX_BYTES);
}

static const char *allowed_patterns(const char *value, char *room)
{
	char *text = malloc(strlen(value) + 1);
	const char *wrong = text ? NULL : "a shorter list";
	struct filter_pattern pattern;
	char why[128];

	for (const char *rest = value; *rest && !wrong;) {
		rest = filter_next(rest, text);
		wrong = *text ? filter_pattern_parse(&pattern, text, false, why, sizeof(why)) : NULL;
		if (*text && !wrong)
			filter_pattern_done(&pattern);
	}
	free(text);
	if (!wrong)
		return NULL;
	snprintf(room, CONTROL_FORMATS_MAX_BYTES, "a list, with commas, of globs and re:EXPRESSION (%s)", wrong);
	return room;
}

static const struct {
	int option;
	const char *name;
	const char *variable;
	const char *(*allowed)(const char *value, char *room); /* NULL: an option without a value */
	const char *without;				       /* its value in that case */
	bool is_list;					       /* several values are joined */
} settings_known[] = {
    {RUN_EVENTS, "--events", ENV_EVENTS, allowed_events, NULL, true},
    {RUN_SAMPLE, "--sample", ENV_SAMPLE_RATE, allowed_rate, NULL, false},
    {RUN_RING_SIZE, "--ring-size", ENV_RING_SIZE, allowed_ring_size, NULL, false},
    {RUN_ON_FULL, "--on-full", ENV_ON_FULL, allowed_on_full, NULL, false},
    {RUN_LOG, "--log", ENV_LOG, allowed_log, NULL, false},
    {RUN_FORMAT, "--format", ENV_FORMAT, allowed_formats, NULL, true},
    {RUN_INCLUDE, "--include", ENV_INCLUDE, allowed_patterns, NULL, true},
    {RUN_EXCLUDE, "--exclude", ENV_EXCLUDE, allowed_patterns, NULL, true},
    {RUN_EXCLUDE_SYSPATH, "--exclude-syspath", ENV_EXCLUDE_SYSPATH, NULL, "1", false},
    {RUN_CALIBRATE, "--calibrate", ENV_CALIBRATE, NULL, "1", false},
    {RUN_NATIVE, "--native", ENV_NATIVE, NULL, "1", false},
    {RUN_NO_CHILDREN, "--no-children", ENV_CHILDREN, NULL, "0", false},
};

static bool is_good(const char *name, const char *value, const char *allowed)
{
	if (value[0] && !allowed)
		return true;
	if (allowed)
		cli_misused("run", "%s wants %s, not \"%s\"", name, allowed, value);
	else
		cli_misused("run", "%s wants a value", name);
	return false;
}

/* Sets the variable, joined with earlier values of the same option. False: no memory. */
static bool set_variable(struct run_settings *settings, size_t i, const char *value)
{
	bool adds = settings_known[i].is_list && settings->given & 1u << i;
	char *joined = NULL;

	settings->given |= 1u << i;
	if (adds && asprintf(&joined, "%s,%s", getenv(settings_known[i].variable), value) < 0)
		return false;
	setenv(settings_known[i].variable, joined ? joined : value, 1);
	free(joined);
	return true;
}

static size_t setting_number(int option)
{
	size_t i = 0;

	while (settings_known[i].option != option)
		i++;
	return i;
}

bool run_settings_take(struct run_settings *settings, int option, const char *value)
{
	char room[CONTROL_FORMATS_MAX_BYTES];
	size_t i = setting_number(option);

	settings->sample |= option == RUN_SAMPLE;
	if (!settings_known[i].allowed)
		value = settings_known[i].without;
	else if (value && !is_good(settings_known[i].name, value, settings_known[i].allowed(value, room)))
		return false;
	return !value || set_variable(settings, i, value);
}

static bool all_do_something(const struct run_settings *settings)
{
	for (size_t i = 0; i < sizeof(settings_known) / sizeof(settings_known[0]); i++) {
		const char *instead = setting_without_samples(settings_known[i].variable);

		if (!instead || !(settings->given & 1u << i))
			continue;
		cli_misused("run", "%s does nothing with samples: %s", settings_known[i].name, instead);
		return false;
	}
	return true;
}

bool run_settings_finish(const struct run_settings *settings)
{
	bool listed = settings->given & 1u << setting_number(RUN_EVENTS);
	unsigned events = listed || !settings->sample ? 0 : EVENT_SAMPLE;
	const char *value = listed ? getenv(ENV_EVENTS) : NULL;

	if (value && !is_good("--events", value, setting_events(value, &events)))
		return false;
	if (settings->sample && !(events & EVENT_SAMPLE)) {
		cli_misused("run", "--sample records no events: with it, --events can only be sample,cpu");
		return false;
	}
	if (events & EVENT_SAMPLE && !all_do_something(settings))
		return false;
	if (settings->sample && !listed)
		setenv(ENV_EVENTS, "sample", 1);
	return true;
}

bool run_settings_output_is_good(const char *output)
{
	return is_good("--output", output, setting_output(output));
}
