/*
 * calls.h - the calls of the HTML report in levels of detail.
 *
 * Used by export_html.c; read by script/levels.js. Calls come in the order in which they end. Each is stored once, in
 * the level of its duration:
 *
 *   level 0       below 16 us           (HTML_SHORTEST_NS)
 *   level 1       16 us to 65 us
 *   level k       each four times as long as the one before
 *   level top     and all that are longer
 *
 * In addition, each level k from 1 on has slivers. A sliver is the sum of all calls shorter than level k's shortest
 * call, of one depth, that end in one time bucket of that length. A view in which a pixel is longer than level k's
 * shortest call needs the calls from level k up and the slivers of level k. The width of the window bounds their
 * number, for a trace of any length.
 *
 * Memory is constant: one block of each level, and a few bytes a depth.
 */
#ifndef EVPROF_TOOLS_HTML_CALLS_H
#define EVPROF_TOOLS_HTML_CALLS_H

#include <stdint.h>

#include "html/pack.h"

#define HTML_LEVELS 20
#define HTML_SHORTEST_SHIFT 14
#define HTML_SHORTEST_NS (INT64_C(1) << HTML_SHORTEST_SHIFT)
#define HTML_STEP_NS 32 /* step in which durations of level 0 are counted */
#define HTML_STEPS (HTML_SHORTEST_NS / HTML_STEP_NS)
#define HTML_DEPTH_MAX 16384 /* calls at a greater depth are not stored */
#define HTML_BLOCK_CALLS 32768

/* The shortest duration of a level in ns. */
static inline int64_t html_level_ns(unsigned level)
{
	return level ? HTML_SHORTEST_NS << (2 * (level - 1)) : 0;
}

struct html_call {
	int64_t start_ns;
	int64_t end_ns; /* never before that of the previous call of the thread */
	uint32_t function;
	uint32_t depth; /* below HTML_DEPTH_MAX */
	uint8_t how;	/* kind and end of the call, as export_html.c and report.js define them */
};

/* The number of calls and slivers, counted by a first pass. */
struct html_census {
	uint64_t calls[HTML_LEVELS];
	uint64_t slivers[HTML_LEVELS];
	uint64_t steps[HTML_STEPS]; /* calls of level 0 by duration */
};

/* Which calls and slivers are stored. */
struct html_plan {
	unsigned top;	     /* the highest level in use */
	unsigned floor;	     /* calls of lower levels are only in slivers */
	int64_t shortest_ns; /* shorter calls are only in slivers; 0: every call is stored */
};

/* The plan that stores most, with at most that many calls and slivers if possible. */
struct html_plan html_plan_make(const struct html_census *census, int64_t duration_ns, uint64_t calls_max,
				uint64_t slivers_max);
/* The number of calls that the plan does not store. */
uint64_t html_plan_merged(const struct html_plan *plan, const struct html_census *census);

enum { HTML_CALL_COLUMNS = 6, HTML_SLIVER_COLUMNS = 5, HTML_SEGMENT_COLUMNS = 6 };

/* The part of a block that belongs to one thread. */
struct html_segment {
	uint32_t thread;
	uint32_t count;
	int64_t from_ns;
	int64_t to_ns;
};

/* A block that is being filled. */
struct html_store {
	struct html_column columns[HTML_CALL_COLUMNS];
	unsigned column_count;
	unsigned kind; /* level * 2, + 1 for slivers */
	struct html_segment segment;
	uint32_t block; /* block number; valid if count is not 0 */
	uint32_t count; /* in the block */
};

struct html_level {
	/* end, duration, function, depth, how, sequence */
	struct html_store calls;
	int64_t end_ns; /* of the previous call in the segment; 0: none */
	int64_t depth;
	uint64_t sequence;
	/* bucket, depth, function, calls, coverage of 255 */
	struct html_store slivers;
	uint64_t written_bucket;
	/* The current bucket. */
	uint64_t bucket;
	struct html_sliver *pending; /* by depth */
	uint32_t pending_allocated;
	uint32_t *touched; /* depths with a sliver in the bucket */
	uint32_t touched_count;
	uint32_t touched_allocated;
};

struct html_calls {
	struct html_packer *packer; /* NULL: count only */
	uint32_t *blocks;	    /* the next block number */
	struct html_plan plan;
	struct html_census census;
	struct html_level level[HTML_LEVELS];
	/* One row for each segment: level * 2, + 1 for slivers; block; thread; count; from; to. */
	struct html_column directory[HTML_SEGMENT_COLUMNS];
	uint32_t thread;
	uint64_t sequence;  /* of the next call of the thread */
	int64_t bucket_end; /* end of the current bucket of level 1 */
	int error;	    /* the first -errno */
};

/* With packer NULL only the census is made, and nothing is written; plan.floor must be 0. */
void html_calls_init(struct html_calls *calls, struct html_packer *packer, uint32_t *blocks, struct html_plan plan);
/* html_calls_thread() precedes the first call of a thread; html_calls_thread_end() follows its last. */
void html_calls_thread(struct html_calls *calls, uint32_t thread);
void html_calls_thread_end(struct html_calls *calls);
void html_calls_add(struct html_calls *calls, const struct html_call *call);
/* Writes the remaining blocks, and the directory as the last block. Returns 0 or the first -errno. */
int html_calls_finish(struct html_calls *calls);
void html_calls_done(struct html_calls *calls);

#endif
