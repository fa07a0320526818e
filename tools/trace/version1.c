/*
 * version1.c - see version1.h.
 *
 * In version 1 the rare events had the kinds 19 to 27, with their number in the argument. The low bits of the argument
 * of WIRE_TIME, which had an absolute time in any case, gave it further meanings:
 *
 *   odd              WIRE_CPU: the time is above the bit, and in the bits of the ticks
 *   multiple of 4    WIRE_NATIVE_STACK: the id is above the two bits
 *   2                WIRE_OTHER_CALL
 *   14, of 4 bits    WIRE_AT_LINE: the line is above the bits
 *   other            nothing more
 */
#include "trace/version1.h"

#include <errno.h>

#define RARE_FIRST 19u /* WIRE_THREAD_START ... */
#define RARE_LAST 27u  /* ... to WIRE_PAUSE */
#define TIME_IS_CPU 1u
#define TIME_IS_CALL 2u
#define TIME_IS_LINE 14u
#define TIME_LINE_SHIFT 4
#define TIME_NATIVE_SHIFT 2

struct translation {
	uint32_t *heads;
	uint32_t *ticks;
	uint64_t *extras;
	uint32_t count;
	uint32_t extra_count;
	uint64_t now; /* after the last event */
};

static unsigned extra_words(unsigned kind)
{
	const uint32_t one = 1u << WIRE_MALLOC | 1u << WIRE_CALLOC | 1u << WIRE_FREE | 1u << WIRE_TIME |
			     1u << WIRE_GAP | 1u << WIRE_TASK;
	const uint32_t two = 1u << WIRE_REALLOC | 1u << WIRE_SWITCH;

	return (one >> kind & 1) + (two >> kind & 1) * 2;
}

uint64_t version1_extra_words(const uint32_t *heads, uint32_t count)
{
	uint64_t extras = 0;

	for (uint32_t i = 0; i < count; i++)
		extras += extra_words(wire_head_plain_kind(heads[i]));
	return extras;
}

static void put(struct translation *to, uint32_t head, uint32_t ticks)
{
	to->heads[to->count] = head;
	to->ticks[to->count++] = ticks;
}

static void put_extra(struct translation *to, uint64_t word)
{
	to->extras[to->extra_count++] = word;
}

static void put_time(struct translation *to, uint32_t head, uint32_t ticks, uint64_t time)
{
	put(to, head, ticks);
	put_extra(to, time);
	to->now = time;
}

/* An event that had an absolute time, and has ticks now. */
static void put_at(struct translation *to, uint32_t head, uint64_t time)
{
	if (time - to->now > UINT32_MAX)
		put_time(to, wire_head(WIRE_TIME, 0), 0, time);
	put(to, head, (uint32_t)(time - to->now));
	to->now = time;
}

static void translate_time(struct translation *to, uint32_t argument, uint32_t ticks, uint64_t time)
{
	uint32_t line = argument >> TIME_LINE_SHIFT;

	if (argument & TIME_IS_CPU)
		put_time(to, wire_head(WIRE_CPU, argument >> 1), ticks, time);
	else if (argument == TIME_IS_CALL)
		put_at(to, wire_head(WIRE_OTHER_CALL, 0), time);
	else if ((argument & ((1u << TIME_LINE_SHIFT) - 1)) == TIME_IS_LINE && line)
		put_at(to, wire_head(WIRE_AT_LINE, line), time);
	else if (argument && !(argument & ((1u << TIME_NATIVE_SHIFT) - 1)))
		put_at(to, wire_head(WIRE_NATIVE_STACK, argument >> TIME_NATIVE_SHIFT), time);
	else
		put_time(to, wire_head(WIRE_TIME, 0), ticks, time);
}

static void translate_rare(struct translation *to, unsigned kind, uint32_t number, uint32_t ticks)
{
	bool is_large = number > WIRE_VALUE_MAX;

	put(to, wire_extended(kind, is_large, is_large ? 0 : number), ticks);
	if (is_large)
		put_extra(to, number);
	to->now += ticks;
}

static void translate(struct translation *to, uint32_t head, uint32_t ticks, const uint64_t *extra)
{
	unsigned kind = wire_head_plain_kind(head);

	if (kind == WIRE_TIME) {
		translate_time(to, wire_head_arg(head), ticks, *extra);
	} else if (kind >= RARE_FIRST && kind <= RARE_LAST) {
		translate_rare(to, WIRE_THREAD_START + kind - RARE_FIRST, wire_head_arg(head), ticks);
	} else {
		put(to, head, ticks);
		for (unsigned i = 0; i < extra_words(kind); i++)
			put_extra(to, extra[i]);
		to->now += ticks;
	}
}

int version1_translate(struct trace_payload *payload, struct trace_events *events)
{
	/* At most one more event, and one more extra word, for each. */
	uint64_t words = (uint64_t)events->extra_count + events->count;
	struct translation to = {.now = events->first_ticks};
	const uint64_t *extra = events->extras;

	if (trace_reserve((void **)&payload->translated, &payload->translated_allocated,
			  (words + 2 * (uint64_t)events->count) * sizeof(uint64_t)) < 0)
		return -ENOMEM;
	to.extras = payload->translated;
	to.heads = (uint32_t *)(payload->translated + words);
	to.ticks = to.heads + 2 * (size_t)events->count;
	for (uint32_t i = 0; i < events->count; i++) {
		translate(&to, events->heads[i], events->ticks[i], extra);
		extra += extra_words(wire_head_plain_kind(events->heads[i]));
	}
	events->heads = to.heads;
	events->ticks = to.ticks;
	events->extras = to.extras;
	events->count = to.count;
	events->extra_count = to.extra_count;
	return 0;
}
