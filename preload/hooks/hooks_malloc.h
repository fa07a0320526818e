/*
 * hooks_malloc.h - records what the program's native code allocates: malloc() and its kin, mmap() and its kin.
 *
 * start/interpose_malloc.c calls these around the real functions. What runs below an allocator of Python's, or below
 * evprof, is not recorded (thread_self.nesting). Any thread, any point of the program: in a signal handler, at a
 * thread's end, in a thread that never met Python, in the child of a fork before its first event. errno is kept.
 */
#ifndef PRELOAD_HOOKS_MALLOC_H
#define PRELOAD_HOOKS_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks/memory_sampling.h"
#include "life/life.h"
#include "ring/writer.h"

enum hooks_malloc_way {
	HOOKS_MALLOC_OFF = 0,
	HOOKS_MALLOC_ON = 1,
	HOOKS_MALLOC_NATIVE_STACK = 2, /* each allocation with its native stack */
	HOOKS_MALLOC_SAMPLED = 3,      /* EVPROF_MEMORY_INTERVAL */
	HOOKS_MALLOC_STACK = 4,	       /* each allocation with its Python stack (life/memory_stack.h) */
	HOOKS_MALLOC_PLACE = 5,	       /* each allocation with its place (life/memory_place.h) */
};

extern enum hooks_malloc_way hooks_malloc_way;

/* The functions that allocate are recorded from here on. After the process has joined. */
void hooks_malloc_set(void);

/* kind: of an allocation. block NULL: it failed. old: of WIRE_REALLOC. */
void hooks_malloc_record_any(unsigned kind, const void *block, size_t size, const void *old)
    __attribute__((cold, noinline));

/*
 * Records a malloc or calloc of a small block with its stacks or place, where no other thread, image or pause is in the
 * way. False: nothing of the event is written.
 */
bool hooks_malloc_record_with_stack(unsigned kind, const void *block, size_t size) __attribute__((noinline));

/* A realloc of the block is about to begin. */
void hooks_malloc_record_begin(const void *old) __attribute__((cold, noinline));

/*
 * kind: WIRE_MMAP (value: enum wire_mmap) or WIRE_MUNMAP (0). These are few, and recorded also where allocations are
 * sampled.
 */
void hooks_malloc_record_mapping(unsigned kind, const void *address, size_t size, unsigned value)
    __attribute__((cold, noinline));

/* A malloc or calloc that is in the sample. */
void hooks_malloc_record_sampled(unsigned kind, const void *block, size_t size) __attribute__((cold, noinline));

/* A realloc of which something is in the sample, after memory_sampling_realloc_begin(). */
void hooks_malloc_record_sampled_realloc(unsigned parts, const void *made, size_t size, const void *old)
    __attribute__((cold, noinline));

/* Whether a malloc, calloc or free is in the sample; records an allocation that is. */
static inline __attribute__((always_inline)) bool hooks_malloc_is_sampled_free(unsigned kind, const void *block,
									       size_t size)
{
	if (kind == WIRE_FREE)
		return memory_sampling_remove(block);
	if (memory_sampling_takes(size))
		hooks_malloc_record_sampled(kind, block, size);
	return false;
}

/* Writes an event of two words, of a size that fits the first. False: nothing is written. */
static inline __attribute__((always_inline)) bool hooks_malloc_put(struct writer *writer, unsigned kind,
								   const void *block, size_t size)
{
	uint32_t head = wire_memory_head(kind, WIRE_DOMAIN_NATIVE, size);
	uint64_t extra = wire_memory_word((uintptr_t)block, 0);
	uint64_t at = writer_take(writer, 2), now = clock_counter() >> CLOCK_SHIFT, ticks = now - writer->last_ticks;

	if (unlikely(ticks >= writer->pause)) {
		writer_give_back(writer, at);
		return false;
	}
	writer->last_ticks = now;
	writer_store(writer, at, ticks << 32 | head);
	writer_store(writer, at + 1, extra);
	ring_publish(writer->slot, at + 2);
	return true;
}

/* Whether nothing stands before the event. A thread without a copy of its stack, or a place, has not met Python. */
static inline __attribute__((always_inline)) bool hooks_malloc_is_plain(unsigned kind)
{
	return likely(hooks_malloc_way == HOOKS_MALLOC_ON ||
		      (kind == WIRE_FREE && hooks_malloc_way != HOOKS_MALLOC_SAMPLED)) ||
	       (hooks_malloc_way == HOOKS_MALLOC_STACK && !thread_self.stack) ||
	       (hooks_malloc_way == HOOKS_MALLOC_PLACE && !thread_self.placed);
}

/*
 * Whether an event may be written here and now. The margin of free words is for what this may have interrupted: an
 * event whose room was checked, and whose words are not taken yet.
 */
static inline __attribute__((always_inline)) bool hooks_malloc_has_room(const struct writer *writer)
{
	return likely(writer->head + WRITER_SPARE_WORDS <= __atomic_load_n(&writer->limit, __ATOMIC_RELAXED));
}

/* Records a malloc, calloc or free. */
static inline __attribute__((always_inline)) void hooks_malloc_record(unsigned kind, const void *block, size_t size)
{
	struct writer *writer = thread_self.writer;

	if (hooks_malloc_way == HOOKS_MALLOC_SAMPLED && likely(!hooks_malloc_is_sampled_free(kind, block, size)))
		return;
	if (likely(size >> WIRE_SIZE_LOW_BITS == 0) && hooks_malloc_has_room(writer) &&
	    likely(!thread_self.writing && writer_is_quiet(writer)) &&
	    likely(hooks_malloc_is_plain(kind) ? hooks_malloc_put(writer, kind, block, size)
					       : hooks_malloc_record_with_stack(kind, block, size)))
		return;
	hooks_malloc_record_any(kind, block, size, NULL);
}

#endif
