/*
 * native.h - native stacks of allocations (EVPROF_NATIVE=1): the native frames between Python's innermost function and
 * the allocator. Called by hooks_memory.c and by code that learns of loaded and unloaded modules.
 */
#ifndef PRELOAD_NATIVE_H
#define PRELOAD_NATIVE_H

#include <stdint.h>

/*
 * Prepares recording of native stacks if it is requested and possible. Otherwise a line reports it, and
 * config.native_stacks is false from here on. Once, GIL held, before joining.
 */
void native_stacks_begin(void);

/*
 * The id of the calling thread's native stack; 0: none, or it could not be defined. May write definitions; keeps errno.
 */
uint32_t native_stack(void);

/* A library is about to be loaded. It may get the addresses of an unloaded one. */
void native_stacks_library_loaded(void);

#endif
