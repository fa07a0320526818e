/*
 * visit.c - between the replay and the exporters: takes out what was not chosen. See visit.h.
 *
 *   replay.h    the stack as it was, without the functions that are hidden
 *   here        time, depth, duration; ns
 *   visitor     what is shown
 */
#include "visit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static inline int64_t shown_ns(struct visit *visit, uint64_t ticks)
{
	int64_t ns = trace_ns(visit->process, ticks) - visit->trace->start_ns;

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
 * The task that begins or goes on with this frame, or 0. Until 3.9 an exception that is thrown into a task is seen first
 * where it arrives, in the innermost coroutine, which then looks as if nobody awaited it: it is no task that was met.
 */
static uint32_t task_of(struct visit *visit, const struct visit_frame *frame)
{
	uint64_t *number, found;

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
		*number = ++visit->task_count;
	return (uint32_t)*number;
}

static void take_step(struct visit *visit, struct visit_frame *frame)
{
	if (frame->key == visit->step_key && frame->kind <= WIRE_THROW) {
		frame->task = task_of(visit, frame);
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
	visit->step = replay_hides(&visit->replay, visit->step_key) ? 0 : task;
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
	visit->step = 0;
	if (wire_head_kind(head) == WIRE_TASK)
		expect_step(visit, head, *extra);
	else if (visit->visitor->other)
		visit->visitor->other(visit->owner, visit, head, extra);
	return 0;
}

static const struct replay_sink sink = {visit_push, visit_pop, visit_other};

/* --- the stack at the beginning of a stretch of time --- */

#define LOOK_BACK_EVENTS (UINT64_C(1) << 22)	 /* of one thread; the stack is told each 2^20 words as a rule */
#define LOOK_BACK_EVENTS_ALL (UINT64_C(1) << 25) /* of all */

/*
 * What runs when the stretch begins, by key. Chunks are read from where look_back() says: what they show before
 * the stretch is known. Beneath that is what ends in the stretch without having begun.
 */
struct running {
	uint32_t *keys; /* of the known, outermost first; calls of the stretch come and go at the end */
	uint32_t depth;
	uint32_t allocated;
	uint32_t *ended; /* of what ended without having begun, innermost first */
	uint32_t ended_count;
	uint32_t ended_allocated;
	bool opening; /* WIRE_OPEN events tell the stack, from event number open_at of the first chunk on */
	uint32_t open_at;
	bool past; /* the beginning of the stretch */
	bool over; /* nothing more can be known */
};

static bool add_key(uint32_t **keys, uint32_t *count, uint32_t *allocated, uint32_t key)
{
	if (*count == *allocated) {
		uint32_t wanted = *allocated ? *allocated * 2 : 64;
		uint32_t *grown = realloc(*keys, wanted * sizeof(*grown));

		if (!grown)
			return false;
		*keys = grown;
		*allocated = wanted;
	}
	(*keys)[(*count)++] = key;
	return true;
}

static void quiet_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	(void)owner;
	(void)replay;
	(void)frame;
}

static void quiet_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	(void)owner;
	(void)replay;
	(void)frame;
	(void)how;
}

static int quiet_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	(void)owner;
	(void)replay;
	(void)head;
	(void)extra;
	return 0;
}

static const struct replay_sink quiet = {quiet_push, quiet_pop, quiet_other};

/* An end after the beginning of the stretch, as replay_mismatch() takes it. */
static bool take_end(struct running *running, uint32_t key)
{
	uint32_t depth = running->depth;

	if (!depth)
		return add_key(&running->ended, &running->ended_count, &running->ended_allocated, key);
	while (depth && running->keys[depth - 1] != key)
		depth--;
	if (depth)
		running->depth = depth - 1;
	return true;
}

/* The events of the stretch in one chunk. Returns 0 or -ENOMEM. */
static int read_ends(struct running *running, struct visit *visit, const struct replay_cursor *cursor, uint64_t to)
{
	const struct trace_events *events = cursor->events;
	const uint64_t *extra = cursor->extra;
	uint64_t now = visit->replay.now;
	uint32_t i;

	for (i = cursor->at; i < events->count && !running->over; i++) {
		uint32_t key, head = events->heads[i];
		unsigned kind = wire_head_kind(head);

		now = kind == WIRE_TIME ? *extra : now + events->ticks[i];
		extra += wire_extra_words(kind);
		running->over = now >= to || kind == WIRE_GAP || kind == WIRE_STACK || kind == WIRE_PAUSE ||
				kind == WIRE_THREAD_END || kind == WIRE_SWITCH;
		if (running->over || kind < WIRE_CALL || kind > WIRE_C_EXCEPTION)
			continue;
		key = replay_key_of(&visit->replay, head);
		if (replay_hides(&visit->replay, key))
			continue;
		if (kind <= WIRE_THROW || kind == WIRE_C_CALL) {
			if (!add_key(&running->keys, &running->depth, &running->allocated, key))
				return -ENOMEM;
		} else if (!take_end(running, key)) {
			return -ENOMEM;
		}
	}
	visit->replay.now = now;
	return 0;
}

/* The stack is known as far as the replay knows it: a copy, for the search to go on with. */
static int take_known(struct running *running, const struct visit *visit)
{
	uint32_t i;

	running->past = true;
	running->over = !visit->replay.base_unknown; /* nothing is beneath */
	for (i = 0; i < visit->replay.depth && !running->over; i++)
		if (!add_key(&running->keys, &running->depth, &running->allocated, visit->replay.frames[i].key))
			return -ENOMEM;
	return 0;
}

/* Passes over events of the chunk up to that number. */
static void pass_to(struct visit *visit, struct replay_cursor *cursor, uint32_t number)
{
	for (; cursor->at < number; cursor->at++) {
		unsigned kind = wire_head_kind(cursor->events->heads[cursor->at]);

		visit->replay.now =
		    kind == WIRE_TIME ? *cursor->extra : visit->replay.now + cursor->events->ticks[cursor->at];
		cursor->extra += wire_extra_words(kind);
	}
}

/* What WIRE_OPEN events say is on the stack; they may go on in the next chunk. */
static void take_open(struct visit *visit, struct running *running, struct replay_cursor *cursor)
{
	const struct trace_events *events = cursor->events;
	struct replay *replay = &visit->replay;

	pass_to(visit, cursor, running->open_at);
	running->open_at = 0;
	replay->base_unknown = false;
	replay->natives_unknown = true;
	for (; cursor->at < events->count; cursor->at++) {
		uint32_t head = events->heads[cursor->at], key = replay_key_of(replay, head);

		running->opening = wire_head_kind(head) == WIRE_OPEN;
		if (!running->opening)
			return;
		replay->now += events->ticks[cursor->at];
		if (replay_hides(replay, key))
			replay_note_hidden(replay, true);
		else
			replay_push(replay, key, WIRE_FRAME, &quiet, visit);
	}
}

static int read_running(struct running *running, struct visit *visit, const struct trace_events *events, uint64_t from,
			uint64_t to)
{
	struct replay_cursor cursor = {.events = events, .extra = events->extras};
	int error = 0;

	if (running->past || (events->hole && events->first_ticks >= from)) {
		running->over = events->hole;
		visit->replay.now = events->first_ticks;
	} else {
		cursor = replay_begin_chunk(&visit->replay, events, &quiet, visit);
		if (running->opening)
			take_open(visit, running, &cursor);
		if (replay_run(&visit->replay, &cursor, from, &quiet, visit) == 0)
			return 0;
		error = take_known(running, visit);
	}
	if (!error && !running->over)
		error = read_ends(running, visit, &cursor, to);
	return error;
}

/* Whether the stack is told in a chunk, or nothing before it can be known; and from which event on. */
static bool tells_stack(struct running *running, const struct trace_events *events, bool is_first)
{
	const uint32_t ends = 1u << WIRE_STACK | 1u << WIRE_GAP | 1u << WIRE_PAUSE;
	unsigned before = is_first ? WIRE_NONE : WIRE_OPEN; /* the chunk before may begin what goes on here */
	bool found = events->hole;
	uint32_t i;

	for (i = 0; i < events->count; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);

		if (kind == WIRE_OPEN && before != WIRE_OPEN) {
			running->opening = found = true;
			running->open_at = i;
		} else if (ends >> kind & 1) {
			running->opening = false;
			found = true;
		}
		before = kind;
	}
	return found;
}

/* The thread's place, before number `first`, from which on to read: where the stack is told, or the first of all. */
static size_t look_back(struct visit *visit, struct running *running, size_t first)
{
	uint64_t most = visit->look_back < LOOK_BACK_EVENTS ? visit->look_back : LOOK_BACK_EVENTS, read = 0;
	size_t place = first;
	bool found = false;

	while (place && !found && read < most) {
		struct trace_stream stream;
		struct trace_events events;

		trace_stream_open(&stream, visit->trace, visit->thread);
		trace_stream_skip(&stream, --place);
		found = !trace_stream_next(&stream, &events) || tells_stack(running, &events, place == 0);
		running->opening &= stream.next <= first; /* it may be a later one, after damage */
		trace_stream_close(&stream);
		read += visit->thread->places[place].events;
	}
	visit->look_back -= read < visit->look_back ? read : visit->look_back;
	return found || !place ? place : first;
}

static int find_running(struct visit *visit, struct running *running, size_t first, uint64_t from, uint64_t to)
{
	struct trace_stream stream;
	struct trace_events events;
	int error = 0;

	first = look_back(visit, running, first);
	visit->replay.base_unknown |= first > 0;
	visit->replay.others_unknown |= first > 0;
	trace_stream_open(&stream, visit->trace, visit->thread);
	trace_stream_skip(&stream, first);
	while (!error && !running->over && trace_stream_next(&stream, &events))
		error = read_running(running, visit, &events, from, to);
	trace_stream_close(&stream);
	return error;
}

/* Begins what runs at `from`, which is in the thread's place number `first` or between it and the one before. */
static int push_running(struct visit *visit, size_t first, uint64_t from, uint64_t to)
{
	struct running running = {0};
	int error = find_running(visit, &running, first, from, to);
	struct replay *replay = &visit->replay;
	uint32_t depth = replay->depth, i;
	uint32_t *known = malloc((depth + (size_t)1) * sizeof(*known));

	if (!known)
		error = -ENOMEM;
	/* The search has left what it knows on the stack of the replay, and nobody has heard of it. */
	for (i = 0; i < depth && known; i++)
		known[i] = replay->frames[i].key;
	replay_forget(replay);
	replay->now = from;
	while (!error && running.ended_count)
		replay_push(replay, running.ended[--running.ended_count], WIRE_FRAME, &sink, visit);
	for (i = 0; i < depth && !error; i++)
		replay_push(replay, known[i], WIRE_FRAME, &sink, visit);
	free(known);
	free(running.keys);
	free(running.ended);
	return error;
}

/* --- threads --- */

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

/* The chunks from number `first` on. Returns true if an event was at `to` or later. */
static bool run_chunks(struct visit *visit, struct progress *progress, size_t first, uint64_t from, uint64_t to)
{
	struct trace_stream stream;
	struct trace_events events;
	bool inside = !from, passed = false;

	trace_stream_open(&stream, visit->trace, visit->thread);
	trace_stream_skip(&stream, first);
	while (!visit->error && !passed && trace_stream_next(&stream, &events)) {
		struct replay_cursor cursor;

		inside |= events.hole && events.first_ticks >= from;
		cursor =
		    inside ? replay_begin_chunk(&visit->replay, &events, &sink, visit) : skip_to(visit, &events, from);
		inside |= cursor.at < events.count;
		passed = replay_run(&visit->replay, &cursor, to, &sink, visit) == 1;
		progress_add(progress, events.count);
	}
	trace_stream_close(&stream);
	return passed;
}

static int run_thread(struct visit *visit, struct progress *progress)
{
	const struct select *select = visit->select;
	const struct trace_thread *thread = visit->thread;
	uint64_t from = select->from_given ? trace_ticks(visit->process, visit->trace->start_ns + select->from_ns) : 0;
	uint64_t to =
	    select->to_given ? trace_ticks(visit->process, visit->trace->start_ns + select->to_ns) : UINT64_MAX;
	size_t first = 0;
	int error = 0;

	if (from >= to)
		return 0;
	while (first < thread->place_count && thread->places[first].last_ticks < from)
		first++;
	if (from && first < thread->place_count)
		error = push_running(visit, first, from, to);
	if (!error && run_chunks(visit, progress, first, from, to))
		visit->replay.now = to;
	return error;
}

static int visit_thread(struct visit *visit, struct progress *progress)
{
	int error = 0;

	visit->now_ns = select_from(visit->select);
	visit->depth = visit->shown = 0;
	replay_begin_thread(&visit->replay);
	forget_tasks(visit);
	if (visit->visitor->thread)
		error = visit->visitor->thread(visit->owner, visit);
	if (!error)
		error = run_thread(visit, progress);
	if (!error)
		error = visit->error;
	if (!error)
		replay_end_thread(&visit->replay, &sink, visit);
	if (!error && visit->visitor->thread_end)
		error = visit->visitor->thread_end(visit->owner, visit);
	return error ? error : visit->error;
}

/* --- processes --- */

static int visit_process(struct visit *visit, struct progress *progress)
{
	const struct trace_process *process = visit->process;
	int error = replay_init(&visit->replay, process);
	size_t i;

	if (!error)
		error = select_hide(visit->select, process, visit->replay.keys, &visit->hidden);
	visit->replay.hidden = visit->hidden;
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
	struct visit visit = {
	    .trace = trace, .select = select, .visitor = visitor, .owner = owner, .look_back = LOOK_BACK_EVENTS_ALL};
	int error = 0;
	uint32_t i;

	if (!select->min_duration_ns)
		visit.shown_at_once = select->max_depth ? select->max_depth : UINT32_MAX;
	for (i = 0; i < trace->process_count && !error; i++) {
		visit.process = trace->processes[i];
		if (visit.process && select_process(select, visit.process))
			error = visit_process(&visit, progress);
	}
	free(visit.frames);
	pairs_done(&visit.tasks);
	return error;
}
