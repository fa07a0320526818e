/*
 * profile.c - cProfile's accounting over a trace. See profile.h.
 *
 * Threads are replayed one after the other. Counters are arrays by key of the process, so counting needs no lookup.
 * After each process, keys become labels and ticks become ns.
 */
#include "analysis/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "replay/initial_stack.h"
#include "replay/replay.h"
#include "replay/window.h"
#include "trace/calibration.h"
#include "util/grow.h"
#include "util/u64_map.h"

struct entry {
	uint64_t calls;
	uint64_t recursive;
	uint64_t own;	/* ticks */
	uint64_t total; /* ticks */
};

struct held {
	uint64_t allocations; /* in ESTIMATE_UNIT */
	uint64_t bytes;
};

struct edge {
	struct entry entry;
	uint32_t caller; /* rows */
	uint32_t callee;
	uint32_t open;
	bool thinned; /* calls of it were not recorded */
};

/*
 * The state of one process.
 *
 * Counters are by row: a row is a key of replay/replay.h, or with options->modules the number of a module.
 */
struct counting {
	struct replay replay;
	const struct profile_options *options;
	struct calibration calibration;
	bool calibrates;
	struct entry *entries; /* by row */
	uint64_t interval;     /* trace_process_memory_interval() */
	struct held *memory;   /* by row; NULL: allocations are not counted */
	uint32_t row_count;
	struct window window;
	uint64_t last_ticks; /* of the process's last event; 0: times are not those of the wall clock */
	size_t next_edge;    /* index in window.edges */
	uint32_t thread;
	uint32_t marks;	    /* marks of the thread so far */
	uint64_t look_back; /* as of struct initial_stack */
	bool only_calls;    /* of the thread: between marks, only what is called there counts */
	bool begins_known;  /* the stack is that at the next edge already */
	uint64_t lost;
	bool has_native_stacks;
	struct native_stack_counts native_stacks;
	uint64_t exceptions;
	uint64_t min_ticks; /* shorter calls do not count */
	uint32_t max_depth;
	uint8_t *hidden; /* by key; NULL: no function is hidden */
	bool surveys;	 /* all calls are read, and none is counted: survey() */
	bool out_of_memory;
	/* With edges or modules only. */
	uint32_t *rows; /* by key */
	uint32_t *open; /* by row: number of its frames on the stack */
	struct labels modules;
	struct u64_map edge_numbers; /* as in struct profile */
	struct edge *edges;
	uint32_t edge_count;
	size_t edges_allocated;
};

static inline void count_end(struct entry *entry, const struct replay_frame *frame, uint64_t total, bool outermost)
{
	uint64_t called = frame->kind != WIRE_FRAME;

	entry->own += total - frame->inner;
	entry->calls += called;
	if (outermost)
		entry->total += total;
	else
		entry->recursive += called;
}

/* None if the window begins between a gap and the event before it, where the frame ends. */
static inline uint64_t time_in(const struct replay *replay, const struct replay_frame *frame)
{
	return replay->now > frame->start ? replay->now - frame->start : 0;
}

/* Whether the filter shows the call. Its frame is already off the stack. */
static inline bool is_counted(const struct counting *counting, const struct replay *replay, uint64_t total)
{
	return total >= counting->min_ticks && replay->depth < counting->max_depth;
}

/* Under a budget. True: the call is in the sample of a thinned function. */
static __attribute__((noinline)) bool count_thinned(const struct replay *replay, const struct replay_frame *frame,
						    uint64_t total)
{
	/* The caller of what runs above a hidden function is that. */
	struct thin_call call = {.key = frame->key,
				 .caller = replay->depth && !frame[-1].hidden ? frame[-1].key : 0,
				 .depth = replay->depth,
				 .values = {.calls = frame->kind != WIRE_FRAME, .own = (double)(total - frame->inner)}};

	if (!replay->open[frame->key])
		call.values.total = (double)total;
	return thinning_count(replay->thinning, &call);
}

static __attribute__((noinline)) void leave_out(struct replay *replay)
{
	if (replay->thinning)
		thinning_count_hidden(replay->thinning, replay->depth);
}

/* A call or an end that is not shown. */
static void count_hidden(void *owner, struct replay *replay, uint32_t head)
{
	(void)owner;
	if (!replay_begins(wire_head_kind(head)))
		leave_out(replay);
}

static inline void count_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct counting *counting = owner;
	uint64_t total = time_in(replay, frame);

	(void)how;
	if (!is_counted(counting, replay, total)) {
		leave_out(replay);
		return;
	}
	if (replay->depth)
		frame[-1].inner += total;
	count_end(&counting->entries[frame->key], frame, total, replay->open[frame->key] == 0);
	if (__builtin_expect(replay->thinning != NULL, 0))
		count_thinned(replay, frame, total);
}

/* Whether this mark of this thread is the window's next edge. */
static bool mark_is_edge(const struct counting *counting, uint32_t mark)
{
	const struct window_edge *edge;

	if (counting->next_edge == counting->window.count)
		return false;
	edge = &counting->window.edges[counting->next_edge];
	return edge->thread == counting->thread && edge->mark == mark;
}

/* Counts an allocation of the innermost function that the filter shows. */
static void count_memory(struct counting *counting, const struct replay *replay, uint32_t head, const uint64_t *extra)
{
	uint32_t depth = replay->depth < counting->max_depth ? replay->depth : counting->max_depth, key;
	uint64_t units, bytes;
	struct held *held;

	if (!depth || !estimate_event(counting->interval, head, extra, &units, &bytes))
		return;
	key = replay->frames[depth - 1].key;
	held = &counting->memory[counting->rows ? counting->rows[key] : key];
	held->allocations += units;
	held->bytes += bytes;
}

static __attribute__((noinline)) void count_exception(struct counting *counting)
{
	counting->exceptions++;
	if (counting->replay.thinning)
		thinning_count_exception(counting->replay.thinning);
}

/* Outside the window nothing else of an event that is no call counts. */
static int take_mark(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct counting *counting = owner;

	(void)replay;
	(void)extra;
	return wire_head_kind(head) == WIRE_MARK && mark_is_edge(counting, counting->marks++);
}

static int count_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct counting *counting = owner;

	if (wire_head_kind(head) == WIRE_GAP)
		counting->lost += *extra;
	if (wire_head_kind(head) == WIRE_EXCEPTION)
		count_exception(counting);
	if (counting->has_native_stacks)
		native_stack_count(&counting->native_stacks, head, extra, &replay->native_frame);
	if (counting->memory)
		count_memory(counting, replay, head, extra);
	return take_mark(counting, replay, head, extra);
}

static const struct replay_sink count_sink = {.pop = count_pop, .other = count_other, .hidden = count_hidden};

/* --- edges and modules: the same with rows, and more work for each call --- */

/* Number + 1 of the edge; 0 if memory ran out. */
static uint64_t edge_number(struct counting *counting, uint32_t caller, uint32_t callee)
{
	uint64_t number =
	    u64_map_number(&counting->edge_numbers, ((uint64_t)caller + 1) << 32 | callee, &counting->edges,
			   &counting->edge_count, &counting->edges_allocated, sizeof(*counting->edges));

	if (number) {
		counting->edges[number - 1].caller = caller;
		counting->edges[number - 1].callee = callee;
	} else {
		counting->out_of_memory = true;
	}
	return number;
}

static inline void rows_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct counting *counting = owner;
	uint32_t row = counting->rows[frame->key];

	counting->open[row]++;
	frame->owner = 0;
	if (!counting->options->edges || replay->depth < 2)
		return;
	frame->owner = edge_number(counting, counting->rows[frame[-1].key], row);
	if (frame->owner)
		counting->edges[frame->owner - 1].open++;
}

static inline void rows_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct counting *counting = owner;
	struct edge *edge = frame->owner ? &counting->edges[frame->owner - 1] : NULL;
	uint32_t row = counting->rows[frame->key];
	uint64_t total = time_in(replay, frame);

	(void)how;
	counting->open[row]--;
	if (edge)
		edge->open--;
	if (!is_counted(counting, replay, total)) {
		leave_out(replay);
		return;
	}
	if (replay->depth)
		frame[-1].inner += total;
	count_end(&counting->entries[row], frame, total, counting->open[row] == 0);
	if (edge)
		count_end(&edge->entry, frame, total, edge->open == 0);
	if (__builtin_expect(replay->thinning != NULL, 0) && count_thinned(replay, frame, total) && edge)
		edge->thinned = true;
}

/* What all events of a process say of its bursts: what a filter leaves out counts. */
static void survey_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	(void)owner;
	(void)how;
	if (replay->thinning)
		count_thinned(replay, frame, 0);
}

static const struct replay_sink survey_sink = {.pop = survey_pop, .other = count_other};

static const struct replay_sink rows_sink = {
    .push = rows_push, .pop = rows_pop, .other = count_other, .hidden = count_hidden};

/* --- one thread --- */

/* The time of the window's next edge; UINT64_MAX if there is none, or a mark of this thread makes it. */
static uint64_t next_limit(const struct counting *counting)
{
	const struct window_edge *edge;

	if (counting->next_edge == counting->window.count)
		return UINT64_MAX;
	edge = &counting->window.edges[counting->next_edge];
	return edge->thread == counting->thread ? UINT64_MAX : edge->ticks;
}

static const struct replay_sink nothing = {0};

/* Outside the window only the stack is of interest: what runs when the window begins. */
static const struct replay_sink outside_sink = {.other = take_mark};

/* Skips events outside the window, but for what they say of thinned functions. Returns like replay_run(). */
static int skip_run(struct counting *counting, struct replay_cursor *cursor, uint64_t until)
{
	const struct trace_events *events = cursor->events;
	struct replay *replay = &counting->replay;

	for (; cursor->at < events->count; cursor->at++) {
		uint32_t head = events->heads[cursor->at];
		unsigned kind = wire_head_kind(head);
		uint64_t now = wire_time_of(kind, replay->now, events->ticks[cursor->at], cursor->extra);

		if (now >= until && until != UINT64_MAX)
			return 1;
		replay->now = now;
		if (wire_is_thin(kind))
			replay_thin(replay, head, cursor->extra, &nothing, NULL);
		cursor->extra += wire_extra_words(head);
		if (take_mark(counting, replay, head, NULL)) {
			cursor->at++;
			return 2;
		}
	}
	return 0;
}

/* Before a window of times what runs when it begins is found, if it is not known yet. Returns like replay_run(). */
static __attribute__((noinline)) int run_outside(struct counting *counting, struct replay_cursor *cursor,
						 uint64_t until)
{
	struct replay *replay = &counting->replay;
	uint64_t left_open = replay->left_open, unmatched = replay->unmatched;
	int reason;

	if (counting->only_calls || counting->begins_known)
		return skip_run(counting, cursor, until);
	reason = replay_run(replay, cursor, until, &outside_sink, counting);
	replay->left_open = left_open;
	replay->unmatched = unmatched;
	return reason;
}

/* Takes the stack off and puts it on again, at this time. */
static void lift_stack(struct replay *replay, uint64_t at, const struct replay_sink *off, const struct replay_sink *on,
		       struct counting *counting)
{
	uint32_t depth = replay->depth, hidden_base = replay->hidden_base, own_depth = replay->own_depth;
	uint32_t place = replay->place;
	struct replay_place *places = malloc((depth + 1) * sizeof(*places));
	uint64_t now = replay->now;

	for (uint32_t i = 0; places && i < depth; i++)
		places[i] = replay_place_of(&replay->frames[i]);
	replay->now = at;
	replay_pop_all(replay, off, counting);
	for (uint32_t i = 0; places && i < depth; i++)
		replay_push_at(replay, places[i], WIRE_FRAME, on, counting);
	replay->out_of_memory |= !places;
	replay->hidden_base = hidden_base;
	replay->own_depth = own_depth;
	replay->place = place;
	replay->now = now; /* the next event's ticks count from the last event */
	free(places);
}

/*
 * Begins or ends the window. Between marks what is called there counts, as where the program switches cProfile on and
 * off; between times what runs there does, and where calls were not recorded: there a stack says only what runs.
 */
static void cross_edge(struct counting *counting, const struct replay_sink *sink, int reason)
{
	struct replay *replay = &counting->replay;
	const struct window_edge *edge = &counting->window.edges[counting->next_edge++];
	uint64_t now = replay->now, at = reason == 1 && edge->ticks > now ? edge->ticks : now;

	counting->begins_known = false;
	if (edge->begins && counting->only_calls) {
		replay_forget(replay);
		replay_forget_stacks(replay);
		replay->base_unknown = replay->others_unknown = true;
	} else if (edge->begins) {
		lift_stack(replay, at, &outside_sink, sink, counting);
	} else {
		lift_stack(replay, at, sink, &outside_sink, counting);
	}
}

static bool inside_window(const struct counting *counting)
{
	const struct window *window = &counting->window;

	return (counting->next_edge & 1) != window->open_at_start;
}

/* Inline, so that the compiler builds one loop for each sink. */
static inline __attribute__((always_inline)) void run_chunk(struct counting *counting,
							    const struct trace_events *events,
							    const struct replay_sink *sink)
{
	struct replay_cursor cursor =
	    replay_begin_chunk(&counting->replay, events, inside_window(counting) ? sink : &nothing, counting);

	for (;;) {
		uint64_t until = next_limit(counting);
		int reason = inside_window(counting) ? replay_run(&counting->replay, &cursor, until, sink, counting)
						     : run_outside(counting, &cursor, until);

		if (!reason)
			return;
		do
			cross_edge(counting, sink, reason);
		while (reason == 2 && mark_is_edge(counting, counting->marks - 1));
	}
}

/*
 * The first place to read: chunks that end before a window of times are skipped, but not where they say what is
 * thinned. Only what shows the stack at its begin is read of them.
 */
static size_t first_place(struct counting *counting, struct trace *trace, const struct trace_thread *thread)
{
	const struct window_edge *edge = counting->window.edges;
	struct initial_stack initial = {.trace = trace,
					.thread = thread,
					.replay = &counting->replay,
					.to = counting->window.count > 1 ? edge[1].ticks : UINT64_MAX,
					.look_back = &counting->look_back};
	size_t first;

	if (!counting->window.count || !edge->begins || edge->thread != TRACE_NOBODY || !edge->ticks ||
	    trace_process_budget(trace_process_of(trace, thread)) > 0)
		return 0;
	initial.from = edge->ticks;
	first = trace_stream_place(thread, edge->ticks);
	if (first == thread->place_count || initial.from >= initial.to || counting->only_calls)
		return first;
	counting->begins_known = true;
	if (initial_stack_push(&initial, edge->ticks, &nothing, NULL) < 0)
		counting->out_of_memory = true;
	return first;
}

static bool past_window(const struct counting *counting)
{
	return counting->next_edge == counting->window.count && !inside_window(counting);
}

static const struct replay_sink *sink_of(const struct counting *counting)
{
	if (counting->surveys)
		return &survey_sink;
	return counting->rows ? &rows_sink : &count_sink;
}

static void count_thread(struct counting *counting, struct trace *trace, const struct trace_thread *thread,
			 struct progress *progress)
{
	struct trace_stream stream;
	struct trace_events events;

	counting->thread = thread->number;
	counting->marks = 0;
	counting->next_edge = 0;
	counting->begins_known = false;
	counting->only_calls = counting->options->mark_begin && !thread->sampled &&
			       trace_process_records(trace_process_of(trace, thread), "call");
	replay_begin_thread(&counting->replay);
	calibration_begin_thread(&counting->calibration);
	trace_stream_open(&stream, trace, thread);
	trace_stream_skip(&stream, first_place(counting, trace, thread));
	while (!past_window(counting) && trace_stream_next(&stream, &events)) {
		if (counting->calibrates)
			calibration_apply(&counting->calibration, &events);
		if (counting->surveys)
			run_chunk(counting, &events, &survey_sink);
		else if (counting->rows)
			run_chunk(counting, &events, &rows_sink);
		else
			run_chunk(counting, &events, &count_sink);
		if (progress)
			progress_add(progress, events.count);
	}
	trace_stream_close(&stream);
	if (!inside_window(counting))
		replay_forget(&counting->replay);
	replay_end_thread(&counting->replay, sink_of(counting), counting);
}

/* --- from numbers to labels --- */

static void add_times(struct profile_times *times, const struct trace_process *process, const struct entry *entry)
{
	times->calls += entry->calls;
	times->recursive += entry->recursive;
	times->own_ns += trace_span_ns(process, entry->own);
	times->total_ns += trace_span_ns(process, entry->total);
}

static uint32_t label_of_row(struct profile *profile, const struct trace_process *process,
			     const struct counting *counting, uint32_t row)
{
	uint32_t label = counting->options->modules ? labels_add(&profile->labels, &counting->modules.at[row])
						    : labels_find(&profile->labels, process, row / 2, row & 1);

	if (label == UINT32_MAX || grow_zeroed(&profile->times, &profile->times_allocated,
					       (uint32_t)profile->labels.allocated, sizeof(*profile->times)) < 0)
		return UINT32_MAX;
	return label;
}

static bool is_nothing(const struct entry *entry)
{
	return !entry->calls && !entry->own && !entry->total;
}

static int fold_entries(struct profile *profile, const struct trace_process *process, const struct counting *counting)
{
	uint32_t row;

	for (row = 0; row < counting->row_count; row++) {
		const struct entry *entry = &counting->entries[row];
		struct held held = counting->memory ? counting->memory[row] : (struct held){0};
		uint32_t label;

		if (is_nothing(entry) && !held.allocations)
			continue;
		label = label_of_row(profile, process, counting, row);
		if (label == UINT32_MAX)
			return -ENOMEM;
		add_times(&profile->times[label], process, entry);
		profile->times[label].allocations += estimate_whole(held.allocations);
		profile->times[label].allocated_bytes += held.bytes;
	}
	return 0;
}

struct folding {
	struct profile *profile;
	const struct trace_process *process;
	const struct counting *counting;
};

static double tick_ns_of(const struct trace_process *process)
{
	return (double)trace_span_ns(process, UINT64_C(1) << 32) / (double)(UINT64_C(1) << 32);
}

static void add_exceptions(struct profile_exceptions *exceptions, const struct thin_estimate *estimate)
{
	exceptions->raised += (uint64_t)(estimate->missing.calls + 0.5);
	exceptions->width2 += estimate->width.calls * estimate->width.calls;
	exceptions->unknown |= !estimate->known;
}

static int fold_estimate(void *owner, const struct thin_estimate *estimate)
{
	const struct folding *folding = owner;
	const struct counting *counting = folding->counting;
	double tick_ns = tick_ns_of(folding->process);
	uint32_t row = counting->rows ? counting->rows[estimate->key] : estimate->key, label;
	struct profile_times *times;

	if (estimate->key == THINNED_EXCEPTIONS) {
		add_exceptions(&folding->profile->exceptions, estimate);
		return 0;
	}
	if (counting->hidden && counting->hidden[estimate->key])
		return 0;
	/* Of most C functions nothing is missing: those of a time range without any call have no row. */
	if (estimate->key & 1 && estimate->missing.calls <= 0 && is_nothing(&counting->entries[row]))
		return 0;
	label = label_of_row(folding->profile, folding->process, counting, row);
	if (label == UINT32_MAX)
		return -ENOMEM;
	times = &folding->profile->times[label];
	times->thinned = true;
	times->unknown |= !estimate->known;
	times->calls += (uint64_t)(estimate->missing.calls + 0.5);
	times->missing_calls += (uint64_t)(estimate->missing.calls + 0.5);
	times->own_ns += (uint64_t)(estimate->missing.own * tick_ns + 0.5);
	times->missing_own_ns += (uint64_t)(estimate->missing.own * tick_ns + 0.5);
	times->total_ns += (uint64_t)(estimate->missing.total * tick_ns + 0.5);
	times->calls_width2 += estimate->width.calls * estimate->width.calls;
	times->own_width2 += estimate->width.own * tick_ns * (estimate->width.own * tick_ns);
	times->total_width2 += estimate->width.total * tick_ns * (estimate->width.total * tick_ns);
	return 0;
}

/*
 * A thinned function may have called any C function, also one that no recorded call of it shows: what was recorded of
 * those without an estimate is the least.
 */
static int fold_least(struct profile *profile, const struct trace_process *process, const struct counting *counting)
{
	for (uint32_t key = 1; key < counting->replay.keys; key += 2) {
		uint32_t row = counting->rows ? counting->rows[key] : key, label;

		if (is_nothing(&counting->entries[row]) || (counting->hidden && counting->hidden[key]))
			continue;
		label = label_of_row(profile, process, counting, row);
		if (label == UINT32_MAX)
			return -ENOMEM;
		profile->times[label].unknown |= !profile->times[label].thinned;
		profile->times[label].thinned = true;
	}
	return 0;
}

/* The time of the last event of a process. */
static uint64_t last_ticks(const struct trace *trace, const struct trace_process *process)
{
	uint64_t last = 0;

	for (size_t i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[process->threads[i]];
		uint64_t ticks = thread->place_count ? thread->places[thread->place_count - 1].last_ticks : 0;

		last = ticks > last ? ticks : last;
	}
	return last;
}

static int fold_thinned(struct profile *profile, const struct trace_process *process, const struct counting *counting)
{
	const struct window *window = &counting->window;
	struct folding folding = {profile, process, counting};
	struct thin_range range = {.tick_ns = tick_ns_of(process),
				   .calibrated = counting->calibrates,
				   .window = window->count || !window->open_at_start ? window : NULL,
				   .end_ticks = counting->last_ticks};
	struct thinning *thinning = counting->replay.thinning;
	int error = thinning ? thinning_estimate(thinning, &range, fold_estimate, &folding) : 0;

	if (thinning && thinning_was_exceptions(thinning)) {
		profile->exceptions.left_out = true;
		profile->exceptions.recorded += counting->exceptions;
		profile->exceptions.raised += counting->exceptions;
	}
	return thinning && thinning->any && !error ? fold_least(profile, process, counting) : error;
}

static int fold_edges(struct profile *profile, const struct trace_process *process, const struct counting *counting)
{
	for (uint32_t i = 0; i < counting->edge_count; i++) {
		const struct edge *edge = &counting->edges[i];
		uint32_t caller, callee;
		uint64_t number;

		if (is_nothing(&edge->entry))
			continue;
		caller = label_of_row(profile, process, counting, edge->caller);
		callee = label_of_row(profile, process, counting, edge->callee);
		if (caller == UINT32_MAX || callee == UINT32_MAX)
			return -ENOMEM;
		number = u64_map_number(&profile->edge_numbers, ((uint64_t)caller + 1) << 32 | callee, &profile->edges,
					&profile->edge_count, &profile->edges_allocated, sizeof(*profile->edges));
		if (!number)
			return -ENOMEM;
		profile->edges[number - 1].caller = caller;
		profile->edges[number - 1].callee = callee;
		add_times(&profile->edges[number - 1].times, process, &edge->entry);
		profile->edges[number - 1].times.thinned |= edge->thinned;
	}
	return 0;
}

static int fold_counts(struct profile *profile, const struct trace_process *process, struct counting *counting)
{
	int error = counting->out_of_memory || counting->replay.out_of_memory ? -ENOMEM : 0;

	if (!error)
		error = fold_entries(profile, process, counting);
	if (!error)
		error = fold_thinned(profile, process, counting);
	if (!error)
		error = fold_edges(profile, process, counting);
	profile->unmatched += counting->replay.unmatched;
	profile->open += counting->replay.left_open;
	profile->lost += counting->lost;
	profile->native_stacks.allocations += counting->native_stacks.allocations;
	profile->native_stacks.without += counting->native_stacks.without;
	return error;
}

/* Resets the counters to their state before the first thread. */
static void clear_counts(struct counting *counting)
{
	memset(counting->entries, 0, counting->row_count * sizeof(*counting->entries));
	if (counting->memory)
		memset(counting->memory, 0, counting->row_count * sizeof(*counting->memory));
	u64_map_done(&counting->edge_numbers);
	if (counting->replay.thinning)
		thinning_clear(counting->replay.thinning);
	counting->edge_count = 0;
	counting->exceptions = 0;
	counting->replay.unmatched = counting->replay.left_open = counting->lost = 0;
	counting->native_stacks = (struct native_stack_counts){0};
}

/* --- modules --- */

static int number_modules(struct counting *counting, const struct trace_process *process)
{
	char *room = malloc(LABEL_MODULE_BYTES);
	int error = room ? 0 : -ENOMEM;
	uint32_t key;

	for (key = 0; key < counting->replay.keys && !error; key++) {
		bool c_function = key & 1;
		struct label module = label_module(
		    trace_name(c_function ? &process->functions : &process->codes, key / 2), c_function, room);

		counting->rows[key] = labels_add(&counting->modules, &module);
		if (counting->rows[key] == UINT32_MAX)
			error = -ENOMEM;
	}
	free(room);
	counting->row_count = counting->modules.count;
	return error;
}

/* --- one process --- */

static int make_window(struct window *windows, struct trace *trace, const struct trace_process *process,
		       const struct profile_options *options)
{
	const struct filter *filter = options->filter;

	if (options->mark_begin)
		return window_of_marks(windows, trace, process, options->mark_begin, options->mark_end);
	return window_of_times(&windows[process->number], trace, process, filter->from_given ? &filter->from_ns : NULL,
			       filter->to_given ? &filter->to_ns : NULL);
}

/* Applies options->filter. */
static int apply_filter(struct counting *counting, const struct trace_process *process, const struct filter *filter)
{
	int error;

	counting->max_depth = filter->max_depth ? filter->max_depth : UINT32_MAX;
	if (filter->min_duration_ns)
		counting->min_ticks =
		    trace_ticks(process, trace_ns(process, process->start_ticks) + (int64_t)filter->min_duration_ns) -
		    process->start_ticks;
	error = filter_hide(filter, process, counting->replay.keys, &counting->hidden);
	counting->replay.hidden = counting->hidden;
	return error;
}

static int make_rows(struct counting *counting, const struct trace_process *process)
{
	const struct profile_options *options = counting->options;
	uint32_t keys = counting->replay.keys;
	uint32_t key;
	int error = 0;

	counting->row_count = keys;
	if (options->edges || options->modules) {
		counting->rows = malloc(keys * sizeof(*counting->rows));
		counting->open = calloc(keys, sizeof(*counting->open));
		if (!counting->rows || !counting->open)
			return -ENOMEM;
		for (key = 0; key < keys; key++)
			counting->rows[key] = key;
	}
	if (options->modules)
		error = number_modules(counting, process);
	if (!error && !(counting->entries = calloc(counting->row_count, sizeof(*counting->entries))))
		error = -ENOMEM;
	if (!error && options->memory && !(counting->memory = calloc(counting->row_count, sizeof(*counting->memory))))
		error = -ENOMEM;
	return error;
}

/* One reading of a trace. */
struct reading {
	struct trace *trace;
	const struct profile_options *options;
	struct progress *progress;
	struct window *windows; /* by number of the process */
};

/* Returns 0 or -ENOMEM; then, too, the caller calls reading_done(). */
static int reading_begin(struct reading *reading, struct trace *trace, const struct profile_options *options,
			 struct progress *progress)
{
	int error;

	*reading = (struct reading){.trace = trace, .options = options, .progress = progress};
	reading->windows = calloc(trace->process_count + 1, sizeof(*reading->windows));
	error = reading->windows ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < trace->process_count && !error; i++)
		if (trace->processes[i])
			error = make_window(reading->windows, trace, trace->processes[i], options);
	return error;
}

static void reading_done(struct reading *reading)
{
	for (uint32_t i = 0; reading->windows && i < reading->trace->process_count; i++)
		window_done(&reading->windows[i]);
	free(reading->windows);
}

static int counting_begin(struct counting *counting, const struct reading *reading, const struct trace_process *process)
{
	const struct profile_options *options = reading->options;
	struct trace *trace = reading->trace;
	int error;

	*counting = (struct counting){.options = options,
				      .window = reading->windows[process->number],
				      .look_back = INITIAL_STACK_LOOK_BACK_EVENTS,
				      .interval = trace_process_memory_interval(process),
				      .has_native_stacks = trace_process_has_native_stacks(process)};
	error = replay_init(&counting->replay, process);
	if (!error)
		error = make_rows(counting, process);
	if (!error)
		error = apply_filter(counting, process, options->filter);
	counting->calibrates = options->calibrate && calibration_find(&counting->calibration, trace, process);
	counting->last_ticks = trace->clock == CPU_CLOCK_WALL ? last_ticks(trace, process) : 0;
	return error;
}

static void counting_done(struct counting *counting)
{
	replay_done(&counting->replay);
	u64_map_done(&counting->edge_numbers);
	labels_done(&counting->modules);
	free(counting->edges);
	free(counting->entries);
	free(counting->memory);
	free(counting->rows);
	free(counting->open);
	free(counting->hidden);
	calibration_done(&counting->calibration);
}

/* Whether events of a process may be left out, or are counted apart from others. */
static bool leaves_out(const struct counting *counting, const struct filter *filter, bool by_thread)
{
	return by_thread || counting->hidden || counting->min_ticks || counting->max_depth != UINT32_MAX ||
	       filter->tid || filter->threads.count;
}

/* Reads all events of the process for what they say of its bursts. Returns 0 or -ENOMEM. */
static int survey(struct counting *counting, const struct reading *reading, const struct trace_process *process)
{
	struct replay *replay = &counting->replay;

	replay->thinning = thinning_new(replay->keys);
	if (!replay->thinning)
		return -ENOMEM;
	replay->thinning->counts = THIN_COUNT_EVENTS;
	replay->hidden = NULL;
	counting->surveys = true;
	for (size_t i = 0; i < process->thread_count; i++)
		count_thread(counting, reading->trace, reading->trace->threads[process->threads[i]], NULL);
	clear_counts(counting);
	replay->thinning->counts = THIN_COUNT_SAMPLES;
	replay->hidden = counting->hidden;
	counting->surveys = false;
	return 0;
}

/* With take(): a profile for each thread. */
static int count_process(struct profile *profile, const struct reading *reading, const struct trace_process *process,
			 profile_take *take, void *owner)
{
	struct counting counting;
	int error = counting_begin(&counting, reading, process);

	if (!error && trace_process_budget(process) > 0 && leaves_out(&counting, reading->options->filter, take))
		error = survey(&counting, reading, process);
	for (size_t i = 0; i < process->thread_count && !error; i++) {
		const struct trace_thread *thread = reading->trace->threads[process->threads[i]];

		if (!filter_thread(reading->options->filter, thread))
			continue;
		count_thread(&counting, reading->trace, thread, reading->progress);
		if (!take)
			continue;
		error = fold_counts(profile, process, &counting);
		clear_counts(&counting);
		if (!error)
			error = take(owner, profile, process, thread);
		profile_done(profile);
	}
	if (!error && !take) {
		error = fold_counts(profile, process, &counting);
		profile->lost += trace_sum(process->lost);
	}
	counting_done(&counting);
	return error;
}

int profile_add(struct profile *profile, struct trace *trace, const struct profile_options *options,
		struct progress *progress)
{
	struct reading reading;
	int error = reading_begin(&reading, trace, options, progress);

	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && filter_process(options->filter, process))
			error = count_process(profile, &reading, process, NULL, NULL);
	}
	reading_done(&reading);
	return error;
}

int profile_each(struct trace *trace, const struct profile_options *options, bool by_thread, struct progress *progress,
		 profile_take *take, void *owner)
{
	struct reading reading;
	int error = reading_begin(&reading, trace, options, progress);

	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];
		struct profile profile = {0};

		if (!process || !filter_process(options->filter, process))
			continue;
		error = count_process(&profile, &reading, process, by_thread ? take : NULL, owner);
		if (!error && !by_thread)
			error = take(owner, &profile, process, NULL);
		profile_done(&profile);
	}
	reading_done(&reading);
	return error;
}

void profile_done(struct profile *profile)
{
	labels_done(&profile->labels);
	u64_map_done(&profile->edge_numbers);
	free(profile->times);
	free(profile->edges);
	memset(profile, 0, sizeof(*profile));
}
