/*
 * initial_stack.c - reads back to the last recorded stack, and ahead for what is below it. See initial_stack.h. Called
 * by call_walk.c and event_stream.c.
 */
#include "replay/initial_stack.h"

#include <errno.h>
#include <stdlib.h>

#include "util/grow.h"

#define LOOK_BACK_EVENTS (UINT64_C(1) << 22) /* of one thread; as a rule the stack is recorded each 2^20 words */

static bool add_key(uint32_t **keys, uint32_t *count, size_t *allocated, uint32_t key)
{
	if (grow_by_one(keys, allocated, *count, sizeof(**keys)))
		return false;
	(*keys)[(*count)++] = key;
	return true;
}

static void quiet_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	(void)owner;
	(void)replay;
	(void)frame;
}

static void quiet_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	(void)owner;
	(void)replay;
	(void)frame;
	(void)how;
}

static int quiet_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	(void)owner;
	(void)replay;
	(void)head;
	(void)extra;
	return 0;
}

static const struct replay_sink quiet = {quiet_push, quiet_pop, quiet_other};

/* Takes an end inside the time range, as replay_mismatch() does. */
static bool note_end(struct initial_stack *initial, uint32_t key)
{
	uint32_t depth = initial->depth;

	if (!depth)
		return add_key(&initial->ended, &initial->ended_count, &initial->ended_allocated, key);
	while (depth && initial->keys[depth - 1] != key)
		depth--;
	if (depth)
		initial->depth = depth - 1;
	return true;
}

/* Reads the events of one chunk inside the time range. Returns 0 or -ENOMEM. */
static int read_ends(struct initial_stack *initial, const struct replay_cursor *cursor)
{
	const struct trace_events *events = cursor->events;
	const uint64_t *extra = cursor->extra;
	uint64_t now = initial->replay->now;
	uint32_t i;

	for (i = cursor->at; i < events->count && !initial->over; i++) {
		uint32_t key, head = events->heads[i];
		unsigned kind = wire_head_kind(head);

		now = wire_time_of(kind, now, events->ticks[i], extra);
		extra += wire_extra_words(head);
		initial->over = now >= initial->to || kind == WIRE_GAP || kind == WIRE_STACK || kind == WIRE_PAUSE ||
				kind == WIRE_THREAD_END || kind == WIRE_SWITCH;
		if (initial->over || kind < WIRE_CALL || kind > WIRE_C_EXCEPTION)
			continue;
		key = replay_key_of(initial->replay, head);
		if (replay_hides(initial->replay, key))
			continue;
		if (kind <= WIRE_THROW || kind == WIRE_C_CALL) {
			if (!add_key(&initial->keys, &initial->depth, &initial->allocated, key))
				return -ENOMEM;
		} else if (!note_end(initial, key)) {
			return -ENOMEM;
		}
	}
	initial->replay->now = now;
	return 0;
}

/* Copies the stack at the beginning of the range, which the search ahead pushes to and pops from. */
static int note_known_frames(struct initial_stack *initial)
{
	uint32_t i;

	initial->past = true;
	initial->over = !initial->replay->base_unknown; /* there are no frames below */
	for (i = 0; i < initial->replay->depth && !initial->over; i++)
		if (!add_key(&initial->keys, &initial->depth, &initial->allocated, initial->replay->frames[i].key))
			return -ENOMEM;
	return 0;
}

/* Skips the chunk's events before index `number`. */
static void skip_to_event(struct replay *replay, struct replay_cursor *cursor, uint32_t number)
{
	for (; cursor->at < number; cursor->at++) {
		uint32_t head = cursor->events->heads[cursor->at];

		replay->now =
		    wire_time_of(wire_head_kind(head), replay->now, cursor->events->ticks[cursor->at], cursor->extra);
		cursor->extra += wire_extra_words(head);
	}
}

/* A WIRE_OPEN event, or the line of one. */
static bool is_open(uint32_t head)
{
	return wire_head_kind(head) == WIRE_OPEN || wire_head_kind(head) == WIRE_AT_LINE;
}

/* Pushes the stack that WIRE_OPEN events list. The list may continue in the next chunk. */
static void take_open(struct initial_stack *initial, struct replay_cursor *cursor)
{
	const struct trace_events *events = cursor->events;
	struct replay *replay = initial->replay;

	skip_to_event(replay, cursor, initial->open_at);
	initial->open_at = 0;
	replay->base_unknown = false;
	replay->c_functions_unknown = true;
	for (; cursor->at < events->count; cursor->at++) {
		uint32_t head = events->heads[cursor->at], key = replay_key_of(replay, head);

		initial->opening = is_open(head);
		if (!initial->opening)
			return;
		replay->now += events->ticks[cursor->at];
		if (wire_head_kind(head) == WIRE_AT_LINE) {
			replay_set_line(replay, wire_head_arg(head));
			continue;
		}
		if (replay_hides(replay, key))
			replay_note_hidden(replay, true);
		else
			replay_push(replay, key, WIRE_FRAME, &quiet, NULL);
	}
}

static int read_running(struct initial_stack *initial, const struct trace_events *events)
{
	struct replay_cursor cursor = {.events = events, .extra = events->extras};
	int error = 0;

	if (initial->past || (events->hole && events->first_ticks >= initial->from)) {
		initial->over = events->hole;
		initial->replay->now = events->first_ticks;
	} else {
		cursor = replay_begin_chunk(initial->replay, events, &quiet, NULL);
		if (initial->opening)
			take_open(initial, &cursor);
		if (replay_run(initial->replay, &cursor, initial->from, &quiet, NULL) == 0)
			return 0;
		error = note_known_frames(initial);
	}
	if (!error && !initial->over)
		error = read_ends(initial, &cursor);
	return error;
}

/*
 * Whether a chunk records the stack, or makes everything before it irrelevant (a gap). Sets opening and open_at if
 * WIRE_OPEN events record it.
 */
static bool has_known_stack(struct initial_stack *initial, const struct trace_events *events, bool is_first)
{
	const uint64_t ends = UINT64_C(1) << WIRE_STACK | UINT64_C(1) << WIRE_GAP | UINT64_C(1) << WIRE_PAUSE;
	bool in_open = !is_first; /* the chunk before may begin a list that continues here */
	bool found = events->hole;
	uint32_t i;

	for (i = 0; i < events->count; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);

		if (kind == WIRE_OPEN && !in_open) {
			initial->opening = found = true;
			initial->open_at = i;
		} else if (ends >> kind & 1) {
			initial->opening = false;
			found = true;
		}
		in_open = kind == WIRE_OPEN || (in_open && is_open(events->heads[i]));
	}
	return found;
}

/*
 * The place of the thread (at most `first`) from which to read: the last one that records the stack, or the thread's
 * first. If that is too far back: `first`.
 */
static size_t look_back(struct initial_stack *initial, size_t first)
{
	uint64_t most = *initial->look_back < LOOK_BACK_EVENTS ? *initial->look_back : LOOK_BACK_EVENTS, read = 0;
	size_t place = first;
	bool found = false;

	while (place && !found && read < most) {
		struct trace_stream stream;
		struct trace_events events;

		trace_stream_open(&stream, initial->trace, initial->thread);
		trace_stream_skip(&stream, --place);
		found = !trace_stream_next(&stream, &events) || has_known_stack(initial, &events, place == 0);
		initial->opening &= stream.next <= first; /* after damage it may be a later one */
		trace_stream_close(&stream);
		read += initial->thread->places[place].events;
	}
	*initial->look_back -= read < *initial->look_back ? read : *initial->look_back;
	return found || !place ? place : first;
}

static int read_all(struct initial_stack *initial)
{
	size_t first = look_back(initial, initial_stack_place(initial->thread, initial->from));
	struct trace_stream stream;
	struct trace_events events;
	int error = 0;

	initial->replay->base_unknown |= first > 0;
	initial->replay->others_unknown |= first > 0;
	trace_stream_open(&stream, initial->trace, initial->thread);
	trace_stream_skip(&stream, first);
	while (!error && !initial->over && trace_stream_next(&stream, &events))
		error = read_running(initial, &events);
	trace_stream_close(&stream);
	return error;
}

static bool add_running(struct initial_stack *initial, struct replay_place place)
{
	if (initial->count == initial->stack_allocated &&
	    grow_zeroed(&initial->stack, &initial->stack_allocated, initial->count ? initial->count * 2 : 64,
			sizeof(*initial->stack)) < 0)
		return false;
	initial->stack[initial->count++] = place;
	return true;
}

/* The result: the frames found below, then the stack of the replay. */
static int build_stack(struct initial_stack *initial)
{
	const struct replay *replay = initial->replay;
	bool done = true;
	uint32_t i;

	while (done && initial->ended_count)
		done = add_running(initial, (struct replay_place){.key = initial->ended[--initial->ended_count]});
	for (i = 0; i < replay->depth && done; i++)
		done = add_running(initial, replay_place_of(&replay->frames[i]));
	return done ? 0 : -ENOMEM;
}

size_t initial_stack_place(const struct trace_thread *thread, uint64_t from)
{
	size_t first = 0;

	while (first < thread->place_count && thread->places[first].last_ticks < from)
		first++;
	return first;
}

int initial_stack_find(struct initial_stack *initial)
{
	int error = read_all(initial);

	if (!error)
		error = build_stack(initial);
	replay_forget(initial->replay);
	initial->replay->now = initial->from;
	return error;
}

void initial_stack_done(struct initial_stack *initial)
{
	free(initial->stack);
	free(initial->keys);
	free(initial->ended);
}
