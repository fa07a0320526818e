/*
 * hooks_memory.c - allocations, by PyMem_SetAllocator.
 *
 * A block is recorded in the domain in which the program asked for it. Allocations in another domain that serve the
 * request (pymalloc takes large blocks from raw) are not recorded again. The raw domain is also used without the GIL.
 */
#include <stdlib.h>

#include "base/config.h"
#include "definitions/native.h"
#include "hooks/event_blocks.h"
#include "hooks/hooks.h"
#include "hooks/memory_sampling.h"
#include "hooks/pymalloc_sampling.h"
#include "life/life.h"
#include "life/memory_place.h"
#include "life/memory_stack.h"
#include "ring/process.h"
#include "ring/writer.h"

__thread struct bound_methods bound_methods __attribute__((tls_model("initial-exec")));

static bool is_set;			 /* evprof's allocators were set, and not removed since */
static bool is_off[3];			 /* evprof's allocator was taken off, as recording is stopped */
static struct python_allocator under[3]; /* by enum wire_domain, which equals Python's PyMemAllocatorDomain */

static struct python_allocator watched;		/* the raw domain's allocator below watch_malloc() */
static struct python_allocator watched_objects; /* the object domain's allocator below watch_object() */
static struct audit_entry expected_entry;	/* hook NULL: none is expected */
static struct audit_entry *made_entry;		/* the last one */
static int (*entry_is_gone)(void);		/* is called then */
static struct python_allocator above;		/* the raw domain's allocator while an entry is created */
static __thread bool makes_entry __attribute__((tls_model("initial-exec")));

/*
 * Until 3.11: sets the profile function of a thread that does not have evprof's. Outside the raw domain the thread
 * holds the GIL, which that requires.
 */
static inline void ensure_profile(unsigned domain)
{
	if (domain == WIRE_DOMAIN_RAW || python.monitoring)
		return;
	if (unlikely(!thread_self.hooked_state || thread_self.profile_checks))
		install_in_thread();
	thread_self.profile_checks -= thread_self.profile_checks > 0;
}

/* Notes a block that may be a thread state: Python allocates these in the raw domain, and little else of that size. */
static inline void note_state(unsigned domain, const void *block, size_t size)
{
	if (domain == WIRE_DOMAIN_RAW && unlikely(size == python.layout.state_bytes && size))
		thread_self.made_state = block;
}

bool event_blocks_expected(void)
{
	return config.events & EVENT_MEM && config.events & (EVENT_CALL | EVENT_C_CALL | EVENT_LINE) &&
	       python_has(PYTHON_EVENT_BLOCKS);
}

/* Whether an allocation is held, because it may have to be retracted (event_blocks.h). */
static bool is_held(unsigned kind, unsigned domain)
{
	return kind == WIRE_MALLOC && domain == WIRE_DOMAIN_OBJ && event_blocks_expected();
}

/* Holds or publishes an event. before: its first position. */
static void hold_or_publish(struct writer *writer, unsigned kind, unsigned domain, struct writer_point before)
{
	if (is_held(kind, domain))
		writer_hold(writer, before);
	else
		ring_publish(writer->slot, writer->head);
}

/* Notes the block of a lost allocation, so that the loss can be retracted, too (writer_retract()). */
static void note_lost(unsigned kind, unsigned domain, uintptr_t block)
{
	if (thread_self.lost_block != WRITER_LOST_MALLOC)
		return;
	thread_self.lost_block = is_held(kind, domain) ? (const void *)block : NULL;
	thread_self.lost_gap = thread_self.writer->gap;
}

static void take_off(void);

static inline __attribute__((always_inline)) void record_slowly(unsigned kind, unsigned domain, uintptr_t block,
								size_t size, uintptr_t old, bool native)
{
	struct writer_point before;
	struct writer *writer;

	ensure_profile(domain);
	writer = writer_reserve(kind);
	if (!writer) {
		note_lost(kind, domain, block);
		if (unlikely(process_records_nothing()) && domain != WIRE_DOMAIN_RAW)
			take_off();
		return;
	}
	before = writer_here(writer);
	if (memory_place_known && kind != WIRE_FREE)
		memory_place_write(writer, domain != WIRE_DOMAIN_RAW);
	if (size > WIRE_SIZE_MAX)
		size = WIRE_SIZE_MAX;
	if (native)
		writer_write_with_native_stack(writer, native_stack(), wire_memory_head(kind, domain, size),
					       wire_memory_word(block, size), wire_memory_word(old, 0));
	else
		writer_write_extra(writer, wire_memory_head(kind, domain, size), wire_memory_word(block, size),
				   wire_memory_word(old, 0));
	hold_or_publish(writer, kind, domain, before);
}

/* The slow path: a large block, a full ring, a realloc, an event after a long pause, a thread without evprof's hook. */
static __attribute__((noinline)) void record_any(unsigned kind, unsigned domain, uintptr_t block, size_t size,
						 uintptr_t old)
{
	record_slowly(kind, domain, block, size, old, false);
}

static __attribute__((cold, noinline)) void note_lost_with_stack(unsigned kind, unsigned domain, uintptr_t block)
{
	note_lost(kind, domain, block);
	if (unlikely(process_records_nothing()) && domain != WIRE_DOMAIN_RAW)
		take_off();
}

/* Writes the Python stack first. False: the allocation is lost, or recording is stopped. */
static inline __attribute__((always_inline)) bool write_stack(unsigned kind, unsigned domain, uintptr_t block)
{
	if (likely(!memory_stack_known || memory_stack_write(kind, domain != WIRE_DOMAIN_RAW)))
		return true;
	note_lost_with_stack(kind, domain, block);
	return false;
}

/* Records an allocation with its native stack, if it has one. */
static __attribute__((noinline)) void record_with_native_stack(unsigned kind, unsigned domain, uintptr_t block,
							       size_t size, uintptr_t old)
{
	if (write_stack(kind, domain, block))
		record_slowly(kind, domain, block, size, old, true);
}

static inline __attribute__((always_inline)) void record(unsigned kind, unsigned domain, bool hold, void *block,
							 size_t size)
{
	struct writer *writer = thread_self.writer;

	/* The whole size fits the first word, so the second one holds the address alone. */
	if (likely(size >> WIRE_SIZE_LOW_BITS == 0) && writer_has_room(writer) &&
	    likely(writer_put_fast_extra(writer, wire_memory_head(kind, domain, size),
					 wire_memory_word((uintptr_t)block, 0), hold, writer_here(writer))))
		return;
	record_any(kind, domain, (uintptr_t)block, size, 0);
}

/*
 * Records an allocation with its place. Where the allocation is retracted, so is the place, which an event of its own
 * would have published.
 */
static inline __attribute__((always_inline)) void record_with_place(unsigned kind, unsigned domain, bool hold,
								    void *block, size_t size)
{
	struct writer *writer = thread_self.writer;
	struct writer_point before;

	if (likely(size >> WIRE_SIZE_LOW_BITS == 0) && writer_has_room(writer)) {
		before = writer_here(writer);
		if (likely(memory_place_known))
			memory_place_write(writer, domain != WIRE_DOMAIN_RAW);
		if (writer_has_room(writer) &&
		    likely(writer_put_fast_extra(writer, wire_memory_head(kind, domain, size),
						 wire_memory_word((uintptr_t)block, 0), hold, before)))
			return;
		ring_publish(writer->slot, writer->head);
	}
	record_any(kind, domain, (uintptr_t)block, size, 0);
}

/* Records an allocation with its Python stack, where calls are not recorded. */
static inline __attribute__((always_inline)) void record_with_stack(unsigned kind, unsigned domain, void *block,
								    size_t size)
{
	if (write_stack(kind, domain, (uintptr_t)block))
		record(kind, domain, false, block, size);
}

static __attribute__((noinline)) void record_realloc_with_stack(unsigned kind, unsigned domain, uintptr_t block,
								size_t size, uintptr_t old)
{
	if (write_stack(kind, domain, block))
		record_slowly(kind, domain, block, size, old, false);
}

/* There is no room in the table of sampled blocks. */
static void lose(unsigned kind)
{
	struct writer *writer = writer_reserve(kind);

	if (writer)
		writer_lose(writer, kind);
}

/* Records a sampled allocation, with the stacks that are wanted. */
static __attribute__((cold, noinline)) void record_sampled(unsigned kind, unsigned domain, uintptr_t block, size_t size,
							   uintptr_t old)
{
	if (write_stack(kind, domain, block))
		record_slowly(kind, domain, block, size, old, config.native_stacks);
}

void hooks_memory_record_sampled(unsigned kind, unsigned domain, const void *block, size_t size)
{
	if (block && !memory_sampling_add(block))
		lose(kind);
	else
		record_sampled(kind, domain, (uintptr_t)block, size, 0);
}

void hooks_memory_record_sampled_realloc(unsigned domain, unsigned parts, const void *old, const void *made,
					 size_t size)
{
	parts = memory_sampling_realloc_end(parts, old, made);
	if (parts & MEMORY_SAMPLING_LOST)
		lose(WIRE_REALLOC);
	if (parts & (MEMORY_SAMPLING_OLD | MEMORY_SAMPLING_NEW))
		record_sampled(WIRE_REALLOC, domain, (uintptr_t)made, parts & MEMORY_SAMPLING_NEW ? size : 0,
			       parts & MEMORY_SAMPLING_OLD ? (uintptr_t)old : 0);
}

/*
 * Records the free of a sampled block. The stack shows readers whether the program still runs, where few allocations
 * are recorded. A free may come from within Python's own bookkeeping, so Python is not called.
 */
static __attribute__((cold, noinline)) void record_sampled_free(unsigned domain, void *block)
{
	if (!memory_stack_known || memory_stack_write(WIRE_FREE, false))
		record(WIRE_FREE, domain, false, block, 0);
}

/* How allocations are recorded. A compile-time constant of each allocator: its functions contain no other way. */
enum way {
	WAY_PLAIN = 0,
	WAY_HELD = 1, /* for is_held() */
	WAY_NATIVE_STACK = 2,
	WAY_STACK = 3,
	WAY_SAMPLED = 4, /* with the stacks of the settings */
	WAY_PLACE = 5,
	WAY_PLACE_HELD = 6, /* for is_held() */
};

static inline __attribute__((always_inline)) void record_made(unsigned kind, unsigned domain, enum way way, void *block,
							      size_t size)
{
	if (way == WAY_SAMPLED) {
		ensure_profile(domain);
		if (memory_sampling_takes(size))
			hooks_memory_record_sampled(kind, domain, block, size);
	} else if (way == WAY_NATIVE_STACK)
		record_with_native_stack(kind, domain, (uintptr_t)block, size, 0);
	else if (way == WAY_STACK)
		record_with_stack(kind, domain, block, size);
	else if (way == WAY_PLACE || way == WAY_PLACE_HELD)
		record_with_place(kind, domain, way == WAY_PLACE_HELD && kind == WIRE_MALLOC, block, size);
	else
		record(kind, domain, way == WAY_HELD && kind == WIRE_MALLOC, block, size);
}

/* Apart, so that the fast path saves no registers for it. */
static __attribute__((cold, noinline)) void *malloc_sampled(unsigned domain, size_t size)
{
	void *block;

	if (thread_self.nesting)
		return under[domain].malloc(under[domain].context, size);
	thread_self.nesting = 1;
	block = under[domain].malloc(under[domain].context, size);
	note_state(domain, block, size);
	record_made(WIRE_MALLOC, domain, WAY_SAMPLED, block, size);
	thread_self.nesting = 0;
	return block;
}

static inline __attribute__((always_inline)) void *domain_malloc(unsigned domain, enum way way, size_t size)
{
	void *block;

	if (way == WAY_SAMPLED) {
		if (unlikely(thread_self.nesting || size > thread_self.sampling_left))
			return malloc_sampled(domain, size);
		thread_self.sampling_left -= size; /* before the call: then nothing is kept across it */
		thread_self.nesting = 1;
		ensure_profile(domain);
		block = under[domain].malloc(under[domain].context, size);
		note_state(domain, block, size);
		thread_self.nesting = 0;
		return block;
	}
	if (unlikely(thread_self.nesting))
		return under[domain].malloc(under[domain].context, size);
	thread_self.nesting = 1;
	block = under[domain].malloc(under[domain].context, size);
	note_state(domain, block, size);
	record_made(WIRE_MALLOC, domain, way, block, size);
	thread_self.nesting = 0;
	return block;
}

static inline __attribute__((always_inline)) void *domain_calloc(unsigned domain, enum way way, size_t count,
								 size_t size)
{
	size_t bytes;
	void *block;

	if (unlikely(thread_self.nesting))
		return under[domain].calloc(under[domain].context, count, size);
	thread_self.nesting = 1;
	block = under[domain].calloc(under[domain].context, count, size);
	note_state(domain, block, size);
	record_made(WIRE_CALLOC, domain, way, block, __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
	thread_self.nesting = 0;
	return block;
}

/* With the GIL no other thread gets the old block of a realloc. */
static void record_realloc_begin(unsigned domain, const void *old)
{
	struct writer *writer;

	if (!old || !(domain == WIRE_DOMAIN_RAW || python.free_threaded) || !process_has_threads())
		return;
	writer = writer_reserve(WIRE_REALLOC_BEGIN);
	if (writer)
		writer_put_realloc_begin(writer, old);
}

static __attribute__((cold, noinline)) void *realloc_sampled(unsigned domain, unsigned parts, void *old, size_t size)
{
	void *block;

	if (parts & MEMORY_SAMPLING_OLD)
		record_realloc_begin(domain, old);
	block = under[domain].realloc(under[domain].context, old, size);
	hooks_memory_record_sampled_realloc(domain, parts, old, block, size);
	return block;
}

static inline __attribute__((always_inline)) void *domain_realloc_sampled(unsigned domain, void *old, size_t size)
{
	unsigned parts;
	void *block;

	ensure_profile(domain);
	parts = memory_sampling_realloc_begin(old, size);
	if (unlikely(parts))
		block = realloc_sampled(domain, parts, old, size);
	else
		block = under[domain].realloc(under[domain].context, old, size);
	return block;
}

static inline __attribute__((always_inline)) void *domain_realloc(unsigned domain, enum way way, void *old, size_t size)
{
	void *block;

	if (unlikely(thread_self.nesting))
		return under[domain].realloc(under[domain].context, old, size);
	thread_self.nesting = 1;
	if (way == WAY_SAMPLED) {
		block = domain_realloc_sampled(domain, old, size);
		thread_self.nesting = 0;
		return block;
	}
	record_realloc_begin(domain, old);
	block = under[domain].realloc(under[domain].context, old, size);
	(way == WAY_NATIVE_STACK ? record_with_native_stack
	 : way == WAY_STACK	 ? record_realloc_with_stack
				 : record_any)(WIRE_REALLOC, domain, (uintptr_t)block, size, (uintptr_t)old);
	thread_self.nesting = 0;
	return block;
}

static bool is_audit_entry(const struct audit_entry *entry)
{
	return entry->hook == expected_entry.hook && entry->data == expected_entry.data;
}

static void *entry_malloc(void *context, size_t size)
{
	void *block = makes_entry ? malloc(size) : above.malloc(context, size);

	if (makes_entry && size == sizeof(*made_entry))
		made_entry = block;
	return block;
}

const struct audit_entry *hooks_memory_audit_entry(void)
{
	return made_entry;
}

int hooks_memory_make_audit_entry(int (*make)(void))
{
	struct python_allocator allocator;
	int result;

	thread_self.nesting++;
	python.PyMem_GetAllocator(WIRE_DOMAIN_RAW, &above);
	allocator = above;
	allocator.malloc = entry_malloc;
	makes_entry = true;
	python.PyMem_SetAllocator(WIRE_DOMAIN_RAW, &allocator);
	result = make();
	python.PyMem_SetAllocator(WIRE_DOMAIN_RAW, &above);
	makes_entry = false;
	thread_self.nesting--;
	return result;
}

/* malloc() allocated this entry, and allocates the next one, which this Python no longer uses. */
static __attribute__((noinline)) void exchange_audit_entry(struct audit_entry *entry)
{
	expected_entry.hook = NULL;
	free(entry);
	hooks_memory_make_audit_entry(entry_is_gone);
}

/*
 * Whether the block is not in the sample, by the filter alone. Nothing below records its free either, so nesting can
 * stay as it is.
 */
static inline __attribute__((always_inline)) bool passes_filter(unsigned domain, const void *block)
{
	if (domain == WIRE_DOMAIN_RAW || unlikely(memory_sampling_may_know(block)))
		return false;
	if (domain == WIRE_DOMAIN_OBJ)
		(void)event_blocks_is_programs(block);
	return true;
}

/* Recorded before the block is freed: afterwards another thread may get it. */
static inline __attribute__((always_inline)) void domain_free(unsigned domain, bool sampled, void *block)
{
	bool programs;

	if (sampled && likely(passes_filter(domain, block))) {
		under[domain].free(under[domain].context, block);
		return;
	}

	if (unlikely(thread_self.nesting || !block)) {
		under[domain].free(under[domain].context, block);
		return;
	}
	if (unlikely(domain == WIRE_DOMAIN_RAW && expected_entry.hook && is_audit_entry(block))) {
		exchange_audit_entry(block);
		return;
	}
	thread_self.nesting = 1;
	programs = domain != WIRE_DOMAIN_OBJ || likely(event_blocks_is_programs(block));
	if (sampled) {
		if (memory_sampling_remove(block) && programs)
			record_sampled_free(domain, block);
	} else if (programs)
		record(WIRE_FREE, domain, false, block, 0);
	under[domain].free(under[domain].context, block);
	thread_self.nesting = 0;
}

#define ALLOCATOR(name, domain, way)                                                                                   \
	static void *name##_malloc(void *context, size_t size)                                                         \
	{                                                                                                              \
		(void)context;                                                                                         \
		return domain_malloc(domain, way, size);                                                               \
	}                                                                                                              \
	static void *name##_calloc(void *context, size_t count, size_t size)                                           \
	{                                                                                                              \
		(void)context;                                                                                         \
		return domain_calloc(domain, way, count, size);                                                        \
	}                                                                                                              \
	static void *name##_realloc(void *context, void *old, size_t size)                                             \
	{                                                                                                              \
		(void)context;                                                                                         \
		return domain_realloc(domain, way, old, size);                                                         \
	}

#define DEALLOCATOR(name, domain, sampled)                                                                             \
	static void name##_free(void *context, void *block)                                                            \
	{                                                                                                              \
		(void)context;                                                                                         \
		domain_free(domain, sampled, block);                                                                   \
	}

ALLOCATOR(raw, WIRE_DOMAIN_RAW, WAY_PLAIN)
ALLOCATOR(mem, WIRE_DOMAIN_MEM, WAY_PLAIN)
ALLOCATOR(obj, WIRE_DOMAIN_OBJ, WAY_PLAIN)
ALLOCATOR(held_obj, WIRE_DOMAIN_OBJ, WAY_HELD)
ALLOCATOR(stack_raw, WIRE_DOMAIN_RAW, WAY_STACK)
ALLOCATOR(stack_mem, WIRE_DOMAIN_MEM, WAY_STACK)
ALLOCATOR(stack_obj, WIRE_DOMAIN_OBJ, WAY_STACK)
ALLOCATOR(native_raw, WIRE_DOMAIN_RAW, WAY_NATIVE_STACK)
ALLOCATOR(native_mem, WIRE_DOMAIN_MEM, WAY_NATIVE_STACK)
ALLOCATOR(native_obj, WIRE_DOMAIN_OBJ, WAY_NATIVE_STACK)
ALLOCATOR(place_raw, WIRE_DOMAIN_RAW, WAY_PLACE)
ALLOCATOR(place_mem, WIRE_DOMAIN_MEM, WAY_PLACE)
ALLOCATOR(place_obj, WIRE_DOMAIN_OBJ, WAY_PLACE)
ALLOCATOR(held_place_obj, WIRE_DOMAIN_OBJ, WAY_PLACE_HELD)
ALLOCATOR(sampled_raw, WIRE_DOMAIN_RAW, WAY_SAMPLED)
ALLOCATOR(sampled_mem, WIRE_DOMAIN_MEM, WAY_SAMPLED)
ALLOCATOR(sampled_obj, WIRE_DOMAIN_OBJ, WAY_SAMPLED)
DEALLOCATOR(raw, WIRE_DOMAIN_RAW, false)
DEALLOCATOR(mem, WIRE_DOMAIN_MEM, false)
DEALLOCATOR(obj, WIRE_DOMAIN_OBJ, false)
DEALLOCATOR(sampled_raw, WIRE_DOMAIN_RAW, true)
DEALLOCATOR(sampled_mem, WIRE_DOMAIN_MEM, true)
DEALLOCATOR(sampled_obj, WIRE_DOMAIN_OBJ, true)

#define FUNCTIONS(name, free)                                                                                          \
	{                                                                                                              \
		NULL, name##_malloc, name##_calloc, name##_realloc, free##_free                                        \
	}

static enum way configured_way(void)
{
	if (config.memory_interval)
		return WAY_SAMPLED;
	if (config.native_stacks)
		return WAY_NATIVE_STACK;
	if (memory_stack_wanted())
		return WAY_STACK;
	if (memory_place_wanted())
		return event_blocks_expected() ? WAY_PLACE_HELD : WAY_PLACE;
	return event_blocks_expected() ? WAY_HELD : WAY_PLAIN;
}

static struct python_allocator own_allocator(int domain)
{
	static const struct python_allocator ours[7][3] = {
	    [WAY_PLAIN] = {FUNCTIONS(raw, raw), FUNCTIONS(mem, mem), FUNCTIONS(obj, obj)},
	    [WAY_HELD] = {FUNCTIONS(raw, raw), FUNCTIONS(mem, mem), FUNCTIONS(held_obj, obj)},
	    [WAY_NATIVE_STACK] = {FUNCTIONS(native_raw, raw), FUNCTIONS(native_mem, mem), FUNCTIONS(native_obj, obj)},
	    [WAY_SAMPLED] = {FUNCTIONS(sampled_raw, sampled_raw), FUNCTIONS(sampled_mem, sampled_mem),
			     FUNCTIONS(sampled_obj, sampled_obj)},
	    [WAY_STACK] = {FUNCTIONS(stack_raw, raw), FUNCTIONS(stack_mem, mem), FUNCTIONS(stack_obj, obj)},
	    [WAY_PLACE] = {FUNCTIONS(place_raw, raw), FUNCTIONS(place_mem, mem), FUNCTIONS(place_obj, obj)},
	    [WAY_PLACE_HELD] = {FUNCTIONS(place_raw, raw), FUNCTIONS(place_mem, mem), FUNCTIONS(held_place_obj, obj)},
	};

	return ours[configured_way()][domain];
}

static bool is_own(int domain, const struct python_allocator *allocator)
{
	return allocator->malloc == own_allocator(domain).malloc || pymalloc_sampling_is(allocator);
}

/*
 * Sets evprof's allocator over the present one. The context stays that of the allocator below, so that at no moment
 * one's function is called with the other's context.
 */
static void set_domain(int domain)
{
	struct python_allocator allocator, present;

	python.PyMem_GetAllocator(domain, &present);
	if (is_own(domain, &present)) /* left from an earlier run of this Python */
		return;
	under[domain] = present;
	allocator =
	    pymalloc_sampling_serves(domain, &present) ? pymalloc_sampling_allocator(domain) : own_allocator(domain);
	allocator.context = present.context;
	python.PyMem_SetAllocator(domain, &allocator);
}

void hooks_memory_set(void)
{
	is_set = true;
	pymalloc_sampling_begin();
	for (int domain = 0; domain < 3; domain++)
		set_domain(domain);
}

static bool is_on_top(int domain)
{
	struct python_allocator present;

	python.PyMem_GetAllocator(domain, &present);
	return is_own(domain, &present);
}

/*
 * Recording is stopped: Python gets its allocators back, where evprof's are on top. Where the program has set others
 * over them (tracemalloc), these go on calling evprof's, which record nothing. GIL held.
 */
static void take_off(void)
{
	for (int domain = 0; domain < 3; domain++) {
		if (!is_on_top(domain))
			continue;
		python.PyMem_SetAllocator(domain, &under[domain]);
		is_off[domain] = true;
	}
}

void hooks_memory_set_again(void)
{
	for (int domain = 0; domain < 3; domain++) {
		if (is_off[domain])
			set_domain(domain);
		is_off[domain] = false;
	}
}

static void *watch_malloc(void *context, size_t size);
static void *watch_object(void *context, size_t size);

/* The allocators of processes whose memory is not recorded. */
static bool remove_watches(void)
{
	struct python_allocator raw, objects;
	bool removed;

	python.PyMem_GetAllocator(WIRE_DOMAIN_RAW, &raw);
	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &objects);
	removed = (!watched.malloc || raw.malloc == watch_malloc) &&
		  (!watched_objects.malloc || objects.malloc == watch_object);
	if (raw.malloc == watch_malloc) {
		raw.malloc = watched.malloc;
		raw.calloc = watched.calloc;
		python.PyMem_SetAllocator(WIRE_DOMAIN_RAW, &raw);
		watched.malloc = NULL;
	}
	if (objects.malloc == watch_object) {
		objects.malloc = watched_objects.malloc;
		python.PyMem_SetAllocator(WIRE_DOMAIN_OBJ, &objects);
		watched_objects.malloc = NULL;
	}
	return removed;
}

bool hooks_memory_is_covered(void)
{
	struct python_allocator raw, objects;
	bool covered = false;

	for (int domain = 0; domain < 3 && config.events & EVENT_MEM; domain++)
		covered |= !is_off[domain] && !is_on_top(domain);
	python.PyMem_GetAllocator(WIRE_DOMAIN_RAW, &raw);
	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &objects);
	return covered || (watched.malloc && raw.malloc != watch_malloc) ||
	       (watched_objects.malloc && objects.malloc != watch_object);
}

bool hooks_memory_remove(void)
{
	bool removed = true;

	take_off();
	for (int domain = 0; domain < 3; domain++) {
		removed &= is_off[domain] || !is_set;
		is_off[domain] = false;
	}
	is_set = false;
	return remove_watches() && removed;
}

bool hooks_memory_on_top(void)
{
	struct python_allocator top;

	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &top);
	return top.malloc == obj_malloc || top.malloc == held_obj_malloc || top.malloc == native_obj_malloc ||
	       top.malloc == stack_obj_malloc || top.malloc == place_obj_malloc ||
	       top.malloc == held_place_obj_malloc || top.malloc == sampled_obj_malloc || pymalloc_sampling_is(&top);
}

bool hooks_memory_step_aside(void)
{
	bool on_top =
	    hooks_memory_on_top() && !python.free_threaded; /* without a GIL other threads allocate meanwhile */

	if (on_top)
		python.PyMem_SetAllocator(WIRE_DOMAIN_OBJ, &under[WIRE_DOMAIN_OBJ]);
	return on_top;
}

void hooks_memory_step_back(void)
{
	set_domain(WIRE_DOMAIN_OBJ);
}

void hooks_memory_record_object(unsigned kind, const void *block, size_t size)
{
	struct writer *writer;

	if (thread_self.nesting)
		return;
	if (config.memory_interval && !(kind == WIRE_FREE ? memory_sampling_remove(block)
							  : memory_sampling_takes(size) && memory_sampling_add(block)))
		return;
	writer = writer_reserve(kind);
	if (!writer)
		return;
	thread_self.nesting = 1;
	if (memory_place_known && kind != WIRE_FREE)
		memory_place_write(writer, true);
	writer_put_extra(writer, wire_memory_head(kind, WIRE_DOMAIN_OBJ, size),
			 wire_memory_word((uintptr_t)block, size), 0);
	thread_self.nesting = 0;
}

struct python_allocator hooks_memory_under(int domain)
{
	return under[domain];
}

static void *watch_malloc(void *context, size_t size)
{
	void *block = watched.malloc(context, size);

	note_state(WIRE_DOMAIN_RAW, block, size);
	return block;
}

static void *watch_calloc(void *context, size_t count, size_t size)
{
	void *block = watched.calloc(context, count, size);

	note_state(WIRE_DOMAIN_RAW, block, size);
	return block;
}

/*
 * Sets the watching allocator once. A later run of this Python may have its own allocator again, or evprof's below a
 * debug allocator.
 */
void hooks_memory_watch_states(void)
{
	struct python_allocator allocator;

	if (!python.layout.state_bytes || config.events & EVENT_MEM)
		return;
	python.PyMem_GetAllocator(WIRE_DOMAIN_RAW, &allocator);
	if (watched.malloc && allocator.malloc != watched.malloc)
		return;
	watched = allocator;
	allocator.malloc = watch_malloc;
	allocator.calloc = watch_calloc;
	python.PyMem_SetAllocator(WIRE_DOMAIN_RAW, &allocator);
}

static void *watch_object(void *context, size_t size)
{
	ensure_profile(WIRE_DOMAIN_OBJ);
	return watched_objects.malloc(context, size);
}

void hooks_memory_watch_threads(void)
{
	struct python_allocator allocator;

	if (python.monitoring || config.events & EVENT_MEM || watched_objects.malloc)
		return;
	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &allocator);
	watched_objects = allocator;
	allocator.malloc = watch_object;
	python.PyMem_SetAllocator(WIRE_DOMAIN_OBJ, &allocator);
}

/* raw_free() for processes whose memory is not recorded. */
static void raw_free_audit_entry(void *context, void *block)
{
	if (block && expected_entry.hook && is_audit_entry(block)) {
		exchange_audit_entry(block);
		return;
	}
	under[WIRE_DOMAIN_RAW].free(context, block);
}

void hooks_memory_expect_audit_entry(const void *hook, const void *data, int (*gone)(void))
{
	struct python_allocator allocator;

	expected_entry = (struct audit_entry){.hook = hook, .data = data};
	entry_is_gone = gone;
	if (config.events & EVENT_MEM)
		return;
	python.PyMem_GetAllocator(WIRE_DOMAIN_RAW, &allocator);
	if (allocator.free == raw_free_audit_entry)
		return;
	under[WIRE_DOMAIN_RAW] = allocator;
	allocator.free = raw_free_audit_entry;
	python.PyMem_SetAllocator(WIRE_DOMAIN_RAW, &allocator);
}
