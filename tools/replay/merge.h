/*
 * merge.h - the events of several threads in order of time, with one chunk a thread in memory.
 *
 * Used by dump and by readers that need a process as a whole. A chunk is loaded when its time comes, not earlier.
 */
#ifndef EVPROF_TOOLS_REPLAY_MERGE_H
#define EVPROF_TOOLS_REPLAY_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"
#include "util/time_heap.h"

struct merge_source {
	struct trace_stream stream;
	const struct trace_process *process;
	struct trace_near near;
	struct trace_events events;
	const uint64_t *extra;
	uint32_t at;
	uint64_t ticks;
	int64_t ns; /* of the next event */
	bool loaded;
};

struct merge {
	struct trace *trace;
	struct merge_source *sources;
	uint32_t source_count;
	struct time_heap heap;
	int64_t until_ns; /* the events of the first source before that time are the next ones */
	int64_t end_ns;	  /* no chunk from that time on is read */
	/* Called for each loaded chunk; may be NULL. */
	void (*loaded)(void *owner, const struct trace_thread *thread, uint32_t events);
	void *owner;
};

struct merge_event {
	const struct trace_process *process;
	const struct trace_thread *thread;
	const uint64_t *extra;
	int64_t ns; /* CLOCK_MONOTONIC */
	uint32_t head;
};

/* Opens all threads for which wanted() returns true; NULL: all. Returns 0 or -ENOMEM. */
int merge_open(struct merge *merge, struct trace *trace,
	       bool (*wanted)(void *owner, const struct trace_process *process, const struct trace_thread *thread),
	       void *owner);
/* Opens the threads of one process, at a cost independent of other processes. Returns the same. */
int merge_open_process(struct merge *merge, struct trace *trace, const struct trace_process *process);
/* Skips the chunks that end before that time (CLOCK_MONOTONIC, ns). Call it right after opening. */
void merge_skip(struct merge *merge, int64_t ns);
/* Leaves out the chunks that begin at that time or later; events from it on may come. */
void merge_end_at(struct merge *merge, int64_t ns);
/* False at the end. Missing parts of the file are reported as gap events. */
bool merge_next(struct merge *merge, struct merge_event *event);
void merge_close(struct merge *merge);

/*
 * The same in stretches, for loops over every event: merge_first() is the thread with the next event, NULL at the
 * end. Its events come next as long as merge_goes_on(); merge_take() takes them. merge_first() must be called after
 * that, and the arrays of the stretch stay valid until then.
 */
struct merge_source *merge_first(struct merge *merge);

/* Whether the next event is this thread's, and the chunk in memory has it. */
static inline bool merge_goes_on(const struct merge *merge, const struct merge_source *source)
{
	return source->loaded && source->ns < merge->until_ns;
}

/* Sets the time of the event at source->at. */
static inline void merge_find_time(struct merge_source *source)
{
	source->ticks = wire_time_of(wire_head_kind(source->events.heads[source->at]), source->ticks,
				     source->events.ticks[source->at], source->extra);
	source->ns = trace_near_ns(&source->near, source->process, source->ticks);
}

static inline void merge_take(struct merge_source *source, struct merge_event *event)
{
	event->ns = source->ns;
	event->extra = source->extra;
	if (__builtin_expect(source->events.hole, 0)) {
		source->events.hole = false;
		event->head = wire_head(WIRE_GAP, 0);
		event->extra = &source->events.missing;
	} else {
		event->head = source->events.heads[source->at++];
		if (wire_extra_words(event->head)) /* else it may be NULL, to which nothing may be added */
			source->extra += wire_extra_words(event->head);
	}
	/* The next chunk is loaded at its own time, which is not before this one's last event. */
	if (source->at < source->events.count)
		merge_find_time(source);
	else
		source->loaded = false;
}

#endif
