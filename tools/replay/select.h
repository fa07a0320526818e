/*
 * select.h - which part of a trace a verb shows: functions, processes, threads, a stretch of time, long calls, outer
 * calls.
 *
 * Owns the options that all verbs with an output have in common, and what they mean. The decision about a function is
 * taken once for each definition, not for each event. A function that is left out is as if it were part of its caller.
 */
#ifndef EVPROF_TOOLS_REPLAY_SELECT_H
#define EVPROF_TOOLS_REPLAY_SELECT_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "evprof/choice.h"
#include "trace/reader.h"

struct select {
	struct choice_pattern *patterns;
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
	SELECT_INCLUDE = 0x1000,
	SELECT_EXCLUDE,
	SELECT_EXCLUDE_SYSPATH,
	SELECT_PROCESS,
	SELECT_THREAD,
	SELECT_FROM,
	SELECT_TO,
	SELECT_MIN_DURATION,
	SELECT_MAX_DEPTH,
	SELECT_CLOCK,
	SELECT_END,
};

/* For the verb's table of getopt_long(). */
#define SELECT_OPTIONS                                                                                                 \
	{"clock", required_argument, NULL, SELECT_CLOCK}, {"include", required_argument, NULL, SELECT_INCLUDE},        \
	    {"exclude", required_argument, NULL, SELECT_EXCLUDE},                                                      \
	    {"exclude-syspath", no_argument, NULL, SELECT_EXCLUDE_SYSPATH},                                            \
	    {"process", required_argument, NULL, SELECT_PROCESS}, {"thread", required_argument, NULL, SELECT_THREAD},  \
	    {"from", required_argument, NULL, SELECT_FROM}, {"to", required_argument, NULL, SELECT_TO},                \
	    {"min-duration", required_argument, NULL, SELECT_MIN_DURATION},                                            \
	{                                                                                                              \
		"max-depth", required_argument, NULL, SELECT_MAX_DEPTH                                                 \
	}

/* For the verb's help. */
extern const char select_help[];

static inline bool select_is_option(int option)
{
	return option >= SELECT_INCLUDE && option < SELECT_END;
}

/* Takes one of SELECT_OPTIONS with its value. False after one line on stderr saying what is wrong. */
bool select_take(struct select *select, const char *verb, int option, const char *value);
void select_done(struct select *select);

/*
 * Opens the trace, with the times of its events by the chosen clock. NULL after one line on stderr: it cannot be read,
 * has no CPU times, or not the process or thread that is chosen; or what is chosen does not go together.
 */
struct trace *select_open(const struct select *select, const char *verb, const char *path);

/* Whether the name, file or both leave anything to be decided by function. */
bool select_has_functions(const struct select *select);

/*
 * Is the function with this definition shown? definition may be NULL: a function without a name is shown unless
 * something is to be included. Returns 1, 0 or -ENOMEM.
 */
int select_function(const struct select *select, const struct wire_definition *definition, bool native);

/*
 * For a process: which functions are left out, by key (replay.h), as replay.hidden wants it. The caller frees it; NULL
 * if none is. Returns 0 or -ENOMEM.
 */
int select_hide(const struct select *select, const struct trace_process *process, uint32_t keys, uint8_t **hidden);

static inline bool select_process(const struct select *select, const struct trace_process *process)
{
	return !select->pid || process->pid == select->pid;
}

static inline bool select_thread(const struct select *select, const struct trace_thread *thread)
{
	return !select->tid || (int64_t)thread->tid == select->tid;
}

/* The stretch of time in ns since the start of the trace; without bounds 0 and INT64_MAX. */
static inline int64_t select_from(const struct select *select)
{
	return select->from_given ? select->from_ns : 0;
}

static inline int64_t select_to(const struct select *select)
{
	return select->to_given ? select->to_ns : INT64_MAX;
}

/* Nothing in the chunk is within the stretch of time. */
bool select_skips(const struct select *select, const struct trace *trace, const struct trace_process *process,
		  const struct trace_place *place);

/*
 * "12", "12ns", "3.5us", "20ms", "1.5s" as ns, not negative. False after saying on stderr what is wrong; shared with
 * the options of verbs that take times.
 */
bool select_duration(const char *verb, const char *option, const char *text, int64_t *ns);

#endif
