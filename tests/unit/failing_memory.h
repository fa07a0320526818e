/*
 * failing_memory.h - malloc() and its like for one test program: counts the blocks that are alive, and has an
 * numbered allocation fail, whoever makes it: evprof, libc or another library. Include it in one file of the program.
 *
 * Not with a sanitizer, which has its own.
 */
#ifndef TESTS_FAILING_MEMORY_H
#define TESTS_FAILING_MEMORY_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static atomic_long memory_blocks; /* alive */
static atomic_long memory_asked;  /* allocations since memory_fail() */
static long memory_first;	  /* which of them fails, from 1; 0: none */
static bool memory_stays;	  /* all after it fail, too */

/* From now on. */
static void memory_fail(long first, bool stays)
{
	memory_first = first;
	memory_stays = stays;
	atomic_store(&memory_asked, 0);
}

static bool memory_fails(void)
{
	long number = atomic_fetch_add(&memory_asked, 1) + 1;

	if (!memory_first || (number != memory_first && !(memory_stays && number > memory_first)))
		return false;
	errno = ENOMEM;
	return true;
}

static void *memory_count(void *block)
{
	atomic_fetch_add(&memory_blocks, block != NULL);
	return block;
}

void *malloc(size_t size)
{
	return memory_fails() ? NULL : memory_count(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return memory_fails() ? NULL : memory_count(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
	if (!block)
		return malloc(size);
	if (!size) {
		atomic_fetch_sub(&memory_blocks, 1);
		return __libc_realloc(block, 0);
	}
	return memory_fails() ? NULL : __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size)
{
	return memory_fails() ? NULL : memory_count(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	*block = memalign(alignment, size);
	return *block ? 0 : ENOMEM;
}

void free(void *block)
{
	atomic_fetch_sub(&memory_blocks, block != NULL);
	__libc_free(block);
}

#endif
