/*
 * event_stream.c - all threads at once, each with its stack. See event_stream.h. Called by the exporters of tables.
 *
 *   measure pass   with --min-duration: one bit for each call, in the order in which they start
 *   last pass      reports the events
 */
#include "replay/event_stream.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/initial_stack.h"
#include "replay/merge.h"
#include "util/grow.h"

struct stream_process {
	uint8_t *hidden; /* by key; NULL: no function is hidden */
	void *user;
	int64_t end_ns; /* of its last chunk */
	bool open;
};

struct stream_thread {
	struct replay replay; /* frame->owner is the caller's key; in the measure pass the index of the call */
	uint32_t shown;	      /* number of shown frames, from the outermost */
	bool begun;
	uint8_t *lasting;	/* bits: the calls that last long enough */
	uint32_t lasting_bytes; /* 2^35 calls are more than a trace holds */
	uint64_t calls;		/* begun so far */
};

struct event_stream {
	struct trace *trace;
	const struct filter *filter;
	struct progress *progress;
	const struct event_stream_user *user;
	void *owner;
	const struct replay_sink *sink;	  /* of this pass */
	struct stream_process *processes; /* by number */
	struct stream_thread *threads;	  /* by number */
	bool *passed;	/* by number of the process: hidden threads are read for the user; NULL: not */
	uint32_t *open; /* numbers of the open processes */
	uint32_t open_count;
	int64_t from_ns; /* CLOCK_MONOTONIC */
	int64_t to_ns;
	uint64_t look_back; /* see initial_stack.h; for this pass */
	struct merge merge;
	bool passing; /* a pass is open, and merge with it */
	int error;
	/* The current event. */
	struct stream_thread *thread;
	struct event_stream_event event;
};

static void set_error(struct event_stream *stream, int error)
{
	if (!stream->error)
		stream->error = error;
}

/* --- calls that are long enough --- */

static bool is_long_enough(const struct event_stream *stream, const struct stream_thread *thread, uint64_t call)
{
	if (!stream->filter->min_duration_ns)
		return true;
	return call / 8 < thread->lasting_bytes && thread->lasting[call / 8] >> (call % 8) & 1;
}

static void note_long_enough(struct event_stream *stream, struct stream_thread *thread, uint64_t call)
{
	if (call / 8 >= thread->lasting_bytes &&
	    grow_zeroed(&thread->lasting, &thread->lasting_bytes, (uint32_t)(call / 4) + 64, 1) < 0) {
		set_error(stream, -ENOMEM);
		return;
	}
	thread->lasting[call / 8] |= (uint8_t)(1u << call % 8);
}

static void measure_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct event_stream *stream = owner;

	(void)replay;
	frame->owner = stream->thread->calls++;
}

static void measure_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct event_stream *stream = owner;

	(void)how;
	if (replay->now - frame->start >= stream->filter->min_duration_ns)
		note_long_enough(stream, stream->thread, frame->owner);
}

static const struct replay_sink measure_sink = {.push = measure_push, .pop = measure_pop};

/* --- events --- */

static inline void emit_event(struct event_stream *stream, uint32_t running, uint64_t caller)
{
	int error;

	stream->event.running = running;
	stream->event.caller = (uint32_t)caller;
	error = stream->user->event(stream->owner, &stream->event);
	if (error)
		set_error(stream, error);
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

static inline bool too_deep(const struct event_stream *stream, uint32_t number)
{
	return stream->filter->max_depth && number >= stream->filter->max_depth;
}

static void show_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct event_stream *stream = owner;
	struct stream_thread *thread = stream->thread;
	uint32_t number = replay->depth - 1;

	frame->owner = python_below(replay, number);
	if (!is_long_enough(stream, thread, thread->calls++) || thread->shown != number || too_deep(stream, number))
		return;
	thread->shown++;
	if (frame->kind != WIRE_FRAME)
		emit_event(stream, frame->key, frame->owner);
}

static void show_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct event_stream *stream = owner;
	struct stream_thread *thread = stream->thread;

	if (thread->shown <= replay->depth)
		return;
	thread->shown = replay->depth;
	if (how != WIRE_NONE)
		emit_event(stream, frame->key, frame->owner);
}

/* Reports an event of the innermost shown function. */
static inline void show_inside(struct event_stream *stream, const struct replay *replay)
{
	uint32_t shown = stream->thread->shown;

	if (shown)
		emit_event(stream, replay->frames[shown - 1].key, replay->frames[shown - 1].owner);
	else
		emit_event(stream, EVENT_STREAM_NOBODY, EVENT_STREAM_NOBODY);
}

static int show_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	unsigned kind = wire_head_kind(head);

	(void)extra;
	if (!wire_is_bookkeeping(kind) || kind == WIRE_REALLOC_BEGIN || kind == WIRE_GAP)
		show_inside(owner, replay);
	return 0;
}

static const struct replay_sink show_sink = {.push = show_push, .pop = show_pop, .other = show_other};

/* Reports an unmatched end. The duration of its call is unknown, so --min-duration hides it. */
static void show_end(struct event_stream *stream, struct replay *replay, uint32_t key)
{
	if (!stream->filter->min_duration_ns && !too_deep(stream, replay->depth))
		emit_event(stream, key, python_below(replay, replay->depth));
}

/* --- processes and threads --- */

/* Ends a thread. Calls still open at the end of the time range last until then. */
static void end_thread(struct event_stream *stream, uint32_t number)
{
	const struct trace_thread *thread = stream->trace->threads[number];
	const struct trace_process *process = trace_process_of(stream->trace, thread);
	struct stream_thread *opened = stream->thread = &stream->threads[number];

	if (!opened->replay.open)
		return;
	if (trace_ns(process, thread->places[thread->place_count - 1].last_ticks) >= stream->to_ns)
		opened->replay.now = (uint64_t)stream->to_ns;
	replay_end_thread(&opened->replay, stream->sink, stream);
	if (opened->replay.out_of_memory)
		set_error(stream, -ENOMEM);
	replay_done(&opened->replay);
}

static void close_process(struct event_stream *stream, uint32_t number)
{
	const struct trace_process *process = stream->trace->processes[number];
	struct stream_process *opened = &stream->processes[number];
	size_t i;

	for (i = 0; i < process->thread_count; i++)
		end_thread(stream, process->threads[i]);
	if (stream->sink == &show_sink && stream->user->end)
		stream->user->end(stream->owner, process, opened->user);
	free(opened->hidden);
	*opened = (struct stream_process){0};
}

/* Closes the processes that have no event at that time or later. */
static void close_processes(struct event_stream *stream, int64_t now_ns)
{
	uint32_t kept = 0, i;

	for (i = 0; i < stream->open_count; i++) {
		uint32_t number = stream->open[i];

		if (stream->processes[number].end_ns < now_ns)
			close_process(stream, number);
		else
			stream->open[kept++] = number;
	}
	stream->open_count = kept;
}

/*
 * Closes processes that have ended. Then opens the process: applies the filter to its functions, and calls the user's
 * begin().
 */
static void open_process(struct event_stream *stream, const struct trace_process *process)
{
	struct stream_process *opened = &stream->processes[process->number];
	int64_t now_ns = stream->event.ns;
	uint32_t keys = replay_keys_of(process);
	size_t i;
	int error;

	close_processes(stream, now_ns);
	*opened = (struct stream_process){.open = true, .end_ns = now_ns};
	stream->open[stream->open_count++] = process->number;
	for (i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = stream->trace->threads[process->threads[i]];
		int64_t end_ns;

		if (!thread->place_count)
			continue;
		end_ns = trace_ns(process, thread->places[thread->place_count - 1].last_ticks);
		opened->end_ns = end_ns > opened->end_ns ? end_ns : opened->end_ns;
	}
	error = filter_hide(stream->filter, process, keys, &opened->hidden);
	if (!error && stream->sink == &show_sink && stream->user->begin)
		error = stream->user->begin(stream->owner, process, keys, &opened->user);
	if (error)
		set_error(stream, error);
}

static void begin_thread(struct event_stream *stream, struct stream_thread *opened, const struct trace_process *process,
			 const struct trace_thread *thread)
{
	struct replay *replay = &opened->replay;
	struct initial_stack initial = {.trace = stream->trace,
					.thread = thread,
					.replay = replay,
					.from = trace_ticks(process, stream->from_ns),
					.to = UINT64_MAX,
					.look_back = &stream->look_back};

	if (stream->filter->to_given)
		initial.to = trace_ticks(process, stream->to_ns);
	if (replay_init(replay, process) < 0) {
		set_error(stream, -ENOMEM);
		return;
	}
	replay_begin_thread(replay);
	replay->hidden = stream->processes[process->number].hidden;
	replay->now = (uint64_t)stream->from_ns;
	if (stream->filter->from_given && !opened->begun &&
	    initial_stack_push(&initial, (uint64_t)stream->from_ns, stream->sink, stream) < 0)
		set_error(stream, -ENOMEM);
	opened->begun = true;
}

/* --- one event --- */

/* Makes the thread's stack ready for its events; one that is hidden needs none. */
static struct replay *prepare_thread(struct event_stream *stream, const struct merge_source *source, bool hidden)
{
	struct stream_process *process = &stream->processes[source->process->number];
	struct stream_thread *thread = &stream->threads[source->stream.thread->number];

	if (!process->open)
		open_process(stream, source->process);
	stream->thread = thread;
	if (!hidden && !thread->replay.open && !stream->error)
		begin_thread(stream, thread, source->process, source->stream.thread);
	stream->event.process = source->process;
	stream->event.thread = source->stream.thread;
	stream->event.user = process->user;
	return &thread->replay;
}

/* Here replay.now is in ns: the ticks of processes differ. */
static inline __attribute__((always_inline)) void step_thread(struct event_stream *stream, struct replay *replay,
							      const struct replay_sink *sink)
{
	uint32_t head = stream->event.head, key;
	unsigned kind = wire_head_kind(head);

	replay->now = (uint64_t)stream->event.ns;
	/* What most events are where allocations are recorded: they leave the stack alone. */
	if (wire_is_memory(kind)) {
		if (sink == &show_sink)
			show_inside(stream, replay);
		return;
	}
	/* Nothing here needs the places in frames and the native stacks. */
	if (kind == WIRE_AT_INSTRUCTION || kind == WIRE_NATIVE_STACK)
		return;
	if (kind < WIRE_CALL || kind > WIRE_C_EXCEPTION) {
		replay_other(replay, head, stream->event.extra, sink, stream);
		return;
	}
	key = replay_key_of(replay, head);
	if (sink == &show_sink && !replay_begins(kind) && !replay->open[key] && !replay_hides(replay, key))
		show_end(stream, replay, key);
	replay_call(replay, head, sink, stream);
}

/*
 * Takes events of one thread, at most `events`, as long as they are the next ones. False: the time range has ended.
 */
static inline __attribute__((always_inline)) bool take_stretch(struct event_stream *stream, struct merge_source *source,
							       uint32_t events, const struct replay_sink *sink)
{
	bool hidden = !filter_thread(stream->filter, source->stream.thread);
	struct replay *replay = NULL;
	struct merge_event event;

	do {
		merge_take(source, &event);
		if (event.ns >= stream->to_ns)
			return false;
		if (event.ns < stream->from_ns)
			continue;
		/* The clocks of cores may differ by a few ticks. Shown times never decrease. */
		if (event.ns > stream->event.ns)
			stream->event.ns = event.ns;
		stream->event.head = event.head;
		stream->event.extra = event.extra;
		if (!replay)
			replay = prepare_thread(stream, source, hidden);
		if (stream->error)
			return true;
		if (__builtin_expect(hidden, 0)) {
			set_error(stream, stream->user->hidden(stream->owner, &stream->event));
			continue;
		}
		step_thread(stream, replay, sink);
		if (wire_head_kind(event.head) == WIRE_THREAD_END) {
			end_thread(stream, source->stream.thread->number);
			replay = NULL;
		}
	} while (--events && !stream->error && merge_goes_on(&stream->merge, source));
	return true;
}

/* --- all threads --- */

static bool is_shown(const struct event_stream *stream, const struct trace_process *process,
		     const struct trace_thread *thread)
{
	return filter_process(stream->filter, process) && filter_thread(stream->filter, thread);
}

static bool is_wanted(void *owner, const struct trace_process *process, const struct trace_thread *thread)
{
	const struct event_stream *stream = owner;

	return is_shown(stream, process, thread) ||
	       (stream->sink == &show_sink && stream->passed && stream->passed[process->number]);
}

/* The processes whose hidden threads are read. */
static int find_passed(struct event_stream *stream)
{
	const struct trace *trace = stream->trace;

	if (!stream->user->hidden)
		return 0;
	stream->passed = calloc((size_t)trace->process_count + 1, sizeof(*stream->passed));
	for (uint32_t i = 0; stream->passed && i < trace->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[i];
		const struct trace_process *process = thread ? trace_process_of(trace, thread) : NULL;

		if (process && is_shown(stream, process, thread))
			stream->passed[process->number] = trace_process_records_memory(process);
	}
	return stream->passed ? 0 : -ENOMEM;
}

static void note_loaded(void *owner, const struct trace_thread *thread, uint32_t events)
{
	const struct event_stream *stream = owner;

	if (filter_thread(stream->filter, thread))
		progress_add(stream->progress, events);
}

/* Begins to read the events of the time range. */
static int begin_pass(struct event_stream *stream, const struct replay_sink *sink)
{
	stream->sink = sink;
	if (merge_open(&stream->merge, stream->trace, is_wanted, stream) < 0)
		return -ENOMEM;
	stream->passing = true;
	if (stream->filter->from_given)
		merge_skip(&stream->merge, stream->from_ns);
	merge_end_at(&stream->merge, stream->to_ns);
	if (sink == &show_sink) {
		stream->merge.loaded = note_loaded;
		stream->merge.owner = stream;
	}
	stream->look_back = INITIAL_STACK_LOOK_BACK_EVENTS;
	stream->event.ns = stream->from_ns;
	return 0;
}

static void end_pass(struct event_stream *stream)
{
	if (!stream->passing)
		return;
	close_processes(stream, INT64_MAX);
	merge_close(&stream->merge);
	stream->passing = false;
}

static int measure(struct event_stream *stream)
{
	struct merge_source *source;
	int error = begin_pass(stream, &measure_sink);
	uint32_t i;

	if (error)
		return error;
	while (!stream->error && (source = merge_first(&stream->merge)))
		if (!take_stretch(stream, source, UINT32_MAX, &measure_sink))
			break;
	end_pass(stream);
	for (i = 0; i < stream->trace->thread_count; i++) {
		stream->threads[i].begun = false;
		stream->threads[i].calls = 0;
	}
	return stream->error;
}

int event_stream_open(struct event_stream **opened, struct trace *trace, const struct filter *filter,
		      struct progress *progress, const struct event_stream_user *user, void *owner)
{
	struct event_stream *stream = calloc(1, sizeof(*stream));
	int error = -ENOMEM;

	if (!stream)
		return -ENOMEM;
	*stream = (struct event_stream){
	    .trace = trace,
	    .filter = filter,
	    .progress = progress,
	    .user = user,
	    .owner = owner,
	    .from_ns = filter->from_given ? trace->start_ns + filter->from_ns : INT64_MIN,
	    .to_ns = filter->to_given ? trace->start_ns + filter->to_ns : INT64_MAX,
	};
	stream->processes = calloc((size_t)trace->process_count + 1, sizeof(*stream->processes));
	stream->open = calloc((size_t)trace->process_count + 1, sizeof(*stream->open));
	stream->threads = calloc((size_t)trace->thread_count + 1, sizeof(*stream->threads));
	if (stream->processes && stream->open && stream->threads)
		error = find_passed(stream);
	if (!error && filter->min_duration_ns)
		error = measure(stream);
	if (!error)
		error = begin_pass(stream, &show_sink);
	if (error) {
		event_stream_close(stream);
		return error;
	}
	*opened = stream;
	return 0;
}

int event_stream_step(struct event_stream *stream, uint32_t events)
{
	struct merge_source *source = NULL;

	if (!stream->error && stream->passing)
		source = merge_first(&stream->merge);
	if (source && take_stretch(stream, source, events, &show_sink))
		return stream->error ? stream->error : 1;
	end_pass(stream);
	return stream->error;
}

void event_stream_close(struct event_stream *stream)
{
	uint32_t i;

	if (!stream)
		return;
	end_pass(stream);
	for (i = 0; stream->threads && i < stream->trace->thread_count; i++)
		free(stream->threads[i].lasting);
	free(stream->processes);
	free(stream->threads);
	free(stream->open);
	free(stream->passed);
	free(stream);
}

int event_stream_run(struct trace *trace, const struct filter *filter, struct progress *progress,
		     const struct event_stream_user *user, void *owner)
{
	struct event_stream *stream;
	int result = event_stream_open(&stream, trace, filter, progress, user, owner);

	if (result)
		return result;
	do {
		result = event_stream_step(stream, UINT32_MAX);
	} while (result > 0);
	event_stream_close(stream);
	return result;
}
