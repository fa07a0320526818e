/*
 * initial_stack.c - reads back to the last recorded stack, and ahead for what is below it. See initial_stack.h. Called
 * by call_walk.c and event_stream.c.
 */
#include "replay/initial_stack.h"

#include <errno.h>
#include <stdlib.h>

#include "util/grow.h"

/*
 * Of one thread: calls, ends and lines. As a rule the stack is recorded at the first of them after 2^20 words. Other
 * events cannot record it; a function that allocates in a loop may have very many of these between.
 */
#define LOOK_BACK_EVENTS (UINT64_C(1) << 22)

static bool add_key(uint32_t **keys, uint32_t *count, size_t *allocated, uint32_t key)
{
	if (grow_by_one(keys, allocated, *count, sizeof(**keys)))
		return false;
	(*keys)[(*count)++] = key;
	return true;
}

static const struct replay_sink quiet = {0};

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
static int read_ends(struct initial_stack *initial, struct replay_cursor *cursor)
{
	const uint64_t unknown = UINT64_C(1) << WIRE_GAP | UINT64_C(1) << WIRE_STACK | UINT64_C(1) << WIRE_PAUSE |
				 UINT64_C(1) << WIRE_THREAD_END | UINT64_C(1) << WIRE_SWITCH |
				 UINT64_C(1) << WIRE_STACK_CHANGE;
	const struct replay *replay = initial->replay;

	while (cursor->at < cursor->events->count && !initial->over) {
		uint32_t head = cursor->events->heads[cursor->at], key = replay_key_of(replay, head);
		unsigned kind = wire_head_kind(head);

		replay_skip(initial->replay, cursor);
		initial->over = replay->now >= initial->to || unknown >> kind & 1;
		if (initial->over || kind < WIRE_CALL || kind > WIRE_C_EXCEPTION || replay_hides(replay, key))
			continue;
		if (replay_begins(kind) ? !add_key(&initial->keys, &initial->depth, &initial->allocated, key)
					: !note_end(initial, key))
			return -ENOMEM;
	}
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

	for (; cursor->at < initial->open_at; replay_skip(replay, cursor))
		if (wire_is_thin(wire_head_kind(events->heads[cursor->at]))) /* said again with the stack */
			replay_thin(replay, events->heads[cursor->at], cursor->extra, &quiet, NULL);
	initial->open_at = 0;
	replay->base_unknown = false;
	replay->c_functions_unknown = true;
	for (; cursor->at < events->count; cursor->at++) {
		uint32_t head = events->heads[cursor->at];

		initial->opening = is_open(head);
		if (!initial->opening)
			return;
		replay->now += events->ticks[cursor->at];
		if (wire_head_kind(head) == WIRE_AT_LINE)
			replay_set_line(replay, wire_head_arg(head));
		else
			replay_push_frame(replay, head, &quiet, NULL);
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

/* Whether a WIRE_STACK_CHANGE has the whole stack. */
static bool is_whole(uint32_t head)
{
	return !(head >> WIRE_VALUE_SHIFT & WIRE_CHANGE_STAY_MAX);
}

/*
 * Whether a chunk records the stack, or makes everything before it irrelevant (a gap). Sets opening and open_at if
 * WIRE_OPEN events record it. Adds to *chances the events at which it could have been recorded.
 */
static bool has_known_stack(struct initial_stack *initial, const struct trace_events *events, bool is_first,
			    uint64_t *chances)
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
		} else if (ends >> kind & 1 || (kind == WIRE_STACK_CHANGE && is_whole(events->heads[i]))) {
			initial->opening = false;
			found = true;
		}
		in_open = kind == WIRE_OPEN || kind == WIRE_GREENLET_STACK || (in_open && is_open(events->heads[i]));
		*chances += kind <= WIRE_C_EXCEPTION || kind == WIRE_LINE;
	}
	return found;
}

/*
 * The place of the thread (at most `first`) from which to read: the last one that records the stack, or the thread's
 * first. If that is too far back: `first`. Of what may still be read a quarter is left to the other threads.
 */
static size_t look_back(struct initial_stack *initial, size_t first)
{
	uint64_t most = *initial->look_back / 4 * 3, read = 0, chances = 0;
	size_t place = first;
	bool found = false;

	while (place && !found && read < most && chances < LOOK_BACK_EVENTS) {
		struct trace_stream stream;
		struct trace_events events;

		trace_stream_open(&stream, initial->trace, initial->thread);
		trace_stream_skip(&stream, --place);
		found = !trace_stream_next(&stream, &events) || has_known_stack(initial, &events, place == 0, &chances);
		initial->opening &= stream.next <= first; /* after damage it may be a later one */
		trace_stream_close(&stream);
		read += initial->thread->places[place].events;
	}
	*initial->look_back -= read < *initial->look_back ? read : *initial->look_back;
	return found || !place ? place : first;
}

static int read_all(struct initial_stack *initial)
{
	size_t first = look_back(initial, trace_stream_place(initial->thread, initial->from));
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

/*
 * The result: the frames found below, then the stack of the replay. Its hidden_base is between them, where there are
 * such. NULL: no memory.
 */
static struct replay_place *copy_stack(const struct initial_stack *initial, uint32_t count, uint32_t *hidden_base)
{
	struct replay_place *stack = calloc((size_t)count + 1, sizeof(*stack));

	for (uint32_t i = 0; stack && i < count; i++)
		if (i < initial->ended_count)
			stack[i].key = initial->ended[initial->ended_count - 1 - i];
		else
			stack[i] = replay_place_of(&initial->replay->frames[i - initial->ended_count]);
	*hidden_base = initial->replay->hidden_base;
	if (stack && initial->ended_count && *hidden_base) {
		stack[initial->ended_count - 1].hidden = *hidden_base;
		stack[initial->ended_count - 1].inside = true;
		*hidden_base = 0;
	}
	return stack;
}

int initial_stack_push(struct initial_stack *initial, uint64_t start, const struct replay_sink *sink, void *owner)
{
	int error = read_all(initial);
	uint32_t count = initial->ended_count + initial->replay->depth, hidden_base = 0;
	struct replay_place *stack = error ? NULL : copy_stack(initial, count, &hidden_base);

	replay_forget(initial->replay);
	initial->replay->hidden_base = hidden_base;
	initial->replay->now = start;
	for (uint32_t i = 0; stack && i < count; i++)
		replay_push_at(initial->replay, stack[i], WIRE_FRAME, sink, owner);
	error = stack ? 0 : -ENOMEM;
	free(stack);
	free(initial->keys);
	free(initial->ended);
	return error;
}

int initial_stack_follow(struct replay *replay, struct trace *trace, const struct trace_process *process,
			 const struct trace_thread *thread, uint64_t from, const struct replay_sink *sink, void *owner)
{
	uint64_t look_back = INITIAL_STACK_LOOK_BACK_EVENTS;
	struct initial_stack initial = {.trace = trace,
					.thread = thread,
					.replay = replay,
					.from = from,
					.to = UINT64_MAX,
					.look_back = &look_back};
	int error = replay_init(replay, process);

	if (error)
		return error;
	replay_begin_thread(replay);
	return from ? initial_stack_push(&initial, from, sink, owner) : 0;
}
