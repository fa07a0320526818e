/*
 * options.h - the options of a call of api.h, as a filter and a few more values.
 *
 * As options of the tool: process, thread, include, exclude, exclude-syspath, from, to, min-duration, max-depth,
 * clock; weight (folded), by (what the sites of a diff of memory are). Of tables: kind (which rows of "events"; may
 * come again), function (of "callers": MODULE:FUNCTION, as in evprof check), since-start, event-numbers (those of
 * EventProfiler, as int16), batch-rows. Of the text "cut": output, mark-begin, mark-end, span, span-path (may come
 * again), number, each. Of the rows of calls: part, parts (call_rows.c). Options without a value have "".
 */
#ifndef EVPROF_TOOLS_API_OPTIONS_H
#define EVPROF_TOOLS_API_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/filter.h"
#include "trace/reader.h"

/* The events of the table, by number. */
#define EVENT_KINDS 15
extern const char *const event_kind_names[EVENT_KINDS];

/* Where a function writes why it failed. */
struct why {
	char *text;
	size_t bytes;
};

/* An empty line, in the memory of the library's caller. */
struct why why_begin(char *text, size_t bytes);
/* Returns error, after a line of its name if there is none yet. */
int why_end(const struct why *why, int error);
/* Writes the line; returns error. */
int why_set(const struct why *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct options {
	struct filter filter;
	uint32_t kinds; /* bits by number of the event; 0: all */
	bool since_start;
	bool event_numbers;
	uint32_t batch_rows;
	uint32_t parts; /* 0: not given */
	uint32_t part;	/* from 1 to parts */
	/* Not owned. */
	const char *weight;   /* of folded */
	const char *function; /* of callers */
	const char *by;	      /* of diff.c */
	/* Of cut (cuts.c). */
	const char *output;
	const char *mark_begin;
	const char *mark_end;
	const char *span;
	const char **spans; /* options_done() frees it */
	size_t span_count;
	int64_t number; /* 0: not given */
	bool each;
};

/*
 * Parses pairs of names and values, and checks that the trace has the processes, threads and times asked for.
 * options_done() must follow in both cases. Returns 0, -EINVAL or -ENOMEM.
 */
int options_parse(struct options *options, const char *const *pairs, const struct trace *trace, const struct why *why);
/* For times and orders that only the wall clock has. what: who has them. Returns 0, or -EINVAL for another clock. */
int options_need_wall_clock(const struct options *options, const char *what, const struct why *why);
void options_done(struct options *options);

#endif
