/*
 * events.h - the events of a chunk, out of its payload.
 */
#ifndef EVPROF_TOOLS_TRACE_EVENTS_H
#define EVPROF_TOOLS_TRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/chunk.h"

/*
 * Events, unpacked. Arrays stay valid until the next chunk is read into the same buffer.
 *
 * invariant: wire_extra_words() over the kinds of heads adds up to extra_count
 */
struct trace_events {
	const uint32_t *heads;
	const uint32_t *ticks;	/* since the event before */
	const uint64_t *extras; /* in the order of the events */
	uint32_t count;
	uint32_t extra_count;
	uint64_t first_ticks; /* before the first event */
	bool hole;	      /* events are missing before the first one: the call stack is unknown */
	uint64_t missing;     /* how many, where that is known */
};

/*
 * The one place that knows how events are laid out in a chunk. Returns 0, -EBADMSG where the payload contradicts
 * itself, or -ENOMEM.
 */
int trace_unpack_events(struct trace_payload *payload, struct trace_events *events);

#endif
