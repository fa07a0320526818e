/*
 * events.h - unpacks the events of a chunk from its payload.
 */
#ifndef EVPROF_TOOLS_TRACE_EVENTS_H
#define EVPROF_TOOLS_TRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/chunk.h"

/*
 * The unpacked events of a chunk. The arrays stay valid until the next chunk is read into the same buffer.
 *
 * invariant: wire_extra_words() over the kinds of heads adds up to extra_count
 */
struct trace_events {
	const uint32_t *heads;
	const uint32_t *ticks;	/* since the previous event */
	const uint64_t *extras; /* in the order of the events */
	uint32_t count;
	uint32_t extra_count;
	uint64_t first_ticks; /* time before the first event */
	bool hole;	      /* events are missing before the first: the call stack is unknown */
	uint64_t missing;     /* the number of missing events, if known */
};

/*
 * The only function that knows the layout of events in a chunk. Returns 0, -EBADMSG if the payload is inconsistent, or
 * -ENOMEM.
 */
int trace_unpack_events(struct trace_payload *payload, struct trace_events *events);

#endif
