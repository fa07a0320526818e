/*
 * thread_replay.h - one thread of a trace that may still be written, replayed as its chunks come.
 *
 * Its address must stay the same while it is open: that of the stream identifies it.
 */
#ifndef EVPROF_TOOLS_REPLAY_THREAD_REPLAY_H
#define EVPROF_TOOLS_REPLAY_THREAD_REPLAY_H

#include "replay/replay.h"

struct thread_replay {
	struct replay replay;
	struct trace_stream stream; /* stream.thread: the thread */
};

/* Returns 0; or -ENOMEM, with nothing to be closed. */
static inline int thread_replay_open(struct thread_replay *one, struct trace *trace,
				     const struct trace_process *process, const struct trace_thread *thread)
{
	int error = replay_init(&one->replay, process);

	if (error)
		return error;
	replay_begin_thread(&one->replay);
	trace_stream_open(&one->stream, trace, thread);
	return 0;
}

/* Replays the next chunk. False: there is none now; the next call looks again. */
static inline bool thread_replay_chunk(struct thread_replay *one, const struct replay_sink *sink, void *owner)
{
	struct replay_cursor cursor;
	struct trace_events events;

	if (!trace_stream_next(&one->stream, &events)) {
		one->stream.next = 0; /* the next places are new ones */
		return false;
	}
	cursor = replay_begin_chunk(&one->replay, &events, sink, owner);
	replay_run(&one->replay, &cursor, UINT64_MAX, sink, owner);
	return true;
}

static inline void thread_replay_close(struct thread_replay *one)
{
	trace_stream_close(&one->stream);
	replay_done(&one->replay);
}

#endif
