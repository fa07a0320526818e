/*
 * call_walk.c - applies the filter between the replay and the exporters. See call_walk.h.
 *
 *   replay.h    the stack, without hidden functions
 *   here        time, depth, duration; ns
 *   visitor     what is shown
 */
#include "replay/call_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/initial_stack.h"
#include "trace/labels.h"
#include "util/grow.h"
#include "util/output.h"

static inline int64_t shown_ns(struct call_walk *walk, uint64_t ticks)
{
	int64_t ns = trace_near_ns(&walk->near, walk->process, ticks) - walk->trace->start_ns;

	/* The clocks of cores may differ by a few ticks. Shown times never decrease. */
	if (ns > walk->now_ns)
		walk->now_ns = ns;
	return walk->now_ns;
}

static bool grow_frames(struct call_walk *walk)
{
	int error = grow_by_one(&walk->frames, &walk->allocated, walk->allocated, sizeof(*walk->frames));

	if (error)
		walk_fail(walk, error);
	return !error;
}

static bool too_deep(const struct call_walk *walk, uint32_t number)
{
	return walk->filter->max_depth && number >= walk->filter->max_depth;
}

/* Reports the frames up to that index, each with the time at which it began. */
static void report_frames(struct call_walk *walk, uint32_t number)
{
	int64_t now = walk->now_ns;

	for (; walk->shown <= number; walk->shown++) {
		struct walk_frame *frame = &walk->frames[walk->shown];

		walk->now_ns = frame->start_ns;
		if (walk->visitor->push)
			walk->visitor->push(walk->owner, walk, frame);
	}
	walk->now_ns = now;
}

/* Whether the frames of the thread have no times, and the visitor wants only those that have. */
static inline bool has_no_times(const struct call_walk *walk)
{
	return __builtin_expect(walk->replay.has_own_stack, 0) && walk->visitor->timed;
}

/* --- tasks --- */

static void note_key(struct call_walk *walk, uint32_t task, uint32_t key)
{
	if (!walk->replay.thinning || replay_hides(&walk->replay, key))
		return;
	if (grow_for(&walk->task_keys, &walk->task_keys_allocated, task, sizeof(key)) < 0)
		walk_fail(walk, -ENOMEM);
	else
		walk->task_keys[task] = key;
}

static uint32_t number_task(struct call_walk *walk, uint32_t key)
{
	return replay_hides(&walk->replay, key) ? UINT32_MAX - walk->hidden_task_count++ : ++walk->task_count;
}

/* The end of a task that is thinned is not recorded: what has its address later may be another one. */
static void forget_thinned_tasks(struct call_walk *walk)
{
	for (size_t i = 0; walk->task_count && walk->tasks.slots && i <= walk->tasks.mask; i++) {
		uint32_t number = (uint32_t)walk->tasks.slots[i].value;

		if (number < walk->task_keys_allocated &&
		    thinning_misses(walk->replay.thinning, walk->task_keys[number]))
			walk->tasks.slots[i].value = 0;
	}
}

/*
 * The task that this call starts or continues; 0: none. Until Python 3.9, an exception thrown into a task is reported
 * first in the innermost coroutine, where it arrives. That coroutine looks like a task, but its address is unknown, so
 * it gets no task number.
 */
static uint64_t task_of(struct call_walk *walk, unsigned kind, uint32_t key)
{
	uint64_t *number, found = 0;

	if (kind == WIRE_THROW && !u64_map_take(&walk->tasks, walk->step, &found))
		return 0;
	number = u64_map_make(&walk->tasks, walk->step);
	if (!number) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	if (kind == WIRE_THROW) {
		*number = found;
	} else if (kind == WIRE_CALL || !*number) {
		uint32_t task = number_task(walk, key);

		*number = (uint64_t)walk->step_name << 32 | task;
		note_key(walk, task, key);
	}
	return *number;
}

/*
 * For spans: the task of which no coroutine was recorded at a span's begin. The coroutines that it awaits begin and end
 * as tasks; it is one until that span ends.
 */
static uint32_t task_of_span(struct call_walk *walk, uint64_t address, uint64_t span)
{
	uint64_t *number = u64_map_make(&walk->span_tasks, address);
	uint64_t *first = number && !*number ? u64_map_make(&walk->span_firsts, span) : NULL;
	uint32_t live = (uint32_t)u64_map_value(&walk->tasks, address); /* that a recorded coroutine has begun */

	if (first) {
		*number = live ? live : UINT32_MAX - walk->hidden_task_count++;
		*first = address;
	}
	if (!number || !*number) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	return (uint32_t)*number;
}

static void end_span_task(struct call_walk *walk, uint64_t span)
{
	uint64_t address, number;

	if (u64_map_take(&walk->span_firsts, span, &address))
		u64_map_take(&walk->span_tasks, address, &number);
}

static uint32_t task_of_step(const struct call_walk *walk, uint64_t address, uint32_t task)
{
	uint64_t number = u64_map_value(&walk->span_tasks, address);

	return number ? (uint32_t)number : task;
}

/* The replay keeps the task's address: a step that a switch of greenlets has interrupted goes on with its frame. */
static void take_step(struct call_walk *walk, struct replay_frame *replayed, struct walk_frame *frame)
{
	uint64_t address = replayed->owner ? replayed->owner : walk->step, task = 0;

	if (replayed->owner)
		task = u64_map_value(&walk->tasks, address);
	else if (frame->key == walk->step_key && frame->kind <= WIRE_THROW)
		task = task_of(walk, frame->kind, frame->key);
	if ((uint32_t)task >
	    walk->task_count) /* the number of a hidden function's task: only a damaged trace has that */
		task = 0;
	frame->task = (uint32_t)task;
	frame->task_name = (uint32_t)(task >> 32);
	frame->task_address = replayed->owner = task ? address : 0;
	walk->step = 0;
}

static void end_step(struct call_walk *walk, const struct walk_frame *frame, unsigned how)
{
	uint64_t number;

	if (how == WIRE_RETURN || how == WIRE_UNWIND)
		u64_map_take(&walk->tasks, frame->task_address, &number);
}

static void expect_step(struct call_walk *walk, uint32_t head, uint64_t task)
{
	walk->step_key = replay_key_of(&walk->replay, head);
	walk->step = wire_task_address(task);
	walk->step_name = wire_task_name(task);
}

/* The running greenlet's innermost step of a task whose function is hidden, which may have ended; NULL: none. */
static struct walk_hidden_step *last_hidden_step(const struct call_walk *walk)
{
	for (uint32_t i = walk->hidden_step_count; i-- > 0;)
		if (!walk->hidden_steps[i].greenlet)
			return &walk->hidden_steps[i];
	return NULL;
}

/* The same one without those that have ended, which are taken off the list. */
static const struct walk_hidden_step *hidden_step(struct call_walk *walk)
{
	const struct replay *replay = &walk->replay;
	struct walk_hidden_step *step;

	while ((step = last_hidden_step(walk)) &&
	       (step->depth > replay->depth || replay_hidden_at(replay, step->depth) < step->hidden)) {
		const struct walk_hidden_step *end = &walk->hidden_steps[walk->hidden_step_count--];

		memmove(step, step + 1, (size_t)(end - step - 1) * sizeof(*step));
	}
	return step;
}

/* A switch interrupts the steps with the stack of their greenlet; they go on with it. */
static void switch_hidden_steps(struct call_walk *walk, uint64_t target, uint64_t origin)
{
	for (uint32_t i = 0; i < walk->hidden_step_count; i++) {
		uint64_t *greenlet = &walk->hidden_steps[i].greenlet;

		if (!*greenlet)
			*greenlet = origin;
		if (*greenlet == target)
			*greenlet = 0;
	}
}

static void begin_hidden_step(struct call_walk *walk, unsigned kind)
{
	struct walk_hidden_step step = {.depth = walk->replay.depth,
					.hidden = replay_hidden_at(&walk->replay, walk->replay.depth),
					.task = (uint32_t)task_of(walk, kind, walk->step_key),
					.task_address = walk->step};

	if (grow_by_one(&walk->hidden_steps, &walk->hidden_steps_allocated, walk->hidden_step_count, sizeof(step)))
		walk_fail(walk, -ENOMEM);
	else
		walk->hidden_steps[walk->hidden_step_count++] = step;
}

static void walk_hidden(void *owner, struct replay *replay, uint32_t head)
{
	struct call_walk *walk = owner;
	unsigned kind = wire_head_kind(head);
	const struct walk_hidden_step *last;
	uint64_t number;

	if (walk->step && kind <= WIRE_THROW && replay_key_of(replay, head) == walk->step_key)
		begin_hidden_step(walk, kind);
	walk->step = 0;
	last = replay_begins(kind) ? NULL : last_hidden_step(walk);
	if (!last)
		return;
	if ((kind == WIRE_RETURN || kind == WIRE_UNWIND) && last->depth == replay->depth &&
	    last->hidden == replay_hidden_at(replay, replay->depth) + 1)
		u64_map_take(&walk->tasks, last->task_address, &number);
	hidden_step(walk);
}

uint32_t walk_task(struct call_walk *walk)
{
	const struct walk_hidden_step *hidden = hidden_step(walk);

	if (walk->span_task)
		return walk->span_task;
	for (uint32_t i = walk->depth; i-- > (hidden ? hidden->depth : 0);)
		if (walk->frames[i].task)
			return task_of_step(walk, walk->frames[i].task_address, walk->frames[i].task);
	return hidden ? task_of_step(walk, hidden->task_address, hidden->task) : 0;
}

char *walk_task_name(const struct call_walk *walk, const struct walk_frame *frame)
{
	const struct wire_definition *definition =
	    frame->task_name ? trace_name(&walk->process->marks, frame->task_name) : NULL;
	char *function = label_display(walk_definition(walk, frame->key), false, frame->key / 2), *name = NULL;
	struct text given = definition ? trace_string(definition, 1) : text_of("");
	int length = -1;

	if (function && given.length)
		length = asprintf(&name, "task %.*s (%s) #%u", (int)given.length, given.at, function, frame->task);
	else if (function)
		length = asprintf(&name, "task %s #%u", function, frame->task);
	free(function);
	return length < 0 ? NULL : name;
}

static void forget_tasks(struct call_walk *walk)
{
	u64_map_done(&walk->tasks);
	u64_map_done(&walk->span_tasks);
	u64_map_done(&walk->span_firsts);
	free(walk->task_keys);
	walk->task_keys = NULL;
	walk->task_count = walk->task_keys_allocated = 0;
	walk->hidden_step_count = walk->hidden_task_count = 0;
	walk->step = 0;
}

/* --- calls --- */

/* Inline, like walk_pop(): each call and each end of the trace passes through one of them. */
static inline __attribute__((always_inline)) void walk_push(void *owner, struct replay *replay,
							    struct replay_frame *replayed)
{
	struct call_walk *walk = owner;
	struct walk_frame *frame;
	int64_t now = shown_ns(walk, replay->now);

	if (__builtin_expect(walk->depth == walk->allocated, 0) && !grow_frames(walk))
		return;
	frame = &walk->frames[walk->depth++];
	*frame = (struct walk_frame){
	    .key = replayed->key, .kind = replayed->kind, .start_ns = now, .instruction = replayed->instruction};
	if (__builtin_expect((walk->step | replayed->owner) != 0, 0))
		take_step(walk, replayed, frame);
	if (walk->depth > walk->shown_at_once || has_no_times(walk))
		return;
	walk->shown++;
	if (walk->visitor->push)
		walk->visitor->push(walk->owner, walk, frame);
}

static inline __attribute__((always_inline)) void walk_pop(void *owner, struct replay *replay,
							   struct replay_frame *replayed, unsigned how)
{
	struct call_walk *walk = owner;
	int64_t now = shown_ns(walk, replay->now);
	struct walk_frame *frame;
	uint64_t total;

	(void)replayed;
	if (!walk->depth)
		return; /* walk_push() found no memory for it */
	frame = &walk->frames[walk->depth - 1];
	if (__builtin_expect(replay->has_own_stack, 0)) {
		frame->start_ns = now;
		frame->inner_ns = 0;
	}
	total = (uint64_t)(now - frame->start_ns);
	if (__builtin_expect(walk->depth > walk->shown, 0) && total >= walk->filter->min_duration_ns &&
	    !too_deep(walk, walk->depth - 1) && !has_no_times(walk))
		report_frames(walk, walk->depth - 1);
	if (walk->depth == walk->shown) {
		walk->shown--;
		if (walk->shown)
			frame[-1].inner_ns += total;
		if (walk->visitor->pop)
			walk->visitor->pop(walk->owner, walk, frame, how);
	}
	if (__builtin_expect(frame->task != 0, 0))
		end_step(walk, frame, how);
	walk->depth--;
	if (__builtin_expect(walk->hidden_step_count != 0, 0) && !replay->switching)
		hidden_step(walk);
}

static int walk_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct call_walk *walk = owner;
	unsigned kind = wire_head_kind(head);

	shown_ns(walk, replay->now);
	if (kind == WIRE_AT_INSTRUCTION) {
		if (walk->depth)
			walk->frames[walk->depth - 1].instruction = wire_head_arg(head);
		if (walk->visitor->lines && walk_top_runs(walk))
			walk->visitor->other(walk->owner, walk, head, extra);
		return 0;
	}
	if (kind == WIRE_AT_LINE) {
		if (walk->visitor->lines)
			walk->visitor->other(walk->owner, walk, head, extra);
		return 0;
	}
	walk->step = walk->span_task = 0;
	if (kind == WIRE_TASK)
		expect_step(walk, head, *extra);
	else if (kind == WIRE_SPAN_BEGIN && wire_extra_words(head) > 2 && extra[1] && wire_task_address(extra[2]))
		walk->span_task = task_of_span(walk, wire_task_address(extra[2]), extra[1]);
	else if (kind == WIRE_SPAN_END && walk->span_firsts.slots)
		end_span_task(walk, wire_number(head, extra));
	else if (kind == WIRE_SWITCH && extra[0] && extra[1])
		switch_hidden_steps(walk, extra[0], extra[1]);
	else if (kind == WIRE_GAP || kind == WIRE_PAUSE || kind == WIRE_THREAD_END)
		walk->hidden_step_count = 0;
	if (kind != WIRE_TASK && walk->visitor->other)
		walk->visitor->other(walk->owner, walk, head, extra);
	return 0;
}

/* --- what is thinned --- */

static void end_thinned(struct call_walk *walk)
{
	struct thinning *thinning = walk->replay.thinning;
	struct walk_thinned ended = walk->thinned;
	const struct thin_change *change = ended.cpu_ns ? thinning_change_at(thinning, ended.cpu_ns) : NULL;

	walk->thinned.cpu_ns = 0;
	if (!change || wire_head_kind(change->head) != WIRE_THIN || !change->key_count)
		return;
	ended.keys = thinning->change_keys + change->first_key;
	ended.count = change->key_count;
	if (walk->visitor->thinned && walk->now_ns > ended.since_ns)
		walk->visitor->thinned(walk->owner, walk, &ended);
}

/* Events with the same CPU time are one change, and threads write them again now and then. */
static void walk_thin(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct call_walk *walk = owner;
	uint64_t cpu_ns = wire_extra_words(head) ? *extra : 0;
	int64_t now = shown_ns(walk, replay->now);

	if (!cpu_ns || walk->thinned.cpu_ns != cpu_ns) {
		end_thinned(walk);
		walk->thinned = (struct walk_thinned){.cpu_ns = cpu_ns, .since_ns = now};
	}
	if (wire_head_kind(head) == WIRE_THIN)
		forget_thinned_tasks(walk);
}

#define THINNED_NAMED 5

static void put_thinned(const struct call_walk *walk, uint32_t thinned, struct output *output)
{
	uint32_t key = thinned & ~1u;
	char *name = label_display(walk_definition(walk, key), false, key / 2);

	output_string(output, thinned & 1 ? "C functions that " : "");
	output_string(output, name ? name : "?");
	output_string(output, thinned & 1 ? " calls" : "");
	free(name);
}

static bool has_exceptions(const struct walk_thinned *thinned)
{
	for (uint32_t i = 0; i < thinned->count; i++)
		if (thinned->keys[i] == THINNED_EXCEPTIONS)
			return true;
	return false;
}

char *walk_thinned_text(const struct call_walk *walk, const struct walk_thinned *thinned)
{
	struct output output;
	uint32_t named = 0;
	size_t length;

	if (output_open_memory(&output) < 0)
		return NULL;
	if (has_exceptions(thinned)) {
		output_string(&output, "exceptions");
		named++;
	}
	for (uint32_t i = 0; i < thinned->count && named < THINNED_NAMED; i++) {
		if (thinned->keys[i] == THINNED_EXCEPTIONS)
			continue;
		output_string(&output, named++ ? ", " : "");
		put_thinned(walk, thinned->keys[i], &output);
	}
	if (thinned->count > THINNED_NAMED)
		output_format(&output, ", and %u more", thinned->count - THINNED_NAMED);
	output_char(&output, '\0');
	return output_close_memory(&output, &length);
}

static const struct replay_sink sink = {
    .push = walk_push, .pop = walk_pop, .other = walk_other, .hidden = walk_hidden, .thin = walk_thin};

/* --- threads --- */

/* Moves to the first event of the time range without calling the visitor. Returns the position in the chunk. */
static struct replay_cursor skip_to(struct call_walk *walk, const struct trace_events *events, uint64_t from)
{
	struct replay_cursor cursor = {.events = events, .extra = events->extras};

	walk->replay.now = events->first_ticks;
	while (cursor.at < events->count && replay_cursor_time(&cursor, walk->replay.now) < from)
		replay_skip(&walk->replay, &cursor);
	return cursor;
}

/* Loads the next chunk; the stack is that before its first event. False at the end of the thread. */
static bool load_chunk(struct call_walk *walk, struct walk_run *run, struct progress *progress)
{
	if (run->stream.next >= walk->chunk_limit) {
		walk->chunk = walk->chunk_limit;
		return false;
	}
	if (!trace_stream_next(&run->stream, &run->events))
		return false;
	walk->chunk = run->stream.next - 1;
	run->inside |= run->events.hole && run->events.first_ticks >= run->from;
	run->cursor = run->inside ? replay_begin_chunk(&walk->replay, &run->events, &sink, walk)
				  : skip_to(walk, &run->events, run->from);
	run->inside |= run->cursor.at < run->events.count;
	run->loaded = true;
	progress_add(progress, run->events.count);
	return true;
}

static bool next_chunk_is_later(const struct walk_run *run, uint64_t until)
{
	const struct trace_thread *thread = run->stream.thread;

	return run->stream.next < thread->place_count && thread->places[run->stream.next].first_ticks >= until;
}

bool walk_run(struct call_walk *walk, struct walk_run *run, struct progress *progress, uint64_t until)
{
	uint64_t stop = until < run->to ? until : run->to;

	while (!walk->error) {
		if (!run->loaded && next_chunk_is_later(run, until))
			return true;
		if (!run->loaded && !load_chunk(walk, run, progress))
			return false;
		if (replay_run(&walk->replay, &run->cursor, stop, &sink, walk) == 1) {
			run->passed = stop == run->to;
			return !run->passed;
		}
		run->loaded = false;
	}
	return false;
}

uint64_t walk_run_next(const struct call_walk *walk, const struct walk_run *run)
{
	return run->loaded ? replay_cursor_time(&run->cursor, walk->replay.now)
			   : run->stream.thread->places[run->stream.next].first_ticks;
}

/* What the thread has said last before the time range. */
static void begin_thinned(struct call_walk *walk)
{
	const struct thin_change *change = walk->replay.thinning ? thinning_last(walk->replay.thinning) : NULL;

	if (change)
		walk->thinned = (struct walk_thinned){.cpu_ns = change->cpu_ns, .since_ns = walk->now_ns};
}

/* Pushes the initial stack of the time range, and moves the stream to its first chunk. */
static int begin_run(struct call_walk *walk, struct walk_run *run)
{
	const struct filter *filter = walk->filter;
	const struct trace_thread *thread = walk->thread;
	struct initial_stack initial = {
	    .trace = walk->trace, .thread = thread, .replay = &walk->replay, .look_back = &walk->look_back};
	size_t first;
	int error = 0;

	run->to = UINT64_MAX;
	if (filter->from_given)
		run->from = trace_ticks(walk->process, walk->trace->start_ns + filter->from_ns);
	if (filter->to_given)
		run->to = trace_ticks(walk->process, walk->trace->start_ns + filter->to_ns);
	run->inside = !run->from;
	initial.from = run->from;
	initial.to = run->to;
	first = trace_stream_place(thread, run->from);
	/* The frames start where the range does, not at the first tick after that. */
	if (run->from && run->from < run->to && first < thread->place_count)
		error = initial_stack_push(&initial, run->from - 1, &sink, walk);
	begin_thinned(walk);
	trace_stream_open(&run->stream, walk->trace, thread);
	trace_stream_skip(&run->stream, run->from < run->to ? first : thread->place_count);
	return error;
}

int walk_thread_begin(struct call_walk *walk, struct walk_run *run)
{
	int error = 0;

	*run = (struct walk_run){0};
	walk->now_ns = filter_from(walk->filter);
	walk->depth = walk->shown = 0;
	walk->thinned = (struct walk_thinned){0};
	walk->chunk = 0;
	walk->chunk_limit = SIZE_MAX;
	replay_begin_thread(&walk->replay);
	forget_tasks(walk);
	if (walk->visitor->thread)
		error = walk->visitor->thread(walk->owner, walk);
	if (!error && !walk->visitor->no_events)
		error = begin_run(walk, run);
	return error;
}

int walk_thread_end(struct call_walk *walk, struct walk_run *run, int error)
{
	trace_stream_close(&run->stream);
	if (!error)
		error = walk->error;
	if (!error && run->passed) {
		/* Open frames end where the time range does, not at the first tick after that. */
		walk->replay.now = run->to - 1;
		walk->now_ns = walk->filter->to_ns;
	}
	if (!error)
		replay_end_thread(&walk->replay, &sink, walk);
	if (!error)
		end_thinned(walk);
	if (!error && walk->visitor->thread_end)
		error = walk->visitor->thread_end(walk->owner, walk);
	return error ? error : walk->error;
}

static int walk_thread(struct call_walk *walk, struct progress *progress)
{
	struct walk_run run;
	int error = walk_thread_begin(walk, &run);

	if (!error && !walk->visitor->no_events)
		walk_run(walk, &run, progress, UINT64_MAX);
	return walk_thread_end(walk, &run, error);
}

/* --- processes --- */

void walk_init(struct call_walk *walk, struct trace *trace, const struct filter *filter,
	       const struct call_visitor *visitor, void *owner)
{
	*walk = (struct call_walk){.trace = trace,
				   .filter = filter,
				   .visitor = visitor,
				   .owner = owner,
				   .look_back = INITIAL_STACK_LOOK_BACK_EVENTS};
	if (!filter->min_duration_ns)
		walk->shown_at_once = filter->max_depth ? filter->max_depth : UINT32_MAX;
}

void walk_done(struct call_walk *walk)
{
	free(walk->frames);
	free(walk->hidden_steps);
	forget_tasks(walk);
}

static int walk_process(struct call_walk *walk, struct progress *progress)
{
	const struct trace_process *process = walk->process;
	int error = replay_init(&walk->replay, process);
	size_t i;

	if (!error)
		error = filter_hide(walk->filter, process, walk->replay.keys, &walk->hidden);
	walk->replay.hidden = walk->hidden;
	walk->near = (struct trace_near){0};
	if (!error && walk->visitor->process)
		error = walk->visitor->process(walk->owner, walk);
	for (i = 0; i < process->thread_count && !error; i++) {
		walk->thread = walk->trace->threads[process->threads[i]];
		if (filter_thread(walk->filter, walk->thread))
			error = walk_thread(walk, progress);
	}
	if (walk->replay.out_of_memory && !error)
		error = -ENOMEM;
	walk->thread = NULL;
	if (!error && walk->visitor->process_end)
		error = walk->visitor->process_end(walk->owner, walk);
	replay_done(&walk->replay);
	free(walk->hidden);
	walk->hidden = NULL;
	return error;
}

uint64_t walk_events(const struct trace *trace, const struct filter *filter)
{
	uint64_t events = 0;
	uint32_t i;
	size_t k;

	for (i = 0; i < trace->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[i];
		const struct trace_process *process = thread ? trace_process_of(trace, thread) : NULL;

		if (!process || !filter_process(filter, process) || !filter_thread(filter, thread))
			continue;
		for (k = 0; k < thread->place_count; k++)
			if (!filter_skips(filter, trace, process, &thread->places[k]))
				events += thread->places[k].events;
	}
	return events;
}

int walk_trace(struct trace *trace, const struct filter *filter, struct progress *progress,
	       const struct call_visitor *visitor, void *owner)
{
	struct call_walk walk;
	int error = 0;
	uint32_t i;

	walk_init(&walk, trace, filter, visitor, owner);
	for (i = 0; i < trace->process_count && !error; i++) {
		walk.process = trace->processes[i];
		if (walk.process && filter_process(filter, walk.process))
			error = walk_process(&walk, progress);
	}
	walk_done(&walk);
	return error;
}
