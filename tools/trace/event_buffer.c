/* event_buffer.c - see event_buffer.h. */
#include "trace/event_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/wire.h"
#include "util/grow.h"

void event_buffer_put(struct event_buffer *buffer, uint32_t head, uint32_t ticks, const uint64_t *extra)
{
	if (buffer->error ||
	    grow_by_one(&buffer->heads, &buffer->heads_allocated, buffer->count, sizeof(*buffer->heads)) ||
	    grow_by_one(&buffer->ticks, &buffer->ticks_allocated, buffer->count, sizeof(*buffer->ticks))) {
		buffer->error = -ENOMEM;
		return;
	}
	buffer->heads[buffer->count] = head;
	buffer->ticks[buffer->count++] = ticks;
	for (unsigned words = wire_extra_words(head); words > 0 && !buffer->error; words--) {
		buffer->error = grow_by_one(&buffer->extras, &buffer->extras_allocated, buffer->extra_count,
					    sizeof(*buffer->extras));
		if (!buffer->error)
			buffer->extras[buffer->extra_count++] = *extra++;
	}
}

void event_buffer_put_at(struct event_buffer *buffer, uint64_t time, uint32_t head, const uint64_t *extra)
{
	uint64_t ticks = time > buffer->last ? time - buffer->last : 0;

	if (ticks > UINT32_MAX) {
		event_buffer_put(buffer, wire_head(WIRE_TIME, 0), 0, &time);
		ticks = 0;
		buffer->last = time;
	}
	buffer->last += ticks;
	event_buffer_put(buffer, head, (uint32_t)ticks, extra);
}

void event_buffer_done(struct event_buffer *buffer)
{
	free(buffer->heads);
	free(buffer->ticks);
	free(buffer->extras);
	memset(buffer, 0, sizeof(*buffer));
}
