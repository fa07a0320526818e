/*
 * options.c - see options.h.
 */
#include "api/options.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS (1u << 17)
#define BATCH_ROWS_MAX (1u << 24)

const char *const event_kind_names[EVENT_KINDS] = {"call",	   "return",	 "c_call",   "c_return", "exception",
						   "c_exception",  "malloc",	 "calloc",   "realloc",	 "free",
						   "realloc_free", "span_begin", "span_end", "mark",	 "counter"};

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

static int add_id(struct filter_ids *ids, const char *name, const char *value, const struct why *why)
{
	int64_t id = 0;
	int error = parse_number(name, value, INT64_MIN, &id, why);

	return error ? error : filter_add_id(ids, id);
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

/* --- names --- */

static int take_filter(struct options *options, const char *name, const char *value, const struct why *why)
{
	struct filter *filter = &options->filter;
	int64_t number = 0;
	int error;

	if (strcmp(name, "process") == 0)
		return add_id(&filter->processes, name, value, why);
	if (strcmp(name, "thread") == 0)
		return add_id(&filter->threads, name, value, why);
	if (strcmp(name, "include") == 0)
		return add_pattern(filter, value, false, why);
	if (strcmp(name, "exclude") == 0)
		return add_pattern(filter, value, true, why);
	if (strcmp(name, "from") == 0) {
		filter->from_given = true;
		return parse_duration("start", value, &filter->from_ns, why);
	}
	if (strcmp(name, "to") == 0) {
		filter->to_given = true;
		return parse_duration("end", value, &filter->to_ns, why);
	}
	if (strcmp(name, "min-duration") == 0) {
		error = parse_duration("min_duration", value, &number, why);
		filter->min_duration_ns = (uint64_t)number;
		return error;
	}
	if (strcmp(name, "max-depth") == 0) {
		error = parse_number("max_depth", value, 1, &number, why);
		filter->max_depth = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
		return error;
	}
	if (strcmp(name, "clock") == 0)
		return cpu_clock_by_name(value, &filter->clock)
			   ? 0
			   : why_set(why, -EINVAL, "evprof: clock is wall, cpu or off-cpu, not \"%s\"", value);
	return 1;
}

static int take_text(struct options *options, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **value;
	} texts[] = {{"weight", &options->weight},
		     {"function", &options->function},
		     {"output", &options->output},
		     {"mark-begin", &options->mark_begin},
		     {"mark-end", &options->mark_end},
		     {"span", &options->span},
		     {"by", &options->by}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].name, name) != 0)
			continue;
		*texts[i].value = value;
		return 0;
	}
	return 1;
}

static int take_flag(struct options *options, const char *name)
{
	const struct {
		const char *name;
		bool *value;
	} flags[] = {{"exclude-syspath", &options->filter.exclude_syspath},
		     {"since-start", &options->since_start},
		     {"event-numbers", &options->event_numbers},
		     {"each", &options->each}};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(flags[i].name, name) != 0)
			continue;
		*flags[i].value = true;
		return 0;
	}
	return 1;
}

static int take_number(struct options *options, const char *name, const char *value, const struct why *why)
{
	int64_t number = 0;
	int error;

	if (strcmp(name, "kind") == 0)
		return add_kind(options, value, why);
	if (strcmp(name, "number") == 0)
		return parse_number(name, value, 1, &options->number, why);
	if (strcmp(name, "span-path") == 0)
		return add_span(options, value);
	if (strcmp(name, "batch-rows") != 0)
		return why_set(why, -EINVAL, "evprof: there is no option \"%s\"", name);
	error = parse_number("batch_rows", value, 1, &number, why);
	if (!error)
		options->batch_rows = number < BATCH_ROWS_MAX ? (uint32_t)number : BATCH_ROWS_MAX;
	return error;
}

/* 1: it is another one's. */
static int take(struct options *options, const char *name, const char *value, const struct why *why)
{
	int result = take_filter(options, name, value, why);

	if (result == 1)
		result = take_text(options, name, value);
	if (result == 1)
		result = take_flag(options, name);
	return result == 1 ? take_number(options, name, value, why) : result;
}

int options_parse(struct options *options, const char *const *pairs, const struct why *why)
{
	const struct filter *filter = &options->filter;
	int error = 0;

	*options = (struct options){.batch_rows = BATCH_ROWS};
	for (; !error && pairs && pairs[0]; pairs += 2)
		error = take(options, pairs[0], pairs[1], why);
	if (error)
		return error;
	if (filter->from_given && filter->to_given && filter->from_ns >= filter->to_ns)
		return why_set(why, -EINVAL, "evprof: end must be later than start");
	if (filter->clock != CPU_CLOCK_WALL && (filter->from_given || filter->to_given))
		return why_set(why, -EINVAL, "evprof: start and end are times of the wall clock, and exclude clock");
	return 0;
}

void options_done(struct options *options)
{
	filter_done(&options->filter);
	free(options->spans);
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

int options_check(const struct options *options, const struct trace *trace, const struct why *why)
{
	const struct filter *filter = &options->filter;

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
