/*
 * limits.h - limits of calls, times, memory and losses, measured in a trace. For evprof check.
 *
 * A limit that matches several functions applies to their sum: calls are added up, and time runs from the start of an
 * outermost call to its end, so that nothing counts twice. All limits of functions are measured in one call walk.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_LIMITS_H
#define EVPROF_TOOLS_ANALYSIS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/function_match.h"
#include "replay/filter.h"
#include "trace/reader.h"

enum limit_kind {
	LIMIT_CALLS,
	LIMIT_TIME,
	LIMIT_ALLOC, /* peak of Python's allocators */
	LIMIT_HEAP,  /* peak of all allocators (memory.h) */
	LIMIT_LEAK,
	LIMIT_ALLOCATIONS, /* of all processes */
	LIMIT_RSS,
	LIMIT_LOST
};
enum limit_result { LIMIT_HELD, LIMIT_BROKEN, LIMIT_ERROR };

#define LIMIT_PLACE_MAX 256

struct limit {
	enum limit_kind kind;
	const char *given;	     /* the option's value */
	struct function_match match; /* NULLs: all functions (TOTAL), or not a function limit */
	uint64_t allowed;	     /* calls, ns, bytes or events */
	uint64_t unit_ns;	     /* LIMIT_TIME: unit of comparison and output */
	uint64_t measured;
	int64_t pid;	     /* limits of memory: process of the measured value; 0: it was not recorded */
	uint32_t matches[2]; /* Python and C functions; each process counts separately */
	bool of_python;	     /* the module is that of a Python function in the trace */
	bool thinned;	     /* not all calls were recorded (EVPROF_BUDGET); what was is the least */
	uint32_t open;	     /* number of their calls on the stack of the thread */
	struct function_near near;
	uint64_t most;			  /* LIMIT_HEAP to LIMIT_ALLOCATIONS: of the line that has most of it ... */
	char most_place[LIMIT_PLACE_MAX]; /* ... and which that is; empty: none */
	enum limit_result result;
};

/* What the filtered processes did not record: counts may be too small. */
struct unrecorded {
	bool sampled;
	bool paused;   /* by evprof_stop() */
	bool begin;    /* has left the trace (EVPROF_KEEP) */
	bool filtered; /* by EVPROF_INCLUDE and similar settings */
	bool calls;
	bool c_calls;
	bool thinned;		  /* functions, with the C functions that they call (EVPROF_BUDGET) */
	bool memory;		  /* Python's allocators */
	bool peaks;		  /* only what is alive was kept */
	bool malloc;		  /* malloc() and mmap(), or the program has a malloc() of its own */
	bool peak_rss;		  /* of a process */
	uint64_t memory_interval; /* allocations were sampled: what is measured of them is an estimate */
};

/* One bit for each in the functions' masks. */
#define LIMITS_MAX 64

/* All zeros but filter, which it does not own: no limit. at and count are filled in by the caller. */
struct limits {
	struct limit at[LIMITS_MAX];
	size_t count;
	const struct filter *filter;
	uint64_t *masks; /* by key of the process: limits that match the function */
	struct unrecorded unrecorded;
	uint64_t lost;	   /* events */
	bool losses_taken; /* a --max-lost limit holds and accepts the losses */
};

/*
 * Reads the trace for all limits, and fills in what was measured. trace->clock is the wall clock afterwards. Returns 0
 * or -errno.
 */
int limits_measure(struct limits *limits, struct trace *trace);
/* Fills in the result of each limit. */
void limits_judge(struct limits *limits);
/* The number of limits with this result. */
size_t limits_count(const struct limits *limits, enum limit_result result);
/* Frees what the matches hold. */
void limits_done(struct limits *limits);

/* Whether the limit is of all functions, or a function of the trace matches. */
bool limit_matches_any(const struct limit *limit);
/* The reason why the trace cannot show that the limit holds; NULL: it can. */
const char *limit_doubt(const struct limits *limits, const struct limit *limit);

#endif
