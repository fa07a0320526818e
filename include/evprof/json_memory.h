/*
 * json_memory.h - whether jansson ran out of memory. Its functions that parse do not distinguish that from bad text;
 * those that build or print objects leave out what finds no memory. For one thread; each file that includes it has its
 * own.
 */
#ifndef EVPROF_JSON_MEMORY_H
#define EVPROF_JSON_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

static bool json_memory_ran_out; /* since json_memory_begin() */

static inline void *json_memory_allocate(size_t bytes)
{
	void *memory = malloc(bytes);

	json_memory_ran_out |= !memory;
	return memory;
}

/* Before the calls in question. */
#define json_memory_begin() (json_memory_ran_out = false, json_set_alloc_funcs(json_memory_allocate, free))

#endif
