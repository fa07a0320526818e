/*
 * live.c - live blocks by stack. See live.h.
 */
#include "analysis/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "replay/program_end.h"
#include "replay/window.h"
#include "util/grow.h"

/* --- blocks --- */

/* What a block counts for; of a mapped range, which is always recorded: itself. */
static struct live_held weight_of(const struct live *live, const struct heap_block *block)
{
	uint64_t interval = live->interval;

	if (__builtin_expect(!interval, 1) || block->source == BLOCK_MAPPED)
		return (struct live_held){ESTIMATE_UNIT, block->bytes};
	return (struct live_held){estimate_blocks(interval, block->bytes), estimate_bytes(interval, block->bytes)};
}

static inline void change_sum(struct live *live, uint32_t number, unsigned source, uint64_t blocks, uint64_t bytes)
{
	struct live_sum *sum = &live->sums[number];

	if (sum->peaks != live->peaks) {
		sum->peak_blocks = sum->blocks;
		sum->peak_bytes = sum->bytes;
		sum->peaks = live->peaks;
	}
	sum->blocks += blocks;
	sum->bytes += bytes;
	live->sources[source] += bytes;
	live->shown_sources[source] += number ? bytes : 0;
	live->bytes += bytes;
}

#define PYMALLOC_BYTES_MAX 512	    /* a larger block is malloc()'s */
#define MMAP_THRESHOLD_BYTES 131072 /* the lowest of glibc, which maps a block from there on by itself ... */
#define MMAP_CHUNK_OFFSET 16	    /* ... and has it there in its first page */

static bool is_in_heap(const struct heap_block *block)
{
	if (block->source == BLOCK_MAPPED || (block->source == BLOCK_PYTHON && block->bytes <= PYMALLOC_BYTES_MAX))
		return false;
	return block->bytes < MMAP_THRESHOLD_BYTES || block->address % 4096 != MMAP_CHUNK_OFFSET;
}

static void allocation_was_temporary(struct live *live, uint32_t number, uint64_t size)
{
	live->sums[number].temporary++;
	if (number)
		live->sizes[wire_size_class(size)].temporary++;
}

/* A new maximum is the peak. */
static void note_peak(struct live *live)
{
	if (live->bytes <= live->peak_bytes)
		return;
	live->peak_bytes = live->bytes;
	live->peaks++;
	memcpy(live->peak_sources, live->shown_sources, sizeof(live->peak_sources));
}

static void live_gone(void *user, const struct heap_block *gone, int more, bool freed)
{
	struct live *live = user;

	struct live_held weight = weight_of(live, gone);

	change_sum(live, gone->owner, gone->source, (uint64_t)(int64_t)more * weight.blocks, -weight.bytes);
	if (is_in_heap(gone))
		live->heap_bytes -= weight.bytes;
	if (gone->shared)
		live->shared_bytes -= weight.bytes;
	if (more >= 0 || !freed || *live->latest_here != gone->address || live->interval)
		return;
	allocation_was_temporary(live, gone->owner, gone->bytes);
	*live->latest_here = 0;
}

static int live_made(struct live *live, const struct heap_block *made)
{
	struct live_held weight = weight_of(live, made);
	int error = blocks_add(&live->blocks, made);

	if (error)
		return error;
	change_sum(live, made->owner, made->source, weight.blocks, weight.bytes);
	if (is_in_heap(made))
		live->heap_bytes += weight.bytes;
	if (made->shared)
		live->shared_bytes += weight.bytes;
	note_peak(live);
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
		uint32_t function = stack_functions_of(live->functions, walk, &walk->frames[known]);

		number = function == UINT32_MAX ? 0 : stacks_find(&live->stacks, number, function);
		walk->frames[known].user = number;
	}
	return number;
}

/* The line at which the function with that key stands, by the place of the allocation; 0: not known. */
static uint32_t line_of_place(struct live *live, const struct call_walk *walk, uint32_t key)
{
	uint64_t *known = u64_map_make(&live->places_known, (uint64_t)walk->replay.place << 32 | key);

	if (known && !*known)
		*known = (uint64_t)trace_line(walk->process, key / 2, walk->replay.place) + 1;
	return known ? (uint32_t)(*known - 1) : 0;
}

/* The innermost Python function's place in the shown stack, and the line at which it is; UINT32_MAX: there is none. */
static uint32_t find_place_of_line(struct live *live, const struct call_walk *walk, uint32_t *line)
{
	uint32_t place = walk->shown;

	*line = 0;
	while (place-- > 0) {
		uint32_t known = place < walk->replay.depth ? walk->replay.frames[place].line : 0;

		*line = *line ? *line : known; /* recorded while a C function was on top */
		if (walk->frames[place].key & 1)
			continue;
		if (!*line && replay_placed(&walk->replay) == place)
			*line = line_of_place(live, walk, walk->frames[place].key);
		return place;
	}
	return UINT32_MAX;
}

/* The stack of that function at its line, with the C functions that it calls on top. 0 if memory ran out. */
static uint32_t find_at_line(struct live *live, struct call_walk *walk, uint32_t place, uint32_t line)
{
	uint32_t plain = (uint32_t)walk->frames[place].user, function, number;
	uint64_t *known = u64_map_make(&live->lines_known, (uint64_t)plain << 32 | line);

	if (known && !*known) {
		const struct stack_node *node = &live->stacks.at[plain];
		uint32_t parent = node->parent;

		function = stack_functions_find_line(live->functions, node->function, line);
		*known = function == UINT32_MAX ? 0 : stacks_find(&live->stacks, parent, function);
	}
	number = known ? (uint32_t)*known : 0;
	for (uint32_t i = place + 1; number && i < walk->shown; i++) {
		function = stack_functions_find(live->functions, walk, walk->frames[i].key);
		number = function == UINT32_MAX ? 0 : stacks_find(&live->stacks, number, function);
	}
	return number;
}

static const struct walk_frame *find_step(const struct call_walk *walk)
{
	for (uint32_t i = walk->shown; i-- > 0;)
		if (walk->frames[i].task)
			return &walk->frames[i];
	return NULL;
}

/* The stack with the task that runs on top. 0 if memory ran out. */
static uint32_t find_task(struct live *live, struct call_walk *walk, uint32_t number)
{
	const struct walk_frame *step = find_step(walk);
	uint64_t *known;

	if (!step)
		return number;
	known = u64_map_make(&live->tasks_known, ((uint64_t)walk->thread->number + 1) << 32 | step->task);
	if (known && !*known) {
		char *name = walk_task_name(walk, step);
		uint32_t function = name ? stack_functions_find_name(live->functions, LIVE_TASK, name) : UINT32_MAX;

		free(name);
		*known = (uint64_t)function + 1;
	}
	return known && *known <= UINT32_MAX ? stacks_find(&live->stacks, number, (uint32_t)*known - 1) : 0;
}

/* Counts allocations whose stack is not known. units: of ESTIMATE_UNIT. */
static void note_missing(struct live *live, const struct call_walk *walk, uint64_t units)
{
	const struct replay *replay = &walk->replay;
	bool empty = !replay->depth && !replay->hidden_base;

	if ((empty && (replay->base_unknown || !live->knows_calls)) ||
	    (live->functions->has_native_stacks && !replay->native_frame))
		live->missing_stacks += units;
}

/* The stack of the current allocations, with its native frames on top. 0 after walk_fail() if memory ran out. */
static uint32_t find_stack(struct live *live, struct call_walk *walk, uint64_t units)
{
	uint32_t number = find_python(live, walk), line, place = UINT32_MAX;

	note_missing(live, walk, units);
	stack_functions_note(live->functions, walk->replay.native_frame);
	if (live->lines)
		place = find_place_of_line(live, walk, &line);
	if (number && place != UINT32_MAX && line)
		number = find_at_line(live, walk, place, line);
	if (number && walk->replay.native_frame)
		number = stacks_find_with_native_frames(&live->stacks, live->functions, walk, number);
	if (number && live->tasks)
		number = find_task(live, walk, number);
	if (!number)
		walk_fail(walk, -ENOMEM);
	if (reserve_sums(live) < 0)
		walk_fail(walk, -ENOMEM);
	return number;
}

/* Records what each stack holds at the end, and replaces what was recorded before. Later stacks hold nothing then. */
static int snapshot_end(struct live *live)
{
	free(live->end);
	live->end_ticks = UINT64_MAX;
	live->end = calloc((size_t)live->sum_count + 1, sizeof(*live->end));
	if (!live->end)
		return -ENOMEM;
	live->end_count = live->sum_count;
	for (uint32_t i = 0; i < live->end_count; i++)
		live->end[i] = (struct live_held){live->sums[i].blocks, live->sums[i].bytes};
	memcpy(live->end_sources, live->shown_sources, sizeof(live->end_sources));
	return 0;
}

/* The stack of an allocation that succeeded, which is counted. 0: its thread is not shown, or after walk_fail(). */
static uint32_t count_allocation(struct live *live, struct call_walk *walk, const struct heap_block *made)
{
	struct live_held weight = weight_of(live, made);
	uint32_t number = filter_thread(walk->filter, walk->thread) ? find_stack(live, walk, weight.blocks) : 0;

	if (walk->error)
		return 0;
	live_held_add(&live->sums[number].made, &weight);
	if (number) {
		struct live_size *sizes = &live->sizes[wire_size_class(made->bytes)];

		sizes->allocations += weight.blocks;
		sizes->bytes += weight.bytes;
	}
	return number;
}

/* Allocations whose events are not in the trace, as their blocks are gone. */
static int take_freed(struct live *live, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	const struct live_held made = {extra[0], extra[1]};
	bool shown = filter_thread(walk->filter, walk->thread);
	uint32_t number = shown ? find_stack(live, walk, made.blocks) : 0;
	unsigned class = wire_freed_class(head);

	if (walk->error)
		return walk->error;
	live_held_add(&live->sums[number].made, &made);
	live->sums[number].temporary += extra[2];
	if (number && class < LIVE_SIZES) {
		live->sizes[class].allocations += made.blocks;
		live->sizes[class].bytes += made.bytes;
		live->sizes[class].temporary += extra[2];
	}
	return 0;
}

static int take_block(struct live *live, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct heap_block made;
	int error;

	live->latest_here = &live->latest[walk->thread->number];
	error = blocks_pass(&live->blocks, walk->thread->number, head, extra, &made);
	if (error || !made.address)
		return error;
	if (live->interval && !made.bytes) /* a realloc whose new block is not in the sample */
		return 0;
	if (!live->inside && !made.back) {
		walk->replay.native_frame = 0;
	} else if (made.source != BLOCK_OF_FILE) {
		if (!made.back)
			made.owner = count_allocation(live, walk, &made);
		error = walk->error ? walk->error : live_made(live, &made);
	}
	*live->latest_here = made.address;
	return error;
}

/* A mark that is both ends first. */
static int take_mark(struct live *live, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	uint64_t id = wire_number(head, extra);
	unsigned what = id < walk->process->marks.count ? live->marks[id] : 0;
	int error = 0;

	if (what & WINDOW_MARK_ENDS && live->inside) {
		live->inside = false;
		live->marked_ns = walk->now_ns;
		error = snapshot_end(live);
	}
	if (what & WINDOW_MARK_BEGINS)
		live->inside = true;
	return error;
}

/* What the live blocks were when the resident size was most. */
static void note_resident(struct live *live)
{
	memcpy(live->resident_sources, live->sources, sizeof(live->sources));
	live->resident_shared_bytes = live->shared_bytes;
	live->resident_ticks = 0;
}

static void live_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct live *live = owner;
	unsigned kind = wire_head_kind(head);
	uint64_t peaks = live->peaks;
	int error = 0;

	live->missing |= kind == WIRE_GAP || kind == WIRE_PAUSE;
	if (kind == WIRE_AT_INSTRUCTION)
		walk->frames[walk->shown - 1].user = 0;
	if (kind == WIRE_FREED && live->inside)
		error = take_freed(live, walk, head, extra);
	else if (kind == WIRE_MARK && live->marks)
		error = take_mark(live, walk, head, extra);
	else if (!blocks_want(kind))
		return;
	else if (__builtin_expect(walk->replay.now >= live->end_ticks, 0))
		error = snapshot_end(live);
	if (!error && live->moment && walk->replay.now >= live->moment_ticks)
		error = live->moment(live->moment_owner, live, walk->replay.now);
	live->any |= blocks_is_event(kind);
	if (__builtin_expect(live->resident_ticks && walk->replay.now > live->resident_ticks, 0))
		note_resident(live);
	if (!error && blocks_want(kind))
		error = take_block(live, walk, head, extra);
	if (live->peaks != peaks)
		live->peak_ns = walk->now_ns;
	if (live->watch && blocks_is_event(kind))
		live->watch(live->watcher, walk->now_ns, live->bytes);
	if (error)
		walk_fail(walk, error);
}

/* --- a process --- */

static void round_numbers(struct live *live)
{
	live->missing_stacks = estimate_whole(live->missing_stacks);
	for (unsigned i = 0; i < LIVE_SIZES; i++)
		live->sizes[i].allocations = estimate_whole(live->sizes[i].allocations);
}

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
	static const struct call_visitor visitor = {.other = live_other, .lines = true};
	int error = reserve_sums(live);

	live->blocks.gone = live_gone;
	live->blocks.user = live;
	live->functions = functions;
	live->interval = trace_process_memory_interval(walk->process);
	live->alive_only = trace_process_is_alive_only(walk->process);
	live->knows_calls = trace_process_records(walk->process, "call");
	live->inside = !live->marks;
	live->marked_ns = PROGRAM_END_NONE;
	live->latest = calloc((size_t)walk->trace->thread_count + 1, sizeof(*live->latest));
	if (!live->latest)
		error = -ENOMEM;
	if (!error)
		error = walk_together(walk->trace, walk->process, filter, progress, &visitor, live);
	round_numbers(live);
	if (live->resident_ticks)
		note_resident(live);
	return error ? error : list_by_thread(live, walk->trace);
}

int live_find(struct live *live, const struct call_walk *walk, enum live_moment moment,
	      struct stack_functions *functions, struct progress *progress)
{
	struct filter filter = *walk->filter; /* shares the patterns of the walk's filter, which owns them */
	int64_t end_ns = PROGRAM_END_NONE;
	int error;

	if (moment == LIVE_ALL)
		return live_find_both(live, walk, functions, progress, NULL, NULL, &end_ns);
	error = moment == LIVE_END ? find_end(walk, &end_ns) : 0;
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
	error = live_read(live, walk, walk->filter, functions, progress);
	if (live->marks && live->marked_ns != PROGRAM_END_NONE)
		*end_ns = live->marked_ns;
	return error;
}

static struct live_held rounded(struct live_held held)
{
	return (struct live_held){estimate_whole(held.blocks), held.bytes};
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
	    .made = rounded(sum->made),
	    .end = rounded((struct live_held){sum->blocks, sum->bytes}),
	    .peak = rounded(held_at_peak(live, sum)),
	    .temporary = sum->temporary,
	};

	if (live->end)
		weights.end = number < live->end_count ? rounded(live->end[number]) : (struct live_held){0};
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
		const struct live_weights weights = live_weigh(live, number);
		struct live_held held = moment == LIVE_PEAK ? weights.peak : weights.end;
		struct stack_node *node;

		if (moment == LIVE_TEMPORARY)
			held = (struct live_held){.blocks = weights.temporary};
		if (find_place(live, stacks, number) < 0)
			return -ENOMEM;
		node = &stacks->at[live->place[number]];
		node->live_blocks = held.blocks;
		node->live_bytes = held.bytes;
		if (moment != LIVE_ALL)
			continue;
		node->allocations = weights.made.blocks;
		node->bytes = weights.made.bytes;
	}
	return 0;
}

void live_forget(struct live *live)
{
	const struct live before = *live;

	live_done(live);
	live->missing = before.missing;
	live->lines = before.lines;
	live->tasks = before.tasks;
	live->marks = before.marks;
}

void live_done(struct live *live)
{
	stacks_done(&live->stacks);
	blocks_done(&live->blocks);
	u64_map_done(&live->places_known);
	u64_map_done(&live->lines_known);
	u64_map_done(&live->tasks_known);
	free(live->latest);
	free(live->sums);
	free(live->end);
	free(live->first);
	free(live->next);
	free(live->place);
	memset(live, 0, sizeof(*live));
}
