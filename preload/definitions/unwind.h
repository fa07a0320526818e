/*
 * unwind.h - the return addresses on the native stack of the calling thread, found by its own unwind tables.
 *
 * Called by native.c at any point of the program. Reads only the thread's stack and loaded modules, opens no
 * descriptor, and never waits for a lock that a fork may have left locked.
 */
#ifndef PRELOAD_UNWIND_H
#define PRELOAD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* Loads libunwind. Returns NULL, or what is missing. Once, GIL held. */
const char *unwind_begin(void);

/*
 * Stores the return addresses from the caller's caller outwards, at most `most`. Frames of evprof's library are left
 * out; the walk ends before the function that executes bytecode. *cut: there are more frames, which were not found or
 * did not fit. Returns the number stored.
 */
unsigned unwind_stack(uintptr_t *addresses, unsigned most, bool *cut);

/* A module was unloaded: forgets all rules. */
void unwind_forget(void);

#endif
