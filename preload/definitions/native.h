/*
 * native.h - native stacks of allocations (EVPROF_NATIVE=1): the native frames between Python's innermost function and
 * the allocator. Called by hooks_memory.c and by code that learns of loaded and unloaded modules.
 */
#ifndef PRELOAD_NATIVE_H
#define PRELOAD_NATIVE_H

#include <stdatomic.h>
#include <stdint.h>

#include "evprof/wire.h"

#define NATIVE_FRAMES_MAX 64 /* of one stack; frames further out are left out */
#define NATIVE_BITS 19
#define NATIVE_PLACES ((size_t)1 << NATIVE_BITS)
#define NATIVE_FULL                                                                                                    \
	(NATIVE_PLACES / 4 * 3) /* different frames of a process; stacks with further ones are not recorded */
#define NATIVE_MODULES 1024

/* A defined frame: a return address and the frame of its caller. It does not change until all frames are removed. */
struct native_frame {
	_Atomic uint64_t address; /* 0: free */
	_Atomic uint64_t link;	  /* the caller's id << 32 | its own id */
};

struct native_module {
	uintptr_t start, end;
	uint64_t key; /* of path and build id */
};

/* Definitions written for this process image (process.h). */
struct native {
	uint32_t count;	      /* of frames in the table */
	uint32_t last_frame;  /* the last ids assigned */
	uint32_t last_module; /* ... */
	uint32_t module_count;
	_Atomic uint32_t full; /* 1: reported */

	struct native_module modules[NATIVE_MODULES];
	struct native_frame frames[NATIVE_PLACES];
};

/*
 * Prepares recording of native stacks if it is requested and possible; otherwise config.native is false from here on,
 * with a line. Once, GIL held, before joining.
 */
void native_begin(void);

/*
 * The id of the calling thread's native stack; 0: none, or it could not be defined. May write definitions; keeps errno.
 */
uint32_t native_stack(void);

/* A library is about to be loaded. It may get the addresses of an unloaded one. */
void native_library_comes(void);

/* Forgets all ids, which are then assigned anew. The process's lock is held. */
void native_forget(void);

#endif
