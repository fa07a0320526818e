/* mallocs_next.c - an allocator that may be called anywhere, in signal handlers too. It counts its calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES ((size_t)512 << 30) /* none comes back, and a slow build has many more signals */

static _Atomic uintptr_t place, end;

static void *take(size_t alignment, size_t size)
{
	uintptr_t none = 0, begin;

	if (!place) {
		char *memory =
		    mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory == MAP_FAILED)
			return NULL;
		if (atomic_compare_exchange_strong(&place, &none, (uintptr_t)memory))
			end = (uintptr_t)memory + BYTES;
	}
	if (size > (size_t)16 << 30) {
		errno = ENOMEM;
		return NULL;
	}
	begin = atomic_fetch_add(&place, (size + alignment + 31) & ~(size_t)15) + 16;
	begin = (begin + alignment - 1) & ~(uintptr_t)(alignment - 1);
	((size_t *)begin)[-1] = size;
	return (void *)begin;
}

void *malloc(size_t size)
{
	return take(16, size);
}

void free(void *block)
{
	/* The pages of a large block go back, so that a storm of them takes no memory. */
	if (block && ((size_t *)block)[-1] > 65536)
		madvise((void *)(((uintptr_t)block + 4095) & ~(uintptr_t)4095), ((size_t *)block)[-1] - 8192,
			MADV_DONTNEED);
}

void *calloc(size_t count, size_t size)
{
	return take(16, count * size);
}

void *realloc(void *old, size_t size)
{
	void *block = take(16, size);
	size_t before = old ? ((size_t *)old)[-1] : 0;

	if (block && old)
		memcpy(block, old, before < size ? before : size);
	return block;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	*block = take(alignment, size);
	return *block ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return take(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
	return take(alignment, size);
}

size_t malloc_usable_size(void *block)
{
	return block ? ((size_t *)block)[-1] : 0;
}

void *valloc(size_t size)
{
	return take(4096, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	return realloc(old, count * size);
}
