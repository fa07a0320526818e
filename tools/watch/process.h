/*
 * process.h - what one running process did in the last stretch: calls, times and allocations of each function, from a
 * trace that is followed. For host.c.
 *
 * A stretch lies between two moments, until which the collector has written all events. Stacks stay from one stretch to
 * the next. Times are ticks of the process. A call that goes on counts its time in each stretch, and
 * as a call where it began. Recursion counts once in cumulative time, as in analysis/profile.h. In a sampled process
 * calls are what the samples show.
 *
 * Memory: a few words a function, and the stack of each live thread.
 */
#ifndef EVPROF_TOOLS_WATCH_PROCESS_H
#define EVPROF_TOOLS_WATCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/replay.h"
#include "trace/reader.h"
#include "util/u64_map.h"

struct watch_count {
	uint64_t calls;
	uint64_t own;	/* ticks */
	uint64_t total; /* ticks, with callees */
	uint64_t allocations;
	uint64_t bytes; /* requested */
};

/* A caller or a callee of a function that is looked at. */
struct watch_edge {
	uint32_t key;
	uint8_t focus; /* as in watch_process.focus */
	bool is_callee;
	struct watch_count count; /* of the callee's calls; no allocations */
};

struct watch_thread {
	const struct trace_thread *thread;
	struct replay replay;
	struct trace_stream stream; /* its address identifies it */
	uint64_t since;		    /* events before it are not counted */
	bool reads;		    /* the stream is open */
	bool ended;
	uint32_t top; /* key of the innermost function at the end of the stretch; WATCH_NO_KEY: none */
	struct watch_count count;
};

/* A task that took steps in the stretch. */
struct watch_task {
	uint64_t address; /* identifies it */
	uint32_t tid;	  /* of the thread of its last step */
	uint32_t code;
	uint32_t name; /* a mark's id, or 0 */
	uint64_t steps;
};

#define WATCH_NO_KEY UINT32_MAX

struct watch_process {
	struct trace *trace;
	const struct trace_process *process;
	struct watch_thread **threads; /* those that have not ended, in order of appearance */
	size_t thread_count, threads_allocated;
	struct u64_map known;	    /* of trace_new_thread() */
	struct watch_count *counts; /* by key */
	uint32_t keys;
	struct watch_count sum; /* total as own */
	uint64_t events, lost;
	struct watch_task *tasks; /* that took a step in the stretch */
	uint32_t task_count;
	uint32_t edge_count;
	struct watch_edge *edges;
	/* By key, shorter than keys: not 0 for functions whose edges are counted. NULL: none. Not owned. */
	const uint8_t *focus;
	uint32_t focus_count;
	/* Internal. */
	struct watch_thread *current;
	uint64_t interval;	     /* between sampled allocations; 0: each is recorded */
	struct u64_map edge_numbers; /* key, is_callee and focus + 1: number of the edge */
	size_t edges_allocated;
	struct u64_map task_numbers; /* address + 1: number of the task */
	size_t tasks_allocated;
	bool out_of_memory;
};

/*
 * Begins with a process of a followed trace at that time (ticks), with the stacks that its threads have then; 0: at
 * its start. Returns 0 or -ENOMEM; watch_process_done() frees it in both cases.
 */
int watch_process_begin(struct watch_process *top, struct trace *trace, const struct trace_process *process,
			uint64_t from);
/*
 * Counts the chunks that the trace has now, as the stretch that ends at `until` (ticks). To be called once after
 * watch_process_begin(), and after each trace_follow(). Returns 0 or -ENOMEM.
 */
int watch_process_next(struct watch_process *top, uint64_t until);
void watch_process_done(struct watch_process *top);

#endif
