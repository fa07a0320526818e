/*
 * replay.c - the parts of replay.h that are not in the inner loop.
 */
#include "replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/u64_map.h"
#include "util/grow.h"

int replay_init(struct replay *replay, const struct trace_process *process)
{
	memset(replay, 0, sizeof(*replay));
	replay->codes = process->codes.count;
	replay->begins_inside = strcmp(trace_process_text(process, "start"), "rejoin") == 0;
	replay->functions = process->functions.count;
	replay->keys = replay_keys_of(process);
	replay->open = calloc(replay->keys, sizeof(*replay->open));
	return replay->open ? 0 : -ENOMEM;
}

int replay_add_keys(struct replay *replay, const struct trace_process *process)
{
	uint32_t keys = replay_keys_of(process);

	if (keys > replay->keys &&
	    grow_zeroed(&replay->open, &replay->keys, keys + keys / 2, sizeof(*replay->open)) < 0)
		return -ENOMEM;
	replay->codes = process->codes.count;
	replay->functions = process->functions.count;
	return 0;
}

/* A saved stack, innermost frame last. */
struct replay_stack {
	uint32_t depth;
	uint32_t hidden_base;
	bool base_unknown;
	bool c_functions_unknown;
	struct replay_place frames[];
};

/* No key counts as open, as the stack is empty. */
static inline bool none_open(const struct replay *replay)
{
	for (uint32_t key = 0; key < replay->keys; key++)
		if (replay->open[key])
			return false;
	return true;
}

static void free_stacks(struct replay *replay)
{
	for (size_t i = 0; replay->stacks.slots && i <= replay->stacks.mask; i++)
		if (replay->stacks.slots[i].key)
			free((void *)(uintptr_t)replay->stacks.slots[i].value);
	u64_map_done(&replay->stacks);
	replay->has_stacks = false;
}

void replay_end_greenlets(struct replay *replay)
{
	replay->others_unknown |= replay->has_stacks && replay->stacks_lost;
	free_stacks(replay);
	replay->greenlet = 0;
}

void replay_forget_stacks(struct replay *replay)
{
	bool any = replay->has_stacks;

	replay->greenlet = 0;
	replay->greenlet_number = 0;
	free_stacks(replay);
	replay->has_stacks = replay->stacks_lost = any;
}

static bool store_stack(struct replay *replay, uint64_t greenlet)
{
	uint64_t *saved = u64_map_make(&replay->stacks, greenlet);
	struct replay_stack *stack;
	uint32_t i;

	if (!saved)
		return false;
	free((void *)(uintptr_t)*saved); /* the address is used again: the older stack was lost */
	stack = malloc(sizeof(*stack) + replay->depth * sizeof(*stack->frames));
	*saved = (uintptr_t)stack;
	if (!stack)
		return false;
	stack->depth = replay->depth;
	stack->hidden_base = replay->hidden_base;
	stack->base_unknown = replay->base_unknown;
	stack->c_functions_unknown = replay->c_functions_unknown;
	for (i = 0; i < replay->depth; i++)
		stack->frames[i] = replay_place_of(&replay->frames[i]);
	return true;
}

/* Restores the stack of the greenlet. A greenlet without a saved stack begins with an empty one. */
static void restore_stack(struct replay *replay, uint64_t greenlet, const struct replay_sink *sink, void *owner)
{
	struct replay_stack *stack;
	uint64_t saved;

	invariant(!replay->depth);
	replay->hidden_base = 0;
	if (!u64_map_take(&replay->stacks, greenlet, &saved) || !saved) {
		replay->base_unknown = replay->stacks_lost;
		replay->c_functions_unknown = false;
		return;
	}
	stack = (struct replay_stack *)(uintptr_t)saved;
	replay->hidden_base = stack->hidden_base;
	replay->base_unknown = stack->base_unknown;
	replay->c_functions_unknown = stack->c_functions_unknown;
	for (uint32_t i = 0; i < stack->depth; i++)
		replay_push_at(replay, stack->frames[i], WIRE_FRAME, sink, owner);
	free(stack);
}

/* The first greenlet of a thread gets number 0. As a rule it is the thread's own. */
static uint32_t number_of(struct replay *replay, uint64_t greenlet)
{
	uint64_t *number = u64_map_make(&replay->numbers, greenlet);

	if (!number) {
		replay->out_of_memory = true;
		return 0;
	}
	if (!*number)
		*number = ++replay->greenlets;
	return (uint32_t)*number - 1;
}

/*
 * Frees the number of a greenlet whose stack is empty: it has ended, and its address may be used again. The first
 * greenlet keeps its number.
 */
static void forget_ended(struct replay *replay, uint64_t greenlet)
{
	uint64_t number;

	if (!replay->depth && !replay->hidden_base && !replay->base_unknown && number_of(replay, greenlet))
		u64_map_take(&replay->numbers, greenlet, &number);
}

void replay_switch(struct replay *replay, const uint64_t *extra, const struct replay_sink *sink, void *owner)
{
	uint64_t target = extra[0], origin = extra[1];
	bool known = !replay->greenlet || replay->greenlet == origin;

	if (!replay->has_stacks)
		replay->stacks_lost = replay->others_unknown;
	replay->has_stacks = true;
	if (!target || !origin || (known && !store_stack(replay, origin))) {
		replay->out_of_memory |= target && origin;
		return;
	}
	number_of(replay, origin);
	if (known)
		forget_ended(replay, origin);
	replay->switching = true;
	while (replay->depth)
		replay_pop(replay, WIRE_YIELD, sink, owner);
	replay->greenlet = target;
	replay->greenlet_number = number_of(replay, target);
	restore_stack(replay, target, sink, owner);
	replay->switching = false;
}

static bool add_own(struct replay *replay, uint32_t key)
{
	int error = 0;

	if (replay->own_depth == replay->own_allocated)
		error = grow_by_one(&replay->own_stack, &replay->own_allocated, replay->own_depth,
				    sizeof(*replay->own_stack));
	replay->out_of_memory |= error != 0;
	if (!error)
		replay->own_stack[replay->own_depth++] = key;
	return !error;
}

void replay_change_stack(struct replay *replay, uint32_t head, const uint64_t *extra, const struct replay_sink *sink,
			 void *owner)
{
	uint32_t value = head >> WIRE_VALUE_SHIFT, stay = value & WIRE_CHANGE_STAY_MAX;

	replay->has_own_stack = true;
	replay->c_functions_unknown = true;
	if (!stay) {
		replay_pop_all(replay, sink, owner);
		replay->base_unknown = value & WIRE_CHANGE_CUT;
	}
	while (replay->own_depth > stay)
		if (replay_hides(replay, replay->own_stack[--replay->own_depth]))
			replay_note_hidden(replay, false, true);
		else if (replay->depth)
			replay_pop(replay, WIRE_NONE, sink, owner);
	for (unsigned i = 0; i < wire_extra_words(head) && replay->own_depth < REPLAY_DEPTH_MAX; i++) {
		uint32_t id = wire_place_code(extra[i]), key = id < replay->codes ? id * 2 : 0;

		if (!add_own(replay, key))
			return;
		if (replay_hides(replay, key))
			replay_note_hidden(replay, true, true);
		else
			replay_push_at(
			    replay, (struct replay_place){.key = key, .instruction = wire_place_instruction(extra[i])},
			    WIRE_FRAME, sink, owner);
	}
}

/* The innermost frame that is thinned with a thinned_key(): 1 + its index; 0: none. */
static size_t find_thinned(const struct replay *replay, uint32_t thinned)
{
	size_t depth = replay->depth;

	if (thinned >= replay->keys || !replay->open[thinned & ~1u])
		return 0;
	for (; depth; depth--) {
		const struct replay_frame *frame = &replay->frames[depth - 1];

		if (thinned & 1 ? frame->key & 1 && depth > 1 && frame[-1].key == thinned - 1 : frame->key == thinned)
			break;
	}
	return depth;
}

/* Takes a frame off the stack; of a Python function with the C function that it calls. The others stay. */
static void take_off(struct replay *replay, size_t depth, const struct replay_sink *sink, void *owner)
{
	struct replay_place above[64];
	uint32_t count = 0, key = replay->frames[depth - 1].key;

	while (replay->depth > depth) {
		if (count < sizeof(above) / sizeof(above[0]))
			above[count++] = replay_place_of(&replay->frames[replay->depth - 1]);
		replay_pop(replay, WIRE_NONE, sink, owner);
	}
	replay_pop(replay, WIRE_NONE, sink, owner);
	if (count && !(key & 1) && above[count - 1].key & 1)
		count--;
	while (count)
		replay_push_at(replay, above[--count], WIRE_FRAME, sink, owner);
}

void replay_thin(struct replay *replay, uint32_t head, const uint64_t *extra, const struct replay_sink *sink,
		 void *owner)
{
	if (!replay->thinning)
		replay->thinning = thinning_new(replay->keys);
	if (!replay->thinning) {
		replay->out_of_memory = true;
		return;
	}
	for (unsigned i = 0; i < WIRE_THIN_MOST && wire_head_kind(head) == WIRE_THIN; i++) {
		uint32_t thinned = thinned_key(head, extra, i);
		size_t depth;

		while (thinned && (depth = find_thinned(replay, thinned)))
			take_off(replay, depth, sink, owner);
	}
	thinning_change(replay->thinning, replay->now, head, extra);
	if (sink->thin)
		sink->thin(owner, replay, head, extra);
}

void replay_done(struct replay *replay)
{
	thinning_free(replay->thinning);
	free(replay->own_stack);
	free_stacks(replay);
	u64_map_done(&replay->numbers);
	free(replay->frames);
	free(replay->open);
	memset(replay, 0, sizeof(*replay));
}

void replay_begin_thread(struct replay *replay)
{
	replay_forget(replay);
	free_stacks(replay);
	u64_map_done(&replay->numbers);
	replay->greenlet = 0;
	replay->greenlet_number = replay->greenlets = 0;
	replay->others_unknown = replay->begins_inside;
	replay->now = 0;
	replay->open_frames = 0;
	replay->base_unknown = replay->begins_inside;
	replay->c_functions_unknown = false;
	replay->native_frame = 0;
	replay->place = 0;
	replay->own_depth = 0;
	replay->has_own_stack = false;
	if (replay->thinning)
		thinning_begin_thread(replay->thinning);
}

void replay_forget(struct replay *replay)
{
	while (replay->depth)
		replay->open[replay->frames[--replay->depth].key]--;
	invariant(none_open(replay));
	replay->hidden_base = 0;
}

bool replay_grow(struct replay *replay)
{
	int error;

	if (replay->allocated >= REPLAY_DEPTH_MAX)
		return false;
	error = grow_by_one(&replay->frames, &replay->allocated, replay->allocated, sizeof(*replay->frames));
	replay->out_of_memory |= error != 0;
	return !error;
}
