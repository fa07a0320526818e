/*
 * visit.c - between the replay and the exporters: takes out what was not chosen. See visit.h.
 *
 *   replay.h    the stack as it was, without the functions that are hidden
 *   here        time, depth, duration; ns
 *   visitor     what is shown
 */
#include "replay/visit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/running.h"
#include "trace/labels.h"

static inline int64_t shown_ns(struct visit *visit, uint64_t ticks)
{
	int64_t ns = trace_near_ns(&visit->near, visit->process, ticks) - visit->trace->start_ns;

	/* The clocks of cores may differ by a few ticks; nothing that is shown goes back for that. */
	if (ns > visit->now_ns)
		visit->now_ns = ns;
	return visit->now_ns;
}

static bool grow(struct visit *visit)
{
	uint32_t allocated = visit->allocated ? visit->allocated * 2 : 1024;
	struct visit_frame *grown = realloc(visit->frames, allocated * sizeof(*grown));

	if (!grown) {
		visit_fail(visit, -ENOMEM);
		return false;
	}
	visit->frames = grown;
	visit->allocated = allocated;
	return true;
}

static bool too_deep(const struct visit *visit, uint32_t number)
{
	return visit->select->max_depth && number >= visit->select->max_depth;
}

/* Tells of the frames up to that number, each at the time at which it began. */
static void show(struct visit *visit, uint32_t number)
{
	int64_t now = visit->now_ns;

	for (; visit->shown <= number; visit->shown++) {
		struct visit_frame *frame = &visit->frames[visit->shown];

		visit->now_ns = frame->start_ns;
		if (visit->visitor->push)
			visit->visitor->push(visit->owner, visit, frame);
	}
	visit->now_ns = now;
}

/* --- tasks --- */

/*
 * The task that begins or goes on with this frame, or 0. Until 3.9 an exception that is thrown into a task is seen
 * first where it arrives, in the innermost coroutine, which then looks as if nobody awaited it: it is no task that was
 * met.
 */
static uint64_t task_of(struct visit *visit, const struct visit_frame *frame)
{
	uint64_t *number, found = 0;

	if (frame->kind == WIRE_THROW && !pairs_take(&visit->tasks, visit->step, &found))
		return 0;
	number = pairs_make(&visit->tasks, visit->step);
	if (!number) {
		visit_fail(visit, -ENOMEM);
		return 0;
	}
	if (frame->kind == WIRE_THROW)
		*number = found;
	else if (frame->kind == WIRE_CALL || !*number)
		*number = (uint64_t)visit->step_name << 32 | ++visit->task_count;
	return *number;
}

static void take_step(struct visit *visit, struct visit_frame *frame)
{
	if (frame->key == visit->step_key && frame->kind <= WIRE_THROW) {
		uint64_t task = task_of(visit, frame);

		frame->task = (uint32_t)task;
		frame->task_name = (uint32_t)(task >> 32);
		frame->task_address = visit->step;
	}
	visit->step = 0;
}

static void end_step(struct visit *visit, const struct visit_frame *frame, unsigned how)
{
	uint64_t number;

	if (how == WIRE_RETURN || how == WIRE_UNWIND)
		pairs_take(&visit->tasks, frame->task_address, &number);
}

static void expect_step(struct visit *visit, uint32_t head, uint64_t task)
{
	visit->step_key = replay_key_of(&visit->replay, head);
	visit->step = replay_hides(&visit->replay, visit->step_key) ? 0 : wire_task_address(task);
	visit->step_name = wire_task_name(task);
}

char *visit_task_name(const struct visit *visit, const struct visit_frame *frame)
{
	const struct wire_definition *definition =
	    frame->task_name ? trace_name(&visit->process->marks, frame->task_name) : NULL;
	char *function = label_display(visit_definition(visit, frame->key), false, frame->key / 2), *name = NULL;
	struct text given = definition ? trace_string(definition, 1) : text_of("");
	int length = -1;

	if (function && given.length)
		length = asprintf(&name, "task %.*s (%s) #%u", (int)given.length, given.at, function, frame->task);
	else if (function)
		length = asprintf(&name, "task %s #%u", function, frame->task);
	free(function);
	return length < 0 ? NULL : name;
}

static void forget_tasks(struct visit *visit)
{
	pairs_done(&visit->tasks);
	visit->tasks = (struct pairs){0};
	visit->task_count = 0;
	visit->step = 0;
}

/* --- calls --- */

/* Inline, like the end of a call: each event of the trace goes through one of them. */
static inline __attribute__((always_inline)) void visit_push(void *owner, struct replay *replay,
							     struct replay_frame *replayed)
{
	struct visit *visit = owner;
	struct visit_frame *frame;
	int64_t now = shown_ns(visit, replay->now);

	if (__builtin_expect(visit->depth == visit->allocated, 0) && !grow(visit))
		return;
	frame = &visit->frames[visit->depth++];
	*frame = (struct visit_frame){.key = replayed->key, .kind = replayed->kind, .start_ns = now};
	if (__builtin_expect(visit->step != 0, 0))
		take_step(visit, frame);
	if (visit->depth > visit->shown_at_once)
		return;
	visit->shown++;
	if (visit->visitor->push)
		visit->visitor->push(visit->owner, visit, frame);
}

static inline __attribute__((always_inline)) void visit_pop(void *owner, struct replay *replay,
							    struct replay_frame *replayed, unsigned how)
{
	struct visit *visit = owner;
	int64_t now = shown_ns(visit, replay->now);
	struct visit_frame *frame;
	uint64_t total;

	(void)replayed;
	if (!visit->depth)
		return; /* its push found no memory */
	frame = &visit->frames[visit->depth - 1];
	total = (uint64_t)(now - frame->start_ns);
	if (__builtin_expect(visit->depth > visit->shown, 0) && total >= visit->select->min_duration_ns &&
	    !too_deep(visit, visit->depth - 1))
		show(visit, visit->depth - 1);
	if (visit->depth == visit->shown) {
		visit->shown--;
		if (visit->shown)
			frame[-1].inner_ns += total;
		if (visit->visitor->pop)
			visit->visitor->pop(visit->owner, visit, frame, how);
	}
	if (__builtin_expect(frame->task != 0, 0))
		end_step(visit, frame, how);
	visit->depth--;
}

static int visit_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct visit *visit = owner;

	shown_ns(visit, replay->now);
	if (wire_head_kind(head) == WIRE_TIME) {
		if (visit->visitor->lines)
			visit->visitor->other(visit->owner, visit, head, extra);
		return 0;
	}
	visit->step = 0;
	if (wire_head_kind(head) == WIRE_TASK)
		expect_step(visit, head, *extra);
	else if (visit->visitor->other)
		visit->visitor->other(visit->owner, visit, head, extra);
	return 0;
}

static const struct replay_sink sink = {visit_push, visit_pop, visit_other};

/* --- threads --- */

/* Begins what runs at `from`. */
static int push_running(struct visit *visit, uint64_t from, uint64_t to)
{
	struct running running = {.trace = visit->trace,
				  .thread = visit->thread,
				  .replay = &visit->replay,
				  .from = from,
				  .to = to,
				  .look_back = &visit->look_back};
	int error = running_find(&running);
	uint32_t i;

	/* Where the window begins, not at the first tick behind that. */
	visit->replay.now = from - 1;
	for (i = 0; i < running.count && !error; i++)
		replay_push_at(&visit->replay, running.stack[i], WIRE_FRAME, &sink, visit);
	running_done(&running);
	return error;
}

/* Goes to the first event of the stretch without telling anybody. Returns the place in the chunk. */
static struct replay_cursor skip_to(struct visit *visit, const struct trace_events *events, uint64_t from)
{
	struct replay_cursor cursor = {.events = events, .extra = events->extras};
	uint64_t now = events->first_ticks;

	for (; cursor.at < events->count; cursor.at++) {
		unsigned kind = wire_head_kind(events->heads[cursor.at]);
		uint64_t next = kind == WIRE_TIME ? *cursor.extra : now + events->ticks[cursor.at];

		if (next >= from)
			break;
		now = next;
		cursor.extra += wire_extra_words(kind);
	}
	visit->replay.now = now;
	return cursor;
}

/* The next chunk, with the stack as it is before its first event. False at the end of the thread. */
static bool load_chunk(struct visit *visit, struct visit_run *run, struct progress *progress)
{
	if (!trace_stream_next(&run->stream, &run->events))
		return false;
	run->inside |= run->events.hole && run->events.first_ticks >= run->from;
	run->cursor = run->inside ? replay_begin_chunk(&visit->replay, &run->events, &sink, visit)
				  : skip_to(visit, &run->events, run->from);
	run->inside |= run->cursor.at < run->events.count;
	run->loaded = true;
	progress_add(progress, run->events.count);
	return true;
}

static bool next_chunk_is_later(const struct visit_run *run, uint64_t until)
{
	const struct trace_thread *thread = run->stream.thread;

	return run->stream.next < thread->place_count && thread->places[run->stream.next].first_ticks >= until;
}

bool visit_run(struct visit *visit, struct visit_run *run, struct progress *progress, uint64_t until)
{
	uint64_t stop = until < run->to ? until : run->to;

	while (!visit->error) {
		if (!run->loaded && next_chunk_is_later(run, until))
			return true;
		if (!run->loaded && !load_chunk(visit, run, progress))
			return false;
		if (replay_run(&visit->replay, &run->cursor, stop, &sink, visit) == 1) {
			run->passed = stop == run->to;
			return !run->passed;
		}
		run->loaded = false;
	}
	return false;
}

uint64_t visit_run_next(const struct visit *visit, const struct visit_run *run)
{
	const struct replay_cursor *cursor = &run->cursor;

	if (!run->loaded)
		return run->stream.thread->places[run->stream.next].first_ticks;
	if (wire_head_kind(run->events.heads[cursor->at]) == WIRE_TIME)
		return *cursor->extra;
	return visit->replay.now + run->events.ticks[cursor->at];
}

/* Begins what runs when the stretch does, and goes to its first chunk. */
static int begin_run(struct visit *visit, struct visit_run *run)
{
	const struct select *select = visit->select;
	const struct trace_thread *thread = visit->thread;
	size_t first;
	int error = 0;

	run->to = UINT64_MAX;
	if (select->from_given)
		run->from = trace_ticks(visit->process, visit->trace->start_ns + select->from_ns);
	if (select->to_given)
		run->to = trace_ticks(visit->process, visit->trace->start_ns + select->to_ns);
	run->inside = !run->from;
	first = running_place(thread, run->from);
	if (run->from && run->from < run->to && first < thread->place_count)
		error = push_running(visit, run->from, run->to);
	trace_stream_open(&run->stream, visit->trace, thread);
	trace_stream_skip(&run->stream, run->from < run->to ? first : thread->place_count);
	return error;
}

int visit_thread_begin(struct visit *visit, struct visit_run *run)
{
	int error = 0;

	*run = (struct visit_run){0};
	visit->now_ns = select_from(visit->select);
	visit->depth = visit->shown = 0;
	replay_begin_thread(&visit->replay);
	forget_tasks(visit);
	if (visit->visitor->thread)
		error = visit->visitor->thread(visit->owner, visit);
	if (!error && !visit->visitor->no_events)
		error = begin_run(visit, run);
	return error;
}

int visit_thread_end(struct visit *visit, struct visit_run *run, int error)
{
	trace_stream_close(&run->stream);
	if (!error)
		error = visit->error;
	if (!error && run->passed) {
		/* What is open ends where the window does, not at the first tick behind it. */
		visit->replay.now = run->to - 1;
		visit->now_ns = visit->select->to_ns;
	}
	if (!error)
		replay_end_thread(&visit->replay, &sink, visit);
	if (!error && visit->visitor->thread_end)
		error = visit->visitor->thread_end(visit->owner, visit);
	return error ? error : visit->error;
}

static int visit_thread(struct visit *visit, struct progress *progress)
{
	struct visit_run run;
	int error = visit_thread_begin(visit, &run);

	if (!error && !visit->visitor->no_events)
		visit_run(visit, &run, progress, UINT64_MAX);
	return visit_thread_end(visit, &run, error);
}

/* --- processes --- */

void visit_init(struct visit *visit, struct trace *trace, const struct select *select, const struct visitor *visitor,
		void *owner)
{
	*visit = (struct visit){.trace = trace,
				.select = select,
				.visitor = visitor,
				.owner = owner,
				.look_back = RUNNING_LOOK_BACK_EVENTS};
	if (!select->min_duration_ns)
		visit->shown_at_once = select->max_depth ? select->max_depth : UINT32_MAX;
}

void visit_done(struct visit *visit)
{
	free(visit->frames);
	pairs_done(&visit->tasks);
}

static int visit_process(struct visit *visit, struct progress *progress)
{
	const struct trace_process *process = visit->process;
	int error = replay_init(&visit->replay, process);
	size_t i;

	if (!error)
		error = select_hide(visit->select, process, visit->replay.keys, &visit->hidden);
	visit->replay.hidden = visit->hidden;
	visit->near = (struct trace_near){0};
	if (!error && visit->visitor->process)
		error = visit->visitor->process(visit->owner, visit);
	for (i = 0; i < process->thread_count && !error; i++) {
		visit->thread = visit->trace->threads[process->threads[i]];
		if (select_thread(visit->select, visit->thread))
			error = visit_thread(visit, progress);
	}
	if (visit->replay.out_of_memory && !error)
		error = -ENOMEM;
	visit->thread = NULL;
	if (!error && visit->visitor->process_end)
		error = visit->visitor->process_end(visit->owner, visit);
	replay_done(&visit->replay);
	free(visit->hidden);
	visit->hidden = NULL;
	return error;
}

uint64_t visit_events(const struct trace *trace, const struct select *select)
{
	uint64_t events = 0;
	uint32_t i;
	size_t k;

	for (i = 0; i < trace->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[i];
		const struct trace_process *process = thread ? trace_process_of(trace, thread) : NULL;

		if (!process || !select_process(select, process) || !select_thread(select, thread))
			continue;
		for (k = 0; k < thread->place_count; k++)
			if (!select_skips(select, trace, process, &thread->places[k]))
				events += thread->places[k].events;
	}
	return events;
}

int visit_trace(struct trace *trace, const struct select *select, struct progress *progress,
		const struct visitor *visitor, void *owner)
{
	struct visit visit;
	int error = 0;
	uint32_t i;

	visit_init(&visit, trace, select, visitor, owner);
	for (i = 0; i < trace->process_count && !error; i++) {
		visit.process = trace->processes[i];
		if (visit.process && select_process(select, visit.process))
			error = visit_process(&visit, progress);
	}
	visit_done(&visit);
	return error;
}
