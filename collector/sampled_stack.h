/*
 * sampled_stack.h - the stack of a thread that runs on while it is read.
 *
 * The first look decides which function runs, whatever happens meanwhile: to wait for a stack that stands still would
 * favor what stands still. Used by the sampler only.
 */
#ifndef COLLECTOR_SAMPLED_STACK_H
#define COLLECTOR_SAMPLED_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "remote.h"

#define SAMPLED_LINKS 4096

struct sampled_stacks {
	struct remote *remote;
	uint64_t count;
	uint64_t torn; /* of these, such whose innermost frame ended or suspended before those below it were read */
	/* Which frame was last seen below another one; by the other one's address. */
	struct sampled_link {
		struct remote_frame frame, below;
	} links[SAMPLED_LINKS];
};

/*
 * Reads the stack of a thread state, innermost first. base: the outermost frame of the thread's stack before, which is
 * renewed. Returns how many frames, or -1: there is none that can be read.
 */
int sampled_stack(struct sampled_stacks *stacks, uint64_t state, struct remote_frame *base,
		  struct remote_frame frames[REMOTE_FRAMES]);

#endif
