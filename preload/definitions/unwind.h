/*
 * unwind.h - finds the callers of native frames of the calling thread, by its own unwind tables.
 *
 * Called by native_walk.c at any point of the program. Reads only the thread's stack and loaded modules, opens no
 * descriptor, and never waits for a lock that a fork may have left locked.
 */
#ifndef PRELOAD_UNWIND_H
#define PRELOAD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* Loads libunwind. Returns NULL, or what is missing. Once, GIL held. */
const char *unwind_begin(void);

#if defined(__x86_64__)
#define UNWIND_ADDRESS_MASK UINTPTR_MAX
#else
#define UNWIND_ADDRESS_MASK ((UINT64_C(1) << 48) - 1) /* a return address may be signed */
#endif

/* The registers that a step needs. */
struct unwind_place {
	uintptr_t address, stack, frame;
};

/* The readable part of the stack, from the stack pointer up to high. */
struct unwind_bounds {
	uintptr_t high;
	bool guessed; /* it may not be mapped */
	bool whole;   /* it is the thread's own stack, up to its end */
};

/*
 * Where a step had the caller's registers from. With the same words there, and the same frame pointer if by_frame, the
 * step from a place leads to the same caller, as long as no module is unloaded.
 */
struct unwind_source {
	const uintptr_t *address_at; /* NULL: not known */
	const uintptr_t *frame_at;   /* NULL: the caller has our frame pointer */
	bool by_frame;
};

struct unwind_bounds unwind_bounds(uintptr_t stack);

/*
 * Moves place to its caller, at address 0 above the outermost frame of some threads. False: place is the outermost
 * frame, or, with *cut set, its caller cannot be found. Sets *source, if its words are known.
 */
bool unwind_up(struct unwind_place *place, const struct unwind_bounds *bounds, struct unwind_source *source, bool *cut);

/* Whether an address is in evprof's library, in the function that executes bytecode. */
bool unwind_is_own(uintptr_t address);
bool unwind_is_eval(uintptr_t address);

/* A module was unloaded: forgets all rules. */
void unwind_forget(void);

#endif
