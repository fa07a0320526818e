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

static int64_t shown_ns(struct visit *visit, uint64_t ticks)
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

static void visit_push(void *owner, struct replay *replay, struct replay_frame *replayed)
{
	struct visit *visit = owner;
	struct visit_frame *frame;
	int64_t now = shown_ns(visit, replay->now);

	if (visit->depth == visit->allocated && !grow(visit))
		return;
	frame = &visit->frames[visit->depth++];
	*frame = (struct visit_frame){.key = replayed->key, .kind = replayed->kind, .start_ns = now};
	if (!visit->select->min_duration_ns && !too_deep(visit, visit->depth - 1))
		show(visit, visit->depth - 1);
}

static void visit_pop(void *owner, struct replay *replay, struct replay_frame *replayed, unsigned how)
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
	if (visit->depth > visit->shown && total >= visit->select->min_duration_ns &&
	    !too_deep(visit, visit->depth - 1))
		show(visit, visit->depth - 1);
	if (visit->depth == visit->shown) {
		visit->shown--;
		if (visit->shown)
			frame[-1].inner_ns += total;
		if (visit->visitor->pop)
			visit->visitor->pop(visit->owner, visit, frame, how);
	}
	visit->depth--;
}

static int visit_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct visit *visit = owner;

	shown_ns(visit, replay->now);
	if (visit->visitor->other)
		visit->visitor->other(visit->owner, visit, head, extra);
	return 0;
}

static const struct replay_sink sink = {visit_push, visit_pop, visit_other};

/* --- the stack at the beginning of a stretch of time --- */

/* Keys whose ends come without their beginnings, in the order of the ends: the innermost first. */
struct base {
	uint32_t *keys;
	uint32_t count;
	uint32_t allocated;
	uint32_t depth;
};

static bool base_add(struct base *base, uint32_t key)
{
	if (base->count == base->allocated) {
		uint32_t allocated = base->allocated ? base->allocated * 2 : 64;
		uint32_t *grown = realloc(base->keys, allocated * sizeof(*grown));

		if (!grown)
			return false;
		base->keys = grown;
		base->allocated = allocated;
	}
	base->keys[base->count++] = key;
	return true;
}

/* Returns 1 at the end of what can be known, 0, or -ENOMEM. */
static int base_chunk(struct base *base, struct visit *visit, const struct trace_events *events, uint64_t from,
		      uint64_t to)
{
	const uint64_t *extra = events->extras;
	uint64_t now = events->first_ticks;
	uint32_t i;

	if (events->hole && base->depth + base->count)
		return 1;
	for (i = 0; i < events->count; i++) {
		uint32_t head = events->heads[i];
		unsigned kind = wire_head_kind(head);

		now = kind == WIRE_TIME ? *extra : now + events->ticks[i];
		extra += wire_extra_words(kind);
		if (now >= to)
			return 1;
		if (kind == WIRE_GAP || kind == WIRE_STACK || kind == WIRE_PAUSE || kind == WIRE_THREAD_END) {
			if (now >= from)
				return 1;
			base->depth = 0; /* what came before says nothing about what is running at `from` */
			continue;
		}
		if (kind < WIRE_CALL || kind > WIRE_C_EXCEPTION || now < from)
			continue;
		if (kind <= WIRE_THROW || kind == WIRE_C_CALL)
			base->depth++;
		else if (base->depth)
			base->depth--;
		else if (!base_add(base, replay_key_of(&visit->replay, head)))
			return -ENOMEM;
	}
	return 0;
}

/* What runs when the stretch begins is what ends in it without having begun: found by reading it twice. */
static int find_base(struct visit *visit, struct base *base, size_t first, uint64_t from, uint64_t to)
{
	struct trace_stream stream;
	struct trace_events events;
	int result = 0;

	trace_stream_open(&stream, visit->trace, visit->thread);
	trace_stream_skip(&stream, first);
	while (!result && trace_stream_next(&stream, &events))
		result = base_chunk(base, visit, &events, from, to);
	trace_stream_close(&stream);
	return result < 0 ? result : 0;
}

static int push_base(struct visit *visit, size_t first, uint64_t from, uint64_t to)
{
	struct base base = {0};
	int error = find_base(visit, &base, first, from, to);

	visit->replay.now = from;
	while (!error && base.count) {
		uint32_t key = base.keys[--base.count];

		if (!visit->hidden || !visit->hidden[key])
			replay_push(&visit->replay, key, WIRE_FRAME, &sink, visit);
	}
	free(base.keys);
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

static int run_thread(struct visit *visit, struct progress *progress)
{
	const struct select *select = visit->select;
	const struct trace_thread *thread = visit->thread;
	uint64_t from = select->from_given ? trace_ticks(visit->process, visit->trace->start_ns + select->from_ns) : 0;
	uint64_t to =
	    select->to_given ? trace_ticks(visit->process, visit->trace->start_ns + select->to_ns) : UINT64_MAX;
	struct trace_stream stream;
	struct trace_events events;
	bool inside = !select->from_given, passed = false;
	size_t first = 0;
	int error = 0;

	while (select->from_given && first < thread->place_count && thread->places[first].last_ticks < from)
		first++;
	trace_stream_open(&stream, visit->trace, thread);
	trace_stream_skip(&stream, first);
	while (!error && !visit->error && !passed && trace_stream_next(&stream, &events)) {
		struct replay_cursor cursor;

		if (inside) {
			cursor = replay_begin_chunk(&visit->replay, &events, &sink, visit);
		} else {
			cursor = skip_to(visit, &events, from);
			if (cursor.at == events.count)
				continue;
			visit->replay.base_unknown = true;
			inside = true;
			if (visit->replay.now < to) {
				uint64_t now = visit->replay.now;

				error = push_base(visit, first, from, to);
				visit->replay.now = now;
			}
		}
		passed = replay_run(&visit->replay, &cursor, to, &sink, visit) == 1;
		progress_add(progress, events.count);
	}
	trace_stream_close(&stream);
	if (passed && visit->replay.now < to)
		visit->replay.now = to;
	return error;
}

static int visit_thread(struct visit *visit, struct progress *progress)
{
	int error = 0;

	visit->now_ns = select_from(visit->select);
	visit->depth = visit->shown = 0;
	replay_begin_thread(&visit->replay);
	if (visit->visitor->thread)
		error = visit->visitor->thread(visit->owner, visit);
	if (!error)
		error = run_thread(visit, progress);
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
	struct visit visit = {.trace = trace, .select = select, .visitor = visitor, .owner = owner};
	int error = 0;
	uint32_t i;

	for (i = 0; i < trace->process_count && !error; i++) {
		visit.process = trace->processes[i];
		if (visit.process && select_process(select, visit.process))
			error = visit_process(&visit, progress);
	}
	free(visit.frames);
	return error;
}
