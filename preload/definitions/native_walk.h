/*
 * native_walk.h - walks the native stack of the calling thread, as far as it is not that of the thread's last walk.
 *
 * A frame with the same stack pointer and return address as one of the last walk has the same callers if the words from
 * which these were found have not changed: two loads for each further frame, in place of a search for its rule and for
 * its id. So a loop that allocates pays for the frames that change.
 *
 * invariant: each frame's caller was found by its words (struct unwind_source), or the walk is not used again
 */
#ifndef PRELOAD_NATIVE_WALK_H
#define PRELOAD_NATIVE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "definitions/unwind.h"

#define NATIVE_FRAMES_MAX 64			 /* of one stack; frames further out are left out */
#define NATIVE_WALK_MAX (NATIVE_FRAMES_MAX + 32) /* with those of evprof */

struct native_walk_frame {
	struct unwind_place place;
	struct unwind_source source; /* of its caller */
	uint32_t id;		     /* native.c: of the stack from here outwards */
	uint16_t shown;		     /* number of shown frames from here outwards */
	bool hidden;		     /* of evprof, or beyond the outer end */
	bool needs_frame;	     /* the frame pointer leads to a caller */
};

/* Zero at first. native.c forgets it when an address may be that of other code, or an id of another frame. */
struct native_walk {
	unsigned long loads;
	uint32_t ids_forgotten;
	uint32_t count;
	uintptr_t high; /* the end of the stack that at[] is of */
	bool cut;	/* there are more frames, which were not found or did not fit */
	bool reusable;
	struct native_walk_frame at[NATIVE_WALK_MAX]; /* from the outermost */
};

/*
 * Walks from the caller's caller outwards, up to the function that executes bytecode. Returns the number of frames that
 * are as in the last walk, and still have their ids.
 */
uint32_t native_walk(struct native_walk *walk);

#endif
