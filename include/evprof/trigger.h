/*
 * trigger.h - EVPROF_TRIGGER: what makes the collector copy what a process did last. As settings.h.
 *
 *   MODULE:FUNCTION>TIME   a call of a matching function took longer; two globs, as in evprof check
 *   loop>TIME              an event loop was blocked: a callback of asyncio, or a step of a task, took longer
 *   rss>SIZE               the resident memory of the process grew above it
 *   exception              an exception went uncaught, in the program or in one of its threads
 *   quiet=TIME             time from a copy to the next of the same trigger (default: 60s)
 *   most=N                 copies of a session (default: 100)
 *
 * Items are separated by commas. A TIME is a number with us, ms, s, m or h, a SIZE one with K, M or G.
 */
#ifndef EVPROF_TRIGGER_H
#define EVPROF_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "evprof/settings.h"

#define TRIGGERS_MAX 16u
#define TRIGGER_QUIET_NS UINT64_C(60000000000)
#define TRIGGER_MOST 100u
#define TRIGGER_MOST_MAX 100000

enum trigger_kind { TRIGGER_CALL, TRIGGER_LOOP, TRIGGER_RSS, TRIGGER_EXCEPTION };

struct trigger {
	enum trigger_kind kind;
	const char *text; /* the item; points into the list */
	size_t length;
	size_t pattern_length; /* of TRIGGER_CALL: what stands before the > */
	uint64_t bound;	       /* ns, or bytes */
};

struct triggers {
	struct trigger at[TRIGGERS_MAX];
	unsigned count;
	uint64_t quiet_ns;
	uint32_t most;
};

/* In ns; 0: invalid. */
static inline uint64_t trigger_time(const char *text, size_t length)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"us", 1000},
		     {"ms", 1000000},
		     {"s", 1000000000},
		     {"m", UINT64_C(60000000000)},
		     {"h", UINT64_C(3600000000000)}};
	size_t digits = strspn(text, "0123456789");
	uint64_t number = 0;

	if (!digits || digits > 9 || digits >= length)
		return 0;
	for (size_t i = 0; i < digits; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (setting_is_name(units[i].name, text + digits, length - digits) && number < UINT64_MAX / units[i].ns)
			return number * units[i].ns;
	return 0;
}

static inline uint64_t trigger_size(const char *text, size_t length)
{
	char copy[24];

	if (length >= sizeof(copy))
		return 0;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return setting_size(copy);
}

/* The last one among these bytes; NULL: there is none. */
static inline const char *trigger_last(const char *text, size_t length, char character)
{
	while (length-- > 0)
		if (text[length] == character)
			return text + length;
	return NULL;
}

/* The globs before the bound: something, a colon, something. */
static inline bool trigger_is_pattern(const char *text, size_t length)
{
	const char *colon = trigger_last(text, length, ':');

	return colon && colon > text && colon + 1 < text + length;
}

/* An item with a bound. False: invalid. */
static inline bool trigger_read_bound(const char *text, size_t length, struct trigger *trigger)
{
	const char *sign = trigger_last(text, length, '>'), *bound = sign ? sign + 1 : NULL;
	size_t before = sign ? (size_t)(sign - text) : 0, left = length - before - 1;

	if (!sign)
		return false;
	*trigger = (struct trigger){.text = text, .length = length, .pattern_length = before};
	if (setting_is_name("rss", text, before)) {
		trigger->kind = TRIGGER_RSS;
		trigger->bound = trigger_size(bound, left);
		return trigger->bound > 0;
	}
	trigger->kind = setting_is_name("loop", text, before) ? TRIGGER_LOOP : TRIGGER_CALL;
	trigger->bound = trigger_time(bound, left);
	return trigger->bound > 0 && (trigger->kind == TRIGGER_LOOP || trigger_is_pattern(text, before));
}

static inline bool trigger_read_count(const char *text, size_t length, uint32_t *count)
{
	char copy[16];

	snprintf(copy, sizeof(copy), "%.*s", (int)(length < 15 ? length : 15), text);
	*count = setting_count(copy, TRIGGER_MOST_MAX);
	return *count > 0;
}

/* False: the item is invalid, or there are too many. */
static inline bool trigger_read(const char *text, size_t length, struct triggers *triggers)
{
	struct trigger *trigger = &triggers->at[triggers->count];

	if (length > 6 && !strncmp(text, "quiet=", 6)) {
		triggers->quiet_ns = trigger_time(text + 6, length - 6);
		return triggers->quiet_ns > 0;
	}
	if (length > 5 && !strncmp(text, "most=", 5))
		return trigger_read_count(text + 5, length - 5, &triggers->most);
	if (triggers->count == TRIGGERS_MAX)
		return false;
	triggers->count++;
	if (!setting_is_name("exception", text, length))
		return trigger_read_bound(text, length, trigger);
	*trigger = (struct trigger){.kind = TRIGGER_EXCEPTION, .text = text, .length = length};
	return true;
}

/* The items point into value. */
static inline const char *setting_triggers(const char *value, struct triggers *triggers)
{
	struct triggers read = {.quiet_ns = TRIGGER_QUIET_NS, .most = TRIGGER_MOST};
	bool valid = strlen(value) < CONTROL_TRIGGER_MAX_BYTES;
	size_t length;

	for (const char *at = value; *at && valid; at += length + (at[length] == ',')) {
		length = strcspn(at, ",");
		valid = trigger_read(at, length, &read);
	}
	if (!valid || !read.count)
		return "a list, with commas, of MODULE:FUNCTION>TIME, loop>TIME, rss>SIZE, exception, quiet=TIME, "
		       "most=N, such as app.views:*>500ms,loop>200ms,rss>1G";
	*triggers = read;
	return NULL;
}

static inline bool triggers_have(const struct triggers *triggers, enum trigger_kind kind)
{
	for (unsigned i = 0; i < triggers->count; i++)
		if (triggers->at[i].kind == kind)
			return true;
	return false;
}

#endif
