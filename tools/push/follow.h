/*
 * follow.h - traces that are pushed: their processes, what these did in the last interval, and the requests of it. For
 * push.c.
 */
#ifndef EVPROF_TOOLS_PUSH_FOLLOW_H
#define EVPROF_TOOLS_PUSH_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/body.h"
#include "push/sender.h"
#include "trace/reader.h"

/* Where requests go. */
struct push_target {
	struct sender *sender;
	struct push_body body;
	bool gzip;	    /* requests are compressed as a whole */
	uint64_t id[2];	    /* of the last profile */
	uint64_t intervals; /* of processes that were pushed */
	bool failed;	    /* memory ran out for one */
};

void push_target_init(struct push_target *target, struct sender *sender, const struct push_settings *settings);
void push_target_done(struct push_target *target);

/* A process, and what it did since the last interval. */
struct push_process {
	struct push_counts counts;
	struct push_resource resource;
	int64_t begin_ns; /* CLOCK_MONOTONIC: of the interval */
};

/* Begins a process at that time (CLOCK_MONOTONIC); 0: at its start. NULL: memory ran out. */
struct push_process *push_process_new(struct trace *trace, const struct trace_process *process, int64_t from_ns);
/* Ends an interval, and queues its requests. has_live: live blocks of now count. Returns 0 or -ENOMEM. */
int push_process_emit(struct push_process *process, struct push_target *target, int64_t until_ns, bool has_live);
void push_process_free(struct push_process *process);

/* Pushes a whole trace, in intervals of that length of its time. Returns 0 or -ENOMEM. */
int push_whole(struct trace *trace, struct push_target *target, int64_t interval_ns, const volatile bool *stop);

/* A trace that is being written. */
struct push_source {
	char *path;
	struct trace *trace;
	struct push_process **processes;
	size_t process_count, processes_allocated;
	uint32_t seen;	  /* processes of the trace that were looked at */
	int64_t until_ns; /* CLOCK_MONOTONIC: all events until then have been counted */
	bool is_listed;
	bool has_budget; /* a process of it, and a line has said what follows */
};

/*
 * Processes of a trace that began before began_ns count from now_ns on; INT64_MAX: such a trace is not taken. All
 * others count from their start. Returns 0, with *source NULL if it is not taken, or -errno: it cannot be read, or
 * memory ran out. With INT64_MAX, one without an event is -EINVAL, as one without a header: its age is not known.
 */
int push_source_open(struct push_source **source, const char *path, int64_t began_ns, int64_t now_ns);
/*
 * Counts what is new, up to that time; INT64_MAX: to the end. Processes that have ended are pushed and forgotten.
 * Returns 0 or -ENOMEM.
 */
int push_source_count(struct push_source *source, struct push_target *target, int64_t until_ns);
/* Pushes the interval of all processes, up to the last moment until which all is known. Returns 0 or -ENOMEM. */
int push_source_emit(struct push_source *source, struct push_target *target);
void push_source_free(struct push_source *source);

#endif
