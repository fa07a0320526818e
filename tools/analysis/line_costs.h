/*
 * line_costs.h - time and calls by line and by call site, for callgrind and annotate.
 *
 * Collected over replay/call_walk.h, thread after thread. Time belongs to the line at which its frame stands: that of
 * its last line event, or where it yielded; a call begins at the function's first line, where all time goes if no
 * lines are recorded. Line 0: that of C functions, and of frames of which the trace does not say where they stand.
 *
 * The time of a call counts only where its function was not running already further down: the sum over all callers of a
 * function is its cumulative time as evprof report has it, also with recursion.
 *
 * Functions are the same if file, first line and name are. Memory: a few bytes a function, line and call site.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_LINE_COSTS_H
#define EVPROF_TOOLS_ANALYSIS_LINE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/call_walk.h"
#include "replay/filter.h"
#include "trace/labels.h"
#include "util/progress.h"
#include "util/u64_map.h"

#define LINE_COSTS_NOBODY UINT32_MAX

/* By number of label. */
struct cost_function {
	char *name; /* qualified, ":" and its first line, unlike any other of its module; of C functions the label's */
	uint32_t module; /* numbers of places: __name__, "~" where there is none; */
	uint32_t file;	 /* co_filename, "~" for C functions */
	bool native;
	bool known;
};

/* A file or a module. */
struct cost_place {
	struct text name; /* lives as long as the costs and the trace */
	uint32_t process; /* number of the first process that had it, for relative names */
};

/* A line of a function. */
struct cost_line {
	uint32_t function;
	uint32_t line;
	uint64_t starts; /* calls of the function, at its first line only */
	uint64_t hits;	 /* line events */
	uint64_t own_ns;
};

/* Calls of a function from a line. */
struct cost_call {
	uint32_t from; /* number of the line; NOBODY: called by no function that is shown */
	uint32_t callee;
	uint64_t calls;	      /* 0: all of them were running when their stack was taken */
	uint64_t total_ns;    /* of the outermost ones */
	uint64_t inner_calls; /* the outermost ones, and the calls in them */
	uint64_t inner_hits;  /* line events in the outermost ones */
};

struct line_costs {
	struct labels labels;
	struct cost_function *functions; /* by number of label */
	uint32_t functions_allocated;
	struct cost_place *places;
	uint32_t place_count;
	uint32_t places_allocated;
	struct cost_line *lines;
	uint32_t line_count;
	uint32_t lines_allocated;
	struct cost_call *calls;
	uint32_t call_count;
	uint32_t calls_allocated;
	bool by_line; /* line events are used: line_costs_by_line() */
	/* The machinery. */
	struct u64_map place_numbers;
	struct u64_map line_numbers;
	struct u64_map call_numbers;
	struct u64_map names;
	uint32_t epoch;
	const struct trace_process *process;
	struct cost_key *keys; /* of the process */
	struct cost_frame *frames;
	uint32_t frames_allocated;
	int64_t last_ns;
	uint64_t started;
	uint64_t hits;
	void *owner;
	int (*thread_end)(void *owner, struct line_costs *costs, const struct call_walk *walk);
};

/*
 * Were line events asked for in one of the processes, and can they be used? Not with calls that are too short to be
 * shown.
 */
bool line_costs_by_line(const struct trace *trace, const struct filter *filter);

/*
 * Adds what is chosen of a trace. thread_end, if any, is called after each thread, and may take out what was collected
 * so far with line_costs_clear(). Returns 0, -ENOMEM, or what thread_end returned.
 */
int line_costs_add(struct line_costs *costs, struct trace *trace, const struct filter *filter,
		   struct progress *progress,
		   int (*thread_end)(void *owner, struct line_costs *costs, const struct call_walk *walk), void *owner);
/*
 * Lines in order of function and line, calls in order of their lines, those from NOBODY last. Nothing can be added
 * after it until line_costs_clear(). Returns 0 or -ENOMEM.
 */
int line_costs_sort(struct line_costs *costs);
/* Forgets lines and calls, not the functions and places. */
void line_costs_clear(struct line_costs *costs);
void line_costs_done(struct line_costs *costs);

#endif
