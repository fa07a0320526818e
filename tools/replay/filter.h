/*
 * filter.h - which part of a trace a verb shows: functions, processes, threads, a stretch of time, long calls, outer
 * calls.
 *
 * Owns the options that all verbs with an output have in common, and what they mean. The decision about a function is
 * taken once for each definition, not for each event. A function that is left out is as if it were part of its caller.
 */
#ifndef EVPROF_TOOLS_REPLAY_FILTER_H
#define EVPROF_TOOLS_REPLAY_FILTER_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "evprof/filter.h"
#include "trace/reader.h"

struct filter {
	struct filter_pattern *patterns;
	size_t pattern_count;
	bool includes; /* one of the patterns includes: what none includes is left out */
	bool exclude_syspath;
	int64_t pid; /* 0: all */
	int64_t tid;
	bool from_given;
	bool to_given;
	int64_t from_ns; /* since the start of the trace */
	int64_t to_ns;
	uint64_t min_duration_ns;
	uint32_t max_depth; /* 0: no limit */
	enum cpu_clock clock;
};

enum {
	FILTER_INCLUDE = 0x1000,
	FILTER_EXCLUDE,
	FILTER_EXCLUDE_SYSPATH,
	FILTER_PROCESS,
	FILTER_THREAD,
	FILTER_FROM,
	FILTER_TO,
	FILTER_MIN_DURATION,
	FILTER_MAX_DEPTH,
	FILTER_CLOCK,
	FILTER_END,
};

/* For the verb's table of getopt_long(). */
#define FILTER_OPTIONS                                                                                                 \
	{"clock", required_argument, NULL, FILTER_CLOCK}, {"include", required_argument, NULL, FILTER_INCLUDE},        \
	    {"exclude", required_argument, NULL, FILTER_EXCLUDE},                                                      \
	    {"exclude-syspath", no_argument, NULL, FILTER_EXCLUDE_SYSPATH},                                            \
	    {"process", required_argument, NULL, FILTER_PROCESS}, {"thread", required_argument, NULL, FILTER_THREAD},  \
	    {"from", required_argument, NULL, FILTER_FROM}, {"to", required_argument, NULL, FILTER_TO},                \
	    {"min-duration", required_argument, NULL, FILTER_MIN_DURATION},                                            \
	{                                                                                                              \
		"max-depth", required_argument, NULL, FILTER_MAX_DEPTH                                                 \
	}

/* For the verb's help. */
extern const char filter_help[];

static inline bool filter_is_option(int option)
{
	return option >= FILTER_INCLUDE && option < FILTER_END;
}

/* Takes one of FILTER_OPTIONS with its value. False after one line on stderr saying what is wrong. */
bool filter_take(struct filter *filter, const char *verb, int option, const char *value);
void filter_done(struct filter *filter);

/*
 * Opens the trace, with the times of its events by the chosen clock. NULL after one line on stderr: it cannot be read,
 * has no CPU times, or not the process or thread that is chosen; or what is chosen does not go together.
 */
struct trace *filter_open(const struct filter *filter, const char *verb, const char *path);

/* Whether the name, file or both leave anything to be decided by function. */
bool filter_has_functions(const struct filter *filter);

/*
 * Is the function with this definition shown? definition may be NULL: a function without a name is shown unless
 * something is to be included. Returns 1, 0 or -ENOMEM.
 */
int filter_function(const struct filter *filter, const struct wire_definition *definition, bool native);

/*
 * For a process: which functions are left out, by key (replay.h), as replay.hidden wants it. The caller frees it; NULL
 * if none is. Returns 0 or -ENOMEM.
 */
int filter_hide(const struct filter *filter, const struct trace_process *process, uint32_t keys, uint8_t **hidden);

static inline bool filter_process(const struct filter *filter, const struct trace_process *process)
{
	return !filter->pid || process->pid == filter->pid;
}

static inline bool filter_thread(const struct filter *filter, const struct trace_thread *thread)
{
	return !filter->tid || (int64_t)thread->tid == filter->tid;
}

/* The stretch of time in ns since the start of the trace; without bounds 0 and INT64_MAX. */
static inline int64_t filter_from(const struct filter *filter)
{
	return filter->from_given ? filter->from_ns : 0;
}

static inline int64_t filter_to(const struct filter *filter)
{
	return filter->to_given ? filter->to_ns : INT64_MAX;
}

/* Nothing in the chunk is within the stretch of time. */
bool filter_skips(const struct filter *filter, const struct trace *trace, const struct trace_process *process,
		  const struct trace_place *place);

/*
 * "12", "12ns", "3.5us", "20ms", "1.5s" as ns, not negative. False after saying on stderr what is wrong; shared with
 * the options of verbs that take times.
 */
bool filter_duration(const char *verb, const char *option, const char *text, int64_t *ns);

#endif
