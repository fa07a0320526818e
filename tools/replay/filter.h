/*
 * filter.h - the filter: which functions, processes, threads, times, durations and depths of a trace a verb shows.
 *
 * Owns the options that all verbs with output have in common. A function is matched once for each definition, not for
 * each event. A hidden function counts as part of its caller.
 */
#ifndef EVPROF_TOOLS_REPLAY_FILTER_H
#define EVPROF_TOOLS_REPLAY_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/filter.h"
#include "trace/reader.h"

/* Process or thread ids; none: all. */
struct filter_ids {
	int64_t *at; /* filter_done() frees it */
	size_t count;
};

struct filter {
	struct filter_pattern *patterns;
	size_t pattern_count;
	bool includes; /* at least one pattern includes: a function that none includes is hidden */
	bool exclude_syspath;
	int64_t pid; /* 0: all */
	int64_t tid;
	struct filter_ids processes; /* in addition to pid and tid */
	struct filter_ids threads;
	bool from_given;
	bool to_given;
	int64_t from_ns; /* since the start of the trace */
	int64_t to_ns;
	uint64_t min_duration_ns;
	uint32_t max_depth; /* 0: no limit */
	enum cpu_clock clock;
};

enum {
	FILTER_INCLUDE,
	FILTER_EXCLUDE,
	FILTER_EXCLUDE_SYSPATH,
	FILTER_PROCESS,
	FILTER_THREAD,
	FILTER_FROM,
	FILTER_TO,
	FILTER_MIN_DURATION,
	FILTER_MAX_DEPTH,
	FILTER_CLOCK,
};

/* For the verb's help. */
extern const char filter_help[];

/* Parses an option of the filter with its value. False: an error is printed in one line on stderr. */
bool filter_take(struct filter *filter, const char *verb, int option, const char *value);
void filter_done(struct filter *filter);

/*
 * Opens the trace with its times by the filter's clock. NULL after one line on stderr: the trace cannot be read, has no
 * CPU times, does not have the filter's process or thread; or the options contradict each other.
 */
struct trace *filter_open(const struct filter *filter, const char *verb, const char *path);

/* Whether the filter can hide functions by name or file. */
bool filter_has_functions(const struct filter *filter);

/*
 * Whether the function with this definition is shown. definition may be NULL: a function without a name is shown unless
 * a pattern includes. c_function: it is a C function. Returns 1, 0 or -ENOMEM.
 */
int filter_function(const struct filter *filter, const struct wire_definition *definition, bool c_function);

/*
 * The hidden functions of a process, by key (replay.h), for replay.hidden. The caller frees it; NULL if no function is
 * hidden. Returns 0 or -ENOMEM.
 */
int filter_hide(const struct filter *filter, const struct trace_process *process, uint32_t keys, uint8_t **hidden);

/* Adds one. Returns 0 or -ENOMEM. */
int filter_add_id(struct filter_ids *ids, int64_t id);

static inline bool filter_has_id(const struct filter_ids *ids, int64_t id)
{
	for (size_t i = 0; i < ids->count; i++)
		if (ids->at[i] == id)
			return true;
	return !ids->count;
}

static inline bool filter_process(const struct filter *filter, const struct trace_process *process)
{
	return (!filter->pid || process->pid == filter->pid) && filter_has_id(&filter->processes, process->pid);
}

static inline bool filter_thread(const struct filter *filter, const struct trace_thread *thread)
{
	return (!filter->tid || (int64_t)thread->tid == filter->tid) && filter_has_id(&filter->threads, thread->tid);
}

/* The time range in ns since the start of the trace; 0 and INT64_MAX if unbounded. */
static inline int64_t filter_from(const struct filter *filter)
{
	return filter->from_given ? filter->from_ns : 0;
}

static inline int64_t filter_to(const struct filter *filter)
{
	return filter->to_given ? filter->to_ns : INT64_MAX;
}

/* Whether the chunk lies outside the time range. */
bool filter_skips(const struct filter *filter, const struct trace *trace, const struct trace_process *process,
		  const struct trace_place *place);

/*
 * Parses "12", "12ns", "3.5us", "20ms", "1.5s", "2m", "1h" as ns, not negative. False: an error is printed on stderr.
 * Also for the options of verbs that take times.
 */
bool filter_duration(const char *verb, const char *option, const char *text, int64_t *ns);

/* The same without a message. */
bool filter_parse_duration(const char *text, int64_t *ns);
/* Adds a pattern. Returns NULL or the error, possibly in why. */
const char *filter_add_pattern(struct filter *filter, const char *text, bool exclude, char *why, size_t why_bytes);

#endif
