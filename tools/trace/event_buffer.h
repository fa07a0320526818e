/*
 * event_buffer.h - events in memory, made one after the other: heads, ticks since the event before, extra words.
 */
#ifndef EVPROF_TOOLS_TRACE_EVENT_BUFFER_H
#define EVPROF_TOOLS_TRACE_EVENT_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct event_buffer {
	uint32_t *heads, *ticks;
	uint64_t *extras;
	size_t heads_allocated, ticks_allocated, extras_allocated;
	uint32_t count, extra_count;
	uint64_t last; /* time of the last event in ticks; the owner sets it before the first */
	int error;     /* -ENOMEM, once memory has run out; nothing is added afterwards */
};

/* Adds an event with its ticks as they are, and leaves `last`. */
void event_buffer_put(struct event_buffer *buffer, uint32_t head, uint32_t ticks, const uint64_t *extra);
/* Adds an event at that time, or at `last` if that is later, after a WIRE_TIME if 32 bits of ticks are too few. */
void event_buffer_put_at(struct event_buffer *buffer, uint64_t time, uint32_t head, const uint64_t *extra);
void event_buffer_done(struct event_buffer *buffer);

#endif
