/*
 * options.c - see options.h.
 */
#include "api/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS (1u << 17)
#define BATCH_ROWS_MAX (1u << 24)
#define PARTS_MAX (1u << 20)

const char *const event_kind_names[EVENT_KINDS] = {"call",	   "return",	 "c_call",   "c_return", "exception",
						   "c_exception",  "malloc",	 "calloc",   "realloc",	 "free",
						   "realloc_free", "span_begin", "span_end", "mark",	 "counter"};

struct why why_begin(char *text, size_t bytes)
{
	if (bytes)
		text[0] = 0;
	return (struct why){text, bytes};
}

int why_end(const struct why *why, int error)
{
	if (error && why->bytes && !why->text[0])
		why_set(why, error, "evprof: %s", strerror(-error));
	return error;
}

int why_set(const struct why *why, int error, const char *format, ...)
{
	va_list values;

	if (!why->bytes)
		return error;
	va_start(values, format);
	vsnprintf(why->text, why->bytes, format, values);
	va_end(values);
	for (char *at = why->text; *at; at++)
		if (*at == '\n')
			*at = ' ';
	return error;
}

/* --- values --- */

static int parse_number(const char *name, const char *value, int64_t lowest, int64_t *number, const struct why *why)
{
	char *end;
	long long parsed;

	errno = 0;
	parsed = strtoll(value, &end, 10);
	if (end == value || *end || errno || parsed < lowest)
		return why_set(why, -EINVAL, "evprof: %s is a whole number from %lld on, not \"%s\"", name,
			       (long long)lowest, value);
	*number = parsed;
	return 0;
}

static int parse_duration(const char *name, const char *value, int64_t *ns, const struct why *why)
{
	if (filter_parse_duration(value, ns))
		return 0;
	return why_set(why, -EINVAL,
		       "evprof: %s is a number of ns from 0 to 2^60, or a text such as \"20us\", \"3ms\" or \"1.5s\", "
		       "not \"%s\"",
		       name, value);
}

static int add_pattern(struct filter *filter, const char *value, bool exclude, const struct why *why)
{
	char reason[128];
	const char *wrong = filter_add_pattern(filter, value, exclude, reason, sizeof(reason));

	return wrong ? why_set(why, -EINVAL, "evprof: the pattern \"%s\" cannot be used: %s", value, wrong) : 0;
}

static int add_kind(struct options *options, const char *value, const struct why *why)
{
	for (unsigned what = 0; what < EVENT_KINDS; what++) {
		if (strcmp(event_kind_names[what], value) != 0)
			continue;
		options->kinds |= 1u << what;
		return 0;
	}
	return why_set(why, -EINVAL,
		       "evprof: there is no kind %s; kinds are call, return, c_call, c_return, exception, c_exception, "
		       "malloc, calloc, realloc, free, realloc_free, span_begin, span_end, mark, counter",
		       value);
}

static int add_span(struct options *options, const char *value)
{
	const char **grown = realloc(options->spans, (options->span_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[options->span_count++] = value;
	options->spans = grown;
	return 0;
}

static int take_clock(struct options *options, const char *value, const struct why *why)
{
	if (cpu_clock_by_name(value, &options->filter.clock))
		return 0;
	return why_set(why, -EINVAL, "evprof: clock is wall, cpu or off-cpu, not \"%s\"", value);
}

/* --- names --- */

enum value_kind {
	VALUE_TEXT,
	VALUE_FLAG,
	VALUE_NS,
	VALUE_ID,     /* is added to a struct filter_ids */
	VALUE_COUNT,  /* int64_t, from 1 on */
	VALUE_UINT32, /* uint32_t, from 1 to `most`, which stands for all above */
};

/* The options whose value is stored as it is. A name may stand for several. */
static const struct stored {
	const char *name;
	enum value_kind kind;
	size_t offset;	   /* in struct options */
	const char *shown; /* the parameter of the Python package, for messages */
	uint32_t most;
} stored_options[] = {
    {"process", VALUE_ID, offsetof(struct options, filter.processes), "process", 0},
    {"thread", VALUE_ID, offsetof(struct options, filter.threads), "thread", 0},
    {"from", VALUE_FLAG, offsetof(struct options, filter.from_given), NULL, 0},
    {"from", VALUE_NS, offsetof(struct options, filter.from_ns), "start", 0},
    {"to", VALUE_FLAG, offsetof(struct options, filter.to_given), NULL, 0},
    {"to", VALUE_NS, offsetof(struct options, filter.to_ns), "end", 0},
    {"min-duration", VALUE_NS, offsetof(struct options, filter.min_duration_ns), "min_duration", 0},
    {"max-depth", VALUE_UINT32, offsetof(struct options, filter.max_depth), "max_depth", UINT32_MAX},
    {"exclude-syspath", VALUE_FLAG, offsetof(struct options, filter.exclude_syspath), NULL, 0},
    {"weight", VALUE_TEXT, offsetof(struct options, weight), NULL, 0},
    {"function", VALUE_TEXT, offsetof(struct options, function), NULL, 0},
    {"by", VALUE_TEXT, offsetof(struct options, by), NULL, 0},
    {"since-start", VALUE_FLAG, offsetof(struct options, since_start), NULL, 0},
    {"event-numbers", VALUE_FLAG, offsetof(struct options, event_numbers), NULL, 0},
    {"batch-rows", VALUE_UINT32, offsetof(struct options, batch_rows), "batch_rows", BATCH_ROWS_MAX},
    {"parts", VALUE_UINT32, offsetof(struct options, parts), "parts", PARTS_MAX},
    {"part", VALUE_UINT32, offsetof(struct options, part), "part", PARTS_MAX},
    {"output", VALUE_TEXT, offsetof(struct options, output), NULL, 0},
    {"mark-begin", VALUE_TEXT, offsetof(struct options, mark_begin), NULL, 0},
    {"mark-end", VALUE_TEXT, offsetof(struct options, mark_end), NULL, 0},
    {"span", VALUE_TEXT, offsetof(struct options, span), NULL, 0},
    {"number", VALUE_COUNT, offsetof(struct options, number), "number", 0},
    {"each", VALUE_FLAG, offsetof(struct options, each), NULL, 0},
};

static int store(struct options *options, const struct stored *stored, const char *value, const struct why *why)
{
	void *place = (char *)options + stored->offset;
	int64_t number = 0;
	int error;

	switch (stored->kind) {
	case VALUE_TEXT:
		memcpy(place, &value, sizeof(value));
		return 0;
	case VALUE_FLAG:
		*(bool *)place = true;
		return 0;
	case VALUE_NS:
		return parse_duration(stored->shown, value, place, why);
	case VALUE_COUNT:
		return parse_number(stored->shown, value, 1, place, why);
	case VALUE_ID:
		error = parse_number(stored->shown, value, INT64_MIN, &number, why);
		return error ? error : filter_add_id(place, number);
	case VALUE_UINT32:
		break;
	}
	error = parse_number(stored->shown, value, 1, &number, why);
	*(uint32_t *)place = number < stored->most ? (uint32_t)number : stored->most;
	return error;
}

static int take(struct options *options, const char *name, const char *value, const struct why *why)
{
	bool known = false;
	int error = 0;

	for (size_t i = 0; i < sizeof(stored_options) / sizeof(stored_options[0]) && !error; i++) {
		if (strcmp(stored_options[i].name, name) != 0)
			continue;
		error = store(options, &stored_options[i], value, why);
		known = true;
	}
	if (known)
		return error;
	if (strcmp(name, "include") == 0 || strcmp(name, "exclude") == 0)
		return add_pattern(&options->filter, value, name[0] == 'e', why);
	if (strcmp(name, "clock") == 0)
		return take_clock(options, value, why);
	if (strcmp(name, "kind") == 0)
		return add_kind(options, value, why);
	if (strcmp(name, "span-path") == 0)
		return add_span(options, value);
	return why_set(why, -EINVAL, "evprof: there is no option \"%s\"", name);
}

/* --- with the trace --- */

static bool has_process(const struct trace *trace, int64_t pid)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace->processes[i]->pid == pid)
			return true;
	return false;
}

static bool has_thread(const struct trace *trace, int64_t tid)
{
	for (uint32_t i = 0; i < trace->thread_count; i++)
		if (trace->threads[i] && (int64_t)trace->threads[i]->tid == tid)
			return true;
	return false;
}

static int check(const struct filter *filter, const struct trace *trace, const struct why *why)
{
	if (filter->from_given && filter->to_given && filter->from_ns >= filter->to_ns)
		return why_set(why, -EINVAL, "evprof: end must be later than start");
	if (filter->clock != CPU_CLOCK_WALL && (filter->from_given || filter->to_given))
		return why_set(why, -EINVAL, "evprof: start and end are times of the wall clock, and exclude clock");
	for (size_t i = 0; i < filter->processes.count; i++)
		if (!has_process(trace, filter->processes.at[i]))
			return why_set(why, -EINVAL, "evprof: there is no process %lld in the trace",
				       (long long)filter->processes.at[i]);
	for (size_t i = 0; i < filter->threads.count; i++)
		if (!has_thread(trace, filter->threads.at[i]))
			return why_set(why, -EINVAL, "evprof: there is no thread %lld in the trace",
				       (long long)filter->threads.at[i]);
	if (filter->clock != CPU_CLOCK_WALL && !cpu_time_known(trace))
		return why_set(why, -EINVAL, "evprof: the trace has no CPU times; record with the events cpu");
	return 0;
}

int options_parse(struct options *options, const char *const *pairs, const struct trace *trace, const struct why *why)
{
	int error = 0;

	*options = (struct options){.batch_rows = BATCH_ROWS};
	for (; !error && pairs && pairs[0]; pairs += 2)
		error = take(options, pairs[0], pairs[1], why);
	if (!error && (options->part > options->parts || (options->parts && !options->part)))
		error = why_set(why, -EINVAL, "evprof: part is from 1 to parts");
	return error ? error : check(&options->filter, trace, why);
}

int options_need_wall_clock(const struct options *options, const char *what, const struct why *why)
{
	if (options->filter.clock == CPU_CLOCK_WALL)
		return 0;
	return why_set(why, -EINVAL,
		       "evprof: %s has the wall clock only; clock is for functions, lines, calls, callers, a diff of "
		       "functions and folded stacks by time, bytes or allocations",
		       what);
}

void options_done(struct options *options)
{
	filter_done(&options->filter);
	free(options->spans);
}
