/*
 * event_stream.h - the events of all chosen threads in one order of time, each with the function that it belongs to and
 * that function's caller, for formats that are one table of events.
 *
 * Where call_walk.h goes thread by thread and tells of calls, this goes event by event through all threads and
 * processes at once (merge.h), with a stack for each thread (replay.h). The choices of filter.h are made here, and
 * mean what they mean in call_walk.h: no event of what was not chosen is told, and the rest belongs to the innermost
 * function that is shown.
 *
 *   running     the function that is called or ends; for any other event the innermost one that runs
 *   caller      the innermost Python function below it, as frame.f_back is: C functions between are left out
 *
 * A call that begins with a taken stack (WIRE_FRAME), and an end that a gap or the end of the thread takes, are no
 * events and are not told. An end whose beginning is not known is: it belongs to its function, and its caller is what
 * runs then.
 *
 * What runs when a stretch of time begins is known as initial_stack.h says. With --min-duration the trace is read
 * twice: which calls last long enough is known at their ends only. Memory: a chunk and a stack for each thread
 * alive, four bytes a function for each of them, and with --min-duration a bit for each call.
 */
#ifndef EVPROF_TOOLS_REPLAY_EVENT_STREAM_H
#define EVPROF_TOOLS_REPLAY_EVENT_STREAM_H

#include <stdint.h>

#include "replay/filter.h"
#include "replay/replay.h"
#include "trace/reader.h"
#include "util/progress.h"

#define EVENT_STREAM_NOBODY UINT32_MAX

struct event_stream_event {
	const struct trace_process *process;
	const struct trace_thread *thread;
	void *user;	  /* of the process, as event_stream_user.begin() gave it */
	int64_t ns;	  /* CLOCK_MONOTONIC; never less than that of the event before */
	uint32_t head;	  /* never bookkeeping */
	uint32_t running; /* keys (replay.h), or EVENT_STREAM_NOBODY */
	uint32_t caller;
	const uint64_t *extra;
};

/* begin and end may be NULL. */
struct event_stream_user {
	/* Before the first event of a process: what the owner keeps for it, of which keys are below `keys`. */
	int (*begin)(void *owner, const struct trace_process *process, uint32_t keys, void **user);
	/* After its last one, soon: so that what is kept is that of the processes that ran at the same time. */
	void (*end)(void *owner, const struct trace_process *process, void *user);
	/* Returns 0, or -errno, which ends it all. */
	int (*event)(void *owner, const struct event_stream_event *event);
};

/* Returns 0, -ENOMEM, or what the user's functions returned. */
int event_stream_run(struct trace *trace, const struct filter *filter, struct progress *progress,
		     const struct event_stream_user *user, void *owner);

static inline const struct wire_definition *event_stream_definition(const struct trace_process *process, uint32_t key)
{
	return trace_name(key & 1 ? &process->functions : &process->codes, key / 2);
}

#endif
