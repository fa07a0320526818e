/*
 * live.h - the live blocks of a process by allocating stack: at the end, and at the peak.
 *
 * Used by stack_counts.c for the exporters that weigh stacks by memory, by html/memory.c, and by memory.c for evprof
 * memory and check. Reads all threads of a process once, in order of time, because any thread may free the blocks of
 * another.
 *
 *   live      allocated in the time range and not freed in it (blocks.h). A successful realloc frees the old block and
 *             makes a new one; a failed allocation or realloc changes nothing. Blocks from before the range are
 *             unknown: a free of one counts nothing, a realloc of one makes a block
 *   temporary an allocation whose block its thread frees, or moves by realloc, before it allocates again (as in memray)
 *   process   each has its own blocks. A forked child begins with none: inherited blocks are the parent's
 *   end       the end of the time range; if none is set, the end of the program (replay/program_end.h), or else the
 *             end of the trace
 *   sampled   where allocations are sampled (memory_estimate.h), blocks and bytes are estimates, and no allocation is
 *             temporary, as that needs the thread's next allocation
 *   peak      the first moment at which the live blocks of the process, in all threads, were the most bytes
 *   missing   where events are missing (lost, damaged, or recording was paused), a block freed there stays live until
 *             its address is used again
 *
 * Memory grows with the number of live blocks (32 to 86 bytes each, at their maximum) and of different stacks of the
 * process (190 to 360 bytes each), not with the length of the trace.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_LIVE_H
#define EVPROF_TOOLS_ANALYSIS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/blocks.h"
#include "analysis/stacks.h"
#include "replay/call_walk.h"
#include "util/progress.h"
#include "util/u64_map.h"

/*
 * The moment at which live blocks are counted. LIVE_TEMPORARY: temporary allocations, wherever; LIVE_ALL: all
 * allocations, and the live blocks at the end.
 */
enum live_moment { LIVE_NONE, LIVE_END, LIVE_PEAK, LIVE_TEMPORARY, LIVE_ALL };

#define LIVE_TASK "~task" /* what stands for a file in the functions that stand for tasks */

#define LIVE_SIZES 65 /* by the number of bits of the size: [n] has sizes from 2^(n-1) to 2^n - 1, [0] size 0 */

struct live_size {
	uint64_t allocations;
	uint64_t bytes;
	uint64_t temporary; /* allocations */
};

struct live_held {
	uint64_t blocks;
	uint64_t bytes;
};

/* The results for one stack, for both moments. */
struct live_weights {
	struct live_held made; /* all allocations, freed or not */
	struct live_held end;
	struct live_held peak;
	uint64_t temporary; /* allocations */
};

static inline void live_held_add(struct live_held *into, const struct live_held *held)
{
	into->blocks += held->blocks;
	into->bytes += held->bytes;
}

static inline void live_weights_add(struct live_weights *into, const struct live_weights *weights)
{
	live_held_add(&into->made, &weights->made);
	live_held_add(&into->end, &weights->end);
	live_held_add(&into->peak, &weights->peak);
	into->temporary += weights->temporary;
}

/*
 * What a stack holds, with numbers of blocks in ESTIMATE_UNIT (memory_estimate.h). Its values at the peak are stored
 * when it first changes after a peak; until then its current values are those of the peak.
 *
 * invariant: if peaks is that of struct live, peak_blocks and peak_bytes are of the latest peak; else blocks and bytes
 * are
 */
struct live_sum {
	struct live_held made; /* all allocations, freed or not */
	uint64_t temporary;
	uint64_t blocks;
	uint64_t bytes;
	uint64_t peak_blocks;
	uint64_t peak_bytes;
	uint64_t peaks;
};

/* Called with the live bytes after each memory event, at ns since the start of the trace. */
typedef void live_watch(void *owner, int64_t ns, uint64_t bytes);

struct live;
/* Returns 0 or -errno. */
typedef int live_moment_hook(void *owner, struct live *live, uint64_t now_ticks);

/* All zeros but what the owner sets: nothing was read yet. */
struct live {
	/* Of the owner, before it reads. */
	bool lines; /* the innermost Python function of a stack is one at its line, where that is recorded */
	bool tasks; /* the task that runs is on top of each stack */
	uint64_t resident_ticks; /* when the resident size was most, for resident_sources; 0: not known */
	const uint8_t *marks;	 /* by mark id (replay/window.h): count allocations between them only; NULL: all */
	/* Called before the first memory event at moment_ticks or later, where it sets the next ones; NULL: not. */
	live_moment_hook *moment;
	void *moment_owner;
	uint64_t moment_ticks;

	struct stacks stacks;  /* below the root, one node for each thread, whose function is the thread's number */
	struct live_sum *sums; /* by stack number; [0] is for threads that are not shown */
	uint32_t sum_count;
	struct blocks blocks;	     /* their owners are stack numbers */
	struct u64_map places_known; /* instruction << 32 | key of a function: its line + 1 */
	struct u64_map lines_known;  /* stack number << 32 | line: the stack with its innermost function at the line */
	struct u64_map tasks_known;  /* thread << 32 | task: function number + 1 */
	uint64_t *latest;	     /* by thread: address of its latest block, until it is freed */
	uint64_t interval;	     /* of the sampling of allocations; 0: each is recorded */
	uint64_t *latest_here;	     /* of the current event's thread */
	struct live_size sizes[LIVE_SIZES]; /* of the shown threads */
	bool any;			    /* a memory event was read */
	uint64_t missing_stacks; /* shown threads' allocations without a stack; in ESTIMATE_UNIT until all is read */
	bool alive_only;	 /* peaks are not known: trace_process_is_alive_only() */
	bool knows_calls;	 /* an empty stack means that no function runs */
	bool inside;		 /* between two marks, or there are none: allocations count */
	uint64_t sources[BLOCK_SOURCES]; /* bytes of live blocks; when the resident size was most */
	uint64_t resident_sources[BLOCK_SOURCES];
	uint64_t shared_bytes; /* of live shared ranges; when the resident size was most */
	uint64_t resident_shared_bytes;
	uint64_t shown_sources[BLOCK_SOURCES]; /* of the shown threads'; at the peak; at the end, if that is set */
	uint64_t peak_sources[BLOCK_SOURCES];
	uint64_t end_sources[BLOCK_SOURCES];
	uint64_t heap_bytes; /* of live blocks that malloc() has in its heap, as far as size and address show it */
	int64_t marked_ns;   /* time of the last end mark, which is the end then; PROGRAM_END_NONE: none so far */
	uint64_t bytes;	     /* of all live blocks */
	uint64_t peak_bytes;
	uint64_t peaks;	 /* number of times that bytes reached a new maximum */
	int64_t peak_ns; /* time of the peak; undefined if there was no block */
	/* For both moments: the end in ticks, until it is reached; then what each stack held, NULL: not reached. */
	uint64_t end_ticks;
	struct live_held *end; /* as in sums */
	uint32_t end_count;
	live_watch *watch;
	void *watcher;
	/* By thread: the number of its first stack; and by stack, the next one of its thread; 0: none. */
	uint32_t *first;
	uint32_t *next;
	uint32_t *place; /* of each stack in the tree of its thread, while live_put() builds that */
	bool missing;	 /* events are missing in one of the processes so far */
	struct stack_functions *functions;
};

/*
 * Reads the current process of the walk, with the walk's filter. functions must be ready for it. Returns 0 or -errno.
 */
int live_find(struct live *live, const struct call_walk *walk, enum live_moment moment,
	      struct stack_functions *functions, struct progress *progress);
/*
 * Reads the process once for both moments, for live_weigh(). Sets *end_ns to the end of the program, or to
 * PROGRAM_END_NONE (replay/program_end.h) if it is unknown or after the time range. With marks the end is the last end
 * mark.
 */
int live_find_both(struct live *live, const struct call_walk *walk, struct stack_functions *functions,
		   struct progress *progress, live_watch *watch, void *watcher, int64_t *end_ns);
struct live_weights live_weigh(const struct live *live, uint32_t number);
/*
 * Adds the live blocks of a thread's stacks to live_blocks and live_bytes of its tree, with LIVE_ALL all allocations
 * to allocations and bytes. Returns 0 or -ENOMEM.
 */
int live_put(struct live *live, const struct trace_thread *thread, enum live_moment moment, struct stacks *stacks);
/* Call it before the next process. What the owner has set stays. */
void live_forget(struct live *live);
void live_done(struct live *live);

#endif
