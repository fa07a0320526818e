/*
 * write.c - see write.h.
 *
 * One thread of the file: blocks, ranges and waiting mappings in the order of their times, each with its stack where
 * that is another one; then the sums; then the program's own stack, which the end of the program takes away.
 */
#include "alive/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cut/file.h"
#include "util/grow.h"
#include "util/output.h"

#define CHUNK_WORDS 65536u

struct item {
	uint64_t ticks;
	uint64_t address, bytes;
	uint32_t stack;
	uint32_t head;
};

struct writing {
	struct cut_file *file;
	struct alive_process *process;
	struct event_buffer buffer;
	uint64_t first_ticks;
	uint32_t stack;	  /* the current one; 0: to be written as a whole */
	uint32_t program; /* code of the last outermost function that is the program; 0: none */
	struct item *items;
	size_t count, allocated;
};

/* --- events --- */

static void flush(struct writing *writing)
{
	file_write(writing->file, &writing->buffer, writing->first_ticks);
	writing->first_ticks = writing->buffer.last;
}

static void put(struct writing *writing, uint64_t ticks, uint32_t head, const uint64_t *extra)
{
	event_buffer_put_at(&writing->buffer, ticks, head, extra);
}

static bool is_native(const struct stack_node *node)
{
	return node->parent && node->function & ALIVE_NATIVE;
}

static uint64_t place_of(const struct alive_process *process, uint32_t number)
{
	return process->frames[process->stacks.at[number].function - 1];
}

/* Adds the frames of a path from the one with that index on. The first node is no frame. */
static void put_frames(struct writing *writing, uint64_t ticks, const uint32_t *path, uint32_t length, uint32_t same)
{
	bool cut = writing->process->stacks.at[path[0]].function == ALIVE_CUT;
	uint32_t at = same, value = !same && cut ? WIRE_CHANGE_CUT : same;
	uint64_t words[WIRE_EXTRA_MAX];

	do {
		unsigned count = 0;

		for (; at + 1 < length && count < WIRE_EXTRA_MAX; at++) {
			uint64_t place = place_of(writing->process, path[at + 1]);

			words[count++] = wire_place(ids_of(&writing->file->ids, IDS_CODE, wire_place_code(place)),
						    wire_place_instruction(place));
		}
		put(writing, ticks, wire_extended(WIRE_STACK_CHANGE, count, value), words);
		value = at;
	} while (at + 1 < length && at <= WIRE_CHANGE_STAY_MAX);
}

static void note_program(struct writing *writing, const uint32_t *path, uint32_t length)
{
	uint32_t code = length > 1 ? wire_place_code(place_of(writing->process, path[1])) : 0;

	if (alive_is_program(writing->process, code))
		writing->program = code;
}

/* How many frames the path has in common with the current stack. Parents have smaller numbers than their children. */
static uint32_t frames_in_common(const struct writing *writing, const uint32_t *path, uint32_t length)
{
	const struct stacks *stacks = &writing->process->stacks;
	uint32_t current = writing->stack, at = length - 1;

	while (current != path[at]) {
		if (current > path[at])
			current = stacks->at[current].parent;
		else if (at)
			at--;
		else
			return 0;
	}
	return at < WIRE_CHANGE_STAY_MAX ? at : WIRE_CHANGE_STAY_MAX;
}

/* Makes the stack with that number the current one. Its native frame describes the next event. */
static void put_stack(struct writing *writing, uint64_t ticks, uint32_t number)
{
	struct stacks *stacks = &writing->process->stacks;
	const struct stack_node *node = &stacks->at[number];
	uint32_t python = is_native(node) ? node->parent : number, length;
	const uint32_t *path;

	if (writing->buffer.count + writing->buffer.extra_count >= CHUNK_WORDS) {
		flush(writing);
		writing->stack = 0;
	}
	if (python != writing->stack) {
		path = stacks_path(stacks, python, &length);
		if (!path || !length) {
			writing->buffer.error = -ENOMEM;
			return;
		}
		put_frames(writing, ticks, path, length, frames_in_common(writing, path, length));
		note_program(writing, path, length);
		writing->stack = python;
	}
	if (is_native(node))
		put(writing, ticks, wire_head(WIRE_NATIVE_STACK, node->function & ~ALIVE_NATIVE), NULL);
}

static void put_item(struct writing *writing, const struct item *item)
{
	unsigned kind = wire_head_kind(item->head);
	uint64_t words[2] = {item->address, item->bytes};

	if (kind != WIRE_MUNMAP)
		put_stack(writing, item->ticks, item->stack);
	if (kind == WIRE_MALLOC)
		words[0] = wire_memory_word(item->address, item->bytes);
	put(writing, item->ticks, item->head, words);
}

/* --- what is alive --- */

static void add(struct writing *writing, const struct item *item)
{
	if (grow_by_one(&writing->items, &writing->allocated, writing->count, sizeof(*writing->items)))
		writing->buffer.error = -ENOMEM;
	else
		writing->items[writing->count++] = *item;
}

static void add_alive(struct writing *writing, const struct alive *alive)
{
	for (size_t i = 0; i < alive_slots(alive); i++) {
		const struct alive_block *block = &alive->slots[i];
		const struct item item = {block->ticks, block->address, block->bytes, block->stack,
					  wire_memory_head(WIRE_MALLOC, block->domain, block->bytes)};

		if (alive_is_block(block))
			add(writing, &item);
	}
	for (size_t i = 0; i < alive->ranges.count; i++) {
		const struct mapped_range *range = &alive->ranges.at[i];
		const struct alive_mapper *mapper = &alive->mappers[range->owner];
		const struct item item = {
		    mapper->ticks, range->begin, range->end - range->begin, mapper->stack,
		    wire_extended(WIRE_MMAP, 2, range->shared ? WIRE_MMAP_SHARED : WIRE_MMAP_ANONYMOUS)};

		add(writing, &item);
	}
	for (size_t i = 0; i < alive->waiting_count; i++) {
		const struct alive_mapping *waiting = &alive->waiting[i];
		const struct item item = {waiting->ticks, waiting->range.begin,
					  waiting->range.end - waiting->range.begin, waiting->stack, waiting->head};

		add(writing, &item);
	}
}

static int by_time(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	return compare_u64(a->ticks, b->ticks) ?: compare_u64(a->stack, b->stack)
					       ?: compare_u64(a->address, b->address);
}

static void put_freed(struct writing *writing, const struct alive *alive, uint64_t ticks)
{
	struct alive_sum *freed;
	uint32_t count;

	if (alive_freed(alive, &freed, &count) < 0) {
		writing->buffer.error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t words[WIRE_FREED_WORDS] = {freed[i].units, freed[i].bytes, freed[i].temporary};

		if (!words[0] && !words[1] && !words[2])
			continue;
		put_stack(writing, ticks, freed[i].stack);
		put(writing, ticks, wire_extended(WIRE_FREED, WIRE_FREED_WORDS, freed[i].value), words);
	}
	free(freed);
}

static void put_gap(struct writing *writing)
{
	if (writing->process->lost)
		put(writing, writing->buffer.last, wire_head(WIRE_GAP, 0), &writing->process->lost);
}

/* The program's function is on the stack until the program ends. */
static void put_program(struct writing *writing, uint64_t ticks)
{
	uint32_t code = writing->process->program ? writing->process->program : writing->program;
	uint64_t word = code ? wire_place(ids_of(&writing->file->ids, IDS_CODE, code), 0) : 0;

	if (!code)
		return;
	put(writing, ticks, wire_extended(WIRE_STACK_CHANGE, 1, 0), &word);
	if (writing->process->end_ticks != UINT64_MAX)
		put(writing, writing->process->end_ticks - 1, wire_extended(WIRE_STACK_CHANGE, 0, 0), NULL);
}

static void put_alive(struct writing *writing, const struct alive *alive, uint64_t end_ticks)
{
	add_alive(writing, alive);
	if (writing->count) /* else it may be NULL */
		qsort(writing->items, writing->count, sizeof(*writing->items), by_time);
	for (size_t i = 0; i < writing->count; i++)
		put_item(writing, &writing->items[i]);
	put_freed(writing, alive, end_ticks > writing->buffer.last ? end_ticks : writing->buffer.last);
}

/* --- threads and processes --- */

static void write_thread(struct cut_file *file, struct alive_process *process, bool after)
{
	const struct trace_thread thread = {.tid = (uint32_t)process->process->pid,
					    .start_ticks = process->process->start_ticks,
					    .name = after ? "all threads, after the program" : "all threads"};
	struct writing writing = {.file = file, .process = process};
	uint64_t end = process->end_ticks < process->last_ticks ? process->end_ticks : process->last_ticks;

	file_begin_thread(file, &thread);
	writing.first_ticks = writing.buffer.last = after ? end : process->process->start_ticks;
	if (after) {
		put_alive(&writing, &process->after, end);
	} else {
		put_gap(&writing);
		put_alive(&writing, &process->base, end ? end - 1 : 0);
		put_program(&writing, end ? end - 1 : 0);
	}
	flush(&writing);
	file_end_thread(file);
	event_buffer_done(&writing.buffer);
	free(writing.items);
}

static void write_process(struct cut_file *file, struct alive_process *process)
{
	file_begin_process(file, process->process, false);
	if (process->any || process->lost)
		write_thread(file, process, false);
	if (process->after.sum_count || process->after.waiting_count)
		write_thread(file, process, true);
	file_end_process(file);
}

int alive_write(struct alive_follow *follow, const char *kinds, int fd)
{
	static const struct cut_stretch whole = {{.ns = INT64_MIN}, {.ns = INT64_MAX}};
	struct cut_file file;
	int error;

	file_begin(&file, follow->trace, &whole, kinds, fd);
	file.alive_only = true;
	file.so_far = follow->so_far;
	file.left_out = follow->forgotten + trace_left_out(follow->trace);
	for (uint32_t i = 0; i < follow->process_count && !file.error; i++)
		if (follow->processes[i] && !follow->processes[i]->forgotten)
			write_process(&file, follow->processes[i]);
	file_end(&file);
	error = file.error;
	file_done(&file);
	return error;
}

int alive_write_file(struct alive_follow *follow, const char *kinds, const char *path, const char *like)
{
	struct output output;
	int error = output_open_trace(&output, path), fd;

	if (!error) {
		if (like)
			output_let_read_like(&output, like);
		fd = fcntl(output.fd, F_DUPFD_CLOEXEC, 0);
		error = fd < 0 ? -errno : alive_write(follow, kinds, fd);
		if (error)
			output_abandon(&output);
		else
			error = output_close(&output);
	}
	if (error)
		output_complain("cut", path, error);
	return error;
}
