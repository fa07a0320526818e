/*
 * named_events.h - the events that the program names itself: spans, marks and counters, for the tables of events
 * (export/csv.c, api/event_rows.c).
 *
 * The end of a span has its number only; its name is that of the begin, which comes before it in an event stream.
 */
#ifndef EVPROF_TOOLS_REPLAY_NAMED_EVENTS_H
#define EVPROF_TOOLS_REPLAY_NAMED_EVENTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "evprof/wire.h"
#include "util/u64_map.h"

struct named_event {
	uint64_t number; /* of spans; else 0 */
	double value;	 /* of counters; else 0 */
	uint32_t name;	 /* a mark's id; 0: an end whose begin was not seen */
};

static inline bool named_event_is(unsigned kind)
{
	return kind == WIRE_MARK || kind == WIRE_SPAN_BEGIN || kind == WIRE_SPAN_END || kind == WIRE_COUNTER;
}

/*
 * Takes an event of these kinds, with its extra words. open: the open spans of the process, number to name + 1; zeros
 * to begin with, then the caller's to free. Returns 0 or -ENOMEM.
 */
static inline int named_event_take(struct u64_map *open, uint32_t head, const uint64_t *extra,
				   struct named_event *event)
{
	uint64_t name = 0, *opened;

	*event = (struct named_event){0};
	switch (wire_head_kind(head)) {
	case WIRE_MARK:
		event->name = wire_argument(head, extra);
		break;
	case WIRE_COUNTER:
		event->name = (uint32_t)extra[0];
		event->value = wire_double(extra[1]);
		break;
	case WIRE_SPAN_BEGIN:
		event->name = (uint32_t)extra[0];
		event->number = extra[1];
		opened = event->number ? u64_map_make(open, event->number) : NULL;
		if (event->number && !opened)
			return -ENOMEM;
		if (opened)
			*opened = UINT64_C(1) + event->name;
		break;
	default:
		event->number = wire_number(head, extra);
		if (event->number && u64_map_take(open, event->number, &name))
			event->name = (uint32_t)(name - 1);
	}
	return 0;
}

#endif
