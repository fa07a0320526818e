/*
 * slow_calls.h - which calls of a trace that is being written took longer than a bound: the triggers of EVPROF_TRIGGER
 * that need events. For evprof watch, which a collector starts.
 *
 * The trace is followed from its beginning on, and each thread replayed with the stack that it had. A call that a
 * greenlet interrupts goes on with it. A call of a coroutine or a generator is one step.
 */
#ifndef EVPROF_TOOLS_SLOW_SLOW_CALLS_H
#define EVPROF_TOOLS_SLOW_SLOW_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/function_match.h"
#include "evprof/trigger.h"
#include "trace/reader.h"

struct slow_process;

/* A call that has ended, and took longer than the bound of a trigger. */
struct slow_call {
	unsigned trigger; /* its number */
	const struct trace_process *process;
	const struct trace_thread *thread;
	uint32_t key;
	int64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t ns;
};

struct slow_calls {
	/* Set by the owner. */
	struct trace *trace;
	const struct triggers *triggers;
	void (*found)(void *owner, const struct slow_call *found);
	void *owner;
	/* Internal. */
	struct function_match matches[TRIGGERS_MAX];
	struct slow_process **processes; /* by number */
	struct slow_thread **threads;	 /* by number; NULL: none, or it has ended */
	uint32_t process_count, thread_count;
	bool out_of_memory;
};

/* trace, triggers, found and owner are set. Returns 0 or -ENOMEM; slow_calls_done() must follow in both cases. */
int slow_calls_begin(struct slow_calls *watch);
/* Takes the chunks that the trace has now: after slow_calls_begin(), and after each trace_follow(). 0 or -ENOMEM. */
int slow_calls_next(struct slow_calls *watch);
void slow_calls_done(struct slow_calls *watch);

#endif
