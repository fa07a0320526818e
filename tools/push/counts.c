/*
 * counts.c - see counts.h.
 */
#include "push/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "replay/initial_stack.h"
#include "replay/program_end.h"
#include "trace/cpu_time.h"
#include "util/grow.h"

/* The times of a thread by one clock. */
struct push_lane {
	struct replay replay;
	struct replay_cursor cursor; /* in the thread's events */
};

struct push_thread {
	struct push_counts *counts;
	const struct trace_thread *thread;
	struct trace_stream stream; /* its address identifies it */
	struct trace_events events; /* the chunk being read, if `loaded` */
	struct push_lane wall, cpu;
	/* The same chunk in CPU time, up to the event that the other lane has reached. */
	struct trace_events cpu_events;
	uint32_t *cpu_ticks;
	uint64_t *cpu_extras;
	uint32_t cpu_ticks_allocated, cpu_extras_allocated;
	struct cpu_time cpu_time;
	/* At the end of the interval: how long the innermost call has gone on since the last event. */
	uint32_t open_stack;
	uint64_t open;
	uint64_t since; /* events before it are not counted */
	bool loaded;
	bool ended;
	bool idle; /* it had no more events at the end of the stretch */
};

/* --- counting --- */

static uint32_t function_of(struct push_counts *counts, uint32_t key)
{
	struct call_walk walk = {.trace = counts->trace, .process = counts->process};
	uint32_t number = stack_functions_find(&counts->functions, &walk, key);

	counts->out_of_memory |= number == UINT32_MAX;
	return number;
}

/* The stack of a call. 0: the empty one, as memory ran out. */
static uint32_t stack_of(struct push_counts *counts, uint32_t parent, uint32_t key)
{
	uint32_t function = function_of(counts, key), number;
	bool is_full = counts->stacks.count >= PUSH_STACKS_MAX;

	if (function == UINT32_MAX)
		return 0;
	counts->cut_stacks += is_full;
	number = stacks_find(&counts->stacks, is_full ? 0 : parent, function);
	if (!number || grow_for(&counts->sums, &counts->sum_count, number, sizeof(*counts->sums)) < 0) {
		counts->out_of_memory = true;
		return 0;
	}
	return number;
}

static inline void count_begin(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct push_thread *thread = owner;
	uint32_t parent = replay->depth > 1 ? (uint32_t)frame[-1].owner : 0;

	frame->owner = stack_of(thread->counts, parent, frame->key);
}

static void count_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct push_thread *thread = owner;

	count_begin(owner, replay, frame);
	thread->counts->sums[frame->owner].calls += frame->kind != WIRE_FRAME;
}

/* The time of a frame until now; that of its callees is in frame->inner. */
static inline uint64_t own_ticks(const struct replay *replay, struct replay_frame *frame, struct replay_frame *below)
{
	uint64_t total = replay->now > frame->start ? replay->now - frame->start : 0;

	if (below)
		below->inner += total;
	return total > frame->inner ? total - frame->inner : 0;
}

static void count_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct push_thread *thread = owner;

	(void)how;
	thread->counts->sums[frame->owner].wall += own_ticks(replay, frame, replay->depth ? frame - 1 : NULL);
}

static void count_cpu_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct push_thread *thread = owner;

	(void)how;
	thread->counts->sums[frame->owner].ran += own_ticks(replay, frame, replay->depth ? frame - 1 : NULL);
}

/* --- memory --- */

static inline uint32_t stack_now(const struct replay *replay)
{
	return replay->depth ? (uint32_t)replay->frames[replay->depth - 1].owner : 0;
}

/* Keeps a memory event until all threads have been read up to its time. */
static void keep_event(struct push_counts *counts, const struct push_thread *thread, const struct replay *replay,
		       uint32_t head, const uint64_t *extra)
{
	struct push_memory_event *event;
	unsigned words = wire_extra_words(head);

	if (grow_by_one(&counts->memory, &counts->memory_allocated, counts->memory_count, sizeof(*counts->memory))) {
		counts->out_of_memory = true;
		return;
	}
	event = &counts->memory[counts->memory_count++];
	*event = (struct push_memory_event){.ticks = replay->now,
					    .order = counts->memory_order++,
					    .head = head,
					    .thread = thread->thread->number,
					    .stack = stack_now(replay)};
	memcpy(event->extra, extra, (words < 2 ? words : 2) * sizeof(*extra));
}

static int count_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct push_thread *thread = owner;
	struct push_counts *counts = thread->counts;
	unsigned kind = wire_head_kind(head);
	uint64_t units, bytes;

	if (estimate_event(counts->interval, head, extra, &units, &bytes)) {
		struct push_sums *sums = &counts->sums[stack_now(replay)];

		sums->allocations += units;
		sums->bytes += bytes;
	}
	if (counts->has_memory && blocks_want(kind))
		keep_event(counts, thread, replay, head, extra);
	else if (kind == WIRE_THREAD_END)
		thread->ended = true;
	return 0;
}

static const struct replay_sink count_sink = {.push = count_push, .pop = count_pop, .other = count_other};
static const struct replay_sink begin_sink = {.push = count_begin};
static const struct replay_sink cpu_sink = {.push = count_begin, .pop = count_cpu_pop};
static const struct replay_sink quiet = {0};

static void change_live(struct push_counts *counts, const struct heap_block *block, int more, int sign)
{
	uint64_t interval = block->source == BLOCK_MAPPED ? 0 : counts->interval;
	struct push_sums *sums = &counts->sums[block->owner];

	sums->live_blocks += (uint64_t)(int64_t)more * estimate_blocks(interval, block->bytes);
	sums->live_bytes += (uint64_t)(int64_t)sign * estimate_bytes(interval, block->bytes);
}

static void block_ended(void *user, const struct heap_block *gone, int more, bool freed)
{
	(void)freed;
	change_live(user, gone, more, -1);
}

static int pass_event(struct push_counts *counts, const struct push_memory_event *event)
{
	struct heap_block made;
	int error = blocks_pass(&counts->blocks, event->thread, event->head, event->extra, &made);

	if (error || !made.address || made.source == BLOCK_OF_FILE || (counts->interval && !made.bytes))
		return error;
	if (!made.back)
		made.owner = event->stack;
	error = blocks_add(&counts->blocks, &made);
	if (!error)
		change_live(counts, &made, 1, 1);
	return error;
}

static int compare_events(const void *a, const void *b)
{
	const struct push_memory_event *one = a, *other = b;

	return one->ticks != other->ticks ? compare_u64(one->ticks, other->ticks)
					  : compare_u64(one->order, other->order);
}

/* Passes the events before that time, in their order; those that are later stay. */
static int pass_memory(struct push_counts *counts, uint64_t until)
{
	size_t done = 0;
	int error = 0;

	if (!counts->memory_count)
		return 0;
	qsort(counts->memory, counts->memory_count, sizeof(*counts->memory), compare_events);
	while (!error && done < counts->memory_count && counts->memory[done].ticks < until) {
		if (counts->memory[done].ticks < counts->live_end)
			error = pass_event(counts, &counts->memory[done]);
		done++;
	}
	counts->memory_count -= done;
	memmove(counts->memory, counts->memory + done, counts->memory_count * sizeof(*counts->memory));
	return error;
}

/* --- threads --- */

static void free_thread(struct push_thread *thread)
{
	trace_stream_close(&thread->stream);
	replay_done(&thread->wall.replay);
	replay_done(&thread->cpu.replay);
	free(thread->cpu_ticks);
	free(thread->cpu_extras);
	free(thread);
}

static int begin_lane(struct push_thread *thread, struct push_lane *lane)
{
	return initial_stack_follow(&lane->replay, thread->counts->trace, thread->counts->process, thread->thread,
				    thread->since, &begin_sink, thread);
}

static int add_thread(struct push_counts *counts, const struct trace_thread *known, uint64_t from)
{
	struct push_thread *thread;
	int error;

	if (grow_by_one(&counts->threads, &counts->threads_allocated, counts->thread_count, sizeof(*counts->threads)))
		return -ENOMEM;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	counts->threads[counts->thread_count++] = thread;
	thread->counts = counts;
	thread->thread = known;
	thread->since = from;
	error = begin_lane(thread, &thread->wall);
	if (!error && counts->has_cpu)
		error = begin_lane(thread, &thread->cpu);
	trace_stream_open(&thread->stream, counts->trace, known);
	trace_stream_skip(&thread->stream, trace_stream_place(known, from));
	return error;
}

static int find_threads(struct push_counts *counts, uint64_t from)
{
	const struct trace_thread *thread;
	size_t at = 0;
	int error = 0;

	while (!error && (thread = trace_new_thread(counts->trace, counts->process, &counts->known, &at)))
		error = add_thread(counts, thread, from);
	return error;
}

static void forget_ended(struct push_counts *counts)
{
	size_t kept = 0;

	for (size_t i = 0; i < counts->thread_count; i++) {
		if (counts->threads[i]->ended && !counts->threads[i]->loaded && !counts->threads[i]->open)
			free_thread(counts->threads[i]);
		else
			counts->threads[kept++] = counts->threads[i];
	}
	counts->thread_count = kept;
}

/* --- a stretch --- */

/* Passes over what lies before `since`, as the stack at that time is known. */
static void begin_wall(struct push_thread *thread)
{
	struct push_lane *lane = &thread->wall;
	struct replay *replay = &lane->replay;
	uint64_t since = thread->since;

	if (since && thread->events.hole && thread->events.first_ticks < since) { /* damage before it */
		lane->cursor = (struct replay_cursor){.events = &thread->events,
						      .extra = thread->events.extras + thread->events.extra_count,
						      .at = thread->events.count};
		return;
	}
	lane->cursor = replay_begin_chunk(replay, &thread->events, since ? &quiet : &count_sink, thread);
	while (lane->cursor.at < thread->events.count && replay_cursor_time(&lane->cursor, replay->now) < since)
		replay_skip(replay, &lane->cursor);
}

/* Copies what another clock changes. */
static int begin_cpu(struct push_thread *thread)
{
	struct trace_events *events = &thread->cpu_events;
	struct push_lane *lane = &thread->cpu;
	uint32_t extras = (uint32_t)thread->events.extra_count;
	bool is_skipped = thread->wall.cursor.at > 0;

	if (grow_zeroed(&thread->cpu_ticks, &thread->cpu_ticks_allocated, thread->events.count + 1, sizeof(uint32_t)) ||
	    grow_zeroed(&thread->cpu_extras, &thread->cpu_extras_allocated, extras + 1, sizeof(uint64_t)))
		return -ENOMEM;
	*events = thread->events;
	if (events->count)
		memcpy(thread->cpu_ticks, events->ticks, events->count * sizeof(uint32_t));
	if (extras)
		memcpy(thread->cpu_extras, events->extras, extras * sizeof(uint64_t));
	events->ticks = thread->cpu_ticks;
	events->extras = thread->cpu_extras;
	cpu_time_apply(&thread->cpu_time, CPU_CLOCK_RAN, thread->counts->process, events);
	lane->cursor = replay_begin_chunk(&lane->replay, events, is_skipped ? &quiet : &cpu_sink, thread);
	while (lane->cursor.at < thread->wall.cursor.at)
		replay_skip(&lane->replay, &lane->cursor);
	return 0;
}

/* Counts the events that the other lane has counted. */
static void count_cpu(struct push_thread *thread)
{
	if (!thread->counts->has_cpu)
		return;
	thread->cpu_events.count = thread->wall.cursor.at;
	replay_run(&thread->cpu.replay, &thread->cpu.cursor, UINT64_MAX, &cpu_sink, thread);
}

/* False: the thread has no event before that time, or memory ran out. */
static bool load_chunk(struct push_thread *thread, uint64_t until)
{
	const struct trace_thread *known = thread->thread;

	if (thread->loaded)
		return true;
	if (thread->stream.next < known->place_count && known->places[thread->stream.next].first_ticks >= until)
		return false;
	thread->loaded = trace_stream_next(&thread->stream, &thread->events);
	thread->idle = !thread->loaded;
	if (thread->idle)
		return false;
	begin_wall(thread);
	if (!thread->counts->has_cpu || begin_cpu(thread) == 0)
		return true;
	thread->counts->out_of_memory = true;
	return false;
}

static void count_thread(struct push_thread *thread, uint64_t until)
{
	thread->idle = thread->ended && !thread->loaded;
	while (!thread->idle && load_chunk(thread, until)) {
		int stopped = replay_run(&thread->wall.replay, &thread->wall.cursor, until, &count_sink, thread);

		count_cpu(thread);
		if (stopped)
			break;
		thread->loaded = false;
	}
	thread->ended |= trace_stream_is_former(&thread->stream);
	thread->counts->out_of_memory |= thread->wall.replay.out_of_memory || thread->cpu.replay.out_of_memory;
}

/* Functions that were defined since have keys, too. */
static int grow_keys(struct push_counts *counts)
{
	uint32_t keys = replay_keys_of(counts->process);
	int error = keys > counts->keys ? stack_functions_add_keys(&counts->functions, counts->keys, keys) : 0;

	if (error)
		return error;
	counts->keys = keys > counts->keys ? keys : counts->keys;
	for (size_t i = 0; i < counts->thread_count && !error; i++) {
		error = replay_add_keys(&counts->threads[i]->wall.replay, counts->process);
		if (!error && counts->has_cpu)
			error = replay_add_keys(&counts->threads[i]->cpu.replay, counts->process);
	}
	return error;
}

/* Before anything is read: the program's end is found by a look at the whole trace. */
static int find_end(struct push_counts *counts)
{
	int64_t ns = PROGRAM_END_NONE;
	int error =
	    counts->process->ended && counts->has_memory ? program_end_find(counts->trace, counts->process, &ns) : 0;

	counts->live_end =
	    ns == PROGRAM_END_NONE ? UINT64_MAX : trace_ticks(counts->process, counts->trace->start_ns + ns);
	return error;
}

int push_counts_begin(struct push_counts *counts, struct trace *trace, const struct trace_process *process,
		      uint64_t from)
{
	int error;

	*counts = (struct push_counts){.trace = trace, .process = process};
	counts->has_cpu = trace_process_records(process, "cpu");
	counts->has_memory = trace_process_records_memory(process);
	counts->interval = trace_process_memory_interval(process);
	counts->blocks.gone = block_ended;
	counts->blocks.user = counts;
	error = find_end(counts);
	if (!error && (!stacks_reserve(&counts->stacks) ||
		       grow_for(&counts->sums, &counts->sum_count, 0, sizeof(*counts->sums)) < 0))
		error = -ENOMEM;
	if (!error)
		error = grow_keys(counts);
	return error ? error : find_threads(counts, from);
}

int push_counts_next(struct push_counts *counts, uint64_t until, uint64_t memory_until)
{
	int error;

	forget_ended(counts);
	error = find_threads(counts, 0);
	if (!error)
		error = grow_keys(counts);
	if (error)
		return error;
	for (size_t i = 0; i < counts->thread_count; i++)
		count_thread(counts->threads[i], until);
	error = pass_memory(counts, memory_until);
	return counts->out_of_memory ? -ENOMEM : error;
}

void push_counts_expect_more(struct push_counts *counts)
{
	for (size_t i = 0; i < counts->thread_count; i++) {
		counts->threads[i]->stream.next = 0;
		counts->threads[i]->since = 0;
	}
}

/* Counts what goes on, up to the last event, and lets it begin anew. A stack of allocations alone has no times. */
static void count_open(struct push_thread *thread, struct push_lane *lane, bool cpu)
{
	struct replay *replay = &lane->replay;
	struct push_sums *sums = thread->counts->sums;

	if (replay->has_own_stack)
		return;
	for (uint32_t i = replay->depth; i-- > 0;) {
		struct replay_frame *frame = &replay->frames[i];
		uint64_t own = own_ticks(replay, frame, i ? frame - 1 : NULL);

		*(cpu ? &sums[frame->owner].ran : &sums[frame->owner].wall) += own;
		frame->start = replay->now;
		frame->inner = 0;
	}
}

/*
 * The innermost call goes on from the last event to the end of the interval. What it does then is not known yet, so
 * this counts as time, but neither as CPU nor as waiting.
 */
static void set_open(struct push_thread *thread, uint64_t until)
{
	const struct replay *replay = &thread->wall.replay;
	struct push_sums *sums = thread->counts->sums;

	sums[thread->open_stack].open -= thread->open;
	thread->open = 0;
	if (thread->ended || !replay->depth || until <= replay->now || replay->has_own_stack)
		return;
	thread->open_stack = (uint32_t)replay->frames[replay->depth - 1].owner;
	thread->open = until - replay->now;
	sums[thread->open_stack].open += thread->open;
}

int push_counts_end_interval(struct push_counts *counts, uint64_t until)
{
	for (size_t i = 0; i < counts->thread_count; i++) {
		struct push_thread *thread = counts->threads[i];
		bool is_last = counts->process->ended && thread->idle;

		count_open(thread, &thread->wall, false);
		if (counts->has_cpu)
			count_open(thread, &thread->cpu, true);
		set_open(thread, is_last ? 0 : until);
	}
	return grow_for(&counts->sent, &counts->sent_count, counts->stacks.count, sizeof(*counts->sent));
}

static struct push_values values_of(const struct push_counts *counts, const struct push_sums *sums)
{
	uint64_t wall_ns = trace_span_ns(counts->process, sums->wall + sums->open);
	uint64_t waited = counts->has_cpu && sums->wall > sums->ran ? sums->wall - sums->ran : 0;

	return (struct push_values){.at = {[PUSH_CALLS] = sums->calls,
					   [PUSH_WALL_NS] = wall_ns,
					   [PUSH_CPU_NS] = trace_span_ns(counts->process, sums->ran),
					   [PUSH_OFF_CPU_NS] = trace_span_ns(counts->process, waited),
					   [PUSH_ALLOCATIONS] = estimate_whole(sums->allocations),
					   [PUSH_ALLOCATED_BYTES] = sums->bytes}};
}

/* The clock is known better with each record of it. So a sum may become smaller: it is sent when it grows again. */
bool push_counts_take(struct push_counts *counts, uint32_t stack, struct push_values *values)
{
	const struct push_sums *sums = stack < counts->sum_count ? &counts->sums[stack] : NULL;
	struct push_values now = sums ? values_of(counts, sums) : (struct push_values){0};
	bool any = false;

	for (unsigned i = 0; i < PUSH_LIVE_BLOCKS; i++) {
		uint64_t *sent = &counts->sent[stack].at[i];

		values->at[i] = now.at[i] > *sent ? now.at[i] - *sent : 0;
		*sent += values->at[i];
		any |= values->at[i] != 0;
	}
	values->at[PUSH_LIVE_BLOCKS] = sums ? estimate_whole(sums->live_blocks) : 0;
	values->at[PUSH_LIVE_BYTES] = sums ? sums->live_bytes : 0;
	return any || values->at[PUSH_LIVE_BLOCKS] || values->at[PUSH_LIVE_BYTES];
}

void push_counts_done(struct push_counts *counts)
{
	for (size_t i = 0; i < counts->thread_count; i++)
		free_thread(counts->threads[i]);
	free(counts->threads);
	free(counts->sums);
	free(counts->sent);
	free(counts->memory);
	blocks_done(&counts->blocks);
	u64_map_done(&counts->known);
	stack_functions_done(&counts->functions);
	stacks_done(&counts->stacks);
}
