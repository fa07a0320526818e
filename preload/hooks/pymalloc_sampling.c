/* pymalloc_sampling.c - see pymalloc_sampling.h. */
#include "hooks/pymalloc_sampling.h"

#include <string.h>

#include "base/config.h"
#include "hooks/hooks.h"
#include "hooks/memory_sampling.h"

#define SMALL_BYTES 512 /* obmalloc.c: SMALL_REQUEST_THRESHOLD. Larger blocks come from the raw domain in any case. */

static struct python_allocator pymalloc; /* malloc NULL: Python uses another one, or nothing is sampled in this way */
static struct python_arena_allocator arenas; /* the allocator of arenas below evprof's */

static void *from_pymalloc(unsigned kind, size_t count, size_t size)
{
	return kind == WIRE_CALLOC ? pymalloc.calloc(pymalloc.context, count, size)
				   : pymalloc.malloc(pymalloc.context, size);
}

/* pymalloc takes it from the raw domain, counts it among those, and so will free it there. */
static void *from_raw(unsigned kind)
{
	return from_pymalloc(kind, 1, SMALL_BYTES + 1);
}

/* Off the fast path: a large block, or one that may be in the sample. */
static __attribute__((noinline)) void *allocate(unsigned kind, unsigned domain, size_t count, size_t size)
{
	size_t bytes;
	void *block = NULL;
	bool taken;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	taken = memory_sampling_takes(bytes);
	if (thread_self.nesting)
		return from_pymalloc(kind, count, size);
	thread_self.nesting = 1;
	if (taken && bytes <= SMALL_BYTES) {
		block = from_raw(kind);
		taken = block != NULL; /* pymalloc may still have a small block, but its free would not be seen */
	}
	if (!block)
		block = from_pymalloc(kind, count, size);
	if (unlikely(taken))
		hooks_memory_record_sampled(kind, domain, block, bytes);
	thread_self.nesting = 0;
	return block;
}

/* In the sample: a small block moves to the raw domain. parts: of memory_sampling_realloc_begin(), not 0. */
static __attribute__((cold, noinline)) void *end_realloc(unsigned domain, unsigned parts, const void *old, void *block,
							 size_t size)
{
	void *moved;

	if (block && parts & MEMORY_SAMPLING_NEW && size <= SMALL_BYTES) {
		moved = from_raw(WIRE_MALLOC);
		if (moved) {
			memcpy(moved, block, size);
			pymalloc.free(pymalloc.context, block);
			block = moved;
		} else {
			parts = (parts & ~(unsigned)MEMORY_SAMPLING_NEW) | MEMORY_SAMPLING_LOST;
		}
	}
	hooks_memory_record_sampled_realloc(domain, parts, old, block, size);
	return block;
}

static inline __attribute__((always_inline)) void *pymalloc_realloc(unsigned domain, void *old, size_t size)
{
	unsigned parts;
	void *block;

	if (unlikely(thread_self.nesting))
		return pymalloc.realloc(pymalloc.context, old, size);
	thread_self.nesting = 1;
	parts = memory_sampling_realloc_begin(old, size);
	block = pymalloc.realloc(pymalloc.context, old, size);
	if (unlikely(parts))
		block = end_realloc(domain, parts, old, block, size);
	thread_self.nesting = 0;
	return block;
}

/*
 * What evprof itself allocates is counted down as well, and a point in it is dropped: that changes no probability, as
 * the points of a Poisson process are independent.
 */
static inline __attribute__((always_inline)) void *pymalloc_malloc(unsigned domain, void *context, size_t size)
{
	if (unlikely(size > SMALL_BYTES || size > thread_self.sampling_left))
		return allocate(WIRE_MALLOC, domain, 1, size);
	thread_self.sampling_left -= size;
	return pymalloc.malloc(context, size);
}

#define ALLOCATOR(name, domain)                                                                                        \
	static void *name##_malloc(void *context, size_t size)                                                         \
	{                                                                                                              \
		return pymalloc_malloc(domain, context, size);                                                         \
	}                                                                                                              \
	static void *name##_calloc(void *context, size_t count, size_t size)                                           \
	{                                                                                                              \
		(void)context;                                                                                         \
		return allocate(WIRE_CALLOC, domain, count, size);                                                     \
	}                                                                                                              \
	static void *name##_realloc(void *context, void *old, size_t size)                                             \
	{                                                                                                              \
		(void)context;                                                                                         \
		return pymalloc_realloc(domain, old, size);                                                            \
	}

ALLOCATOR(mem, WIRE_DOMAIN_MEM)
ALLOCATOR(object, WIRE_DOMAIN_OBJ)

bool pymalloc_sampling_is(const struct python_allocator *allocator)
{
	return allocator->malloc == mem_malloc || allocator->malloc == object_malloc;
}

/* The settings may be others than in begin(): those of another recording. */
bool pymalloc_sampling_serves(int domain, const struct python_allocator *present)
{
	const unsigned alone = EVENT_MEM | EVENT_MALLOC | EVENT_SAMPLE | EVENT_CPU;

	return config.memory_interval && (python.monitoring || !(config.events & ~alone)) &&
	       domain != WIRE_DOMAIN_RAW && pymalloc.malloc && present->malloc == pymalloc.malloc &&
	       present->free == pymalloc.free;
}

struct python_allocator pymalloc_sampling_allocator(int domain)
{
	struct python_allocator allocator = pymalloc;

	allocator.malloc = domain == WIRE_DOMAIN_MEM ? mem_malloc : object_malloc;
	allocator.calloc = domain == WIRE_DOMAIN_MEM ? mem_calloc : object_calloc;
	allocator.realloc = domain == WIRE_DOMAIN_MEM ? mem_realloc : object_realloc;
	return allocator;
}

static void *arena_alloc(void *context, size_t size)
{
	void *arena;

	thread_self.nesting++;
	arena = arenas.alloc(context, size);
	thread_self.nesting--;
	return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
	thread_self.nesting++;
	arenas.free(context, arena, size);
	thread_self.nesting--;
}

/* Stays set: it does nothing but say that an allocator runs. */
static void watch_arenas(void)
{
	struct python_arena_allocator allocator;

	if (!python.PyObject_GetArenaAllocator || !python.PyObject_SetArenaAllocator)
		return;
	python.PyObject_GetArenaAllocator(&arenas);
	allocator = arenas;
	allocator.alloc = arena_alloc;
	allocator.free = arena_free;
	python.PyObject_SetArenaAllocator(&allocator);
}

static bool is_pymalloc(void)
{
	const char *name = python._PyMem_GetCurrentAllocatorName ? python._PyMem_GetCurrentAllocatorName() : NULL;

	return !python.free_threaded && name && !strcmp(name, "pymalloc");
}

void pymalloc_sampling_begin(void)
{
	static bool begun;

	if (begun || !config.memory_interval)
		return;
	begun = true;
	watch_arenas();
	if (is_pymalloc())
		python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &pymalloc);
}
