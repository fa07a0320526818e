/*
 * settings.c - see settings.h.
 */
#include "run/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/control.h"
#include "evprof/filter.h"
#include "evprof/trigger.h"

#include "util/cli.h"

#define ALLOWED_BYTES CONTROL_FORMATS_MAX_BYTES

static const char *allowed_patterns(const char *value, char room[ALLOWED_BYTES])
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
	snprintf(room, ALLOWED_BYTES, "a list, with commas, of globs and re:EXPRESSION (%s)", wrong);
	return room;
}

/* Returns the text of the allowed values if the value is invalid; room is space for a composed text. */
static const char *allowed_values(enum run_setting setting, const char *value, char room[ALLOWED_BYTES])
{
	unsigned bits;
	uint32_t number;
	uint64_t bytes;
	struct setting_keep keep;

	switch (setting) {
	case RUN_EVENTS:
		return setting_events(value, &bits);
	case RUN_SAMPLE:
		return setting_sample_rate(value, &number);
	case RUN_MEMORY_INTERVAL:
		return setting_memory_interval(value, &bytes);
	case RUN_BUDGET:
		return setting_budget(value, &number);
	case RUN_KEEP:
		return setting_keep(value, &keep);
	case RUN_TRIGGER: /* quiet=1s alone is no list: run_settings_finish() has all of it */
		return NULL;
	case RUN_RING_SIZE:
		return setting_ring_bytes(value, &bytes);
	case RUN_ON_FULL:
		return setting_on_full(value, &number);
	case RUN_LOG:
		return setting_log_level(value, &bits);
	case RUN_FORMAT:
		return setting_formats(value, room, ALLOWED_BYTES);
	default:
		return allowed_patterns(value, room);
	}
}

/* By enum run_setting. */
static const struct {
	const char *name;
	const char *variable;
	const char *without; /* the value of an option that takes none */
	bool is_list;	     /* several values are joined */
} settings_known[] = {
    {"--events", ENV_EVENTS, NULL, true},
    {"--sample", ENV_SAMPLE_RATE, NULL, false},
    {"--ring-size", ENV_RING_SIZE, NULL, false},
    {"--on-full", ENV_ON_FULL, NULL, false},
    {"--log", ENV_LOG, NULL, false},
    {"--format", ENV_FORMAT, NULL, true},
    {"--include", ENV_INCLUDE, NULL, true},
    {"--exclude", ENV_EXCLUDE, NULL, true},
    {"--exclude-syspath", ENV_EXCLUDE_SYSPATH, "1", false},
    {"--calibrate", ENV_CALIBRATE, "1", false},
    {"--native", ENV_NATIVE, "1", false},
    {"--program-only", ENV_PROGRAM_ONLY, "1", false},
    {"--no-children", ENV_CHILDREN, "0", false},
    {"--memory-interval", ENV_MEMORY_INTERVAL, NULL, false},
    {"--memory", ENV_EVENTS, NULL, true}, /* taken as --events */
    {"--stopped", ENV_START, "0", false},
    {"--keep", ENV_KEEP, NULL, false},
    {"--memory-lines", ENV_MEMORY_LINES, "1", false},
    {"--trigger", ENV_TRIGGER, NULL, true},
    {"--budget", ENV_BUDGET, NULL, false},
};

static bool is_good(const char *name, const char *value, const char *allowed)
{
	if (value[0] && !allowed)
		return true;
	if (allowed)
		return cli_misused("run", "%s wants %s, not \"%s\"", name, allowed, value);
	return cli_misused("run", "%s wants a value", name);
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

bool run_settings_take(struct run_settings *settings, enum run_setting setting, const char *value)
{
	char room[ALLOWED_BYTES];

	settings->sample |= setting == RUN_SAMPLE;
	if (setting == RUN_MEMORY && value) {
		if (strcmp(value, "sampled") != 0)
			return cli_misused("run", "--memory may be --memory=sampled, not \"%s\"", value);
		if (!(settings->given & 1u << RUN_MEMORY_INTERVAL) &&
		    !set_variable(settings, RUN_MEMORY_INTERVAL, SETTING_MEMORY_INTERVAL_USUAL))
			return false;
	}
	if (setting == RUN_MEMORY) {
		if (!set_variable(settings, RUN_MEMORY_LINES, "1")) /* counts where calls are recorded, too */
			return false;
		setting = RUN_EVENTS;
		value = "mem,malloc";
	}
	if (settings_known[setting].without)
		value = settings_known[setting].without;
	else if (value && !is_good(settings_known[setting].name, value, allowed_values(setting, value, room)))
		return false;
	return !value || set_variable(settings, setting, value);
}

static bool all_do_something(const struct run_settings *settings)
{
	for (size_t i = 0; i < sizeof(settings_known) / sizeof(settings_known[0]); i++) {
		const char *instead = setting_without_samples(settings_known[i].variable);

		if (!instead || !(settings->given & 1u << i))
			continue;
		return cli_misused("run", "%s does nothing with samples: %s", settings_known[i].name, instead);
	}
	return true;
}

bool run_settings_finish(const struct run_settings *settings)
{
	bool listed = settings->given & 1u << RUN_EVENTS;
	unsigned events = listed || !settings->sample ? 0 : EVENT_SAMPLE;
	const char *value = listed ? getenv(ENV_EVENTS) : NULL;
	const char *trigger = settings->given & 1u << RUN_TRIGGER ? getenv(ENV_TRIGGER) : NULL;
	struct triggers triggers;

	if (trigger && !is_good("--trigger", trigger, setting_triggers(trigger, &triggers)))
		return false;
	if (value && !is_good("--events", value, setting_events(value, &events)))
		return false;
	if (settings->sample && !(events & EVENT_SAMPLE))
		return cli_misused("run", "--sample records no events: with it, --events can only be sample,cpu");
	if (events & EVENT_SAMPLE && !all_do_something(settings))
		return false;
	if (listed && settings->given & 1u << RUN_MEMORY_INTERVAL && !(events & EVENT_MEM))
		return cli_misused("run",
				   "--memory-interval samples allocations: --events needs mem or malloc with it");
	if (settings->sample && !listed)
		setenv(ENV_EVENTS, "sample", 1);
	return true;
}

bool run_settings_output_is_good(const char *output)
{
	return is_good("--output", output, setting_output(output));
}

unsigned run_settings_recorded(struct setting_keep *keep)
{
	const char *list = getenv(ENV_EVENTS), *stretch = getenv(ENV_KEEP), *budget = getenv(ENV_BUDGET);
	const char *program_only = getenv(ENV_PROGRAM_ONLY);
	struct setting_choice choice = {.listed = list && *list,
					.program_only = program_only && !strcmp(program_only, "1")};
	unsigned events = SETTING_EVENTS_DEFAULT;
	uint32_t most;

	if (choice.listed)
		setting_events(list, &events);
	if (stretch)
		setting_keep(stretch, keep);
	choice.budget = budget && !setting_budget(budget, &most);
	choice.alive = keep->alive;
	events = setting_recorded_events(events, &choice);
	keep->alive &= setting_may_keep_alive(events);
	return events;
}
