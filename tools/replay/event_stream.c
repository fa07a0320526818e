/*
 * event_stream.c - all threads at once, each with its stack. See event_stream.h. Called by the exporters of tables.
 *
 *   measure pass   with --min-duration: one bit for each call, in the order in which they start
 *   last pass      reports the events
 */
#include "replay/event_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/initial_stack.h"
#include "replay/merge.h"

struct line_process {
	uint8_t *hidden; /* by key; NULL: no function is hidden */
	void *user;
	int64_t end_ns; /* of its last chunk */
	bool open;
};

struct line_thread {
	struct replay replay; /* frame->owner is the caller's key; in the measure pass the index of the call */
	uint32_t shown;	      /* number of shown frames, from the outermost */
	bool begun;
	uint8_t *lasting; /* bits: the calls that last long enough */
	size_t lasting_bytes;
	uint64_t calls; /* begun so far */
};

struct event_stream {
	struct trace *trace;
	const struct filter *filter;
	struct progress *progress;
	const struct event_stream_user *user;
	void *owner;
	const struct replay_sink *sink; /* of this pass */
	struct line_process *processes; /* by number */
	struct line_thread *threads;	/* by number */
	uint32_t *open;			/* numbers of the open processes */
	uint32_t open_count;
	int64_t from_ns; /* CLOCK_MONOTONIC */
	int64_t to_ns;
	uint64_t look_back; /* see initial_stack.h; for this pass */
	int error;
	/* The current event. */
	struct line_thread *thread;
	struct event_stream_event event;
};

typedef void (*line_step)(struct event_stream *event_stream, const struct merge_event *event);

static void set_error(struct event_stream *event_stream, int error)
{
	if (!event_stream->error)
		event_stream->error = error;
}

/* --- calls that are long enough --- */

static bool is_long_enough(const struct event_stream *event_stream, const struct line_thread *thread, uint64_t call)
{
	if (!event_stream->filter->min_duration_ns)
		return true;
	return call / 8 < thread->lasting_bytes && thread->lasting[call / 8] >> (call % 8) & 1;
}

static void note_long_enough(struct event_stream *event_stream, struct line_thread *thread, uint64_t call)
{
	size_t bytes = thread->lasting_bytes;

	if (call / 8 >= bytes) {
		uint8_t *grown = realloc(thread->lasting, call / 4 + 64);

		if (!grown) {
			set_error(event_stream, -ENOMEM);
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
	struct event_stream *event_stream = owner;

	(void)replay;
	frame->owner = event_stream->thread->calls++;
}

static void measure_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct event_stream *event_stream = owner;

	(void)how;
	if (replay->now - frame->start >= event_stream->filter->min_duration_ns)
		note_long_enough(event_stream, event_stream->thread, frame->owner);
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

static inline void emit_event(struct event_stream *event_stream, uint32_t running, uint64_t caller)
{
	int error;

	event_stream->event.running = running;
	event_stream->event.caller = (uint32_t)caller;
	error = event_stream->user->event(event_stream->owner, &event_stream->event);
	if (error)
		set_error(event_stream, error);
}

/* The innermost Python function among the first `depth` frames. */
static inline uint64_t python_below(const struct replay *replay, uint32_t depth)
{
	const struct replay_frame *frame;

	if (!depth)
		return EVENT_STREAM_NOBODY;
	frame = &replay->frames[depth - 1];
	return frame->key & 1 ? frame->owner : frame->key;
}

static inline bool too_deep(const struct event_stream *event_stream, uint32_t number)
{
	return event_stream->filter->max_depth && number >= event_stream->filter->max_depth;
}

static void show_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct event_stream *event_stream = owner;
	struct line_thread *thread = event_stream->thread;
	uint32_t number = replay->depth - 1;

	frame->owner = python_below(replay, number);
	if (!is_long_enough(event_stream, thread, thread->calls++) || thread->shown != number ||
	    too_deep(event_stream, number))
		return;
	thread->shown++;
	if (frame->kind != WIRE_FRAME)
		emit_event(event_stream, frame->key, frame->owner);
}

static void show_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct event_stream *event_stream = owner;
	struct line_thread *thread = event_stream->thread;

	if (thread->shown <= replay->depth)
		return;
	thread->shown = replay->depth;
	if (how != WIRE_NONE)
		emit_event(event_stream, frame->key, frame->owner);
}

static int show_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct event_stream *event_stream = owner;
	uint32_t shown = event_stream->thread->shown;

	(void)extra;
	if (wire_is_bookkeeping(wire_head_kind(head)))
		return 0;
	if (shown)
		emit_event(event_stream, replay->frames[shown - 1].key, replay->frames[shown - 1].owner);
	else
		emit_event(event_stream, EVENT_STREAM_NOBODY, EVENT_STREAM_NOBODY);
	return 0;
}

static const struct replay_sink show_sink = {show_push, show_pop, show_other};

/* Reports an unmatched end. The duration of its call is unknown, so --min-duration hides it. */
static void show_end(struct event_stream *event_stream, struct replay *replay, uint32_t key)
{
	if (!event_stream->filter->min_duration_ns && !too_deep(event_stream, replay->depth))
		emit_event(event_stream, key, python_below(replay, replay->depth));
}

/* --- processes and threads --- */

/* Ends a thread. Calls still open at the end of the time range last until then. */
static void end_thread(struct event_stream *event_stream, uint32_t number)
{
	const struct trace_thread *thread = event_stream->trace->threads[number];
	const struct trace_process *process = trace_process_of(event_stream->trace, thread);
	struct line_thread *line = event_stream->thread = &event_stream->threads[number];

	if (!line->replay.open)
		return;
	if (trace_ns(process, thread->places[thread->place_count - 1].last_ticks) >= event_stream->to_ns)
		line->replay.now = (uint64_t)event_stream->to_ns;
	replay_end_thread(&line->replay, event_stream->sink, event_stream);
	if (line->replay.out_of_memory)
		set_error(event_stream, -ENOMEM);
	replay_done(&line->replay);
}

static void close_process(struct event_stream *event_stream, uint32_t number)
{
	const struct trace_process *process = event_stream->trace->processes[number];
	struct line_process *line = &event_stream->processes[number];
	size_t i;

	for (i = 0; i < process->thread_count; i++)
		end_thread(event_stream, process->threads[i]);
	if (event_stream->sink == &show_sink && event_stream->user->end)
		event_stream->user->end(event_stream->owner, process, line->user);
	free(line->hidden);
	*line = (struct line_process){0};
}

/* Closes the processes that have no event at that time or later. */
static void close_processes(struct event_stream *event_stream, int64_t now_ns)
{
	uint32_t kept = 0, i;

	for (i = 0; i < event_stream->open_count; i++) {
		uint32_t number = event_stream->open[i];

		if (event_stream->processes[number].end_ns < now_ns)
			close_process(event_stream, number);
		else
			event_stream->open[kept++] = number;
	}
	event_stream->open_count = kept;
}

/*
 * Closes processes that have ended. Then opens the process: applies the filter to its functions, and calls the user's
 * begin().
 */
static void open_process(struct event_stream *event_stream, const struct trace_process *process)
{
	struct line_process *line = &event_stream->processes[process->number];
	int64_t now_ns = event_stream->event.ns;
	uint32_t keys = replay_keys_of(process);
	size_t i;
	int error;

	close_processes(event_stream, now_ns);
	*line = (struct line_process){.open = true, .end_ns = now_ns};
	event_stream->open[event_stream->open_count++] = process->number;
	for (i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = event_stream->trace->threads[process->threads[i]];
		int64_t end_ns;

		if (!thread->place_count)
			continue;
		end_ns = trace_ns(process, thread->places[thread->place_count - 1].last_ticks);
		line->end_ns = end_ns > line->end_ns ? end_ns : line->end_ns;
	}
	error = filter_hide(event_stream->filter, process, keys, &line->hidden);
	if (!error && event_stream->sink == &show_sink && event_stream->user->begin)
		error = event_stream->user->begin(event_stream->owner, process, keys, &line->user);
	if (error)
		set_error(event_stream, error);
}

/* Pushes the initial stack of the time range. */
static int push_initial_stack(struct event_stream *event_stream, struct replay *replay,
			      const struct trace_process *process, const struct trace_thread *thread)
{
	struct initial_stack initial = {.trace = event_stream->trace,
					.thread = thread,
					.replay = replay,
					.from = trace_ticks(process, event_stream->from_ns),
					.to = UINT64_MAX,
					.look_back = &event_stream->look_back};
	int error;
	uint32_t i;

	if (event_stream->filter->to_given)
		initial.to = trace_ticks(process, event_stream->to_ns);
	error = initial_stack_find(&initial);
	replay->now = (uint64_t)event_stream->from_ns;
	for (i = 0; i < initial.count && !error; i++)
		replay_push_at(replay, initial.stack[i], WIRE_FRAME, event_stream->sink, event_stream);
	initial_stack_done(&initial);
	return error;
}

static void begin_thread(struct event_stream *event_stream, struct line_thread *line,
			 const struct trace_process *process, const struct trace_thread *thread)
{
	struct replay *replay = &line->replay;

	if (replay_init(replay, process) < 0) {
		set_error(event_stream, -ENOMEM);
		return;
	}
	replay_begin_thread(replay);
	replay->hidden = event_stream->processes[process->number].hidden;
	replay->now = (uint64_t)event_stream->from_ns;
	if (event_stream->filter->from_given && !line->begun &&
	    push_initial_stack(event_stream, replay, process, thread) < 0)
		set_error(event_stream, -ENOMEM);
	line->begun = true;
}

/* --- one event --- */

/* Makes the thread's stack ready for the event. */
static inline struct replay *prepare_thread(struct event_stream *event_stream, const struct merge_event *event)
{
	struct line_process *process = &event_stream->processes[event->process->number];
	struct line_thread *thread = &event_stream->threads[event->thread->number];

	if (!process->open)
		open_process(event_stream, event->process);
	event_stream->thread = thread;
	if (!thread->replay.open && !event_stream->error)
		begin_thread(event_stream, thread, event->process, event->thread);
	event_stream->event.process = event->process;
	event_stream->event.thread = event->thread;
	event_stream->event.user = process->user;
	event_stream->event.head = event->head;
	event_stream->event.extra = event->extra;
	return &thread->replay;
}

/* Here replay.now is in ns: the ticks of processes differ. */
static inline __attribute__((always_inline)) void step_thread(struct event_stream *event_stream,
							      const struct merge_event *event,
							      const struct replay_sink *sink)
{
	struct replay *replay = prepare_thread(event_stream, event);
	unsigned kind = wire_head_kind(event->head);
	uint32_t key;

	if (event_stream->error)
		return;
	replay->now = (uint64_t)event_stream->event.ns;
	if (kind < WIRE_CALL || kind > WIRE_C_EXCEPTION) {
		replay_other(replay, event->head, event->extra, sink, event_stream);
		if (kind == WIRE_THREAD_END)
			end_thread(event_stream, event->thread->number);
		return;
	}
	key = replay_key_of(replay, event->head);
	if (replay_hides(replay, key))
		return;
	if (kind <= WIRE_THROW || kind == WIRE_C_CALL) {
		replay_push(replay, key, kind, sink, event_stream);
	} else if (replay->depth && replay->frames[replay->depth - 1].key == key) {
		replay_pop(replay, kind, sink, event_stream);
	} else {
		if (sink == &show_sink && !replay->open[key])
			show_end(event_stream, replay, key);
		replay_mismatch(replay, key, kind, sink, event_stream);
	}
}

static void show_step(struct event_stream *event_stream, const struct merge_event *event)
{
	step_thread(event_stream, event, &show_sink);
}

static void measure_step(struct event_stream *event_stream, const struct merge_event *event)
{
	step_thread(event_stream, event, &measure_sink);
}

/* --- all threads --- */

static bool is_wanted(void *owner, const struct trace_process *process, const struct trace_thread *thread)
{
	const struct filter *filter = ((struct event_stream *)owner)->filter;

	return filter_process(filter, process) && filter_thread(filter, thread);
}

static void note_loaded(void *owner, uint32_t events)
{
	progress_add(((struct event_stream *)owner)->progress, events);
}

/* Reads each event of the time range, in order of time. */
static void run_pass(struct event_stream *event_stream, line_step take, const struct replay_sink *sink)
{
	struct merge_event event;
	struct merge merge;

	if (event_stream->error)
		return;
	if (merge_open(&merge, event_stream->trace, is_wanted, event_stream) < 0) {
		set_error(event_stream, -ENOMEM);
		return;
	}
	if (event_stream->filter->from_given)
		merge_skip(&merge, event_stream->from_ns);
	if (sink == &show_sink) {
		merge.loaded = note_loaded;
		merge.owner = event_stream;
	}
	event_stream->sink = sink;
	event_stream->look_back = INITIAL_STACK_LOOK_BACK_EVENTS;
	event_stream->event.ns = event_stream->from_ns;
	while (!event_stream->error && merge_next(&merge, &event) && event.ns < event_stream->to_ns) {
		if (event.ns < event_stream->from_ns)
			continue;
		/* The clocks of cores may differ by a few ticks. Shown times never decrease. */
		if (event.ns > event_stream->event.ns)
			event_stream->event.ns = event.ns;
		take(event_stream, &event);
	}
	close_processes(event_stream, INT64_MAX);
	merge_close(&merge);
}

static void run_passes(struct event_stream *event_stream)
{
	uint32_t i;

	if (event_stream->filter->min_duration_ns) {
		run_pass(event_stream, measure_step, &measure_sink);
		for (i = 0; i < event_stream->trace->thread_count; i++) {
			event_stream->threads[i].begun = false;
			event_stream->threads[i].calls = 0;
		}
	}
	run_pass(event_stream, show_step, &show_sink);
}

static void free_all(struct event_stream *event_stream)
{
	uint32_t i;

	for (i = 0; event_stream->threads && i < event_stream->trace->thread_count; i++) {
		free(event_stream->threads[i].lasting);
	}
	free(event_stream->processes);
	free(event_stream->threads);
	free(event_stream->open);
}

int event_stream_run(struct trace *trace, const struct filter *filter, struct progress *progress,
		     const struct event_stream_user *user, void *owner)
{
	struct event_stream event_stream = {
	    .trace = trace,
	    .filter = filter,
	    .progress = progress,
	    .user = user,
	    .owner = owner,
	    .from_ns = filter->from_given ? trace->start_ns + filter->from_ns : INT64_MIN,
	    .to_ns = filter->to_given ? trace->start_ns + filter->to_ns : INT64_MAX,
	};

	event_stream.processes = calloc((size_t)trace->process_count + 1, sizeof(*event_stream.processes));
	event_stream.open = calloc((size_t)trace->process_count + 1, sizeof(*event_stream.open));
	event_stream.threads = calloc((size_t)trace->thread_count + 1, sizeof(*event_stream.threads));
	if (event_stream.processes && event_stream.open && event_stream.threads)
		run_passes(&event_stream);
	else
		event_stream.error = -ENOMEM;
	free_all(&event_stream);
	return event_stream.error;
}
