/*
 * interpose_malloc.c - the functions of libc that allocate, interposed for EVPROF_EVENTS=malloc, and nothing else.
 *
 * Each does what the next definition does, with the same result and errno. That is the one of the next object in the
 * order of the loader's search: libc's, or that of an allocator that is linked or preloaded after evprof. Where malloc
 * is not recorded, a wrapper is a load, a test and a jump.
 *
 * The wrappers work before any constructor has run, and dlsym() may allocate: so the next definitions are looked up in
 * the loader's symbol tables, which allocates nothing.
 *
 * An allocator may call others of these functions (mmap() for its arenas). What runs below the real function is not
 * recorded. libc calls its own mmap() and brk() directly, so those of its malloc are not seen either. brk() and sbrk()
 * are not interposed: besides allocators, no program of today calls them.
 *
 * A child of vfork() has its parent's memory: what it allocates is in the parent's heap, and is recorded there.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/elf_symbols.h"
#include "base/log_line.h"
#include "hooks/hooks_malloc.h"
#include "start/interposed.h"

/* The sanitizers' own allocators must come first, and run before anything that they have instrumented. */
#ifndef EVPROF_INSTRUMENTED

#define ALLOCATORS(X)                                                                                                  \
	X(calloc, void *, (size_t count, size_t size), (count, size))                                                  \
	X(realloc, void *, (void *old, size_t size), (old, size))                                                      \
	X(reallocarray, void *, (void *old, size_t count, size_t size), (old, count, size))                            \
	X(aligned_alloc, void *, (size_t alignment, size_t size), (alignment, size))                                   \
	X(memalign, void *, (size_t alignment, size_t size), (alignment, size))                                        \
	X(mmap, void *, (void *at, size_t size, int protection, int flags, int fd, off_t offset),                      \
	  (at, size, protection, flags, fd, offset))

/* musl has one width of offsets, and not the oldest functions. */
#ifdef __GLIBC__
#define GLIBC_ALLOCATORS(X)                                                                                            \
	X(valloc, void *, (size_t size), (size))                                                                       \
	X(pvalloc, void *, (size_t size), (size))                                                                      \
	X(mmap64, void *, (void *at, size_t size, int protection, int flags, int fd, off64_t offset),                  \
	  (at, size, protection, flags, fd, offset))
#else
#define GLIBC_ALLOCATORS(X)
#endif

/* These return something else than a block, or are apart. */
#define OTHERS(X)                                                                                                      \
	X(malloc, void *, (size_t size), (size))                                                                       \
	X(free, void, (void *block), (block))                                                                          \
	X(posix_memalign, int, (void **block, size_t alignment, size_t size), (block, alignment, size))                \
	X(munmap, int, (void *at, size_t size), (at, size))                                                            \
	X(remap, void *, (void *old, size_t old_size, size_t size, int flags, void *at),                               \
	  (old, old_size, size, flags, at))                                                                            \
	X(pthread_getattr_np, int, (pthread_t thread, pthread_attr_t * attributes), (thread, attributes))

#define EVERY(X) ALLOCATORS(X) GLIBC_ALLOCATORS(X) OTHERS(X)

/* At first each looks all of them up. */
#define DECLARE_FIRST(name, type, parameters, arguments) static type first_##name parameters;
EVERY(DECLARE_FIRST)

static struct {
#define DECLARE_REAL(name, type, parameters, arguments) type(*name) parameters;
	EVERY(DECLARE_REAL)
} real = {
#define FIRST(name, type, parameters, arguments) .name = first_##name,
    EVERY(FIRST)};

/* Calls the real function; what it calls is not recorded. */
#define BELOW(result, call)                                                                                            \
	do {                                                                                                           \
		thread_self.nesting = 1;                                                                               \
		result = call;                                                                                         \
		thread_self.nesting = 0;                                                                               \
	} while (0)

static void *below_malloc(size_t size)
{
	void *block;

	BELOW(block, real.malloc(size));
	return block;
}

static void below_free(void *block)
{
	thread_self.nesting = 1;
	real.free(block);
	thread_self.nesting = 0;
}

/* For what is not in the sample. glibc calls none of the interposed functions: nothing has to be set around its own. */
static struct {
	void *(*malloc)(size_t size);
	void (*free)(void *block);
} passed = {.malloc = below_malloc, .free = below_free};

static void find_next(void **place, const char *name)
{
	void *found = elf_symbol_after((const void *)find_next, name);

	if (found)
		*place = found;
}

static __attribute__((constructor)) void find_real(void)
{
#define FIND(name, type, parameters, arguments) find_next((void **)&real.name, #name);
	ALLOCATORS(FIND)
	GLIBC_ALLOCATORS(FIND)
	OTHERS(FIND)
	find_next((void **)&real.remap, "mremap");
	if ((const void *)real.malloc == elf_symbol_after((const void *)find_next, "__libc_malloc") &&
	    (const void *)real.free == elf_symbol_after((const void *)find_next, "__libc_free")) {
		passed.malloc = real.malloc;
		passed.free = real.free;
	}
}

/* What no object after evprof defines cannot be called by a program either. */
#define DEFINE_FIRST(name, type, parameters, arguments)                                                                \
	static type first_##name parameters                                                                            \
	{                                                                                                              \
		find_real();                                                                                           \
		if (real.name == first_##name)                                                                         \
			abort_call(type);                                                                              \
		return real.name arguments;                                                                            \
	}
#define abort_call(type) return (errno = ENOMEM, (type)0)
EVERY(DEFINE_FIRST)

/* ---- recorded calls ---------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void *recorded_malloc(size_t size)
{
	void *block = below_malloc(size);

	hooks_malloc_record(WIRE_MALLOC, block, size);
	return block;
}

static __attribute__((noinline)) void *recorded_calloc(size_t count, size_t size)
{
	size_t bytes;
	void *block;

	BELOW(block, real.calloc(count, size));
	hooks_malloc_record(WIRE_CALLOC, block, __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
	return block;
}

/* Recorded before the block is freed: afterwards another thread may get it. */
static __attribute__((noinline)) void recorded_free(void *block)
{
	hooks_malloc_record(WIRE_FREE, block, 0);
	below_free(block);
}

/* A size of 0 frees the block; some allocators return another one then. */
#define RECORD_REALLOC(old, size, call)                                                                                \
	do {                                                                                                           \
		void *made;                                                                                            \
		bool sampled = hooks_malloc_way == HOOKS_MALLOC_SAMPLED && ((size) || !(old));                         \
		unsigned parts = sampled ? memory_sampling_realloc_begin(old, size) : MEMORY_SAMPLING_OLD;             \
                                                                                                                       \
		if (!(size) && (old))                                                                                  \
			hooks_malloc_record(WIRE_FREE, old, 0);                                                        \
		else if ((old) && parts & MEMORY_SAMPLING_OLD)                                                         \
			hooks_malloc_record_begin(old);                                                                \
		BELOW(made, call);                                                                                     \
		if (sampled) {                                                                                         \
			if (unlikely(parts))                                                                           \
				hooks_malloc_record_sampled_realloc(parts, made, size, old);                           \
		} else if ((size) || !(old))                                                                           \
			hooks_malloc_record_any(WIRE_REALLOC, made, size, old);                                        \
		else if (made)                                                                                         \
			hooks_malloc_record(WIRE_MALLOC, made, 0);                                                     \
		return made;                                                                                           \
	} while (0)

static __attribute__((noinline)) void *recorded_realloc(void *old, size_t size)
{
	RECORD_REALLOC(old, size, real.realloc(old, size));
}

/* libc's calls the realloc() of whoever has it. */
static __attribute__((noinline)) void *recorded_reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	RECORD_REALLOC(old, bytes, real.reallocarray(old, count, size));
}

#define RECORD_ALIGNED(name, type, parameters, arguments)                                                              \
	static __attribute__((noinline)) type recorded_##name parameters                                               \
	{                                                                                                              \
		type block;                                                                                            \
                                                                                                                       \
		BELOW(block, real.name arguments);                                                                     \
		hooks_malloc_record(WIRE_MALLOC, block, size);                                                         \
		return block;                                                                                          \
	}

RECORD_ALIGNED(aligned_alloc, void *, (size_t alignment, size_t size), (alignment, size))
RECORD_ALIGNED(memalign, void *, (size_t alignment, size_t size), (alignment, size))
#ifdef __GLIBC__
RECORD_ALIGNED(valloc, void *, (size_t size), (size))
RECORD_ALIGNED(pvalloc, void *, (size_t size), (size))
#endif

static __attribute__((noinline)) int recorded_posix_memalign(void **block, size_t alignment, size_t size)
{
	int error;

	BELOW(error, real.posix_memalign(block, alignment, size));
	hooks_malloc_record(WIRE_MALLOC, error ? NULL : *block, size);
	return error;
}

static void record_mmap(const void *address, size_t size, unsigned value)
{
	hooks_malloc_record_mapping(WIRE_MMAP, address == MAP_FAILED ? NULL : address, size, value);
}

static unsigned mapping_value(int flags)
{
	if (!(flags & MAP_ANONYMOUS))
		return WIRE_MMAP_FILE;
	return flags & MAP_SHARED ? WIRE_MMAP_SHARED : WIRE_MMAP_ANONYMOUS;
}

#define RECORD_MMAP(name, type, parameters, arguments)                                                                 \
	static __attribute__((noinline)) type recorded_##name parameters                                               \
	{                                                                                                              \
		type address;                                                                                          \
                                                                                                                       \
		BELOW(address, real.name arguments);                                                                   \
		record_mmap(address, size, mapping_value(flags));                                                      \
		return address;                                                                                        \
	}

RECORD_MMAP(mmap, void *, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
	    (at, size, protection, flags, fd, offset))
#ifdef __GLIBC__
RECORD_MMAP(mmap64, void *, (void *at, size_t size, int protection, int flags, int fd, off64_t offset),
	    (at, size, protection, flags, fd, offset))
#endif

#define PAGE_BYTES_MIN 4096u		   /* any page begins at a multiple of it */
#define ADDRESSES_MAX ((uintptr_t)1 << 56) /* no program of today has more */

/* Whether the kernel may unmap it: not EINVAL, whatever is mapped. */
static bool is_range(const void *at, size_t size)
{
	return size && (uintptr_t)at % PAGE_BYTES_MIN == 0 && size <= ADDRESSES_MAX &&
	       (uintptr_t)at <= ADDRESSES_MAX - size;
}

/* Recorded before it happens, like a free. One that fails is taken back. */
static __attribute__((noinline)) int recorded_munmap(void *at, size_t size)
{
	bool recorded = is_range(at, size);
	int result;

	if (recorded)
		hooks_malloc_record_mapping(WIRE_MUNMAP, at, size, 0);
	BELOW(result, real.munmap(at, size));
	if (recorded && result < 0)
		record_mmap(at, size, WIRE_MMAP_MOVED);
	return result;
}

/* With an old size of 0 it maps shared memory a second time. */
static __attribute__((noinline)) void *recorded_remap(void *old, size_t old_size, size_t size, int flags, void *at)
{
	bool moves = is_range(old, old_size) && size;
	void *address;

	if (moves)
		hooks_malloc_record_mapping(WIRE_MUNMAP, old, old_size, 0);
	BELOW(address, real.remap(old, old_size, size, flags, at));
	if (!moves)
		record_mmap(address, size, WIRE_MMAP_SHARED);
	else if (address != MAP_FAILED)
		record_mmap(address, size, WIRE_MMAP_MOVED);
	else
		record_mmap(old, old_size, WIRE_MMAP_MOVED);
	return address;
}

/* ---- the wrappers ------------------------------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) bool is_recorded(void)
{
	return unlikely(hooks_malloc_way != HOOKS_MALLOC_OFF) && !thread_self.nesting;
}

#define INTERPOSE(name, type, parameters, arguments)                                                                   \
	PUBLIC JUMPS type name parameters                                                                              \
	{                                                                                                              \
		if (is_recorded())                                                                                     \
			JUMP_TO(recorded_##name arguments);                                                            \
		JUMP_TO(real.name arguments);                                                                          \
	}

/* The two that are called most. */
PUBLIC JUMPS void *malloc(size_t size)
{
	if (is_recorded()) {
		if (hooks_malloc_way == HOOKS_MALLOC_SAMPLED && size <= thread_self.sampling_left) {
			thread_self.sampling_left -= size;
			JUMP_TO(passed.malloc(size));
		}
		JUMP_TO(recorded_malloc(size));
	}
	JUMP_TO(real.malloc(size));
}

PUBLIC JUMPS void free(void *block)
{
	if (is_recorded() && block) {
		if (hooks_malloc_way == HOOKS_MALLOC_SAMPLED && !memory_sampling_may_know(block))
			passed.free(block);
		else
			recorded_free(block);
	} else {
		real.free(block);
	}
}

ALLOCATORS(INTERPOSE)
GLIBC_ALLOCATORS(INTERPOSE)
INTERPOSE(posix_memalign, int, (void **block, size_t alignment, size_t size), (block, alignment, size))
INTERPOSE(munmap, int, (void *at, size_t size), (at, size))

/* The new address is passed with MREMAP_FIXED only; it is in a register in any case. */
PUBLIC void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	va_list list;
	void *at;

	va_start(list, flags);
	at = va_arg(list, void *);
	va_end(list);
	return is_recorded() ? recorded_remap(old, old_size, size, flags, at)
			     : real.remap(old, old_size, size, flags, at);
}

/* It allocates while it holds the lock of the thread's description, for which unwinding would wait (unwind.c). */
PUBLIC int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	int result;

	thread_self.no_native_stack++;
	result = real.pthread_getattr_np(thread, attributes);
	thread_self.no_native_stack--;
	return result;
}

static const char *unseen_reason(void)
{
	const void *first = elf_symbol("malloc", NULL), *own = elf_symbol_within((const void *)find_real, "malloc");

	return first == own ? NULL
			    : "the program has its own malloc(), or another library that comes before libevprof.so";
}
#else
static const char *unseen_reason(void)
{
	return "this build of evprof is one with sanitizers";
}
#endif

void interpose_malloc_begin(void)
{
	const char *reason = unseen_reason();

	config.malloc_unseen = reason && !config.attached;
	if (reason && config.attached) /* only --keep alive wants them then, where they can be had */
		config.events &= ~(unsigned)EVENT_MALLOC;
	else if (reason && (!config.session[0] || config.session_first == getpid()))
		log_line(LOG_WARNING, "%s=malloc: native allocations are not seen: %s", ENV_EVENTS, reason);
}
