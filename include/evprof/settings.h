/*
 * settings.h - the values of a recording's settings.
 *
 * For a bad value in a variable the library reports that it uses the default, because the program has to run on. evprof
 * run and evprof-collector refuse a bad value on their command line, before anything is recorded.
 *
 * Each setting_...() takes a value that is not empty. It returns NULL, or the text of the allowed values; then the
 * result is unchanged.
 */
#ifndef EVPROF_SETTINGS_H
#define EVPROF_SETTINGS_H

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/control.h"
#include "evprof/ring.h"
#include "evprof/sampling.h"

/* The recorded kinds, as EVPROF_EVENTS lists them. */
enum setting_event {
	EVENT_CALL = 1,
	EVENT_C_CALL = 2,
	EVENT_EXCEPTION = 4,
	EVENT_MEM = 8,
	EVENT_LINE = 16,
	EVENT_CPU = 32,	    /* no events of its own: adds CPU times to the others */
	EVENT_SAMPLE = 64,  /* stacks are sampled from outside (sampling.h); allowed with EVENT_CPU only */
	EVENT_MALLOC = 128, /* native allocations; with EVENT_MEM, so that no block is counted twice */
};

/* Their spelling in EVPROF_EVENTS and the trace: name i is 1 << i of enum setting_event. */
#define SETTING_EVENTS 8
#define SETTING_EVENT_NAMES                                                                                            \
	{                                                                                                              \
		"call", "c_call", "exception", "mem", "line", "cpu", "sample", "malloc"                                \
	}

#define SETTING_ON_FULL_MAX_MS 60000

#define SETTING_BUDGET_MIN 100u /* 1/1000 % */
#define SETTING_BUDGET_MAX 100000u
#define SETTING_MEMORY_INTERVAL_USUAL "512K" /* of evprof run --memory=sampled */

static inline bool setting_is_name(const char *name, const char *text, size_t length)
{
	return strlen(name) == length && strncmp(name, text, length) == 0;
}

static inline unsigned setting_event(const char *text, size_t length)
{
	static const char *const names[SETTING_EVENTS] = SETTING_EVENT_NAMES;

	for (unsigned i = 0; i < SETTING_EVENTS; i++)
		if (setting_is_name(names[i], text, length))
			return 1u << i;
	return 0;
}

/* The verb of evprof that shows a trace of these events. */
static inline const char *setting_verb(unsigned events)
{
	return events & EVENT_MEM && !(events & (EVENT_CALL | EVENT_C_CALL | EVENT_SAMPLE)) ? "memory" : "report";
}

static inline const char *setting_events(const char *value, unsigned *events)
{
	unsigned all = 0;

	for (const char *p = value; *p;) {
		size_t length = strcspn(p, ",");
		unsigned event = setting_event(p, length);

		if (!event)
			return "a list, with commas, of call, c_call, exception, mem, line, cpu, sample, malloc";
		all |= event;
		p += length + (p[length] == ',');
	}
	if (all & EVENT_SAMPLE && all & ~(unsigned)(EVENT_SAMPLE | EVENT_CPU))
		return "sample alone or with cpu, or a list without it";
	/* A line event has only the line: its function is the one on top of the call stack. */
	if (all & EVENT_LINE)
		all |= EVENT_CALL;
	/* The hooks of Python's allocators show which calls of malloc() serve them. */
	if (all & EVENT_MALLOC)
		all |= EVENT_MEM;
	*events = all;
	return NULL;
}

#define SETTING_EVENTS_DEFAULT ((unsigned)(EVENT_CALL | EVENT_C_CALL | EVENT_EXCEPTION | EVENT_MEM))

/* What else decides which events are recorded. */
struct setting_choice {
	bool listed; /* EVPROF_EVENTS has a value */
	bool program_only, budget, alive;
};

/* events: of EVPROF_EVENTS, or SETTING_EVENTS_DEFAULT. */
static inline unsigned setting_recorded_events(unsigned events, const struct setting_choice *choice)
{
	if (choice->alive && !choice->listed)
		return EVENT_MEM | EVENT_MALLOC;
	if (choice->program_only && !(events & EVENT_SAMPLE))
		events |= EVENT_CALL;	       /* calls show where the program begins and ends */
	if (choice->budget && !choice->listed) /* allocations have no budget: only on request */
		events &= ~(unsigned)(EVENT_MEM | EVENT_MALLOC);
	return events;
}

/* Whether a trace of these events keeps what is alive: that has stacks of its own, recorded where calls are not. */
static inline bool setting_may_keep_alive(unsigned events)
{
	return !(events & (EVENT_CALL | EVENT_SAMPLE)) && events & (EVENT_MEM | EVENT_MALLOC);
}

/* The list of these events, which setting_events() reads. */
static inline void setting_events_text(unsigned events, char *text, size_t size)
{
	static const char *const names[SETTING_EVENTS] = SETTING_EVENT_NAMES;
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < SETTING_EVENTS && used < size; i++)
		if (events & 1u << i)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", names[i]);
}

/* "<digits>[KMG]" in bytes; 0 if invalid. */
static inline uint64_t setting_size(const char *value)
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

/* Rounded up to a power of two. */
static inline const char *setting_ring_bytes(const char *value, uint64_t *ring_bytes)
{
	uint64_t bytes = setting_size(value);

	if (bytes < RING_BYTES_MIN || bytes > RING_BYTES_MAX)
		return "64K to 1G, in bytes or with K, M or G";
	for (*ring_bytes = RING_BYTES_MIN; *ring_bytes < bytes;)
		*ring_bytes *= 2;
	return NULL;
}

/* Bytes between two sampled allocations, on average. */
static inline const char *setting_memory_interval(const char *value, uint64_t *interval)
{
	uint64_t bytes = setting_size(value);

	if (!bytes || bytes > CONTROL_MEMORY_INTERVAL_MAX)
		return "1 to 1024G, in bytes or with K, M or G";
	*interval = bytes;
	return NULL;
}

/*
 * The most that recording may cost, of the CPU time of the program: "<number>%", with a fraction of up to three digits.
 * *budget: in 1/1000 of a percent.
 */
static inline const char *setting_budget(const char *value, uint32_t *budget)
{
	size_t whole = strspn(value, "0123456789");
	size_t part = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
	const char *end = value + whole + (value[whole] == '.' ? 1 + part : 0);
	uint32_t number = 0;

	for (size_t i = 0; whole <= 3 && i < whole; i++)
		number = number * 10 + (uint32_t)(value[i] - '0');
	for (size_t i = 0; i < 3; i++)
		number = number * 10 + (i < part ? (uint32_t)(value[whole + 1 + i] - '0') : 0);
	if (!whole || whole > 3 || part > 3 || strcmp(end, "%") != 0 || number < SETTING_BUDGET_MIN ||
	    number > SETTING_BUDGET_MAX)
		return "0.1% to 100%, as 5% or 0.5%";
	*budget = number;
	return NULL;
}

/*
 * The last stretch of a trace that is kept: a time, bytes, or whichever is less. All zeros: the whole trace. alive: at
 * the end of the trace the stretch is replaced by what is alive, and sums of the rest.
 */
struct setting_keep {
	uint64_t ns, bytes;
	bool alive;
};

#define SETTING_KEEP_ALIVE "alive"
#define SETTING_KEEP_ALIVE_NS UINT64_C(1000000000) /* the stretch, where no other is given */

/* Takes a leading "alive", with its comma. */
static inline bool setting_keep_is_alive(const char **value)
{
	size_t length = strlen(SETTING_KEEP_ALIVE);

	if (strncmp(*value, SETTING_KEEP_ALIVE, length) != 0 || ((*value)[length] && (*value)[length] != ',') ||
	    ((*value)[length] && !(*value)[length + 1]))
		return false;
	*value += length + ((*value)[length] == ',');
	return true;
}

/* "alive"; "<digits>" with s, m, h, d (a time) or K, M, G (bytes); one of each with a comma between them. */
static inline const char *setting_keep(const char *value, struct setting_keep *keep)
{
	static const char units[] = "smhdKMG";
	static const uint64_t factors[] = {UINT64_C(1000000000),     UINT64_C(60000000000), UINT64_C(3600000000000),
					   UINT64_C(86400000000000), UINT64_C(1) << 10,	    UINT64_C(1) << 20,
					   UINT64_C(1) << 30};
	struct setting_keep read = {0};

	read.alive = setting_keep_is_alive(&value);
	if (read.alive && !*value)
		read.ns = SETTING_KEEP_ALIVE_NS;
	while (*value || !(read.alive || read.ns || read.bytes)) {
		char *end = NULL;
		unsigned long long number = isdigit((unsigned char)*value) ? strtoull(value, &end, 10) : 0;
		const char *unit = number && *end ? strchr(units, *end) : NULL;
		uint64_t *part = unit && unit - units < 4 ? &read.ns : &read.bytes;

		if (!unit || *part || number > INT64_MAX / factors[unit - units] ||
		    (end[1] && (end[1] != ',' || !end[2])))
			return "a time such as 30s, 10m or 2h, a size such as 256M, or both with a comma; alive";
		*part = number * factors[unit - units];
		value = end[1] ? end + 2 : end + 1;
	}
	*keep = read;
	return NULL;
}

/* "the last 30 s of ", "the last 256 MiB of " or both; "what is alive after "; "" without a limit. */
static inline void setting_keep_text(const struct setting_keep *keep, char *text, size_t bytes)
{
	char time[24] = "", size[24] = "";

	if (keep->alive) {
		snprintf(text, bytes, "what is alive after ");
		return;
	}
	if (keep->ns)
		snprintf(time, sizeof(time), "%llu s", (unsigned long long)(keep->ns / 1000000000));
	if (keep->bytes)
		snprintf(size, sizeof(size), "%llu KiB", (unsigned long long)(keep->bytes >> 10));
	snprintf(text, bytes, "%s%s%s%s%s", keep->ns || keep->bytes ? "the last " : "", time,
		 keep->ns && keep->bytes ? " or " : "", size, keep->ns || keep->bytes ? " of " : "");
}

/* A whole number from 1 to max; 0 if invalid. */
static inline uint32_t setting_count(const char *value, long max)
{
	char *end;
	long number;

	if (!isdigit((unsigned char)*value))
		return 0;
	errno = 0;
	number = strtol(value, &end, 10);
	return errno || *end || number > max ? 0 : (uint32_t)number;
}

/* The number that a name without SIG stands for; 0: none. */
static inline uint32_t setting_signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"URG", SIGURG}, {"WINCH", SIGWINCH}};
	uint32_t above = strncmp(name, "RTMIN+", 6) == 0 ? setting_count(name + 6, SIGRTMAX - SIGRTMIN) : 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i].name))
			return (uint32_t)known[i].number;
	return above ? (uint32_t)SIGRTMIN + above : 0;
}

/* With the number of the signal: it asks for a snapshot. */
#define SETTING_SIGNAL_SNAPSHOT 0x10000u

/* number: of the signal; unchanged if it has no such name. */
static inline const char *setting_signal(const char *value, uint32_t *number)
{
	const char *begin = strncmp(value, "SIG", 3) == 0 ? value + 3 : value, *colon = strchr(begin, ':');
	size_t length = colon ? (size_t)(colon - begin) : strlen(begin);
	uint32_t found = 0;
	char name[16];

	snprintf(name, sizeof(name), "%.*s", (int)length, begin);
	if (length < sizeof(name) && (!colon || !strcmp(colon, ":snapshot")))
		found = setting_signal_number(name);
	if (!found)
		return "USR1, USR2, HUP, URG, WINCH or RTMIN+1 and up, alone or with :snapshot";
	*number = found | (colon ? SETTING_SIGNAL_SNAPSHOT : 0);
	return NULL;
}

/* wait_ms: 0 for drop; unchanged for wait without a limit. */
static inline const char *setting_on_full(const char *value, uint32_t *wait_ms)
{
	uint32_t ms = strncmp(value, "wait:", 5) == 0 ? setting_count(value + 5, SETTING_ON_FULL_MAX_MS) : 0;

	if (!ms && strcmp(value, "wait") != 0 && strcmp(value, "drop") != 0)
		return "wait, wait:MILLISECONDS (1 to 60000) or drop";
	if (strcmp(value, "wait") != 0)
		*wait_ms = ms;
	return NULL;
}

/* For a variable without effect under EVPROF_EVENTS=sample: what to do instead. NULL: it has an effect. */
static inline const char *setting_without_samples(const char *variable)
{
	if (!strcmp(variable, ENV_NATIVE))
		return "native stacks are those of allocations, which the events mem record";
	if (!strcmp(variable, ENV_MEMORY_INTERVAL))
		return "it samples allocations, which the events mem and malloc record";
	if (!strcmp(variable, ENV_MEMORY_LINES))
		return "it gives lines to allocations, which the events mem and malloc record";
	if (!strcmp(variable, ENV_BUDGET))
		return "samples cost what --sample=RATE says, and no event";
	if (!strcmp(variable, ENV_CALIBRATE))
		return "samples cost the program nothing that could be taken off";
	if (!strcmp(variable, ENV_PROGRAM_ONLY))
		return "samples do not show where the program begins and ends";
	if (!strcmp(variable, ENV_INCLUDE) || !strcmp(variable, ENV_EXCLUDE) || !strcmp(variable, ENV_EXCLUDE_SYSPATH))
		return "filter samples when they are read, as by evprof report --include";
	return NULL;
}

static inline const char *setting_sample_rate(const char *value, uint32_t *rate)
{
	uint32_t number = setting_count(value, SAMPLING_RATE_MAX);

	if (!number)
		return "1 to 10000, samples a second";
	*rate = number;
	return NULL;
}

/* The index of the name in names. */
static inline const char *setting_log_level(const char *value, unsigned *level)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(value, names[i]) == 0) {
			*level = i;
			return NULL;
		}
	return "error, warning, info or debug";
}

/* A template for a path. */
static inline const char *setting_output(const char *value)
{
	for (const char *p = value; *p; p++)
		if (*p == '%' && (!*++p || !strchr("pnht%", *p)))
			return "a path with %p, %n, %h, %t, and %% for a per cent sign";
	return NULL;
}

/* EVPROF_OUTPUT=none: no trace. The collector gets the path of a file that keeps nothing. */
#define SETTING_OUTPUT_NONE "none"
#define OUTPUT_NOWHERE "/dev/null"

static inline bool setting_output_is_none(const char *value)
{
	return strcmp(value, SETTING_OUTPUT_NONE) == 0 || strcmp(value, OUTPUT_NOWHERE) == 0;
}

static inline bool setting_is_format(const char *text, size_t length)
{
	static const char *const names[] = CONTROL_FORMAT_NAMES;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (setting_is_name(names[i], text, length))
			return true;
	return false;
}

/*
 * Checks that a list has known formats only. known: gets the text of the allowed formats otherwise, and has known_bytes
 * bytes, at least CONTROL_FORMATS_MAX_BYTES.
 */
static inline const char *setting_formats(const char *value, char *known, size_t known_bytes)
{
	static const char *const names[] = CONTROL_FORMAT_NAMES;
	size_t used = (size_t)snprintf(known, known_bytes, "a list, with commas, of ");
	const char *p = value;
	size_t length;

	for (; *p; p += length + (p[length] == ',')) {
		length = strcspn(p, ",");
		if (!setting_is_format(p, length))
			break;
	}
	if (!*p)
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && used < known_bytes; i++)
		used += (size_t)snprintf(known + used, known_bytes - used, "%s%s", i ? ", " : "", names[i]);
	return known;
}

#endif
