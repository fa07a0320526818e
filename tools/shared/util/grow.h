/*
 * grow.h - arrays that grow with their indices, or one element at a time; and numbers as qsort() compares.
 */
#ifndef SHARED_GROW_H
#define SHARED_GROW_H

#include <stddef.h>
#include <stdint.h>

/*
 * Grows an array to at least `wanted` elements. array is the address of the pointer, which the caller owns and frees.
 * *count is its number of elements, each of size bytes. Returns 0, or -ENOMEM, which leaves everything unchanged.
 */
int grow_zeroed(void *array, uint32_t *count, uint32_t wanted, size_t size);

/* Grows an array as grow_zeroed() does so that it has the element `index`; it at least doubles. Returns as above. */
int grow_for(void *array, uint32_t *count, uint32_t index, size_t size);

/*
 * Makes room for one element after the first `count`; new elements are not initialized. *allocated: elements that there
 * is room for, 0 with NULL; it doubles. Returns as above.
 */
int grow_by_one(void *array, size_t *allocated, size_t count, size_t size);

static inline int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline int compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

#endif
