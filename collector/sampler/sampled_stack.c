/*
 * sampled_stack.c - see sampled_stack.h. Called by the sampler.
 *
 * A frame that has returned or suspended no longer leads to the frame below: a suspended generator has none, and the
 * memory of a returned frame is reused. A stack may be cut there: it is torn. A stack that ends at the thread's
 * outermost frame is whole. The frames below the innermost one of a torn stack are, in order of preference:
 *
 *   those of another read that has the same innermost frame somewhere
 *   those that were below it in an earlier sample, where another read has one of these
 *   those below another frame of the same function in another read
 *   all of another read
 */
#include "sampler/sampled_stack.h"

#include <string.h>

#include "evprof/wire.h"

#define LOOKS 6
#define DEPTH 16 /* depth to which links are kept and followed */

static struct remote_frame others[REMOTE_FRAMES];

static bool same_frame(const struct remote_frame *a, const struct remote_frame *b)
{
	return a->frame == b->frame && a->code == b->code;
}

static int read_stack(struct sampled_stacks *stacks, uint64_t state, struct remote_frame frames[REMOTE_FRAMES])
{
	remote_refresh(stacks->remote);
	return remote_stack(stacks->remote, state, frames);
}

/* A generator has been resumed by a frame, so a stack that ends with one is cut. */
static bool is_generator(struct sampled_stacks *stacks, const struct remote_frame *frame)
{
	struct remote_code code;

	return !remote_code(stacks->remote, frame->code, &code) || code.flags & WIRE_GENERATOR_CO_FLAGS;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static struct sampled_link *link_of(struct sampled_stacks *stacks, const struct remote_frame *frame)
{
	return &stacks->links[(frame->frame * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (SAMPLED_LINKS - 1)];
}

static void keep_links(struct sampled_stacks *stacks, const struct remote_frame *frames, int count)
{
	for (int i = 0; i + 1 < count && i < DEPTH; i++)
		*link_of(stacks, &frames[i]) = (struct sampled_link){frames[i], frames[i + 1]};
}

static int find_frame(const struct remote_frame *frame, const struct remote_frame *stack, int count)
{
	for (int i = 0; i < count; i++)
		if (same_frame(&stack[i], frame))
			return i;
	return -1;
}

static int find_function(const struct remote_frame *frame, const struct remote_frame *stack, int count)
{
	for (int i = 0; i < count; i++)
		if (stack[i].code == frame->code)
			return i;
	return -1;
}

/*
 * Puts the frames of the other read, beginning with index from, below the first `above` frames. Returns the number of
 * frames then.
 */
static int append_below(struct remote_frame *frames, int above, int from, int count)
{
	if (above + count - from > REMOTE_FRAMES)
		return -1;
	memcpy(&frames[above], &others[from], (size_t)(count - from) * sizeof(*frames));
	return above + count - from;
}

static int follow_links(struct sampled_stacks *stacks, struct remote_frame *frames, int count)
{
	for (int above = 1; above < DEPTH; above++) {
		const struct sampled_link *link = link_of(stacks, &frames[above - 1]);
		int from;

		if (!same_frame(&link->frame, &frames[above - 1]))
			return -1;
		from = find_frame(&link->below, others, count);
		if (from >= 0)
			return append_below(frames, above, from, count);
		frames[above] = link->below;
	}
	return -1;
}

/* ---- torn stacks ------------------------------------------------------------------------------------------------- */

static bool reaches_base(const struct remote_frame *base, const struct remote_frame *stack, int count)
{
	return count > 0 && same_frame(&stack[count - 1], base);
}

/* Combines the stack with the other read, which is whole. */
static int rebuild_stack(struct sampled_stacks *stacks, struct remote_frame *frames, int count)
{
	int all = follow_links(stacks, frames, count);

	if (all < 0)
		all = append_below(frames, 1, find_function(&frames[0], others, count) + 1, count);
	return all;
}

/* Repairs a torn stack. frames: of the first read, which does not reach the base. */
static int repair_stack(struct sampled_stacks *stacks, uint64_t state, struct remote_frame *base,
			struct remote_frame frames[REMOTE_FRAMES], int count)
{
	struct remote_frame outermost = frames[count - 1];
	int last = 0, agreeing = 0;

	for (int i = 0; i < LOOKS || (!last && i < 2 * LOOKS); i++) {
		int other = read_stack(stacks, state, others), from;

		if (other > 0 && same_frame(&others[other - 1], &outermost))
			agreeing++;
		last = reaches_base(base, others, other) ? other : 0;
		from = last ? find_frame(&frames[0], others, last) : -1;
		if (from >= 0)
			return append_below(frames, 1, from + 1, last);
	}
	/* Most reads agree on another outermost frame: Python was entered anew. */
	if (!last && agreeing > LOOKS / 2 && !is_generator(stacks, &outermost)) {
		*base = outermost;
		return count;
	}
	return last ? rebuild_stack(stacks, frames, last) : -1;
}

/*
 * Whether the innermost function has ended since its frame was found, or been called again. Its frame may be another
 * function's by now.
 */
static bool has_moved(struct sampled_stacks *stacks, uint64_t state, const struct remote_frame *frames)
{
	uint64_t first;

	remote_refresh(stacks->remote);
	return !remote_first_frame(stacks->remote, state, &first) || first != frames[0].frame ||
	       !remote_same_frame(stacks->remote, &frames[0], false) ||
	       !remote_same_frame(stacks->remote, &frames[1], true);
}

int sampled_stack(struct sampled_stacks *stacks, uint64_t state, struct remote_frame *base,
		  struct remote_frame frames[REMOTE_FRAMES])
{
	int count = read_stack(stacks, state, frames);
	bool torn;

	for (int i = 0; i < LOOKS && count < 0; i++)
		count = read_stack(stacks, state, frames);
	torn = count > 0 && !reaches_base(base, frames, count);
	stacks->late = torn || (count > 1 && has_moved(stacks, state, frames));
	if (torn) {
		stacks->torn++;
		count = repair_stack(stacks, state, base, frames, count);
	}
	if (count > 0)
		keep_links(stacks, frames, count);
	return count;
}
