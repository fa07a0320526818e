/*
 * least_memory.c - the yardstick of the bench for memory: the least that a recorder of allocations with a time must do.
 *
 * Owns three libraries in build/bench, which are preloaded. What each stands before is in its flags: the allocators of
 * Python's three domains (-DPYTHON_ALLOCATORS), malloc() and its family (-DMALLOC). For each allocation and each free
 * it reads the time-stamp counter and stores two words, the address in the second one, in memory of the thread that
 * nobody reads. It knows no stack, reports nothing and would lose everything but the last 4 MiB: what evprof adds to it
 * is the price of stacks, of shared memory, and of its collector. With -DEMPTY it only calls what it stands before, and
 * notes which calls serve others.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "least_counter.h"

#define WORDS ((uint64_t)1 << 19)

int least_memory_installed(void);

/* Notes an allocation, or a free: size 0. Unused without a flag, as a linter compiles it. */
static inline void put(const void *block, size_t size) __attribute__((unused));

#ifdef EMPTY

static inline void put(const void *block, size_t size)
{
	(void)block;
	(void)size;
}

#else

static __thread struct {
	uint64_t *words; /* NULL: none yet */
	uint64_t count, last;
	_Atomic uint64_t published;
} ring __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) int begin(void)
{
	void *words = mmap(NULL, WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		return 0;
	ring.words = words;
	return 1;
}

static inline void put(const void *block, size_t size)
{
	uint64_t now = counter(), at = ring.count & (WORDS - 1);

	if (__builtin_expect(!ring.words, 0) && !begin())
		return;
	ring.words[at] = (now - ring.last) << 32 | (uint32_t)size;
	ring.words[at + 1] = (uintptr_t)block;
	ring.last = now;
	ring.count += 2;
	atomic_store_explicit(&ring.published, ring.count, memory_order_release);
}

#endif

#ifdef MALLOC

/* What glibc has beneath these names. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

void *malloc(size_t size)
{
	void *block = __libc_malloc(size);

	put(block, size);
	return block;
}

void *calloc(size_t count, size_t size)
{
	void *block = __libc_calloc(count, size);

	put(block, count * size);
	return block;
}

void *realloc(void *old, size_t size)
{
	void *block = __libc_realloc(old, size);

	put(block, size);
	return block;
}

void free(void *block)
{
	if (block)
		put(block, 0);
	__libc_free(block);
}

#endif

#ifdef PYTHON_ALLOCATORS

struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *old, size_t size);
	void (*free)(void *context, void *block);
};

static struct allocator under[3]; /* by PyMemAllocatorDomain */
static int installed;
/* pymalloc takes large blocks from the raw domain. */
static __thread int inside __attribute__((tls_model("initial-exec")));

/* Whether the program asked, and not an allocator. */
static inline int enter(void)
{
	int outer = !inside;

	inside = 1;
	return outer;
}

static inline void *leave(int outer, void *block, size_t size)
{
	if (outer) {
		put(block, size);
		inside = 0;
	}
	return block;
}

static void *least_malloc(void *context, size_t size)
{
	const struct allocator *next = context;
	int outer = enter();

	return leave(outer, next->malloc(next->context, size), size);
}

static void *least_calloc(void *context, size_t count, size_t size)
{
	const struct allocator *next = context;
	int outer = enter();

	return leave(outer, next->calloc(next->context, count, size), count * size);
}

static void *least_realloc(void *context, void *old, size_t size)
{
	const struct allocator *next = context;
	int outer = enter();

	return leave(outer, next->realloc(next->context, old, size), size);
}

static void least_free(void *context, void *block)
{
	const struct allocator *next = context;
	int outer = enter();

	if (outer && block)
		put(block, 0);
	next->free(next->context, block);
	if (outer)
		inside = 0;
}

/* What the harness asks by ctypes before it believes a figure. */
int least_memory_installed(void)
{
	return installed;
}

__attribute__((constructor)) static void least_memory_init(void)
{
	void (*get_allocator)(int domain, struct allocator *allocator);
	void (*set_allocator)(int domain, struct allocator *allocator);

	*(void **)&get_allocator = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
	*(void **)&set_allocator = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
	if (!get_allocator || !set_allocator)
		return;
	for (int domain = 0; domain < 3; domain++) {
		struct allocator mine = {&under[domain], least_malloc, least_calloc, least_realloc, least_free};

		get_allocator(domain, &under[domain]);
		set_allocator(domain, &mine);
	}
	installed = 1;
}

#else

int least_memory_installed(void)
{
	return 1; /* the linker has seen to it */
}

#endif
