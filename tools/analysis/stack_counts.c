/*
 * stack_counts.c - the visitor that counts by stack. See stack_counts.h.
 */
#include "analysis/stack_counts.h"

#include <errno.h>
#include <string.h>

#include "analysis/memory_estimate.h"

struct counting {
	struct stacks stacks;
	struct stack_functions *functions;
	const struct stacks_visitor *visitor;
	void *owner;
	struct progress *progress;
	struct live live;  /* of the process */
	uint64_t interval; /* trace_process_memory_interval() */
	/*
	 * For a sampled process: the stack and time of the last line event. Of several line events at one time, the
	 * innermost is the sample.
	 */
	uint32_t line_stack;
	int64_t line_ns;
};

static int count_process(void *owner, struct call_walk *walk)
{
	struct counting *counting = owner;
	int error = stack_functions_process(counting->functions, walk);

	counting->interval = trace_process_memory_interval(walk->process);
	if (!error && counting->visitor->process)
		error = counting->visitor->process(counting->owner, walk);
	counting->live.lines = true;
	if (!error && counting->visitor->live)
		error =
		    live_find(&counting->live, walk, counting->visitor->live, counting->functions, counting->progress);
	return error;
}

static int count_process_end(void *owner, struct call_walk *walk)
{
	struct counting *counting = owner;

	(void)walk;
	live_forget(&counting->live);
	return 0;
}

static void count_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct counting *counting = owner;
	uint32_t function = stack_functions_of(counting->functions, walk, frame);
	uint32_t number = 0;

	if (function == UINT32_MAX)
		walk_fail(walk, -ENOMEM);
	else
		number = stacks_push(&counting->stacks, walk, frame, function);
	if (!number)
		return;
	if (!counting->functions->sampled)
		counting->stacks.at[number].calls += frame->kind != WIRE_FRAME;
	else if (counting->line_stack && counting->line_ns == walk->now_ns &&
		 counting->line_stack == counting->stacks.at[number].parent)
		counting->stacks.at[counting->line_stack].calls--;
	counting->line_stack = 0;
}

/*
 * The top of the shown stack moves to a line: its time so far is charged to the previous line, and the node for the new
 * line becomes the top.
 */
static void count_line(struct counting *counting, struct call_walk *walk, uint32_t function)
{
	struct walk_frame *frame = &walk->frames[walk->shown - 1];
	uint64_t own_ns = (uint64_t)(walk->now_ns - frame->start_ns) - frame->inner_ns;
	uint32_t before = (uint32_t)frame->user, now = stacks_push(&counting->stacks, walk, frame, function);

	if (!now)
		return;
	counting->stacks.at[before].own_ns += own_ns;
	counting->stacks.at[now].own_ns -= own_ns; /* the pop adds the time of the whole call */
	counting->stacks.at[now].calls++;
	counting->line_stack = now;
	counting->line_ns = walk->now_ns;
}

/* The top of the shown stack stands at another line at the next allocation. */
static void count_instruction(struct counting *counting, struct call_walk *walk)
{
	struct walk_frame *frame = &walk->frames[walk->shown - 1];
	uint32_t function = stack_functions_of(counting->functions, walk, frame);

	if (function == UINT32_MAX)
		walk_fail(walk, -ENOMEM);
	else
		stacks_push(&counting->stacks, walk, frame, function);
}

static void count_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct counting *counting = owner;

	(void)how;
	if (frame->user)
		counting->stacks.at[frame->user].own_ns += (uint64_t)(walk->now_ns - frame->start_ns) - frame->inner_ns;
}

#define NATIVE_DEPTH_MAX 128 /* frames shown of a native stack: twice the recorded maximum */

uint32_t stacks_find_with_native_frames(struct stacks *stacks, struct stack_functions *functions,
					struct call_walk *walk, uint32_t python)
{
	const struct trace_process *process = walk->process;
	uint32_t number = python;
	uint32_t frames[NATIVE_DEPTH_MAX], count = 0, frame = walk->replay.native_frame;
	const struct wire_definition *definition;

	walk->replay.native_frame = 0;
	while (count < NATIVE_DEPTH_MAX && (definition = trace_name(&process->native_frames, frame))) {
		frames[count++] = frame;
		frame = definition->number < frame ? definition->number : 0;
	}
	while (count-- > 0) {
		const struct native_functions *list = stack_functions_of_frame(functions, process, frames[count]);

		for (uint32_t i = 0; list && i < list->count; i++) {
			number = stacks_find(stacks, number, functions->pool[list->first + i]);
			if (!number)
				break;
		}
		if (!list || (list->count && !number)) {
			walk_fail(walk, -ENOMEM);
			return 0;
		}
		if (!list->count) /* the Python stack stands for these frames (trace/native_stack.h) */
			number = python;
	}
	return number;
}

/* Whether the event allocates, how much. A realloc whose new block is not in the sample has size 0. */
static bool allocates(uint64_t interval, uint32_t head, const uint64_t *extra, uint64_t *units, uint64_t *bytes)
{
	unsigned kind = wire_head_kind(head);
	struct mapped_range range;

	if (kind == WIRE_FREED) {
		*units = extra[0];
		*bytes = extra[1];
		return true;
	}
	if (kind != WIRE_MMAP)
		return estimate_event(interval, head, extra, units, bytes) && (!interval || *bytes);
	range = mapped_range_of(head, extra);
	*units = ESTIMATE_UNIT;
	*bytes = range.end - range.begin;
	/* What mremap() has moved counts: that it is of a file shows in the blocks only (blocks.h). */
	return head >> WIRE_VALUE_SHIFT != WIRE_MMAP_FILE && range.begin < range.end;
}

static void count_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct counting *counting = owner;
	uint32_t number = stack_functions_at_line(counting->functions, walk, head);
	uint64_t units, bytes;

	if (wire_head_kind(head) == WIRE_AT_INSTRUCTION)
		count_instruction(counting, walk);
	if (number != UINT32_MAX)
		count_line(counting, walk, number);
	if (!counting->visitor->allocations || !allocates(counting->interval, head, extra, &units, &bytes))
		return;
	number = walk->shown ? (uint32_t)walk->frames[walk->shown - 1].user : 0;
	if (!counting->visitor->live) /* otherwise live.c counts it */
		stack_functions_note(counting->functions, walk->replay.native_frame);
	number = stacks_find_with_native_frames(&counting->stacks, counting->functions, walk, number);
	if (!stacks_reserve(&counting->stacks)) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	counting->stacks.at[number].allocations += units;
	counting->stacks.at[number].bytes += bytes;
}

static void round_allocations(struct stacks *stacks)
{
	for (uint32_t i = 0; i < stacks->count; i++)
		stacks->at[i].allocations = estimate_whole(stacks->at[i].allocations);
}

static int count_thread_end(void *owner, struct call_walk *walk)
{
	struct counting *counting = owner;
	int error = walk->error;

	round_allocations(&counting->stacks);
	if (!error && counting->visitor->live)
		error = live_put(&counting->live, walk->thread, counting->visitor->live, &counting->stacks);
	if (!error)
		error = counting->visitor->thread(counting->owner, walk, &counting->stacks);
	stacks_clear(&counting->stacks);
	counting->line_stack = 0;
	return error;
}

static void note_missing(const struct counting *counting, const struct trace *trace)
{
	const struct stacks_visitor *visitor = counting->visitor;

	if (visitor->allocations || visitor->live)
		trace_warn_of_memory_sampling(trace);
	if (visitor->live && trace_is_alive_only(trace))
		fprintf(stderr, "evprof: %s\n", TRACE_ALIVE_ONLY_TEXT);
	if (counting->live.missing)
		fprintf(stderr, "evprof: events are missing; a block that was freed by one of them counts as alive\n");
	if (counting->functions->without_native_stack)
		fprintf(stderr,
			"evprof: %llu allocations have no native stack; they are shown at their Python function\n",
			(unsigned long long)counting->functions->without_native_stack);
}

int stacks_visit(struct trace *trace, const struct filter *filter, struct progress *progress,
		 struct stack_functions *functions, const struct stacks_visitor *visitor, void *owner)
{
	const struct call_visitor counter = {.process = count_process,
					     .process_end = count_process_end,
					     .thread_end = count_thread_end,
					     .push = count_push,
					     .pop = count_pop,
					     .other = count_other,
					     .lines = true,
					     .no_events = visitor->only_live};
	struct counting counting = {.functions = functions, .visitor = visitor, .owner = owner, .progress = progress};
	int error = walk_trace(trace, filter, progress, &counter, &counting);

	if (!error && !visitor->quiet)
		note_missing(&counting, trace);
	live_done(&counting.live);
	stacks_done(&counting.stacks);
	return error;
}
