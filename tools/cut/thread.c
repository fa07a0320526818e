/*
 * thread.c - copies the events of one thread. See thread.h.
 *
 *   before the stretch   the stack is that of initial_stack.h; events that describe the next one are held
 *   begin                CPU time, what is thinned, stack, held events
 *   in it                each event with the ids of the cut, and after a switch the stack of a greenlet that did not
 *                        run in the stretch before
 *   at its end           the time, so that open calls last until then
 */
#include "cut/thread.h"

#include <errno.h>

#include "replay/initial_stack.h"
#include "trace/stream.h"

#define CHUNK_WORDS 65536u			       /* of a chunk, as a rule */
#define CHUNK_WORDS_MAX (TRACE_CHUNK_EVENTS_MAX - 64u) /* where no event may end it */

/* What is known of the thread's CPU time. Between two events it ran, unless a CPU time says otherwise. */
struct cpu_account {
	bool known;
	uint64_t cpu_ns, at_ticks; /* the last WIRE_CPU */
	uint64_t last_ticks;	   /* of the last event */
};

/* One event of the trace. */
struct event {
	uint32_t head;
	uint32_t ticks;
	const uint64_t *extra;
	uint64_t now;
	unsigned kind;
};

struct copy {
	const struct cut_thread *cut;
	const struct trace_process *process;
	struct replay *replay;
	uint64_t from, to; /* ticks */
	/* The edges; those at a byte of the file are events of this thread, or times behind its last one. */
	struct cut_edge first, last;
	struct trace_stream stream;
	bool has_begun, has_ended;
	bool has_before;		  /* the thread has events before the stretch */
	struct event_buffer buffer;	  /* of the cut's chunk */
	uint64_t first_ticks;		  /* of that chunk */
	struct event_buffer held;	  /* events that describe the next one, before the stretch */
	bool describing;		  /* the last events of the buffer describe the next one ... */
	uint32_t settled, settled_extras; /* ... which begin there */
	uint64_t settled_ticks;
	struct cpu_account cpu;
	struct u64_map greenlets; /* that ran in the stretch */
	int error;
};

static const struct replay_sink quiet = {0};

/* Whether the event belongs to the next one, and is never without it. */
static bool describes_next(unsigned kind)
{
	return kind == WIRE_TASK || kind == WIRE_ARGUMENT || kind == WIRE_NATIVE_STACK;
}

/* --- the edges --- */

/* Whether the event is before the position of an event in this thread. */
static bool is_ahead_of(const struct copy *copy, const struct cut_edge *edge, uint32_t at)
{
	size_t place = copy->stream.next - 1;

	return place != edge->place ? place < edge->place : at < edge->at;
}

static bool is_before(const struct copy *copy, uint64_t now, uint32_t at)
{
	const struct cut_edge *edge = &copy->first;

	return edge->thread == copy->cut->thread ? is_ahead_of(copy, edge, at) : now < copy->from;
}

static bool is_after(const struct copy *copy, uint64_t now, uint32_t at)
{
	const struct cut_edge *edge = &copy->last;

	if (edge->thread != copy->cut->thread)
		return now >= copy->to;
	return !is_ahead_of(copy, edge, at) && (copy->stream.next - 1 != edge->place || at != edge->at);
}

/* --- CPU times --- */

static void note_cpu(struct cpu_account *cpu, const struct event *event)
{
	if (event->kind == WIRE_CPU) {
		cpu->known = true;
		cpu->cpu_ns = wire_cpu_ns(event->head, event->ticks);
		cpu->at_ticks = event->now;
	}
	cpu->known &= event->kind != WIRE_GAP;
	cpu->last_ticks = event->now;
}

/*
 * The CPU time at a time between the last event and the next one. In a pause that ends with a CPU time the thread ran
 * first, then waited.
 */
static uint64_t cpu_at(const struct copy *copy, uint64_t ticks, const struct event *next)
{
	const struct cpu_account *cpu = &copy->cpu;
	uint64_t last = cpu->last_ticks > cpu->at_ticks ? cpu->last_ticks : cpu->at_ticks;
	uint64_t then = cpu->cpu_ns + trace_span_ns(copy->process, last - cpu->at_ticks);
	uint64_t ran = trace_span_ns(copy->process, ticks > last ? ticks - last : 0), later;

	if (next->kind == WIRE_CPU) {
		later = wire_cpu_ns(next->head, next->ticks);
		later = later > then ? later - then : 0;
		ran = ran < later ? ran : later;
	}
	return then + ran;
}

/* Adds the time, with the CPU time where that is known. */
static void put_time(struct copy *copy, uint64_t ticks, const struct event *next)
{
	uint64_t word = wire_word(wire_head(WIRE_TIME, 0), 0);

	if (copy->cpu.known)
		word = wire_cpu_word(cpu_at(copy, ticks, next));
	event_buffer_put(&copy->buffer, (uint32_t)word, (uint32_t)(word >> 32), &ticks);
	copy->buffer.last = ticks;
}

/* --- writing --- */

static void flush(struct copy *copy)
{
	file_write(copy->cut->file, &copy->buffer, copy->first_ticks);
	copy->first_ticks = copy->buffer.last;
	copy->describing = false;
}

static void put_at(struct copy *copy, uint64_t now, uint32_t head, const uint64_t *extra)
{
	if (copy->buffer.count + copy->buffer.extra_count >= CHUNK_WORDS_MAX)
		flush(copy);
	event_buffer_put_at(&copy->buffer, now, head, extra);
}

/* Adds the event with the ids of the cut. */
static void put_event(struct copy *copy, const struct event *event)
{
	uint64_t words[WIRE_EXTRA_MAX];
	const uint64_t *extra = event->extra;
	uint32_t head;

	if (!trace_knows_kind(event->kind)) /* it may have ids */
		return;
	head = ids_of_event(&copy->cut->file->ids, event->head, &extra, words);
	if (copy->buffer.count + copy->buffer.extra_count >= (copy->describing ? CHUNK_WORDS_MAX : CHUNK_WORDS))
		flush(copy);
	if (!copy->describing) {
		copy->settled = copy->buffer.count;
		copy->settled_extras = copy->buffer.extra_count;
		copy->settled_ticks = copy->buffer.last;
	}
	if (wire_is_time(event->kind)) {
		event_buffer_put(&copy->buffer, head, event->ticks, extra);
		copy->buffer.last = event->now;
	} else {
		event_buffer_put_at(&copy->buffer, event->now, head, extra);
	}
	if (describes_next(event->kind))
		copy->describing = true;
	else if (!wire_is_bookkeeping(event->kind))
		copy->describing = false;
}

/* The stack of the allocations, where they have one of their own. */
static void put_own_stack(struct copy *copy)
{
	const struct replay *replay = copy->replay;
	uint32_t value = replay->base_unknown ? WIRE_CHANGE_CUT : 0, i = 0;
	uint64_t words[WIRE_EXTRA_MAX];

	do {
		unsigned count = 0;

		for (; i < replay->depth && count < WIRE_EXTRA_MAX; i++)
			words[count++] = wire_place(ids_of(&copy->cut->file->ids, IDS_CODE, replay->frames[i].key / 2),
						    replay->frames[i].instruction);
		put_at(copy, copy->buffer.last, wire_extended(WIRE_STACK_CHANGE, count, value), words);
		value = i;
	} while (i < replay->depth && i <= WIRE_CHANGE_STAY_MAX);
}

/* The Python functions on the stack, with their lines. C functions have no place in a recorded stack. */
static void put_stack(struct copy *copy)
{
	const struct replay *replay = copy->replay;
	uint32_t count = 0;

	if (replay->has_own_stack) {
		put_own_stack(copy);
		return;
	}
	for (uint32_t i = 0; i < replay->depth; i++)
		count += !(replay->frames[i].key & 1);
	put_at(copy, copy->buffer.last, wire_head(WIRE_STACK, count | (replay->base_unknown ? WIRE_STACK_CUT : 0)),
	       NULL);
	for (uint32_t i = 0; i < replay->depth; i++) {
		const struct replay_frame *frame = &replay->frames[i];
		uint32_t id = ids_of(&copy->cut->file->ids, IDS_CODE, frame->key / 2);

		if (frame->key & 1)
			continue;
		put_at(copy, copy->buffer.last, wire_head(WIRE_FRAME, id), NULL);
		if (frame->line)
			put_at(copy, copy->buffer.last, wire_head(WIRE_AT_LINE, frame->line), NULL);
	}
	if (replay->place)
		put_at(copy, copy->buffer.last, wire_head(WIRE_AT_INSTRUCTION, replay->place), NULL);
}

/* Under a budget: which functions are thinned. */
static void put_thinned(struct copy *copy)
{
	const struct thin_change *change = copy->replay->thinning ? thinning_last(copy->replay->thinning) : NULL;
	uint32_t ids[WIRE_THIN_SET_MOST], count = 0, at = 0, head;
	uint64_t extra[WIRE_EXTRA_MAX];

	if (!change)
		return;
	for (uint32_t i = 0; i < change->key_count; i++) {
		uint32_t key = copy->replay->thinning->change_keys[change->first_key + i];
		uint32_t id = ids_of(&copy->cut->file->ids, IDS_CODE, key / 2);

		if (id || key == THINNED_EXCEPTIONS)
			ids[count++] = id | (key & 1 ? WIRE_THIN_C_CALLS : 0);
	}
	do {
		head = wire_thin_event(wire_head_kind(change->head), change->head >> WIRE_VALUE_SHIFT, change->cpu_ns,
				       ids, count, &at, extra);
		put_at(copy, copy->buffer.last, head, extra);
	} while (at < count);
}

/* --- steps --- */

static void hold(struct copy *copy, const struct event *event)
{
	if (describes_next(event->kind) && copy->held.count < CHUNK_WORDS)
		event_buffer_put(&copy->held, event->head, 0, event->extra);
	else if (!wire_is_bookkeeping(event->kind))
		copy->held.count = copy->held.extra_count = 0;
}

static void put_held(struct copy *copy)
{
	struct event event = {.now = copy->buffer.last, .extra = copy->held.extras};

	for (uint32_t i = 0; i < copy->held.count; i++) {
		event.head = copy->held.heads[i];
		event.kind = wire_head_kind(event.head);
		put_event(copy, &event);
		if (wire_extra_words(event.head)) /* else it may be NULL */
			event.extra += wire_extra_words(event.head);
	}
}

/* At an edge of the file the time of the edge counts, as far as no event of the thread is on its other side. */
static uint64_t begin_ticks(const struct copy *copy, const struct event *next)
{
	uint64_t edge = cut_ticks(&copy->first, copy->process);

	if (!copy->first.byte || edge < copy->from)
		return copy->from;
	return edge < next->now ? edge : next->now;
}

/* next: the first event in the stretch, or after it. */
static void begin(struct copy *copy, const struct event *next)
{
	bool has_state = copy->has_before && !copy->cut->own;
	uint64_t from = begin_ticks(copy, next);

	copy->has_begun = true;
	copy->first_ticks = copy->buffer.last = copy->has_before ? from : next->now;
	file_begin_thread(copy->cut->file, copy->cut->thread);
	if (has_state && copy->cpu.known)
		put_time(copy, from, next);
	if (has_state) {
		put_thinned(copy);
		put_stack(copy);
	}
	put_held(copy);
}

static void step(struct copy *copy, const struct event *event)
{
	copy->replay->now = event->now;
	if (event->kind >= WIRE_CALL && event->kind <= WIRE_C_EXCEPTION)
		replay_call(copy->replay, event->head, &quiet, NULL);
	else
		replay_other(copy->replay, event->head, event->extra, &quiet, NULL);
}

/* A greenlet that runs in the stretch for the first time has a stack that only earlier events know. */
static void note_switch(struct copy *copy, const uint64_t *extra)
{
	uint64_t *origin = extra[1] ? u64_map_make(&copy->greenlets, extra[1]) : NULL;
	uint64_t *target = extra[0] ? u64_map_make(&copy->greenlets, extra[0]) : NULL;

	if ((extra[1] && !origin) || (extra[0] && !target)) {
		copy->error = -ENOMEM;
		return;
	}
	if (target && !*target && copy->replay->depth)
		put_stack(copy);
	if (target)
		*target = 1;
	if (extra[1])
		*u64_map_make(&copy->greenlets, extra[1]) = 1;
}

static void take(struct copy *copy, const struct event *event)
{
	if (!copy->has_begun)
		begin(copy, event);
	step(copy, event);
	note_cpu(&copy->cpu, event);
	put_event(copy, event);
	if (event->kind == WIRE_SWITCH && !copy->cut->own)
		note_switch(copy, event->extra);
}

/* Events at the time of the edge count for the stack of an edge that is an event. */
static void skip(struct copy *copy, const struct event *event)
{
	copy->has_before = true;
	if (event->now >= copy->from && !copy->cut->own)
		step(copy, event);
	note_cpu(&copy->cpu, event);
	hold(copy, event);
}

static bool runs_python(const struct replay *replay)
{
	for (uint32_t i = 0; i < replay->depth; i++)
		if (!(replay->frames[i].key & 1))
			return true;
	return false;
}

/* next: the first event after the stretch. A thread that waits all the time is in the cut, with its stack. */
static void end(struct copy *copy, const struct event *next)
{
	uint64_t to;

	copy->has_ended = true;
	if (!copy->has_begun && copy->has_before && !copy->cut->own && runs_python(copy->replay)) {
		copy->held.count = 0;
		begin(copy, next);
	}
	if (!copy->has_begun)
		return;
	if (copy->describing) {
		copy->buffer.count = copy->settled;
		copy->buffer.extra_count = copy->settled_extras;
		copy->buffer.last = copy->settled_ticks;
	}
	to = copy->last.byte ? cut_ticks(&copy->last, copy->process) : copy->to;
	to = copy->last.byte && to > next->now ? next->now : to;
	if ((copy->last.byte || copy->last.thread != copy->cut->thread) && to > copy->buffer.last)
		put_time(copy, to, next);
}

/* A gap that the file has no event for: a part of it is damaged. */
static void take_hole(struct copy *copy, const struct trace_events *events)
{
	const struct event gap = {
	    .head = wire_head(WIRE_GAP, 0), .extra = &events->missing, .now = events->first_ticks, .kind = WIRE_GAP};

	if (copy->has_begun || (events->first_ticks >= copy->from && events->first_ticks < copy->to))
		take(copy, &gap);
}

static void copy_chunk(struct copy *copy, const struct trace_events *events)
{
	struct event event = {.extra = events->extras, .now = events->first_ticks};

	if (events->hole)
		take_hole(copy, events);
	for (uint32_t i = 0; i < events->count && !copy->error; i++) {
		event.head = events->heads[i];
		event.ticks = events->ticks[i];
		event.kind = wire_head_kind(event.head);
		event.now = wire_time_of(event.kind, event.now, event.ticks, event.extra);
		if (!copy->has_begun && is_before(copy, event.now, i)) {
			skip(copy, &event);
		} else if (is_after(copy, event.now, i)) {
			end(copy, &event);
			return;
		} else {
			take(copy, &event);
		}
		event.extra += wire_extra_words(event.head);
	}
}

/* --- the thread --- */

static int find_stack(struct copy *copy)
{
	const struct cut_thread *cut = copy->cut;
	struct initial_stack initial = {.trace = cut->trace,
					.thread = cut->thread,
					.replay = cut->replay,
					.from = copy->from,
					.to = copy->to,
					.look_back = cut->look_back};

	if (!copy->from || cut->own || cut->thread->places[0].first_ticks >= copy->from)
		return 0;
	return initial_stack_push(&initial, copy->from, &quiet, NULL);
}

/* A thread that runs on, in a trace that is still being written. The stretch ends after its last event. */
static void end_running(struct copy *copy)
{
	const struct event next = {.now = copy->to};

	if (!copy->cut->thread->ended && copy->to != UINT64_MAX && runs_python(copy->replay))
		end(copy, &next);
}

static void copy_events(struct copy *copy, size_t first)
{
	const struct cut_thread *cut = copy->cut;
	struct trace_events events;

	trace_stream_open(&copy->stream, cut->trace, cut->thread);
	trace_stream_skip(&copy->stream, first);
	while (!copy->error && !copy->has_ended && !cut->file->error && trace_stream_chunk(&copy->stream, &events)) {
		copy_chunk(copy, &events);
		progress_add(cut->progress, events.count);
	}
	trace_stream_close(&copy->stream);
	if (!copy->error && !copy->has_ended)
		end_running(copy);
	if (copy->has_begun) {
		flush(copy);
		file_end_thread(cut->file);
	}
}

/* The index of the thread's first chunk behind a byte of the file. */
static size_t place_behind(const struct trace_thread *thread, uint64_t byte)
{
	size_t i = 0;

	while (i < thread->place_count && thread->places[i].offset < byte)
		i++;
	return i;
}

/* Events after it have the time of the last one at least: an edge without one behind it is later. */
static uint64_t later_of(uint64_t ticks, const struct trace_thread *thread, size_t places)
{
	uint64_t behind = places ? thread->places[places - 1].last_ticks + 1 : 0;

	return ticks > behind ? ticks : behind;
}

/* Of an edge at a byte of the file: the first event behind it begins the stretch, the last one before it ends it. */
static void set_edges(struct copy *copy)
{
	const struct trace_thread *thread = copy->cut->thread;
	struct cut_edge *first = &copy->first, *last = &copy->last;
	size_t i;

	*first = copy->cut->stretch->from;
	*last = copy->cut->stretch->to;
	copy->from = first->thread == thread ? first->ticks : cut_ticks(first, copy->process);
	copy->to = last->thread == thread ? last->ticks + 1 : cut_ticks(last, copy->process);
	i = first->byte ? place_behind(thread, first->byte) : thread->place_count;
	if (i < thread->place_count) {
		first->thread = thread;
		first->place = i;
		first->at = 0;
		/* Not its own first_ticks: that may be the end of a long wait, which belongs to the stretch. */
		copy->from = first->ticks = i ? thread->places[i - 1].last_ticks : thread->places[i].first_ticks;
	} else if (first->byte) {
		copy->from = later_of(copy->from, thread, i);
	}
	i = last->byte ? place_behind(thread, last->byte) : thread->place_count;
	if (i && i < thread->place_count) {
		last->thread = thread;
		last->place = i - 1;
		last->at = thread->places[i - 1].events - 1;
		copy->to = later_of(0, thread, i);
	} else if (last->byte) {
		copy->to = i ? later_of(copy->to, thread, i) : 0;
	}
}

/* Reads a chunk if the edge may be in the first one. */
bool cut_thread_has_before(const struct cut_thread *cut)
{
	struct copy copy = {.cut = cut, .process = trace_process_of(cut->trace, cut->thread)};
	const struct trace_thread *thread = cut->thread;
	struct trace_events events = {0};
	bool before = false;

	set_edges(&copy);
	if (!thread->place_count || thread->places[0].first_ticks > copy.from)
		return false;
	if (trace_stream_place(thread, copy.from) > 0)
		return true;
	trace_stream_open(&copy.stream, cut->trace, thread);
	if (trace_stream_chunk(&copy.stream, &events))
		before = is_before(&copy, trace_first_event(&events), 0);
	trace_stream_close(&copy.stream);
	return before;
}

/* Reads one more chunk before the stretch: its last events may describe the first one of the stretch. */
int cut_thread_write(const struct cut_thread *cut)
{
	struct copy copy = {.cut = cut, .process = trace_process_of(cut->trace, cut->thread), .replay = cut->replay};
	const struct trace_thread *thread = cut->thread;
	size_t first;

	set_edges(&copy);
	first = trace_stream_place(thread, copy.from);
	if ((first == thread->place_count && (thread->ended || copy.to == UINT64_MAX || !first)) ||
	    thread->places[0].first_ticks >= copy.to)
		return 0;
	copy.has_before = first > 0;
	copy.error = find_stack(&copy);
	if (!copy.error)
		copy_events(&copy, first ? first - 1 : 0);
	if (!copy.error)
		copy.error = copy.buffer.error ? copy.buffer.error : copy.held.error;
	event_buffer_done(&copy.buffer);
	event_buffer_done(&copy.held);
	u64_map_done(&copy.greenlets);
	return copy.error;
}
