/*
 * sampled_stack.h - the stack of a thread that runs while it is read.
 *
 * The first read decides which function is innermost, whatever changes meanwhile. Waiting for a stable stack would
 * favor stacks that do not change. Used by the sampler only.
 */
#ifndef COLLECTOR_SAMPLED_STACK_H
#define COLLECTOR_SAMPLED_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/remote.h"

#define SAMPLED_LINKS 4096

struct sampled_stacks {
	struct remote *remote;
	uint64_t torn; /* stacks whose innermost frame ended or suspended before the frames below were read */
	bool late;     /* the last stack's callers may have been read after its innermost function had returned */
	/* The frame that was last seen below another one, by the address of that one. */
	struct sampled_link {
		struct remote_frame frame, below;
	} links[SAMPLED_LINKS];
};

/*
 * Reads the stack of a thread state, innermost first. base: the outermost frame of the thread's previous stack;
 * updated. Returns the number of frames; -1: no stack can be read.
 */
int sampled_stack(struct sampled_stacks *stacks, uint64_t state, struct remote_frame *base,
		  struct remote_frame frames[REMOTE_FRAMES]);

#endif
