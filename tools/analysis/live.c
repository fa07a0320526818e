/*
 * live.c - live blocks by stack. See live.h.
 */
#include "analysis/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/program_end.h"
#include "util/grow.h"

#define LIVE_LARGE UINT32_MAX /* the size is in live->large */

/* --- blocks --- */

static inline void change_sum(struct live *live, uint32_t number, uint64_t blocks, uint64_t bytes)
{
	struct live_sum *sum = &live->sums[number];

	if (sum->peaks != live->peaks) {
		sum->peak_blocks = sum->blocks;
		sum->peak_bytes = sum->bytes;
		sum->peaks = live->peaks;
	}
	sum->blocks += blocks;
	sum->bytes += bytes;
	live->bytes += bytes;
}

static void block_gone(struct live *live, uint64_t address)
{
	uint64_t block, size;

	if (!address || !u64_map_take(&live->blocks, address, &block))
		return;
	size = (uint32_t)block;
	if (size == LIVE_LARGE)
		u64_map_take(&live->large, address, &size);
	change_sum(live, (uint32_t)(block >> 32), -UINT64_C(1), -size);
}

static int block_made(struct live *live, uint64_t address, uint64_t size, uint32_t number)
{
	uint64_t *block, *large;

	block_gone(live, address); /* if the address is known, its free was not recorded */
	block = u64_map_make(&live->blocks, address);
	if (!block)
		return -ENOMEM;
	*block = (uint64_t)number << 32 | (size < LIVE_LARGE ? size : LIVE_LARGE);
	if (size >= LIVE_LARGE) {
		large = u64_map_make(&live->large, address);
		if (!large)
			return -ENOMEM;
		*large = size;
	}
	change_sum(live, number, 1, size);
	if (live->bytes > live->peak_bytes) {
		live->peak_bytes = live->bytes;
		live->peaks++;
	}
	return 0;
}

/* --- stacks --- */

/* Makes room for the sums of all stacks so far. */
static int reserve_sums(struct live *live)
{
	uint32_t wanted = live->stacks.allocated ? (uint32_t)live->stacks.allocated : 1;

	return grow_zeroed(&live->sums, &live->sum_count, wanted, sizeof(*live->sums));
}

/* The Python stack. It is looked up at an allocation, not at each call, because most calls allocate nothing. */
static uint32_t find_python(struct live *live, struct call_walk *walk)
{
	uint32_t known = walk->shown, number;

	while (known && !walk->frames[known - 1].user)
		known--;
	number = known ? (uint32_t)walk->frames[known - 1].user : stacks_find(&live->stacks, 0, walk->thread->number);
	for (; number && known < walk->shown; known++) {
		uint32_t function = stack_functions_find(live->functions, walk, walk->frames[known].key);

		number = function == UINT32_MAX ? 0 : stacks_find(&live->stacks, number, function);
		walk->frames[known].user = number;
	}
	return number;
}

/* The stack of the current allocation, with its native frames on top. 0 after walk_fail() if memory ran out. */
static uint32_t find_stack(struct live *live, struct call_walk *walk)
{
	uint32_t number = find_python(live, walk);

	stack_functions_note(live->functions, walk->replay.native_frame);
	if (!number)
		walk_fail(walk, -ENOMEM);
	else if (walk->replay.native_frame)
		number = stacks_find_with_native_frames(&live->stacks, live->functions, walk, number);
	if (reserve_sums(live) < 0)
		walk_fail(walk, -ENOMEM);
	return number;
}

/* Records what each stack holds at the end of the program. Later stacks hold nothing at that time. */
static int snapshot_end(struct live *live)
{
	live->end_ticks = UINT64_MAX;
	live->end = calloc((size_t)live->sum_count + 1, sizeof(*live->end));
	if (!live->end)
		return -ENOMEM;
	live->end_count = live->sum_count;
	for (uint32_t i = 0; i < live->end_count; i++)
		live->end[i] = (struct live_held){live->sums[i].blocks, live->sums[i].bytes};
	return 0;
}

static int make_block(struct live *live, struct call_walk *walk, uint64_t address, uint64_t size)
{
	uint32_t number = filter_thread(walk->filter, walk->thread) ? find_stack(live, walk) : 0;
	uint64_t peaks = live->peaks;
	int error = walk->error ? walk->error : block_made(live, address, size, number);

	if (error)
		return error;
	live->sums[number].made.blocks++;
	live->sums[number].made.bytes += size;
	if (live->peaks != peaks)
		live->peak_ns = walk->now_ns;
	return 0;
}

static void live_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct live *live = owner;
	unsigned kind = wire_head_kind(head);
	uint64_t address;
	int error = 0;

	live->missing |= kind == WIRE_GAP || kind == WIRE_PAUSE;
	if (!wire_is_memory(kind))
		return;
	if (__builtin_expect(walk->replay.now >= live->end_ticks, 0))
		error = snapshot_end(live);
	address = wire_memory_address(extra[0]);
	if (kind == WIRE_FREE)
		block_gone(live, address);
	if (kind == WIRE_REALLOC && address)
		block_gone(live, wire_memory_address(extra[1]));
	if (!error && kind != WIRE_FREE && address)
		error = make_block(live, walk, address, wire_memory_size(head, extra[0]));
	if (live->watch)
		live->watch(live->watcher, walk->now_ns, live->bytes);
	if (error)
		walk_fail(walk, error);
}

/* --- a process --- */

/* Parents precede their children in each thread's list, as they do in the tree. */
static int list_by_thread(struct live *live, const struct trace *trace)
{
	uint32_t count = live->stacks.count, *thread;

	live->first = calloc((size_t)trace->thread_count + 1, sizeof(*live->first));
	live->next = calloc((size_t)count + 1, sizeof(*live->next));
	live->place = calloc((size_t)count + 1, sizeof(*live->place));
	thread = malloc(((size_t)count + 1) * sizeof(*thread));
	if (!live->first || !live->next || !live->place || !thread || reserve_sums(live) < 0) {
		free(thread);
		return -ENOMEM;
	}
	for (uint32_t i = 1; i < count; i++) {
		const struct stack_node *node = &live->stacks.at[i];

		thread[i] = node->parent ? thread[node->parent] : node->function;
	}
	for (uint32_t i = count; i-- > 1;) {
		live->next[i] = live->first[thread[i]];
		live->first[thread[i]] = i;
	}
	free(thread);
	return 0;
}

/* The end of the program, unless the filter sets an end: blocks that only finalization frees are live at that time. */
static int find_end(const struct call_walk *walk, int64_t *ns)
{
	const struct filter *filter = walk->filter;
	int error = 0;

	*ns = PROGRAM_END_NONE;
	if (!filter->to_given)
		error = program_end_find(walk->trace, walk->process, ns);
	if (!error && *ns <= filter_from(filter))
		*ns = PROGRAM_END_NONE;
	return error;
}

static int live_read(struct live *live, const struct call_walk *walk, const struct filter *filter,
		     struct stack_functions *functions, struct progress *progress)
{
	static const struct call_visitor visitor = {.other = live_other};
	int error = reserve_sums(live);

	live->functions = functions;
	if (!error)
		error = walk_together(walk->trace, walk->process, filter, progress, &visitor, live);
	return error ? error : list_by_thread(live, walk->trace);
}

int live_find(struct live *live, const struct call_walk *walk, enum live_moment moment,
	      struct stack_functions *functions, struct progress *progress)
{
	struct filter filter = *walk->filter; /* shares the patterns of the walk's filter, which owns them */
	int64_t end_ns = PROGRAM_END_NONE;
	int error = moment == LIVE_END ? find_end(walk, &end_ns) : 0;

	if (error)
		return error;
	if (end_ns != PROGRAM_END_NONE) {
		filter.to_given = true;
		filter.to_ns = end_ns;
	}
	live->end_ticks = UINT64_MAX;
	return live_read(live, walk, &filter, functions, progress);
}

int live_find_both(struct live *live, const struct call_walk *walk, struct stack_functions *functions,
		   struct progress *progress, live_watch *watch, void *watcher, int64_t *end_ns)
{
	int error = find_end(walk, end_ns);

	if (error)
		return error;
	live->end_ticks = UINT64_MAX;
	if (*end_ns != PROGRAM_END_NONE)
		live->end_ticks = trace_ticks(walk->process, walk->trace->start_ns + *end_ns);
	live->watch = watch;
	live->watcher = watcher;
	return live_read(live, walk, walk->filter, functions, progress);
}

static struct live_held held_at_peak(const struct live *live, const struct live_sum *sum)
{
	if (sum->peaks == live->peaks)
		return (struct live_held){sum->peak_blocks, sum->peak_bytes};
	return (struct live_held){sum->blocks, sum->bytes};
}

struct live_weights live_weigh(const struct live *live, uint32_t number)
{
	const struct live_sum *sum = &live->sums[number];
	struct live_weights weights = {
	    .made = sum->made, .end = {sum->blocks, sum->bytes}, .peak = held_at_peak(live, sum)};

	if (live->end)
		weights.end = number < live->end_count ? live->end[number] : (struct live_held){0};
	return weights;
}

/* Finds the same stack in the tree of its thread. Returns 0 or -ENOMEM. */
static int find_place(struct live *live, struct stacks *stacks, uint32_t number)
{
	const struct stack_node *node = &live->stacks.at[number];

	if (!stacks_reserve(stacks))
		return -ENOMEM;
	if (node->parent)
		live->place[number] = stacks_find(stacks, live->place[node->parent], node->function);
	return node->parent && !live->place[number] ? -ENOMEM : 0;
}

int live_put(struct live *live, const struct trace_thread *thread, enum live_moment moment, struct stacks *stacks)
{
	uint32_t number = live->first ? live->first[thread->number] : 0;

	for (; number; number = live->next[number]) {
		const struct live_sum *sum = &live->sums[number];
		struct live_held held = {sum->blocks, sum->bytes};
		struct stack_node *node;

		if (moment == LIVE_PEAK)
			held = held_at_peak(live, sum);
		if (find_place(live, stacks, number) < 0)
			return -ENOMEM;
		node = &stacks->at[live->place[number]];
		node->live_blocks = held.blocks;
		node->live_bytes = held.bytes;
	}
	return 0;
}

void live_forget(struct live *live)
{
	bool missing = live->missing;

	live_done(live);
	live->missing = missing;
}

void live_done(struct live *live)
{
	stacks_done(&live->stacks);
	u64_map_done(&live->blocks);
	u64_map_done(&live->large);
	free(live->sums);
	free(live->end);
	free(live->first);
	free(live->next);
	free(live->place);
	memset(live, 0, sizeof(*live));
}
