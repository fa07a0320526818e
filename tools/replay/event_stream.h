/*
 * event_stream.h - the event stream: all events of all shown threads in order of time, each with its function and
 * caller, for formats that are one table of events.
 *
 * call_walk.h goes thread by thread and reports calls. The event stream goes event by event through all threads and
 * processes at once (merge.h), with a stack for each thread (replay.h). The filter (filter.h) means the same as in
 * call_walk.h: events of hidden functions are not reported, and other events inside them belong to the innermost shown
 * function.
 *
 *   running     the function that is called or ends; for any other event the innermost one that runs
 *   caller      the innermost Python function below it, as frame.f_back is: C functions between are left out
 *
 * A call that begins with a stack snapshot (WIRE_FRAME) is not an event and is not reported; nor is the end of a call
 * by a gap or by the end of its thread. Unmatched ends are reported: such an end belongs to its function, and its
 * caller is the function that runs at that time.
 *
 * The initial stack of a time range is that of initial_stack.h. With --min-duration the trace is read twice, because
 * the duration of a call is known at its end only. Memory: a chunk and a stack for each live thread, four bytes a
 * function for each of them, and with --min-duration a bit for each call.
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
	int64_t ns;	  /* CLOCK_MONOTONIC; never decreases */
	uint32_t head;	  /* no bookkeeping but WIRE_REALLOC_BEGIN and WIRE_GAP */
	uint32_t running; /* keys (replay.h), or EVENT_STREAM_NOBODY */
	uint32_t caller;
	const uint64_t *extra;
};

/* begin, end and hidden may be NULL. */
struct event_stream_user {
	/* Before the first event of a process. Its keys are below `keys`; *user is the owner's data for it. */
	int (*begin)(void *owner, const struct trace_process *process, uint32_t keys, void **user);
	/* Soon after its last event, so that memory holds the data of concurrent processes only. */
	void (*end)(void *owner, const struct trace_process *process, void *user);
	/* Returns 0, or -errno, which ends the stream. */
	int (*event)(void *owner, const struct event_stream_event *event);
	/*
	 * The same for any event of the threads that --thread hides, where the process has another one and records
	 * memory: they may free the blocks of that one. running and caller are not set. NULL: they are not read.
	 */
	int (*hidden)(void *owner, const struct event_stream_event *event);
};

/*
 * The stream step by step, for readers that want the events in portions. trace, filter, progress and user must stay
 * valid. With --min-duration, opening reads the whole time range. Returns 0 or -errno.
 */
struct event_stream;
int event_stream_open(struct event_stream **stream, struct trace *trace, const struct filter *filter,
		      struct progress *progress, const struct event_stream_user *user, void *owner);
/*
 * Reports the next events, at most `events` (not 0) and at most TRACE_CHUNK_EVENTS_MAX + 1. Returns 1, or 0 at the end,
 * when end() was called for all processes; or -ENOMEM, or what the user's functions returned.
 */
int event_stream_step(struct event_stream *stream, uint32_t events);
/* stream may be NULL. */
void event_stream_close(struct event_stream *stream);

/* The whole stream. Returns 0, -ENOMEM, or what the user's functions returned. */
int event_stream_run(struct trace *trace, const struct filter *filter, struct progress *progress,
		     const struct event_stream_user *user, void *owner);

static inline const struct wire_definition *event_stream_definition(const struct trace_process *process, uint32_t key)
{
	return trace_name(key & 1 ? &process->functions : &process->codes, key / 2);
}

#endif
