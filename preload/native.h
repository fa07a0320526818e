/*
 * native.h - the native stacks of allocations (EVPROF_NATIVE=1): which C functions ran between Python's innermost
 * function and the allocator. Called by hooks_memory.c and by those who learn that modules come and go.
 */
#ifndef PRELOAD_NATIVE_H
#define PRELOAD_NATIVE_H

#include <stdatomic.h>
#include <stdint.h>

#include "evprof/wire.h"

#define NATIVE_FRAMES_MAX 64 /* of one stack; those further out are left out */
#define NATIVE_BITS 19
#define NATIVE_PLACES ((size_t)1 << NATIVE_BITS)
#define NATIVE_FULL                                                                                                    \
	(NATIVE_PLACES / 4 * 3) /* different frames of a process; stacks with others are not recorded then */
#define NATIVE_MODULES 1024

/*
 * A frame that was told: a return address and the frame of its caller. Once it is there it does not change, but for
 * being taken away with all others.
 */
struct native_frame {
	_Atomic uint64_t address; /* 0: free */
	_Atomic uint64_t link;	  /* the caller's id << 32 | its own id */
};

struct native_module {
	uintptr_t start, end;
	uint64_t key; /* of path and build id */
};

/* What was told of this process image (process.h). */
struct native {
	uint32_t count;	      /* of frames in the table */
	uint32_t last_frame;  /* the ids given last */
	uint32_t last_module; /* ... */
	uint32_t module_count;
	_Atomic uint32_t full; /* 1: said */

	struct native_module modules[NATIVE_MODULES];
	struct native_frame frames[NATIVE_PLACES];
};

/*
 * Where it is asked for and can be; else config.native is false from here on, with a line. Once, GIL held, before
 * joining.
 */
void native_begin(void);

/* The id of the calling thread's stack; 0: there is none, or it cannot be told. May write definitions; keeps errno. */
uint32_t native_stack(void);

/* A library is about to be loaded. It may get the addresses of one that is no more. */
void native_library_comes(void);

/* All ids are to be given anew. The process's lock is held. */
void native_forget(void);

#endif
