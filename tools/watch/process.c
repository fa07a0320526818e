/*
 * process.c - counts the calls of a followed process, stretch by stretch. See process.h.
 */
#include "watch/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "replay/initial_stack.h"
#include "util/grow.h"

/* --- counting --- */

/* 0: edges of the function are not counted. */
static uint8_t focus_of(const struct watch_process *top, uint32_t key)
{
	return top->focus && key < top->focus_count ? top->focus[key] : 0;
}

static void count_edge(struct watch_process *top, uint8_t focus, uint32_t key, bool is_callee,
		       const struct watch_count *count)
{
	uint64_t name = ((2 * (uint64_t)key + is_callee) << 8 | focus) + 1;
	uint64_t number = u64_map_number(&top->edge_numbers, name, &top->edges, &top->edge_count, &top->edges_allocated,
					 sizeof(*top->edges));
	struct watch_edge *edge;

	if (!number) {
		top->out_of_memory = true;
		return;
	}
	edge = &top->edges[number - 1];
	edge->key = key;
	edge->focus = focus;
	edge->is_callee = is_callee;
	edge->count.calls += count->calls;
	edge->count.own += count->own;
	edge->count.total += count->total;
}

/* Of a call from one function to another. */
static void count_edges(struct watch_process *top, uint32_t caller, uint32_t callee, const struct watch_count *count)
{
	uint8_t of_caller = focus_of(top, caller), of_callee = focus_of(top, callee);

	if (of_caller)
		count_edge(top, of_caller, callee, true, count);
	if (of_callee)
		count_edge(top, of_callee, caller, false, count);
}

/* Counts the time of a frame until now; what its callees had is in frame->inner. below: its caller, NULL: none. */
static void count_time(struct watch_process *top, struct replay *replay, struct replay_frame *frame,
		       struct replay_frame *below, bool outermost)
{
	uint64_t total = replay->now > frame->start ? replay->now - frame->start : 0;
	struct watch_count count = {.own = total > frame->inner ? total - frame->inner : 0,
				    .total = outermost ? total : 0};

	top->counts[frame->key].own += count.own;
	top->counts[frame->key].total += count.total;
	top->current->count.own += count.own;
	if (!below)
		return;
	below->inner += total;
	count_edges(top, below->key, frame->key, &count);
}

static void count_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	static const struct watch_count one = {.calls = 1};
	struct watch_process *top = owner;

	if (frame->kind == WIRE_FRAME)
		return;
	top->counts[frame->key].calls++;
	top->current->count.calls++;
	if (replay->depth > 1)
		count_edges(top, frame[-1].key, frame->key, &one);
}

static void count_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	(void)how;
	count_time(owner, replay, frame, replay->depth ? frame - 1 : NULL, replay->open[frame->key] == 0);
}

static void count_allocation(struct watch_process *top, const struct replay *replay, uint32_t head,
			     const uint64_t *extra)
{
	uint64_t units, bytes;

	if (!estimate_event(top->interval, head, extra, &units, &bytes))
		return;
	top->current->count.allocations += units;
	top->current->count.bytes += bytes;
	if (!replay->depth)
		return;
	top->counts[replay->frames[replay->depth - 1].key].allocations += units;
	top->counts[replay->frames[replay->depth - 1].key].bytes += bytes;
}

static void count_step(struct watch_process *top, uint32_t code, uint64_t word)
{
	uint64_t number = u64_map_number(&top->task_numbers, wire_task_address(word) + 1, &top->tasks, &top->task_count,
					 &top->tasks_allocated, sizeof(*top->tasks));
	struct watch_task *task;

	if (!number) {
		top->out_of_memory = true;
		return;
	}
	task = &top->tasks[number - 1];
	*task = (struct watch_task){.address = wire_task_address(word),
				    .tid = top->current->thread->tid,
				    .code = code,
				    .name = wire_task_name(word),
				    .steps = task->steps + 1};
}

static int count_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct watch_process *top = owner;
	unsigned kind = wire_head_kind(head);

	count_allocation(top, replay, head, extra);
	if (kind == WIRE_GAP)
		top->lost += *extra;
	else if (kind == WIRE_TASK)
		count_step(top, wire_head_arg(head), *extra);
	else if (kind == WIRE_THREAD_END)
		top->current->ended = true;
	return 0;
}

static const struct replay_sink count_sink = {.push = count_push, .pop = count_pop, .other = count_other};
static const struct replay_sink quiet = {0};

/* Counts what goes on at the end of the stretch, and begins the next one there. Stacks of allocations have no times. */
static void count_open(struct watch_process *top, struct replay *replay, uint64_t until)
{
	uint64_t now = replay->now;
	uint32_t depth = replay->depth;

	if (replay->has_own_stack)
		return;
	replay->now = until > now ? until : now;
	for (uint32_t i = depth; i-- > 0;) {
		struct replay_frame *frame = &replay->frames[i];

		count_time(top, replay, frame, i ? frame - 1 : NULL, --replay->open[frame->key] == 0);
		frame->start = replay->now;
		frame->inner = 0;
	}
	for (uint32_t i = 0; i < depth; i++)
		replay->open[replay->frames[i].key]++;
	replay->now = now;
}

/* --- threads --- */

static int add_thread(struct watch_process *top, const struct trace_thread *thread, uint64_t from)
{
	struct watch_thread *added;
	int error;

	if (grow_by_one(&top->threads, &top->threads_allocated, top->thread_count, sizeof(*top->threads)))
		return -ENOMEM;
	added = calloc(1, sizeof(*added));
	if (!added)
		return -ENOMEM;
	added->thread = thread;
	added->since = from;
	added->top = WATCH_NO_KEY;
	top->threads[top->thread_count++] = added;
	error = initial_stack_follow(&added->replay, top->trace, top->process, thread, from, &quiet, NULL);
	trace_stream_open(&added->stream, top->trace, thread);
	trace_stream_skip(&added->stream, trace_stream_place(thread, from));
	return error;
}

static int find_threads(struct watch_process *top, uint64_t from)
{
	const struct trace_thread *thread;
	size_t at = 0;
	int error = 0;

	while (!error && (thread = trace_new_thread(top->trace, top->process, &top->known, &at)))
		error = add_thread(top, thread, from);
	return error;
}

static void free_thread(struct watch_thread *thread)
{
	trace_stream_close(&thread->stream);
	replay_done(&thread->replay);
	free(thread);
}

static void forget_ended(struct watch_process *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->thread_count; i++) {
		if (top->threads[i]->ended)
			free_thread(top->threads[i]);
		else
			top->threads[kept++] = top->threads[i];
	}
	top->thread_count = kept;
}

/* --- a stretch --- */

/* Functions that were defined since have keys, too. */
static int grow_keys(struct watch_process *top)
{
	uint32_t keys = replay_keys_of(top->process);
	int error = keys > top->keys ? grow_zeroed(&top->counts, &top->keys, keys + keys / 2, sizeof(*top->counts)) : 0;

	for (size_t i = 0; i < top->thread_count && !error; i++)
		error = replay_add_keys(&top->threads[i]->replay, top->process);
	return error;
}

static void begin_stretch(struct watch_process *top)
{
	memset(top->counts, 0, top->keys * sizeof(*top->counts));
	top->sum = (struct watch_count){0};
	top->events = top->lost = 0;
	u64_map_done(&top->task_numbers);
	u64_map_done(&top->edge_numbers);
	top->edge_count = top->task_count = 0;
	for (size_t i = 0; i < top->thread_count; i++)
		top->threads[i]->count = (struct watch_count){0};
}

static void count_chunk(struct watch_process *top, struct watch_thread *thread, const struct trace_events *events)
{
	struct replay *replay = &thread->replay;
	struct replay_cursor cursor;

	if (thread->since && events->hole && events->first_ticks < thread->since)
		return; /* damage before the first stretch */
	cursor = replay_begin_chunk(replay, events, &count_sink, top);
	/* The stack at `since` is known already. */
	while (cursor.at < events->count && replay_cursor_time(&cursor, replay->now) < thread->since)
		replay_skip(replay, &cursor);
	for (uint32_t i = cursor.at; i < events->count; i++)
		top->events += !wire_is_bookkeeping(wire_head_kind(events->heads[i]));
	replay_run(replay, &cursor, UINT64_MAX, &count_sink, top);
}

static void count_thread(struct watch_process *top, struct watch_thread *thread, uint64_t until)
{
	struct trace_events events;

	top->current = thread;
	while (trace_stream_next(&thread->stream, &events))
		count_chunk(top, thread, &events);
	thread->stream.next = 0; /* the next places are new ones */
	thread->since = 0;
	thread->ended |= trace_stream_is_former(&thread->stream);
	if (!thread->ended)
		count_open(top, &thread->replay, until);
	thread->top = thread->replay.depth ? thread->replay.frames[thread->replay.depth - 1].key : WATCH_NO_KEY;
	top->out_of_memory |= thread->replay.out_of_memory;
}

static void add_up(struct watch_process *top, const struct watch_thread *thread)
{
	top->sum.calls += thread->count.calls;
	top->sum.own += thread->count.own;
	top->sum.total += thread->count.own;
	top->sum.allocations += thread->count.allocations;
	top->sum.bytes += thread->count.bytes;
}

int watch_process_begin(struct watch_process *top, struct trace *trace, const struct trace_process *process,
			uint64_t from)
{
	int error;

	*top = (struct watch_process){.trace = trace, .process = process};
	top->interval = trace_process_memory_interval(process);
	error = grow_keys(top);
	return error ? error : find_threads(top, from);
}

int watch_process_next(struct watch_process *top, uint64_t until)
{
	int error;

	forget_ended(top);
	error = find_threads(top, 0);
	if (!error)
		error = grow_keys(top);
	if (error)
		return error;
	begin_stretch(top);
	for (size_t i = 0; i < top->thread_count; i++) {
		count_thread(top, top->threads[i], until);
		add_up(top, top->threads[i]);
	}
	return top->out_of_memory ? -ENOMEM : 0;
}

void watch_process_done(struct watch_process *top)
{
	for (size_t i = 0; i < top->thread_count; i++)
		free_thread(top->threads[i]);
	free(top->threads);
	free(top->counts);
	free(top->edges);
	free(top->tasks);
	u64_map_done(&top->known);
	u64_map_done(&top->edge_numbers);
	u64_map_done(&top->task_numbers);
}
