/*
 * timeline.c - all threads at once, each with its stack. See timeline.h. Called by the exporters of tables.
 *
 *   measure pass   with --min-duration: one bit for each call, in the order in which they begin
 *   last pass      the events
 */
#include "replay/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/merge.h"
#include "replay/running.h"

struct line_process {
	uint8_t *hidden; /* by key; NULL: none is */
	void *user;
	int64_t end_ns; /* of its last chunk */
	bool open;
};

struct line_thread {
	struct replay replay; /* frame->owner is the caller's key; in the measure pass the number of the call */
	uint32_t shown;	      /* how many frames of the stack are shown, from the outermost */
	bool begun;
	uint8_t *lasting; /* bits: the calls that are long enough */
	size_t lasting_bytes;
	uint64_t calls; /* begun so far */
};

struct timeline {
	struct trace *trace;
	const struct select *select;
	struct progress *progress;
	const struct timeline_user *user;
	void *owner;
	const struct replay_sink *sink; /* of this pass */
	struct line_process *processes; /* by number */
	struct line_thread *threads;	/* by number */
	uint32_t *open;			/* numbers of the open processes */
	uint32_t open_count;
	int64_t from_ns; /* CLOCK_MONOTONIC */
	int64_t to_ns;
	uint64_t look_back; /* running.h; of this pass */
	int error;
	/* The event at hand. */
	struct line_thread *thread;
	struct timeline_event event;
};

typedef void (*line_step)(struct timeline *timeline, const struct merge_event *event);

static void fail(struct timeline *timeline, int error)
{
	if (!timeline->error)
		timeline->error = error;
}

/* --- calls that are long enough --- */

static bool lasts(const struct timeline *timeline, const struct line_thread *thread, uint64_t call)
{
	if (!timeline->select->min_duration_ns)
		return true;
	return call / 8 < thread->lasting_bytes && thread->lasting[call / 8] >> (call % 8) & 1;
}

static void note_lasting(struct timeline *timeline, struct line_thread *thread, uint64_t call)
{
	size_t bytes = thread->lasting_bytes;

	if (call / 8 >= bytes) {
		uint8_t *grown = realloc(thread->lasting, call / 4 + 64);

		if (!grown) {
			fail(timeline, -ENOMEM);
			return;
		}
		thread->lasting = grown;
		thread->lasting_bytes = call / 4 + 64;
		memset(grown + bytes, 0, thread->lasting_bytes - bytes);
	}
	thread->lasting[call / 8] |= (uint8_t)(1u << call % 8);
}

static void measure_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct timeline *timeline = owner;

	(void)replay;
	frame->owner = timeline->thread->calls++;
}

static void measure_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct timeline *timeline = owner;

	(void)how;
	if (replay->now - frame->start >= timeline->select->min_duration_ns)
		note_lasting(timeline, timeline->thread, frame->owner);
}

static int measure_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	(void)owner;
	(void)replay;
	(void)head;
	(void)extra;
	return 0;
}

static const struct replay_sink measure_sink = {measure_push, measure_pop, measure_other};

/* --- events --- */

static inline void tell(struct timeline *timeline, uint32_t running, uint64_t caller)
{
	int error;

	timeline->event.running = running;
	timeline->event.caller = (uint32_t)caller;
	error = timeline->user->event(timeline->owner, &timeline->event);
	if (error)
		fail(timeline, error);
}

/* The innermost Python function among the first so many frames. */
static inline uint64_t python_below(const struct replay *replay, uint32_t depth)
{
	const struct replay_frame *frame;

	if (!depth)
		return TIMELINE_NOBODY;
	frame = &replay->frames[depth - 1];
	return frame->key & 1 ? frame->owner : frame->key;
}

static inline bool too_deep(const struct timeline *timeline, uint32_t number)
{
	return timeline->select->max_depth && number >= timeline->select->max_depth;
}

static void show_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct timeline *timeline = owner;
	struct line_thread *thread = timeline->thread;
	uint32_t number = replay->depth - 1;

	frame->owner = python_below(replay, number);
	if (!lasts(timeline, thread, thread->calls++) || thread->shown != number || too_deep(timeline, number))
		return;
	thread->shown++;
	if (frame->kind != WIRE_FRAME)
		tell(timeline, frame->key, frame->owner);
}

static void show_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct timeline *timeline = owner;
	struct line_thread *thread = timeline->thread;

	if (thread->shown <= replay->depth)
		return;
	thread->shown = replay->depth;
	if (how != WIRE_NONE)
		tell(timeline, frame->key, frame->owner);
}

static int show_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct timeline *timeline = owner;
	uint32_t shown = timeline->thread->shown;

	(void)extra;
	if (wire_is_bookkeeping(wire_head_kind(head)))
		return 0;
	if (shown)
		tell(timeline, replay->frames[shown - 1].key, replay->frames[shown - 1].owner);
	else
		tell(timeline, TIMELINE_NOBODY, TIMELINE_NOBODY);
	return 0;
}

static const struct replay_sink show_sink = {show_push, show_pop, show_other};

/* An end whose beginning is not known. How long its call was is not known either. */
static void show_end(struct timeline *timeline, struct replay *replay, uint32_t key)
{
	if (!timeline->select->min_duration_ns && !too_deep(timeline, replay->depth))
		tell(timeline, key, python_below(replay, replay->depth));
}

/* --- processes and threads --- */

/* What still runs at the end of the stretch lasts until then. */
static void end_thread(struct timeline *timeline, uint32_t number)
{
	const struct trace_thread *thread = timeline->trace->threads[number];
	const struct trace_process *process = trace_process_of(timeline->trace, thread);
	struct line_thread *line = timeline->thread = &timeline->threads[number];

	if (!line->replay.open)
		return;
	if (trace_ns(process, thread->places[thread->place_count - 1].last_ticks) >= timeline->to_ns)
		line->replay.now = (uint64_t)timeline->to_ns;
	replay_end_thread(&line->replay, timeline->sink, timeline);
	if (line->replay.out_of_memory)
		fail(timeline, -ENOMEM);
	replay_done(&line->replay);
}

static void close_process(struct timeline *timeline, uint32_t number)
{
	const struct trace_process *process = timeline->trace->processes[number];
	struct line_process *line = &timeline->processes[number];
	size_t i;

	for (i = 0; i < process->thread_count; i++)
		end_thread(timeline, process->threads[i]);
	if (timeline->sink == &show_sink && timeline->user->end)
		timeline->user->end(timeline->owner, process, line->user);
	free(line->hidden);
	*line = (struct line_process){0};
}

/* Those that have no event at that time or later. */
static void close_processes(struct timeline *timeline, int64_t now_ns)
{
	uint32_t kept = 0, i;

	for (i = 0; i < timeline->open_count; i++) {
		uint32_t number = timeline->open[i];

		if (timeline->processes[number].end_ns < now_ns)
			close_process(timeline, number);
		else
			timeline->open[kept++] = number;
	}
	timeline->open_count = kept;
}

/* As replay_init() counts them. */
static void open_process(struct timeline *timeline, const struct trace_process *process)
{
	struct line_process *line = &timeline->processes[process->number];
	int64_t now_ns = timeline->event.ns;
	uint32_t keys = replay_keys_of(process);
	size_t i;
	int error;

	close_processes(timeline, now_ns);
	*line = (struct line_process){.open = true, .end_ns = now_ns};
	timeline->open[timeline->open_count++] = process->number;
	for (i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = timeline->trace->threads[process->threads[i]];
		int64_t end_ns;

		if (!thread->place_count)
			continue;
		end_ns = trace_ns(process, thread->places[thread->place_count - 1].last_ticks);
		line->end_ns = end_ns > line->end_ns ? end_ns : line->end_ns;
	}
	error = select_hide(timeline->select, process, keys, &line->hidden);
	if (!error && timeline->sink == &show_sink && timeline->user->begin)
		error = timeline->user->begin(timeline->owner, process, keys, &line->user);
	if (error)
		fail(timeline, error);
}

/* Begins what runs when the stretch does. */
static int push_running(struct timeline *timeline, struct replay *replay, const struct trace_process *process,
			const struct trace_thread *thread)
{
	struct running running = {.trace = timeline->trace,
				  .thread = thread,
				  .replay = replay,
				  .from = trace_ticks(process, timeline->from_ns),
				  .to = UINT64_MAX,
				  .look_back = &timeline->look_back};
	int error;
	uint32_t i;

	if (timeline->select->to_given)
		running.to = trace_ticks(process, timeline->to_ns);
	error = running_find(&running);
	replay->now = (uint64_t)timeline->from_ns;
	for (i = 0; i < running.count && !error; i++)
		replay_push_at(replay, running.stack[i], WIRE_FRAME, timeline->sink, timeline);
	running_done(&running);
	return error;
}

static void begin_thread(struct timeline *timeline, struct line_thread *line, const struct trace_process *process,
			 const struct trace_thread *thread)
{
	struct replay *replay = &line->replay;

	if (replay_init(replay, process) < 0) {
		fail(timeline, -ENOMEM);
		return;
	}
	replay_begin_thread(replay);
	replay->hidden = timeline->processes[process->number].hidden;
	replay->now = (uint64_t)timeline->from_ns;
	if (timeline->select->from_given && !line->begun && push_running(timeline, replay, process, thread) < 0)
		fail(timeline, -ENOMEM);
	line->begun = true;
}

/* --- one event --- */

/* Makes the thread's stack ready for the event. */
static inline struct replay *prepare(struct timeline *timeline, const struct merge_event *event)
{
	struct line_process *process = &timeline->processes[event->process->number];
	struct line_thread *thread = &timeline->threads[event->thread->number];

	if (!process->open)
		open_process(timeline, event->process);
	timeline->thread = thread;
	if (!thread->replay.open && !timeline->error)
		begin_thread(timeline, thread, event->process, event->thread);
	timeline->event.process = event->process;
	timeline->event.thread = event->thread;
	timeline->event.user = process->user;
	timeline->event.head = event->head;
	timeline->event.extra = event->extra;
	return &thread->replay;
}

/* replay.now is in ns here: the ticks of processes differ. */
static inline __attribute__((always_inline)) void step(struct timeline *timeline, const struct merge_event *event,
						       const struct replay_sink *sink)
{
	struct replay *replay = prepare(timeline, event);
	unsigned kind = wire_head_kind(event->head);
	uint32_t key;

	if (timeline->error)
		return;
	replay->now = (uint64_t)timeline->event.ns;
	if (kind < WIRE_CALL || kind > WIRE_C_EXCEPTION) {
		replay_other(replay, event->head, event->extra, sink, timeline);
		if (kind == WIRE_THREAD_END)
			end_thread(timeline, event->thread->number);
		return;
	}
	key = replay_key_of(replay, event->head);
	if (replay_hides(replay, key))
		return;
	if (kind <= WIRE_THROW || kind == WIRE_C_CALL) {
		replay_push(replay, key, kind, sink, timeline);
	} else if (replay->depth && replay->frames[replay->depth - 1].key == key) {
		replay_pop(replay, kind, sink, timeline);
	} else {
		if (sink == &show_sink && !replay->open[key])
			show_end(timeline, replay, key);
		replay_mismatch(replay, key, kind, sink, timeline);
	}
}

static void show_step(struct timeline *timeline, const struct merge_event *event)
{
	step(timeline, event, &show_sink);
}

static void measure_step(struct timeline *timeline, const struct merge_event *event)
{
	step(timeline, event, &measure_sink);
}

/* --- all threads --- */

static bool wanted(void *owner, const struct trace_process *process, const struct trace_thread *thread)
{
	const struct select *select = ((struct timeline *)owner)->select;

	return select_process(select, process) && select_thread(select, thread);
}

static void loaded(void *owner, uint32_t events)
{
	progress_add(((struct timeline *)owner)->progress, events);
}

/* Each event of the stretch, in order of time. */
static void pass(struct timeline *timeline, line_step take, const struct replay_sink *sink)
{
	struct merge_event event;
	struct merge merge;

	if (timeline->error)
		return;
	if (merge_open(&merge, timeline->trace, wanted, timeline) < 0) {
		fail(timeline, -ENOMEM);
		return;
	}
	if (timeline->select->from_given)
		merge_skip(&merge, timeline->from_ns);
	if (sink == &show_sink) {
		merge.loaded = loaded;
		merge.owner = timeline;
	}
	timeline->sink = sink;
	timeline->look_back = RUNNING_LOOK_BACK_EVENTS;
	timeline->event.ns = timeline->from_ns;
	while (!timeline->error && merge_next(&merge, &event) && event.ns < timeline->to_ns) {
		if (event.ns < timeline->from_ns)
			continue;
		/* The clocks of cores may differ by a few ticks; nothing that is shown goes back for that. */
		if (event.ns > timeline->event.ns)
			timeline->event.ns = event.ns;
		take(timeline, &event);
	}
	close_processes(timeline, INT64_MAX);
	merge_close(&merge);
}

static void all_passes(struct timeline *timeline)
{
	uint32_t i;

	if (timeline->select->min_duration_ns) {
		pass(timeline, measure_step, &measure_sink);
		for (i = 0; i < timeline->trace->thread_count; i++) {
			timeline->threads[i].begun = false;
			timeline->threads[i].calls = 0;
		}
	}
	pass(timeline, show_step, &show_sink);
}

static void free_all(struct timeline *timeline)
{
	uint32_t i;

	for (i = 0; timeline->threads && i < timeline->trace->thread_count; i++) {
		free(timeline->threads[i].lasting);
	}
	free(timeline->processes);
	free(timeline->threads);
	free(timeline->open);
}

int timeline_run(struct trace *trace, const struct select *select, struct progress *progress,
		 const struct timeline_user *user, void *owner)
{
	struct timeline timeline = {
	    .trace = trace,
	    .select = select,
	    .progress = progress,
	    .user = user,
	    .owner = owner,
	    .from_ns = select->from_given ? trace->start_ns + select->from_ns : INT64_MIN,
	    .to_ns = select->to_given ? trace->start_ns + select->to_ns : INT64_MAX,
	};

	timeline.processes = calloc((size_t)trace->process_count + 1, sizeof(*timeline.processes));
	timeline.open = calloc((size_t)trace->process_count + 1, sizeof(*timeline.open));
	timeline.threads = calloc((size_t)trace->thread_count + 1, sizeof(*timeline.threads));
	if (timeline.processes && timeline.open && timeline.threads)
		all_passes(&timeline);
	else
		timeline.error = -ENOMEM;
	free_all(&timeline);
	return timeline.error;
}
