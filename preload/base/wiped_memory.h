/* wiped_memory.h - memory that the kernel clears in the child of a fork, however the child is created. */
#ifndef PRELOAD_WIPED_MEMORY_H
#define PRELOAD_WIPED_MEMORY_H

#include <stddef.h>

/* Zeroed, and never freed. NULL: there is none; errno says why. */
void *wiped_memory_new(size_t bytes);

#endif
