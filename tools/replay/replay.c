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

/* A saved stack, innermost frame last. */
struct replay_stack {
	struct replay_place *frames;
	uint32_t depth;
	uint32_t hidden_base;
	bool base_unknown;
	bool c_functions_unknown;
};

struct replay_stacks {
	struct u64_map numbers; /* greenlet: number + 1 */
	struct replay_stack *at;
	uint32_t *spare; /* free numbers */
	uint32_t spare_count;
	uint32_t count;
	uint32_t allocated;
	bool lost; /* stacks were dropped: a greenlet without a saved stack is unknown, not new */
};

/* Each stack is free or belongs to one greenlet. */
static inline bool stacks_add_up(const struct replay_stacks *stacks)
{
	return stacks->numbers.count + stacks->spare_count == stacks->count && stacks->count <= stacks->allocated;
}

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
	struct replay_stacks *stacks = replay->stacks;
	uint32_t i;

	if (!stacks)
		return;
	for (i = 0; i < stacks->count; i++)
		free(stacks->at[i].frames);
	free(stacks->at);
	free(stacks->spare);
	u64_map_done(&stacks->numbers);
	free(stacks);
	replay->stacks = NULL;
}

static struct replay_stacks *new_stacks(bool lost)
{
	struct replay_stacks *stacks = calloc(1, sizeof(*stacks));

	if (stacks)
		stacks->lost = lost;
	return stacks;
}

void replay_end_greenlets(struct replay *replay)
{
	bool lost = replay->stacks && replay->stacks->lost;

	free_stacks(replay);
	replay->greenlet = 0;
	replay->others_unknown |= lost;
}

void replay_forget_stacks(struct replay *replay)
{
	bool any = replay->stacks != NULL;

	replay->greenlet = 0;
	replay->greenlet_number = 0;
	free_stacks(replay);
	if (any)
		replay->stacks = new_stacks(true);
	replay->out_of_memory |= any && !replay->stacks;
}

/* The number of a free stack; UINT32_MAX if memory ran out. */
static uint32_t new_stack(struct replay_stacks *stacks)
{
	if (stacks->spare_count)
		return stacks->spare[--stacks->spare_count];
	invariant(stacks->count <= stacks->allocated);
	if (stacks->count == stacks->allocated) {
		uint32_t allocated = stacks->allocated ? stacks->allocated * 2 : 16;
		struct replay_stack *grown = realloc(stacks->at, allocated * sizeof(*grown));
		uint32_t *spare = grown ? realloc(stacks->spare, allocated * sizeof(*spare)) : NULL;

		if (grown)
			stacks->at = grown;
		if (!spare)
			return UINT32_MAX;
		stacks->spare = spare;
		stacks->allocated = allocated;
	}
	return stacks->count++;
}

static bool store_stack(struct replay *replay, uint64_t greenlet)
{
	struct replay_stacks *stacks = replay->stacks;
	uint64_t *number = u64_map_make(&stacks->numbers, greenlet);
	struct replay_stack *stack;
	uint32_t i, free_number;

	if (!number)
		return false;
	if (*number) {
		free_number = (uint32_t)*number - 1; /* the address is used again: the older stack was lost */
		free(stacks->at[free_number].frames);
	} else {
		free_number = new_stack(stacks);
		if (free_number == UINT32_MAX)
			return false;
	}
	*number = (uint64_t)free_number + 1;
	stack = &stacks->at[free_number];
	*stack = (struct replay_stack){.frames = malloc((replay->depth + 1) * sizeof(*stack->frames)),
				       .hidden_base = replay->hidden_base,
				       .base_unknown = replay->base_unknown,
				       .c_functions_unknown = replay->c_functions_unknown};
	if (!stack->frames)
		return false;
	for (i = 0; i < replay->depth; i++)
		stack->frames[i] = replay_place_of(&replay->frames[i]);
	stack->depth = replay->depth;
	invariant(stacks_add_up(stacks));
	return true;
}

/* Restores the stack of the greenlet. A greenlet without a saved stack begins with an empty one. */
static void restore_stack(struct replay *replay, uint64_t greenlet, const struct replay_sink *sink, void *owner)
{
	struct replay_stacks *stacks = replay->stacks;
	struct replay_stack *stack;
	uint64_t number;
	uint32_t i;

	replay->hidden_base = 0;
	if (!u64_map_take(&stacks->numbers, greenlet, &number) || !number) {
		replay->base_unknown = stacks->lost;
		replay->c_functions_unknown = false;
		return;
	}
	invariant(number <= stacks->count && stacks->at[number - 1].frames && !replay->depth);
	stack = &stacks->at[number - 1];
	replay->hidden_base = stack->hidden_base;
	replay->base_unknown = stack->base_unknown;
	replay->c_functions_unknown = stack->c_functions_unknown;
	for (i = 0; i < stack->depth; i++)
		replay_push_at(replay, stack->frames[i], WIRE_FRAME, sink, owner);
	free(stack->frames);
	stack->frames = NULL;
	stacks->spare[stacks->spare_count++] = (uint32_t)number - 1;
	invariant(stacks_add_up(stacks));
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

	if (!replay->stacks)
		replay->stacks = new_stacks(replay->others_unknown);
	if (!replay->stacks || !target || !origin || (known && !store_stack(replay, origin))) {
		replay->out_of_memory |= target && origin;
		return;
	}
	number_of(replay, origin);
	if (known)
		forget_ended(replay, origin);
	while (replay->depth)
		replay_pop(replay, WIRE_YIELD, sink, owner);
	replay->greenlet = target;
	replay->greenlet_number = number_of(replay, target);
	restore_stack(replay, target, sink, owner);
}

void replay_done(struct replay *replay)
{
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
	replay->numbers = (struct u64_map){0};
	replay->greenlet = 0;
	replay->greenlet_number = replay->greenlets = 0;
	replay->others_unknown = replay->begins_inside;
	replay->now = 0;
	replay->base_unknown = replay->begins_inside;
	replay->c_functions_unknown = false;
	replay->native_frame = 0;
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
