/*
 * follow.c - see follow.h.
 */
#include "alive/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/program_end.h"
#include "replay/thread_replay.h"
#include "util/grow.h"

#define LATE_NS UINT64_C(10000000000) /* by how much a thread's events may come late */
#define RESIDENT_MAX 4096u	      /* samples of a process; then each second one goes */

enum { PROGRAM_NOT = 1, PROGRAM_IS = 2 }; /* in programs; 0: not looked up */

/* The last block of a thread that has not been freed. */
struct latest {
	uint64_t address; /* 0: none */
	uint64_t bytes;
	uint32_t stack;
	uint8_t domain;
	bool mapped;
};

struct alive_thread {
	struct alive_process *process;
	struct alive_follow *follow;
	struct thread_replay replayed;
	struct latest latest;
	struct mapped_range unmapped;	   /* by the last munmap() */
	uint64_t move_address, move_ticks; /* of the WIRE_REALLOC_BEGIN that waits for its realloc; 0: none */
	bool main, ended;
	bool end_waits; /* for the thread's next event, before which the program ended (replay/program_end.h) */
};

/* --- stacks --- */

/* The number of a frame, from 1; 0 if memory ran out. */
static uint32_t frame_number(struct alive_process *process, uint64_t place)
{
	uint64_t key = ((uint64_t)wire_place_instruction(place) << WIRE_ARG_BITS | wire_place_code(place)) + 1;
	uint64_t number = u64_map_number(&process->frame_numbers, key, &process->frames, &process->frame_count,
					 &process->frames_allocated, sizeof(*process->frames));

	if (!number || number >= ALIVE_CUT)
		return 0;
	process->frames[number - 1] = place;
	return (uint32_t)number;
}

/* The Python stack; frames keep the number of theirs. 0 if memory ran out. */
static uint32_t find_python(struct alive_process *process, const struct replay *replay)
{
	uint32_t known = replay->depth, number, frame;

	while (known && !replay->frames[known - 1].owner)
		known--;
	number = known ? (uint32_t)replay->frames[known - 1].owner
		       : stacks_find(&process->stacks, 0, replay->base_unknown ? ALIVE_CUT : ALIVE_WHOLE);
	for (; number && known < replay->depth; known++) {
		struct replay_frame *at = &replay->frames[known];

		at->owner = number;
		if (at->key & 1) /* a C function: the process has begun to record calls */
			continue;
		frame = frame_number(process, wire_place(at->key / 2, at->instruction));
		number = frame ? stacks_find(&process->stacks, number, frame) : 0;
		at->owner = number;
	}
	return number;
}

static uint32_t find_stack(struct alive_thread *thread)
{
	struct alive_process *process = thread->process;
	uint32_t number = find_python(process, &thread->replayed.replay), native = thread->replayed.replay.native_frame;

	if (number && native && native < ALIVE_NATIVE)
		number = stacks_find(&process->stacks, number, ALIVE_NATIVE | native);
	thread->follow->out_of_memory |= !number || !stacks_reserve(&process->stacks);
	return number;
}

/* --- the end of the program --- */

bool alive_is_program(struct alive_process *process, uint32_t code)
{
	uint8_t *known = code < process->program_count ? &process->programs[code] : NULL;

	if (!known)
		return false;
	if (!*known)
		*known = program_end_is_program(process->process, code * 2) ? PROGRAM_IS : PROGRAM_NOT;
	return *known == PROGRAM_IS;
}

/* It ends then, and not before: what came after its end until now belongs to it. */
static void set_end(struct alive_thread *thread, uint64_t ticks)
{
	struct alive_process *process = thread->process;

	thread->end_waits = false;
	if (process->end_ticks == UINT64_MAX)
		return;
	process->end_ticks = ticks;
	thread->follow->out_of_memory |= alive_join(&process->base, &process->after) < 0;
	alive_done(&process->after);
	process->after.interval = process->base.interval;
}

static void on_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct alive_thread *thread = owner;

	frame->owner = 0;
	if (thread->main && replay->depth == 1 && alive_is_program(thread->process, frame->key / 2)) {
		thread->process->program = frame->key / 2;
		set_end(thread, UINT64_MAX);
	}
}

static void on_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct alive_thread *thread = owner;

	(void)how;
	if (thread->main && !replay->depth && replay->has_own_stack &&
	    alive_is_program(thread->process, frame->key / 2)) {
		thread->process->end_ticks = replay->now + 1;
		thread->end_waits = true;
	}
}

/* --- events --- */

static struct alive *set_of(const struct alive_thread *thread)
{
	return thread->replayed.replay.now >= thread->process->end_ticks ? &thread->process->after
									 : &thread->process->base;
}

/* The block at that address ends. */
static int end_block(struct alive_thread *thread, uint64_t address, uint64_t ticks)
{
	struct latest *latest = &thread->latest;
	struct alive *alive = set_of(thread);
	int error = 0;

	if (address && latest->address == address && !latest->mapped) {
		if (!alive->interval)
			error = alive_note_temporary(alive, latest->stack, latest->domain, false, latest->bytes);
		latest->address = 0;
	}
	return error ? error : alive_free(alive, address, ticks, thread->replayed.stream.thread->number);
}

static int begin_block(struct alive_thread *thread, uint32_t head, const uint64_t *extra)
{
	struct alive_block block = {.address = wire_memory_address(extra[0]),
				    .ticks = thread->replayed.replay.now,
				    .bytes = wire_memory_size(head, extra[0]),
				    .thread = (uint16_t)thread->replayed.stream.thread->number,
				    .domain = (uint8_t)wire_memory_domain(head)};
	struct alive *alive = set_of(thread);

	if (alive->interval && !block.bytes) /* a realloc whose new block is not in the sample */
		return 0;
	block.stack = find_stack(thread);
	thread->latest = (struct latest){block.address, block.bytes, block.stack, block.domain, false};
	thread->process->any = true;
	return block.stack ? alive_allocate(alive, &block) : -ENOMEM;
}

static int take_block(struct alive_thread *thread, uint32_t head, const uint64_t *extra)
{
	uint64_t address = wire_memory_address(extra[0]), ticks = thread->replayed.replay.now, old;
	unsigned kind = wire_head_kind(head);
	int error = 0;

	if (kind == WIRE_FREE)
		return end_block(thread, address, ticks);
	if (!address)
		return 0;
	if (kind == WIRE_REALLOC) {
		old = wire_memory_address(extra[1]);
		if (thread->move_address == old)
			ticks = thread->move_ticks;
		error = end_block(thread, old, ticks);
	}
	return error ? error : begin_block(thread, head, extra);
}

/* As a block that is freed: a range that is unmapped as a whole, before its thread allocates again. */
static int note_unmapped(struct alive_thread *thread, const struct mapped_range *range)
{
	struct latest *latest = &thread->latest;
	struct alive *alive = set_of(thread);

	if (!latest->mapped || !latest->address || range->begin > latest->address ||
	    range->end < latest->address + latest->bytes)
		return 0;
	latest->address = 0;
	return alive->interval ? 0 : alive_note_temporary(alive, latest->stack, 0, true, latest->bytes);
}

static int take_mapping(struct alive_thread *thread, uint32_t head, const uint64_t *extra)
{
	unsigned value = head >> WIRE_VALUE_SHIFT;
	/* The head as it is written again: that of a hostile trace may have more words. */
	struct alive_mapping mapping = {
	    .range = mapped_range_of(head, extra),
	    .from = thread->unmapped,
	    .ticks = thread->replayed.replay.now,
	    .head = wire_extended(wire_head_kind(head), 2, value > WIRE_MMAP_SHARED ? WIRE_MMAP_FILE : value)};
	int error = 0;

	if (mapping.range.begin == mapping.range.end)
		return 0;
	if (wire_head_kind(head) == WIRE_MUNMAP) {
		thread->unmapped = mapping.range;
		error = note_unmapped(thread, &mapping.range);
	} else {
		mapping.stack = find_stack(thread);
		thread->latest = (struct latest){.address = mapping.range.begin,
						 .bytes = mapping.range.end - mapping.range.begin,
						 .stack = mapping.stack,
						 .mapped = true};
		if (value == WIRE_MMAP_FILE) /* no memory of the program's */
			thread->latest.address = 0;
		thread->process->any |= value == WIRE_MMAP_ANONYMOUS || value == WIRE_MMAP_SHARED;
		error = mapping.stack ? 0 : -ENOMEM;
	}
	return error ? error : alive_map(set_of(thread), &mapping);
}

/* The trace is one of what was alive, or has such a part. */
static int take_freed(struct alive_thread *thread, uint32_t head, const uint64_t *extra)
{
	const struct alive_sum freed = {.stack = find_stack(thread),
					.value = head >> WIRE_VALUE_SHIFT & ((1u << WIRE_FREED_VALUE_BITS) - 1),
					.units = extra[0],
					.bytes = extra[1],
					.temporary = extra[2]};

	thread->process->any = true;
	return freed.stack ? alive_add_freed(set_of(thread), &freed) : -ENOMEM;
}

static int on_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct alive_thread *thread = owner;
	unsigned kind = wire_head_kind(head);
	int error = 0;

	if (thread->end_waits)
		set_end(thread, replay->now > thread->process->end_ticks ? replay->now : thread->process->end_ticks);
	if (wire_is_memory(kind))
		error = take_block(thread, head, extra);
	else if ((kind == WIRE_MMAP || kind == WIRE_MUNMAP) && wire_extra_words(head) >= 2)
		error = take_mapping(thread, head, extra);
	else if (kind == WIRE_FREED)
		error = take_freed(thread, head, extra);
	else if (kind == WIRE_AT_INSTRUCTION && replay->depth)
		replay->frames[replay->depth - 1].owner = 0;
	thread->process->lost += kind == WIRE_GAP ? *extra : 0;
	thread->ended |= kind == WIRE_THREAD_END;
	thread->move_address = kind == WIRE_REALLOC_BEGIN ? wire_memory_address(extra[0])
			       : kind == WIRE_REALLOC	  ? 0
							  : thread->move_address;
	thread->move_ticks = kind == WIRE_REALLOC_BEGIN ? replay->now : thread->move_ticks;
	thread->follow->out_of_memory |= error < 0;
	return 0;
}

static const struct replay_sink sink = {.push = on_push, .pop = on_pop, .other = on_other};

/* --- threads --- */

static void free_thread(struct alive_thread *thread)
{
	if (thread)
		thread_replay_close(&thread->replayed);
	free(thread);
}

static struct alive_thread *new_thread(struct alive_follow *follow, struct alive_process *process,
				       const struct trace_thread *known)
{
	struct alive_thread *thread = calloc(1, sizeof(*thread));

	if (!thread || thread_replay_open(&thread->replayed, follow->trace, process->process, known)) {
		free(thread);
		return NULL;
	}
	thread->process = process;
	thread->follow = follow;
	thread->main = program_end_is_main(process->process, known);
	return thread;
}

static void read_thread(struct alive_thread *thread)
{
	const struct replay *replay = &thread->replayed.replay;
	struct alive_process *process = thread->process;

	while (thread_replay_chunk(&thread->replayed, &sink, thread))
		if (replay->now > process->last_ticks)
			process->last_ticks = replay->now;
	thread->follow->out_of_memory |= replay->out_of_memory;
}

/* A number of a thread that has ended may be another's. */
static int take_thread(struct alive_follow *follow, struct alive_process *process, uint32_t at)
{
	const struct trace_thread *known = follow->trace->threads[process->process->threads[at]];
	struct alive_thread **thread = &follow->threads[known->number];
	int error;

	if (!known->known || !known->place_count)
		return 0;
	if (*thread && trace_stream_is_former(&(*thread)->replayed.stream)) {
		read_thread(*thread);
		free_thread(*thread);
		*thread = NULL;
	}
	if (!*thread)
		*thread = new_thread(follow, process, known);
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

bool alive_takes(const struct trace_process *process)
{
	return trace_process_records_memory(process) && !trace_process_records(process, "call") &&
	       !trace_process_sample_rate(process);
}

/* What is left is that it was there. Its threads are gone. */
static void forget(struct alive_process *process)
{
	stacks_done(&process->stacks);
	u64_map_done(&process->frame_numbers);
	free(process->frames);
	alive_done(&process->base);
	alive_done(&process->after);
	free(process->programs);
	*process = (struct alive_process){.process = process->process, .forgotten = true};
}

static void free_process(struct alive_process *process)
{
	if (process)
		forget(process);
	free(process);
}

static struct alive_process *new_process(const struct trace_process *known)
{
	struct alive_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->process = known;
	process->end_ticks = UINT64_MAX;
	process->base.interval = process->after.interval = trace_process_memory_interval(known);
	if (stacks_reserve(&process->stacks))
		return process;
	free_process(process);
	return NULL;
}

static int grow_process(struct alive_process *process)
{
	uint32_t codes = process->process->codes.count;

	if (codes <= process->program_count)
		return 0;
	return grow_zeroed(&process->programs, &process->program_count, codes + codes / 2, 1);
}

/* Of two samples in a row the smaller one goes, so that the peak stays. */
static void thin_resident(struct trace_process *process)
{
	uint32_t kept = 0;

	if (process->resident_count < RESIDENT_MAX)
		return;
	for (uint32_t i = 0; i + 1 < process->resident_count; i += 2) {
		const struct trace_resident *a = &process->resident[i], *b = a + 1;
		bool first = a->anonymous + a->file + a->shared > b->anonymous + b->file + b->shared;

		process->resident[kept++] = first ? *a : *b;
	}
	process->resident_count = kept;
}

static int end_pass(struct alive_process *process, uint64_t last_ticks)
{
	uint64_t late = trace_span_ticks(process->process, LATE_NS);
	uint64_t before = last_ticks > late ? last_ticks - late : 0;

	if (before > process->end_ticks)
		before = process->end_ticks;
	alive_forget(&process->base, before);
	return alive_settle(&process->base, before);
}

/* The main thread comes first, as it may end the program. */
static int take_process(struct alive_follow *follow, uint32_t number)
{
	struct alive_process **process = &follow->processes[number];
	uint64_t last_ticks;
	int error;

	if (!*process)
		*process = new_process(follow->trace->processes[number]);
	error = *process ? grow_process(*process) : -ENOMEM;
	if (error)
		return error;
	last_ticks = (*process)->last_ticks;
	for (uint32_t i = 0; i < (*process)->process->thread_count && !error; i++)
		error = take_thread(follow, *process, i);
	thin_resident(follow->trace->processes[number]);
	return error ? error : end_pass(*process, last_ticks);
}

static bool has_ended(const struct alive_process *process)
{
	return process && !process->forgotten && process->process->ended;
}

/* The process that ended first. NULL: at most ALIVE_ENDED_MAX have ended. */
static struct alive_process *first_ended(const struct alive_follow *follow)
{
	struct alive_process *first = NULL;
	int64_t first_ns = 0;
	uint32_t ended = 0;

	for (uint32_t i = 0; i < follow->process_count; i++) {
		struct alive_process *process = follow->processes[i];
		int64_t ns = has_ended(process) ? trace_ns(process->process, process->process->end_ticks) : 0;

		if (!has_ended(process))
			continue;
		ended++;
		if (!first || ns < first_ns) {
			first = process;
			first_ns = ns;
		}
	}
	return ended > ALIVE_ENDED_MAX ? first : NULL;
}

static void forget_ended(struct alive_follow *follow)
{
	struct alive_process *process;

	while ((process = first_ended(follow))) {
		for (uint32_t i = 0; i < follow->thread_count; i++) {
			if (!follow->threads[i] || follow->threads[i]->process != process)
				continue;
			free_thread(follow->threads[i]);
			follow->threads[i] = NULL;
		}
		forget(process);
		follow->forgotten++;
	}
}

static bool is_followed(const struct alive_follow *follow, uint32_t number)
{
	const struct trace_process *process = follow->trace->processes[number];

	/* One that begins to record calls later goes on. */
	if (follow->processes[number])
		return !follow->processes[number]->forgotten;
	return process && process->known && alive_takes(process);
}

int alive_follow_next(struct alive_follow *follow)
{
	const struct trace *trace = follow->trace;
	int error = 0;

	if (trace->process_count > follow->process_count)
		error = grow_zeroed(&follow->processes, &follow->process_count, trace->process_count + 8,
				    sizeof(struct alive_process *));
	if (!error && trace->thread_count > follow->thread_count)
		error = grow_zeroed(&follow->threads, &follow->thread_count, trace->thread_count + 8,
				    sizeof(struct alive_thread *));
	for (uint32_t i = 0; i < trace->process_count && !error; i++)
		if (is_followed(follow, i))
			error = take_process(follow, i);
	forget_ended(follow);
	return follow->out_of_memory ? -ENOMEM : error;
}

void alive_follow_done(struct alive_follow *follow)
{
	for (uint32_t i = 0; i < follow->thread_count; i++)
		free_thread(follow->threads[i]);
	free(follow->threads);
	for (uint32_t i = 0; i < follow->process_count; i++)
		free_process(follow->processes[i]);
	free(follow->processes);
	*follow = (struct alive_follow){.trace = follow->trace};
}
