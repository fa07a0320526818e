/*
 * json_memory.h - whether jansson ran out of memory. Its parsing functions do not distinguish that from invalid text;
 * those that build or print objects omit what found no memory. For one thread. Each file that includes it has its own
 * state.
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

/* Precedes the calls to check. */
#define json_memory_begin() (json_memory_ran_out = false, json_set_alloc_funcs(json_memory_allocate, free))

#endif
