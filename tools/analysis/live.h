/*
 * live.h - the blocks of a process that are alive, by the stack that made them: at the end, and when they were the most
 * bytes.
 *
 * Used by stack_counts.c for the exporters that weigh stacks by memory, and by html/memory.c. One reading of a
 * process, all of its threads in the order of time, since any thread may free what another has made.
 *
 *   alive     made in the chosen stretch of time and not freed in it. A realloc frees the old block and makes a new
 *             one, where it succeeds; one that fails, like any failed allocation, changes nothing. What was made before
 *             is not known: a free of it is none, a realloc of it makes a block
 *   process   each has its own blocks. A forked child begins without any: what it has from its parent is the parent's
 *   end       that of the chosen stretch; without one, when the program had run (replay/program_end.h), or the end of
 *             the trace
 *   peak      the first moment at which the bytes of all live blocks of the process, of whatever thread, were the most
 *   missing   where events are missing (lost, damaged, or recording was stopped), what was freed then still looks
 *             alive, until its address is used again
 *
 * Memory grows with the number of live blocks (32 to 64 bytes each, at the most at one time) and of different stacks of
 * the process (170 to 320 bytes each), not with the length of the trace.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_LIVE_H
#define EVPROF_TOOLS_ANALYSIS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stacks.h"
#include "replay/call_walk.h"
#include "util/progress.h"
#include "util/u64_map.h"

/* When blocks are counted. */
enum live_moment { LIVE_NONE, LIVE_END, LIVE_PEAK };

struct live_held {
	uint64_t blocks;
	uint64_t bytes;
};

/* What is known of a stack when a process has been read for both moments. */
struct live_weights {
	struct live_held made; /* whatever became of it */
	struct live_held end;
	struct live_held peak;
};

/*
 * What a stack holds. Its share of the peak is written down only when it changes after a peak: as long as it does not,
 * it is what it is.
 *
 * invariant: if peaks is that of struct live, peak_blocks and peak_bytes are of the latest peak; else blocks and bytes
 * are
 */
struct live_sum {
	struct live_held made; /* whatever became of it */
	uint64_t blocks;
	uint64_t bytes;
	uint64_t peak_blocks;
	uint64_t peak_bytes;
	uint64_t peaks;
};

/* Hears of the bytes of all blocks after each memory event, at ns since the start of the trace. */
typedef void live_watch(void *owner, int64_t ns, uint64_t bytes);

/* All zeros: nothing was read yet. */
struct live {
	struct stacks stacks;  /* above the empty stack one for each thread, whose function is the thread's number */
	struct live_sum *sums; /* by number of the stack; the empty stack's: of threads that are not shown */
	uint32_t sum_count;
	struct u64_map blocks; /* address: number of the stack << 32 | size, or LIVE_LARGE */
	struct u64_map large;  /* address: size */
	uint64_t bytes;	       /* of all blocks */
	uint64_t peak_bytes;
	uint64_t peaks;	 /* so often they were more than ever before */
	int64_t peak_ns; /* when they were the most; of no meaning without blocks */
	/* For both moments: the end, in ticks, until it is reached; what each stack held then, NULL: not reached. */
	uint64_t end_ticks;
	struct live_held *end;
	uint32_t end_count;
	live_watch *watch;
	void *watcher;
	/* By thread: the number of its first stack; and of each stack the next one of its thread; 0: none. */
	uint32_t *first;
	uint32_t *next;
	uint32_t *place; /* of each stack in the tree of its thread, while that is put together */
	bool missing;	 /* events are, in any of the processes so far */
	struct stack_functions *functions;
};

/*
 * Reads the process that is visited, as its visit's choices say; functions are ready for it. Returns 0 or -errno.
 */
int live_find(struct live *live, const struct call_walk *walk, enum live_moment moment,
	      struct stack_functions *functions, struct progress *progress);
/*
 * The same for both moments, in one reading, for live_weigh(). *end_ns is when the program had run, or PROGRAM_END_NONE
 * (replay/program_end.h) where that is not known, or where the chosen stretch ends before.
 */
int live_find_both(struct live *live, const struct call_walk *walk, struct stack_functions *functions,
		   struct progress *progress, live_watch *watch, void *watcher, int64_t *end_ns);
struct live_weights live_weigh(const struct live *live, uint32_t number);
/* Puts what a thread's stacks hold into live_blocks and live_bytes of its tree. Returns 0 or -ENOMEM. */
int live_put(struct live *live, const struct trace_thread *thread, enum live_moment moment, struct stacks *stacks);
/* Before the next process. */
void live_forget(struct live *live);
void live_done(struct live *live);

#endif
