/*
 * slow_calls.c - see slow_calls.h.
 */
#include "slow/slow_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/thread_replay.h"
#include "util/grow.h"
#include "util/u64_map.h"

/* What each callback of asyncio's own loop runs in. Other loops have the steps of their tasks. */
#define LOOP_CALLBACK "asyncio.events:_run"

/* In the mask of a key: it was computed. */
#define MASK_KNOWN (UINT32_C(1) << 31)
/* In the `owner` of a frame, which is 0 otherwise: it is the step of a task. */
#define STEP 1u

struct slow_thread {
	struct slow_process *process;
	struct thread_replay replayed;
	struct u64_map suspended; /* frames of greenlets that do not run: place_of(), begin * 2 + owner */
	bool step;		  /* the next call is the step of a task */
	bool ended;
};

struct slow_process {
	struct slow_calls *watch;
	const struct trace_process *process;
	uint32_t *masks; /* by key: bits of the triggers that a call of it may fire */
	uint32_t mask_count;
	uint32_t steps;		       /* bits of the triggers that the step of a task may fire */
	uint64_t bounds[TRIGGERS_MAX]; /* ticks */
};

/* --- functions --- */

static uint32_t find_mask(struct slow_calls *watch, const struct trace_process *process, uint32_t key)
{
	const struct trace_names *names = key & 1 ? &process->functions : &process->codes;
	const struct wire_definition *definition = trace_name(names, key / 2);
	uint32_t mask = MASK_KNOWN;

	for (unsigned i = 0; definition && i < watch->triggers->count; i++) {
		struct function_match *match = &watch->matches[i];

		if (match->module && function_match_takes(match, definition, key & 1))
			mask |= UINT32_C(1) << i;
		watch->out_of_memory |= match->out_of_memory;
	}
	return mask;
}

/* --- calls --- */

/* A number for a frame of the greenlet that runs, or was just suspended. Not 0. */
static uint64_t place_of(const struct replay *replay, const struct replay_frame *frame)
{
	uint64_t depth = (uint64_t)(frame - replay->frames) & 0xfffff;

	return ((uint64_t)replay->greenlet_number << 44 | depth << 24 | (frame->key & 0xffffff)) + 1;
}

static void on_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct slow_thread *thread = owner;
	uint64_t suspended;

	frame->owner = thread->step ? STEP : 0;
	thread->step = false;
	if (!replay->switching || !u64_map_take(&thread->suspended, place_of(replay, frame), &suspended))
		return;
	frame->start = suspended / 2;
	frame->owner = suspended & STEP;
}

static void suspend(struct slow_thread *thread, const struct replay *replay, const struct replay_frame *frame)
{
	uint64_t *suspended = u64_map_make(&thread->suspended, place_of(replay, frame));

	if (suspended)
		*suspended = frame->start * 2 | frame->owner;
	thread->process->watch->out_of_memory |= !suspended;
}

static void report(const struct slow_thread *thread, const struct replay_frame *frame, uint64_t ticks, unsigned i)
{
	const struct slow_process *process = thread->process;
	struct slow_call found = {.trigger = i,
				  .process = process->process,
				  .thread = thread->replayed.stream.thread,
				  .key = frame->key,
				  .begin_ns = trace_ns(process->process, frame->start),
				  .ns = trace_span_ns(process->process, ticks)};

	process->watch->found(process->watch->owner, &found);
}

static void on_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct slow_thread *thread = owner;
	struct slow_process *process = thread->process;
	uint64_t ticks = replay->now > frame->start ? replay->now - frame->start : 0;
	uint32_t *mask = &process->masks[frame->key], fired;

	if (how == WIRE_NONE)
		return; /* its end was not recorded */
	if (replay->switching) {
		suspend(thread, replay, frame);
		return;
	}
	if (!*mask)
		*mask = find_mask(process->watch, process->process, frame->key);
	fired = *mask | (frame->owner ? process->steps : 0);
	for (unsigned i = 0; fired & ~MASK_KNOWN && i < process->watch->triggers->count; i++)
		if (fired >> i & 1 && ticks > process->bounds[i])
			report(thread, frame, ticks, i);
}

static int on_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct slow_thread *thread = owner;

	(void)replay;
	(void)extra;
	thread->step |= wire_head_kind(head) == WIRE_TASK;
	thread->ended |= wire_head_kind(head) == WIRE_THREAD_END;
	return 0;
}

static const struct replay_sink sink = {.push = on_push, .pop = on_pop, .other = on_other};

/* --- threads --- */

static void free_thread(struct slow_thread *thread)
{
	if (!thread)
		return;
	thread_replay_close(&thread->replayed);
	u64_map_done(&thread->suspended);
	free(thread);
}

static struct slow_thread *new_thread(struct slow_process *process, const struct trace_thread *known)
{
	struct slow_thread *thread = calloc(1, sizeof(*thread));

	if (!thread || thread_replay_open(&thread->replayed, process->watch->trace, process->process, known)) {
		free(thread);
		return NULL;
	}
	thread->process = process;
	return thread;
}

static void read_thread(struct slow_thread *thread)
{
	while (thread_replay_chunk(&thread->replayed, &sink, thread))
		;
	thread->process->watch->out_of_memory |= thread->replayed.replay.out_of_memory;
}

/* A number of a thread that has ended may be another's. */
static int take_thread(struct slow_process *process, uint32_t at)
{
	const struct trace_thread *known = process->watch->trace->threads[process->process->threads[at]];
	struct slow_thread **thread = &process->watch->threads[known->number];
	int error;

	if (!known->place_count || !trace_thread_is_shown(process->process, known))
		return 0;
	if (*thread && trace_stream_is_former(&(*thread)->replayed.stream)) {
		read_thread(*thread);
		free_thread(*thread);
		*thread = NULL;
	}
	if (!*thread)
		*thread = new_thread(process, known);
	error = *thread ? replay_add_keys(&(*thread)->replayed.replay, process->process) : -ENOMEM;
	if (error)
		return error;
	read_thread(*thread);
	if ((*thread)->ended) {
		free_thread(*thread);
		*thread = NULL;
	}
	return 0;
}

/* --- processes --- */

static int grow_process(struct slow_process *process)
{
	uint32_t keys = replay_keys_of(process->process);

	if (keys <= process->mask_count)
		return 0;
	return grow_zeroed(&process->masks, &process->mask_count, keys + keys / 2, sizeof(*process->masks));
}

/* The clock is known better with each record of it. */
static void set_bounds(struct slow_process *process)
{
	const struct triggers *triggers = process->watch->triggers;

	for (unsigned i = 0; i < triggers->count; i++)
		process->bounds[i] = trace_span_ticks(process->process, triggers->at[i].bound);
}

static struct slow_process *new_process(struct slow_calls *watch, const struct trace_process *known)
{
	struct slow_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->watch = watch;
	process->process = known;
	for (unsigned i = 0; i < watch->triggers->count; i++)
		if (watch->triggers->at[i].kind == TRIGGER_LOOP)
			process->steps |= UINT32_C(1) << i;
	return process;
}

static int take_process(struct slow_calls *watch, uint32_t number)
{
	struct slow_process **process = &watch->processes[number];
	int error;

	if (!*process)
		*process = new_process(watch, watch->trace->processes[number]);
	error = *process ? grow_process(*process) : -ENOMEM;
	if (error)
		return error;
	set_bounds(*process);
	for (uint32_t i = 0; i < (*process)->process->thread_count && !error; i++)
		error = take_thread(*process, i);
	return error;
}

int slow_calls_next(struct slow_calls *watch)
{
	const struct trace *trace = watch->trace;
	int error = 0;

	if (trace->process_count > watch->process_count)
		error = grow_zeroed(&watch->processes, &watch->process_count, trace->process_count + 8,
				    sizeof(struct slow_process *));
	if (!error && trace->thread_count > watch->thread_count)
		error = grow_zeroed(&watch->threads, &watch->thread_count, trace->thread_count + 8,
				    sizeof(struct slow_thread *));
	for (uint32_t i = 0; i < trace->process_count && !error; i++)
		if (trace->processes[i] && trace->processes[i]->known)
			error = take_process(watch, i);
	return watch->out_of_memory ? -ENOMEM : error;
}

int slow_calls_begin(struct slow_calls *watch)
{
	int error = 0;

	for (unsigned i = 0; i < watch->triggers->count && !error; i++) {
		const struct trigger *trigger = &watch->triggers->at[i];

		if (trigger->kind == TRIGGER_CALL)
			error = function_match_parse(&watch->matches[i], trigger->text, trigger->pattern_length);
		else if (trigger->kind == TRIGGER_LOOP)
			error = function_match_parse(&watch->matches[i], LOOP_CALLBACK, strlen(LOOP_CALLBACK));
	}
	return error;
}

static void free_process(struct slow_process *process)
{
	if (!process)
		return;
	free(process->masks);
	free(process);
}

void slow_calls_done(struct slow_calls *watch)
{
	for (uint32_t i = 0; i < watch->thread_count; i++)
		free_thread(watch->threads[i]);
	free(watch->threads);
	for (uint32_t i = 0; i < watch->process_count; i++)
		free_process(watch->processes[i]);
	free(watch->processes);
	for (unsigned i = 0; i < TRIGGERS_MAX; i++)
		function_match_done(&watch->matches[i]);
}
