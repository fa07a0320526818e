/*
 * grow.h - arrays that grow with the numbers that come, and in which what nobody has set yet is zero.
 */
#ifndef EVPROF_TOOLS_UTIL_GROW_H
#define EVPROF_TOOLS_UTIL_GROW_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes an array at least that long. array: the address of the pointer to it, which the caller owns and frees. *count:
 * how many elements of size bytes it has. Returns 0, or -ENOMEM: all is as it was then.
 */
int grow_zeroed(void *array, uint32_t *count, uint32_t wanted, size_t size);

#endif
