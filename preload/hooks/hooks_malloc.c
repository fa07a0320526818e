/* hooks_malloc.c - see hooks_malloc.h. */
#include "hooks/hooks_malloc.h"

#include "base/config.h"
#include "base/log_line.h"
#include "base/own_stack.h"
#include "definitions/native.h"
#include "hooks/hooks.h"
#include "life/memory_place.h"
#include "life/memory_stack.h"
#include "ring/process.h"
#include "ring/room.h"

enum hooks_malloc_way hooks_malloc_way;

struct native_event {
	unsigned kind;
	uintptr_t block;
	size_t size;
	uintptr_t old;
	unsigned value; /* of a mapping */
	bool native_stack, signal_stack;
};

void hooks_malloc_set(void)
{
	if (config.events & EVENT_MALLOC && config.memory_interval)
		hooks_malloc_way = HOOKS_MALLOC_SAMPLED;
	else if (config.events & EVENT_MALLOC)
		hooks_malloc_way = config.native_stacks	   ? HOOKS_MALLOC_NATIVE_STACK
				   : memory_stack_wanted() ? HOOKS_MALLOC_STACK
				   : memory_place_wanted() ? HOOKS_MALLOC_PLACE
							   : HOOKS_MALLOC_ON;
}

static void put_allocation(struct writer *writer, const struct native_event *event)
{
	uint32_t head = wire_memory_head(event->kind, WIRE_DOMAIN_NATIVE, event->size);
	uint64_t word = wire_memory_word(event->block, event->size), old = wire_memory_word(event->old, 0);

	if (event->native_stack)
		writer_write_with_native_stack(writer, native_stack(), head, word, old);
	else
		writer_write_extra(writer, head, word, old);
	ring_publish(writer->slot, writer->head);
}

static void put_mapping(struct writer *writer, const struct native_event *event)
{
	const uint64_t extra[] = {event->block, event->size};

	if (event->native_stack)
		writer_put(writer, wire_head(WIRE_NATIVE_STACK, native_stack()));
	writer_put_words(writer, wire_extended(event->kind, 2, event->value), extra);
}

/* Whether the Python stack stands before an event. Of a free it shows readers whether the program still runs. */
static bool has_stack(unsigned kind)
{
	if (kind == WIRE_MUNMAP || kind == WIRE_REALLOC_BEGIN)
		return false;
	return kind != WIRE_FREE || hooks_malloc_way == HOOKS_MALLOC_SAMPLED;
}

/*
 * Writes the Python stack, or the place, before an allocation, by loads alone: what allocates may hold any lock, and
 * the thread may be without the GIL. A signal handler that allocates meanwhile loses its event. One that runs on a
 * stack of its own has the stack of the thread's last allocation, because it may have interrupted the interpreter
 * anywhere. False: the event is lost, and counted.
 */
static inline bool write_stack(struct writer *writer, unsigned kind)
{
	if (memory_place_known && kind != WIRE_FREE) {
		memory_place_write(writer, false);
		ring_publish(writer->slot, writer->head);
	}
	return !memory_stack_known || memory_stack_write(kind, false);
}

/* After an event that was written or lost. */
static void end_event(void)
{
	if (thread_self.lost_block == WRITER_LOST_MALLOC) /* of this event, which is never retracted */
		thread_self.lost_block = NULL;
	room_settle(thread_self.writer);
	writer_leave();
}

static void record_event(void *argument)
{
	const struct native_event *event = argument;
	struct writer *writer = writer_reserve(event->kind);

	writer_enter();
	if (writer && !event->signal_stack && has_stack(event->kind))
		writer = write_stack(writer, event->kind) ? writer_reserve(event->kind) : NULL;
	if (writer && wire_is_memory(event->kind))
		put_allocation(writer, event);
	else if (writer && event->kind == WIRE_REALLOC_BEGIN)
		writer_put_realloc_begin(writer, (const void *)event->block);
	else if (writer)
		put_mapping(writer, event);
	end_event();
}

bool hooks_malloc_record_with_stack(unsigned kind, const void *block, size_t size)
{
	bool native = hooks_malloc_way == HOOKS_MALLOC_NATIVE_STACK, done;
	struct writer *writer = thread_self.writer;

	if (unlikely(hooks_malloc_way == HOOKS_MALLOC_SAMPLED || (native && thread_self.no_native_stack) ||
		     own_stack_is_wanted()))
		return false;
	writer_enter();
	if (unlikely(!write_stack(writer, kind))) {
		end_event();
		return true;
	}
	done = hooks_malloc_has_room(writer);
	if (likely(done) && native)
		put_allocation(writer,
			       &(struct native_event){
				   .kind = kind, .block = (uintptr_t)block, .size = size, .native_stack = true});
	else if (likely(done))
		done = hooks_malloc_put(writer, kind, block, size);
	writer_leave();
	return done;
}

/* Off the fast path: a large block, a full ring, a realloc, a pause, another thread or image, a stack. */
static void record(struct native_event *event)
{
	struct writer *writer = thread_self.writer;

	if (!room_may_write(event->kind))
		return;
	if (writer_goes_on_losing(writer) && wire_is_memory(event->kind)) {
		writer_enter();
		writer_count_lost(writer, event->kind);
		writer_leave();
		return;
	}
	if (event->size > WIRE_SIZE_MAX)
		event->size = WIRE_SIZE_MAX;
	/* A small stack for signal handlers has no room for an unwinder. */
	event->signal_stack = own_stack_is_wanted();
	event->native_stack = config.native_stacks && event->kind != WIRE_FREE && event->kind != WIRE_MUNMAP &&
			      !event->signal_stack && !thread_self.no_native_stack;
	if (unlikely(event->signal_stack))
		own_stack_call(record_event, event);
	else
		record_event(event);
	if (atomic_load_explicit(&process->status, memory_order_relaxed) == PROCESS_OFF || process_is_stopped())
		hooks_malloc_way = HOOKS_MALLOC_OFF;
}

void hooks_malloc_record_any(unsigned kind, const void *block, size_t size, const void *old)
{
	record(&(struct native_event){.kind = kind, .block = (uintptr_t)block, .size = size, .old = (uintptr_t)old});
}

void hooks_malloc_record_sampled(unsigned kind, const void *block, size_t size)
{
	if (!block || memory_sampling_add(block))
		hooks_malloc_record_any(kind, block, size, NULL);
	else
		room_count_unwritten(kind);
}

void hooks_malloc_record_sampled_realloc(unsigned parts, const void *made, size_t size, const void *old)
{
	parts = memory_sampling_realloc_end(parts, old, made);
	if (parts & MEMORY_SAMPLING_LOST)
		room_count_unwritten(WIRE_REALLOC);
	if (parts & (MEMORY_SAMPLING_OLD | MEMORY_SAMPLING_NEW))
		hooks_malloc_record_any(WIRE_REALLOC, made, parts & MEMORY_SAMPLING_NEW ? size : 0,
					parts & MEMORY_SAMPLING_OLD ? old : NULL);
}

void hooks_malloc_record_begin(const void *old)
{
	if (process_has_threads())
		hooks_malloc_record_any(WIRE_REALLOC_BEGIN, old, 0, NULL);
}

void hooks_malloc_record_mapping(unsigned kind, const void *address, size_t size, unsigned value)
{
	record(&(struct native_event){.kind = kind, .block = (uintptr_t)address, .size = size, .value = value});
}
