/*
 * line_costs.h - time and calls by line and by call site, for callgrind and annotate.
 *
 * Collected in call walks (replay/call_walk.h), thread after thread. Time belongs to the current line of its frame:
 * that of the last line event, or the line where the frame yielded. A call begins at the function's first line; without
 * line events all its time belongs there. Line 0 holds C functions, and frames whose line is not recorded.
 *
 * The time of a call counts only if its function was not on the stack already. So the sum over all callers of a
 * function is its cumulative time as in evprof report, also with recursion.
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

/* By label number. */
struct cost_function {
	char *name;	 /* qualified, ":" and first line, unique within the module; the label's for C functions */
	uint32_t module; /* place number: __name__, "~" if there is none */
	uint32_t file;	 /* place number: co_filename, "~" for C functions */
	bool c_function;
	bool known;
};

/* A file or a module. */
struct cost_place {
	struct text name; /* valid as long as the costs and the trace */
	uint32_t process; /* number of the first process with this place, for relative names */
};

/* A line of a function. */
struct cost_line {
	uint32_t function;
	uint32_t line;
	uint64_t starts; /* calls of the function; only at its first line */
	uint64_t hits;	 /* line events */
	uint64_t own_ns;
};

/* Calls of a function from a line. */
struct cost_call {
	uint32_t from; /* number of the line; NOBODY: no shown caller */
	uint32_t callee;
	uint64_t calls;	      /* 0: all began with a stack snapshot */
	uint64_t total_ns;    /* of the outermost calls */
	uint64_t inner_calls; /* the outermost calls and the calls inside them */
	uint64_t inner_hits;  /* line events inside the outermost calls */
};

struct line_costs {
	struct labels labels;
	struct cost_function *functions; /* by label number */
	uint32_t functions_allocated;
	struct cost_place *places;
	uint32_t place_count;
	size_t places_allocated;
	struct cost_line *lines;
	uint32_t line_count;
	size_t lines_allocated;
	struct cost_call *calls;
	uint32_t call_count;
	size_t calls_allocated;
	bool by_line; /* line events count: see line_costs_by_line() */
	/* Internal. */
	struct labels place_names; /* as files, by place number */
	struct u64_map line_numbers;
	struct u64_map call_numbers;
	struct u64_map names;
	uint32_t epoch;
	const struct trace_process *process;
	struct cost_key *keys; /* of the process */
	struct cost_frame *frames;
	size_t frames_allocated;
	int64_t last_ns;
	uint64_t started;
	uint64_t hits;
	void *owner;
	int (*thread_end)(void *owner, struct line_costs *costs, const struct call_walk *walk);
};

/* Whether line events count: one of the processes recorded them, and --min-duration is not set, which hides calls. */
bool line_costs_by_line(const struct trace *trace, const struct filter *filter);

/*
 * Adds what the filter shows of a trace. thread_end may be NULL; it is called after each thread, and may use the data
 * and drop it with line_costs_clear(). Returns 0, -ENOMEM, or the result of thread_end.
 */
int line_costs_add(struct line_costs *costs, struct trace *trace, const struct filter *filter,
		   struct progress *progress,
		   int (*thread_end)(void *owner, struct line_costs *costs, const struct call_walk *walk), void *owner);
/*
 * Sorts lines by function and line, and calls by their lines, those from NOBODY last. line_costs_clear() must follow
 * before data is added again. Returns 0 or -ENOMEM.
 */
int line_costs_sort(struct line_costs *costs);
/* Drops lines and calls. Functions and places stay. */
void line_costs_clear(struct line_costs *costs);
void line_costs_done(struct line_costs *costs);

#endif
