/*
 * counts.h - calls, times, allocations and live blocks of one process by stack, interval by interval, from a trace that
 * is followed or read in stretches. For follow.c.
 *
 * A stretch lies between two moments. Stacks, and blocks that are alive, stay from one stretch to the next. What was
 * counted since the last interval is taken by push_counts_take(). Sums over all intervals are those of evprof report
 * (within a budget those of what was recorded, without its estimates): each time is converted from the sum of all ticks
 * so far, so nothing is lost by rounding.
 *
 *   calls      as in analysis/profile.h. A sampled process has none: samples show no calls
 *   time       own time by the wall clock; the time of open calls counts up to the end of the stretch. None where
 *              allocations alone have stacks
 *   CPU        own time that the thread ran (trace/cpu_time.h), where the process records the kind "cpu"
 *   live       blocks that are alive at the end of the interval. Threads are read one after the other, so memory events
 *              are sorted by their time before they are matched (analysis/blocks.h)
 *
 * Memory: 180 bytes a stack, the stack of each live thread, a block as in blocks.h, 48 bytes for each memory event of a
 * stretch. From PUSH_STACKS_MAX stacks on a new one is cut to its innermost function, so that sums by function stay.
 */
#ifndef EVPROF_TOOLS_PUSH_COUNTS_H
#define EVPROF_TOOLS_PUSH_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/blocks.h"
#include "analysis/stacks.h"
#include "replay/replay.h"
#include "trace/reader.h"
#include "util/u64_map.h"

#define PUSH_STACKS_MAX (UINT32_C(1) << 19)

/* What a stack is weighed by. */
enum push_weight {
	PUSH_CALLS,
	PUSH_WALL_NS,
	PUSH_CPU_NS,
	PUSH_OFF_CPU_NS,
	PUSH_ALLOCATIONS,
	PUSH_ALLOCATED_BYTES,
	PUSH_LIVE_BLOCKS,
	PUSH_LIVE_BYTES,
	PUSH_WEIGHTS,
};

struct push_values {
	uint64_t at[PUSH_WEIGHTS];
};

/* A memory event whose turn in the order of time has not come. */
struct push_memory_event {
	uint64_t ticks;
	uint64_t extra[2];
	uint64_t order; /* of its reading, among equal times */
	uint32_t head;
	uint32_t thread;
	uint32_t stack;
};

/* The sums of a stack. Times in ticks, allocations and blocks in ESTIMATE_UNIT. */
struct push_sums {
	uint64_t calls, wall, ran;
	uint64_t open; /* wall: from the last event to the end of the interval */
	uint64_t allocations, bytes, live_blocks, live_bytes;
};

struct push_thread;

struct push_counts {
	struct trace *trace;
	const struct trace_process *process;
	bool has_cpu, has_memory; /* which weights are known */
	struct stacks stacks;
	struct stack_functions functions;
	uint64_t cut_stacks; /* calls whose stack was cut */
	/* Internal. */
	struct push_thread **threads;
	size_t thread_count, threads_allocated;
	struct u64_map known; /* of trace_new_thread() */
	uint32_t keys;
	struct push_sums *sums;	  /* by stack */
	struct push_values *sent; /* by stack: what earlier intervals had */
	uint32_t sum_count, sent_count;
	struct push_memory_event *memory;
	size_t memory_count, memory_allocated;
	uint64_t memory_order;
	struct blocks blocks; /* owners are stacks */
	uint64_t interval;    /* between sampled allocations; 0: each is recorded */
	uint64_t live_end;    /* ticks: the end of the program, whose live blocks count; UINT64_MAX: not known */
	bool out_of_memory;
};

/*
 * Begins with a process at that time (ticks), with the stacks that its threads have then; 0: at its start. Returns 0 or
 * -ENOMEM; push_counts_done() frees it in both cases.
 */
int push_counts_begin(struct push_counts *counts, struct trace *trace, const struct trace_process *process,
		      uint64_t from);
/*
 * Counts the events before `until` (ticks); UINT64_MAX: all that the trace has now. Memory events count up to
 * `memory_until`. trace_follow() may only be called after a stretch with UINT64_MAX. Returns 0 or -ENOMEM.
 */
int push_counts_next(struct push_counts *counts, uint64_t until, uint64_t memory_until);
/* Call it before trace_follow(), from which on each thread has its new chunks only. */
void push_counts_expect_more(struct push_counts *counts);
/*
 * Ends an interval at that time (ticks): calls that go on count up to it, unless their thread has no more events.
 * Returns 0 or -ENOMEM.
 */
int push_counts_end_interval(struct push_counts *counts, uint64_t until);
/* What the stack had in the interval that ended. False: nothing. To be called once for each stack and interval. */
bool push_counts_take(struct push_counts *counts, uint32_t stack, struct push_values *values);
void push_counts_done(struct push_counts *counts);

#endif
