/*
 * call_walk.h - the calls of a trace as the user chose them (filter.h), for the exporters.
 *
 * walk_trace() replays one thread after the other and tells a visitor when a call begins and ends, with times in ns
 * since the start of the trace that never go back within a thread, save that with a shortest duration a call is told of
 * when it is known to be long enough, which may be after other events in it. Functions, processes, threads, times,
 * short calls and depths that were not chosen are taken out here, so that no exporter thinks about them. Memory is
 * constant: one chunk of events, the stack, and a few bytes a function.
 *
 * What is on the stack when the chosen stretch begins, or when a gap was read over, begins there with kind WIRE_FRAME;
 * what is still running when it ends, ends there with WIRE_NONE. The events before the stretch are read from where the
 * stack was last told (WIRE_OPEN, or a gap), if that is not too far back: a window costs no more in a long trace. What
 * began earlier is known if it is a Python function, or ends in the stretch.
 *
 * Frames of a greenlet other than the thread's own come with walk_greenlet(), steps of a task with frame->task: see
 * there.
 */
#ifndef EVPROF_TOOLS_REPLAY_CALL_WALK_H
#define EVPROF_TOOLS_REPLAY_CALL_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/filter.h"
#include "replay/replay.h"
#include "trace/reader.h"
#include "util/progress.h"

/* One call on the shown stack; caller[0] is at frame[-1]. */
struct walk_frame {
	uint32_t key;	   /* replay.h: 2 * code id, or 2 * C function id + 1 */
	uint32_t kind;	   /* WIRE_CALL, RESUME, THROW, C_CALL or FRAME */
	int64_t start_ns;  /* since the start of the trace */
	uint64_t inner_ns; /* spent so far in the shown calls beneath */
	uint64_t user;	   /* the visitor's; 0 at the push */
	/*
	 * Not 0: the call is a step of that task, numbered from 1 as the thread's are met. Its first one was WIRE_CALL.
	 */
	uint32_t task;
	uint32_t task_name; /* a mark's id, or 0 */
	uint64_t task_address;
};

struct call_walk {
	struct trace *trace;
	const struct filter *filter;
	const struct trace_process *process;
	const struct trace_thread *thread;
	struct walk_frame *frames; /* the first `shown` were pushed; the others are not known to the visitor yet */
	uint32_t depth;
	uint32_t shown;
	int64_t now_ns;
	/* The machinery. */
	struct replay replay;
	struct trace_near near; /* of the process */
	const struct call_visitor *visitor;
	void *owner;
	uint32_t allocated;
	uint32_t shown_at_once; /* so many frames are, when they begin: with a shortest duration none */
	uint8_t *hidden;	/* by key */
	int error;
	struct u64_map tasks; /* that have not ended: address to number, and its name above */
	uint32_t task_count;
	uint64_t step; /* the task of the next call, 0: none; and the call's key */
	uint32_t step_key;
	uint32_t step_name;
	uint64_t look_back; /* so many events may yet be read before stretches */
};

/* Any may be NULL. Those with a result return 0 or -errno, which ends the visit. */
struct call_visitor {
	int (*process)(void *owner, struct call_walk *walk);
	int (*process_end)(void *owner, struct call_walk *walk);
	int (*thread)(void *owner, struct call_walk *walk);
	int (*thread_end)(void *owner, struct call_walk *walk);
	/* frame is the top of the stack; its number is frame - visit->frames. */
	void (*push)(void *owner, struct call_walk *walk, struct walk_frame *frame);
	/* how: WIRE_RETURN, YIELD, UNWIND, C_RETURN, C_EXCEPTION, or NONE. The duration is now_ns - start_ns. */
	void (*pop)(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how);
	/* Any other event that is no bookkeeping and no WIRE_TASK, and gaps, at now_ns. */
	void (*other)(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra);
	bool lines;	/* other() is also called with a WIRE_TIME that has the line of the innermost frame */
	bool no_events; /* processes and threads are told of, and nothing is read */
};

/* What a visitor may call to stop with an error; the first one counts. */
static inline void walk_fail(struct call_walk *walk, int error)
{
	if (!walk->error)
		walk->error = error;
}

/* The number of keys of the process being visited: an array by key has this many elements. */
static inline uint32_t walk_keys(const struct call_walk *walk)
{
	return walk->replay.keys;
}

/* 0: the thread's own stack runs. Else the number of the greenlet that does, in the order in which they are met. */
static inline uint32_t walk_greenlet(const struct call_walk *walk)
{
	return walk->replay.greenlet_number;
}

/* Does the top of the shown stack run, and not something above it that was not chosen? For line events. */
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

/* What a task is called: "task NAME (function) #2", or "task function #2" where it has no name. NULL: no memory. */
char *walk_task_name(const struct call_walk *walk, const struct walk_frame *frame);

/* Events that walk_trace() will count into progress. */
uint64_t walk_events(const struct trace *trace, const struct filter *filter);

/* Returns 0, -ENOMEM, or the first error of the visitor, which is looked for after each chunk. */
int walk_trace(struct trace *trace, const struct filter *filter, struct progress *progress,
	       const struct call_visitor *visitor, void *owner);

/*
 * All threads of one process at once, with a visit each, for who must hear of what they do in the order of time: the
 * visitor is told of a piece of one thread, then of a piece of another. The threads that --thread leaves out are
 * visited, too; process and process_end are not called. Memory: a chunk, a stack and four bytes a function for each
 * thread alive.
 */
int walk_together(struct trace *trace, const struct trace_process *process, const struct filter *filter,
		  struct progress *progress, const struct call_visitor *visitor, void *owner);

/* --- between call_walk.c and call_walk_merged.c --- */

/* A thread being read. It stays where it is: the stream is known by its address. */
struct walk_run {
	struct trace_stream stream;
	struct trace_events events;
	struct replay_cursor cursor; /* in events, if they are loaded */
	uint64_t from, to;	     /* the stretch, in ticks */
	bool loaded;
	bool inside; /* the stretch has begun */
	bool passed; /* it has ended */
};

void walk_init(struct call_walk *walk, struct trace *trace, const struct filter *filter,
	       const struct call_visitor *visitor, void *owner);
void walk_done(struct call_walk *walk);
/* With visit->thread and the replay set. Returns 0 or -errno, which walk_thread_end() wants to hear of. */
int walk_thread_begin(struct call_walk *walk, struct walk_run *run);
/*
 * Goes on before the first event that is not earlier than `until`. False: thread or stretch are at their end, or it
 * failed.
 */
bool walk_run(struct call_walk *walk, struct walk_run *run, struct progress *progress, uint64_t until);
/* The time at which it goes on. After walk_run() returned true. */
uint64_t walk_run_next(const struct call_walk *walk, const struct walk_run *run);
int walk_thread_end(struct call_walk *walk, struct walk_run *run, int error);

#endif
