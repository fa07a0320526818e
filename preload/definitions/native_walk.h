/*
 * native_walk.h - walks the native stack of the calling thread, as far as it is not that of an earlier walk of it.
 *
 * A frame with the same stack pointer and return address as one of that walk has the same callers if the words from
 * which these were found have not changed: two loads for each further frame, in place of a search for its rule and for
 * its id. So a loop that allocates pays for the frames that change. The last few walks from about each depth are kept:
 * the places of a loop differ in their depth or in their callers.
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

struct native_walk {
	uint32_t count;
	uintptr_t high; /* the end of the stack that at[] is of */
	bool cut;	/* there are more frames, which were not found or did not fit */
	bool reusable;
	struct native_walk_frame at[NATIVE_WALK_MAX]; /* from the outermost */
};

#define NATIVE_WALK_WAYS 4

/*
 * The last walks of a thread from about one depth. Zero at first. native.c forgets them when an address may be that of
 * other code, or an id of another frame.
 */
struct native_walks {
	unsigned long loads;
	uint32_t ids_forgotten;
	unsigned last; /* the walk that was used last; of this and next the remainder counts */
	unsigned next; /* the one that is given up next */
	struct native_walk ways[NATIVE_WALK_WAYS];
};

/*
 * Walks from the caller's caller outwards, up to the function that executes bytecode. Returns the walk that now is of
 * this stack. *known: the number of its frames that are as they were, and still have their ids.
 */
struct native_walk *native_walk(struct native_walks *walks, uint32_t *known);

#endif
