/*
 * call_walk.h - the call walk: a replay that reports the filtered calls of a trace, with their times, to a visitor. For
 * the exporters.
 *
 * walk_trace() replays one thread after the other and calls the visitor at the start and end of each call. Times are ns
 * since the start of the trace and never decrease within a thread. With --min-duration there is one exception: a call
 * is reported once it is known to be long enough, which may be after other events inside it.
 *
 * The filter (filter.h) applies here: functions, processes, threads, times, short calls and depths that it excludes
 * never reach the visitor. Memory is constant: one chunk of events, the stack, and a few bytes a function.
 *
 * Frames on the stack at the beginning of the time range, or of a stack that is recorded anew after a gap, are pushed
 * with kind WIRE_FRAME. Frames still on the stack at its end are popped with WIRE_NONE. The events before the range are
 * read from the last recorded stack on (WIRE_OPEN, or a gap), unless that is too far back; so the cost of a time range
 * does not grow with the trace. An earlier call is known if it is of a Python function or ends in the range.
 *
 * walk_greenlet() says whose frames are reported: the thread's own, or those of another greenlet. A frame with
 * frame->task is a step of a task.
 */
#ifndef EVPROF_TOOLS_REPLAY_CALL_WALK_H
#define EVPROF_TOOLS_REPLAY_CALL_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/filter.h"
#include "replay/replay.h"
#include "trace/reader.h"
#include "util/progress.h"

/* One call on the shown stack; frame[-1] is its caller. */
struct walk_frame {
	uint32_t key;	      /* replay.h: 2 * code id, or 2 * C function id + 1 */
	uint32_t kind;	      /* WIRE_CALL, RESUME, THROW, C_CALL or FRAME */
	int64_t start_ns;     /* since the start of the trace */
	uint64_t inner_ns;    /* time in shown callees, so far */
	uint64_t user;	      /* for the visitor; 0 at the push */
	uint32_t instruction; /* where it stands (wire_instruction()), where allocations have it; 0: not known */
	/*
	 * Not 0: the call is a step of this task; numbers count from 1 within the thread. The first step of a task is a
	 * WIRE_CALL.
	 */
	uint32_t task;
	uint32_t task_name; /* a mark's id, or 0 */
	uint64_t task_address;
};

/* A step of a task whose function is hidden: it runs above so many frames, as one of so many hidden functions. */
struct walk_hidden_step {
	uint32_t depth;
	uint32_t hidden;
	uint32_t task;
	uint64_t task_address;
	uint64_t greenlet; /* that is suspended in the step; 0: the running one is in it */
};

/* What is thinned (EVPROF_BUDGET) in the thread that is read. */
struct walk_thinned {
	uint64_t cpu_ns;      /* of the change; 0: none */
	const uint32_t *keys; /* thinned_key() of each; only while the visitor is called */
	uint32_t count;
	int64_t since_ns;
};

struct call_walk {
	struct trace *trace;
	const struct filter *filter;
	const struct trace_process *process;
	const struct trace_thread *thread;
	struct walk_frame *frames; /* the first `shown` were reported; the others may still turn out too short */
	uint32_t depth;
	uint32_t shown;
	int64_t now_ns;
	size_t chunk; /* index in thread->places of the chunk that was read last; 0 before the first */
	/*
	 * Chunks of the thread from this index on are not read. A visitor that sets it in thread() gets pops of the
	 * open frames with `chunk` at this index, unless the thread had ended before.
	 */
	size_t chunk_limit;
	/* Internal. */
	struct replay replay;
	struct walk_thinned thinned;
	struct trace_near near; /* ticks to ns, for the process */
	const struct call_visitor *visitor;
	void *owner;
	size_t allocated;
	uint32_t shown_at_once; /* depth up to which frames are reported at once; 0 with --min-duration */
	uint8_t *hidden;	/* by key */
	int error;
	struct u64_map tasks; /* live tasks: address to number, with the name in the high half */
	uint32_t task_count;
	uint32_t *task_keys; /* with EVPROF_BUDGET: the key of each task, by its number */
	uint32_t task_keys_allocated;
	uint64_t step; /* task of the next call, 0: none; step_key is the call's key */
	uint32_t step_key;
	uint32_t step_name;
	struct u64_map span_tasks;	       /* tasks that are not recorded: address to number; for spans only */
	struct u64_map span_firsts;	       /* the span that began first in each: number to address */
	uint32_t span_task;		       /* of the span that begins, if the event has it */
	struct walk_hidden_step *hidden_steps; /* of each greenlet, outermost first; the last ones may have ended */
	uint32_t hidden_step_count;
	size_t hidden_steps_allocated;
	uint32_t hidden_task_count;
	uint64_t look_back; /* number of events that may still be read before time ranges */
};

/* Each function may be NULL. Those with a result return 0 or -errno, which ends the walk. */
struct call_visitor {
	int (*process)(void *owner, struct call_walk *walk);
	int (*process_end)(void *owner, struct call_walk *walk);
	int (*thread)(void *owner, struct call_walk *walk);
	int (*thread_end)(void *owner, struct call_walk *walk);
	/* frame is the top of the stack; its index is frame - walk->frames. */
	void (*push)(void *owner, struct call_walk *walk, struct walk_frame *frame);
	/* how: WIRE_RETURN, YIELD, UNWIND, C_RETURN, C_EXCEPTION, or NONE. The duration is now_ns - start_ns. */
	void (*pop)(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how);
	/* Any other event of the program except WIRE_TASK, and gaps and WIRE_ARGUMENT, at now_ns. */
	void (*other)(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra);
	/*
	 * From thinned->since_ns to now_ns the calls of these functions were not recorded. Called at the end of each
	 * such stretch of a thread, in the order of time.
	 */
	void (*thinned)(void *owner, struct call_walk *walk, const struct walk_thinned *thinned);
	bool timed;	/* frames whose times mean nothing (replay.has_own_stack) are not reported */
	bool lines;	/* other() is also called with WIRE_AT_LINE, and WIRE_AT_INSTRUCTION of the top shown frame */
	bool no_events; /* processes and threads are reported, and no events are read */
};

/* A visitor calls this to stop with an error. The first error counts. */
static inline void walk_fail(struct call_walk *walk, int error)
{
	if (!walk->error)
		walk->error = error;
}

/* The number of keys of the current process: the length of an array by key. */
static inline uint32_t walk_keys(const struct call_walk *walk)
{
	return walk->replay.keys;
}

/* The running greenlet, numbered in order of appearance. 0: the thread's own stack. */
static inline uint32_t walk_greenlet(const struct call_walk *walk)
{
	return walk->replay.greenlet_number;
}

/* Whether the top of the shown stack is what runs, and not a hidden function above it. For line events. */
static inline bool walk_top_runs(const struct call_walk *walk)
{
	const struct replay *replay = &walk->replay;

	return walk->shown && walk->shown == walk->depth && walk->depth == replay->depth &&
	       !replay->frames[replay->depth - 1].hidden;
}

static inline const struct wire_definition *walk_definition(const struct call_walk *walk, uint32_t key)
{
	return trace_name(key & 1 ? &walk->process->functions : &walk->process->codes, key / 2);
}

/* The line at which a frame stands, where allocations have it; 0: not known. */
static inline uint32_t walk_line(const struct call_walk *walk, const struct walk_frame *frame)
{
	return frame->instruction ? trace_line(walk->process, frame->key / 2, frame->instruction) : 0;
}

/*
 * For spans: the number of the task that runs, or of the span that begins; 0: none. Of tasks whose functions are hidden
 * the numbers count down from UINT32_MAX.
 */
uint32_t walk_task(struct call_walk *walk);

/* The label of a task: "task NAME (function) #2", or "task function #2" if it has no name. NULL: no memory. */
char *walk_task_name(const struct call_walk *walk, const struct walk_frame *frame);

/* "a, b, C functions that c calls, and 3 more". NULL: no memory. The caller frees it. */
char *walk_thinned_text(const struct call_walk *walk, const struct walk_thinned *thinned);

/* The number of events that walk_trace() will add to progress. */
uint64_t walk_events(const struct trace *trace, const struct filter *filter);

/* Returns 0, -ENOMEM, or the visitor's first error, which is checked after each chunk. */
int walk_trace(struct trace *trace, const struct filter *filter, struct progress *progress,
	       const struct call_visitor *visitor, void *owner);

/*
 * Walks all threads of one process at once, for visitors that need cross-thread time order: the visitor sees a piece of
 * one thread, then a piece of another. Each thread has a walk. Threads that --thread excludes are walked, too. process
 * and process_end are not called. Memory: a chunk, a stack and four bytes a function for each live thread.
 */
int walk_together(struct trace *trace, const struct trace_process *process, const struct filter *filter,
		  struct progress *progress, const struct call_visitor *visitor, void *owner);

/* --- between call_walk.c and call_walk_merged.c --- */

/* A thread being read. It must not move: its address identifies the stream. */
struct walk_run {
	struct trace_stream stream;
	struct trace_events events;
	struct replay_cursor cursor; /* in events, if they are loaded */
	uint64_t from, to;	     /* the time range, in ticks */
	bool loaded;
	bool inside; /* the time range has begun */
	bool passed; /* the time range has ended */
};

void walk_init(struct call_walk *walk, struct trace *trace, const struct filter *filter,
	       const struct call_visitor *visitor, void *owner);
void walk_done(struct call_walk *walk);
/*
 * Requires walk->thread and an initialized replay. Returns 0 or -errno, which the caller passes to walk_thread_end().
 */
int walk_thread_begin(struct call_walk *walk, struct walk_run *run);
/*
 * Continues up to the first event that is not earlier than `until`, and returns true there. False: the thread or the
 * time range has ended, or the walk failed.
 */
bool walk_run(struct call_walk *walk, struct walk_run *run, struct progress *progress, uint64_t until);
/* The time of the next event. Call it after walk_run() has returned true. */
uint64_t walk_run_next(const struct call_walk *walk, const struct walk_run *run);
int walk_thread_end(struct call_walk *walk, struct walk_run *run, int error);

#endif
