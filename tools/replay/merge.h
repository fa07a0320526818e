/*
 * merge.h - the events of several threads in order of time, with one chunk a thread in memory.
 *
 * Used by dump and by readers that need a process as a whole. A chunk is loaded when its time comes, not earlier.
 */
#ifndef EVPROF_TOOLS_REPLAY_MERGE_H
#define EVPROF_TOOLS_REPLAY_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/filter.h"
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
	void (*loaded)(void *owner, uint32_t events); /* called for each loaded chunk; may be NULL */
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
/*
 * Opens the threads of one process that --thread does not exclude, at a cost independent of other processes. Returns
 * the same.
 */
int merge_open_process(struct merge *merge, struct trace *trace, const struct trace_process *process,
		       const struct filter *filter);
/* Skips the chunks that end before that time (CLOCK_MONOTONIC, ns). Call it right after opening. */
void merge_skip(struct merge *merge, int64_t ns);
/* False at the end. Missing parts of the file are reported as gap events. */
bool merge_next(struct merge *merge, struct merge_event *event);
void merge_close(struct merge *merge);

#endif
