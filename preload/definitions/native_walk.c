/* native_walk.c - see native_walk.h. */
#include "definitions/native_walk.h"

#include <string.h>

#include "evprof/invariant.h"
#include "ring/writer.h"

/*
 * The outer end is anywhere in the function that executes bytecode: that address is no part of the stack. All further
 * in is as it was.
 */
static bool takes_other_end(struct native_walk *walk, struct native_walk_frame *frame, uintptr_t address)
{
	if (frame != walk->at || !unwind_is_eval(frame->place.address) || !unwind_is_eval(address))
		return false;
	frame->place.address = address;
	return true;
}

/* Whether the frames further out than at[i] are as they were. All their words are further up in the thread's stack. */
static bool is_unchanged(struct native_walk *walk, uint32_t i)
{
	for (struct native_walk_frame *inner = &walk->at[i]; inner != walk->at; inner--) {
		struct native_walk_frame *outer = inner - 1;
		uintptr_t address = *inner->source.address_at & UNWIND_ADDRESS_MASK;

		if (unlikely(address != outer->place.address) && !takes_other_end(walk, outer, address))
			return false;
		if (outer->needs_frame && inner->source.frame_at && *inner->source.frame_at != outer->place.frame)
			return false;
	}
	return true;
}

/* Whether the frame is at this place: what its caller is found from is equal, but for the words on the stack. */
static bool is_at(const struct native_walk_frame *frame, const struct unwind_place *place)
{
	return frame->place.stack == place->stack && frame->place.address == place->address &&
	       (!frame->needs_frame || frame->place.frame == place->frame);
}

/*
 * Whether the walk has come to a frame of the last one, with the same callers. Lowers *known, the number of frames that
 * may be as they were, to those from this place outwards. shown: frames that were found further in.
 */
static bool meets_last(struct native_walk *walk, uint32_t *known, const struct unwind_place *place, unsigned shown)
{
	const struct native_walk_frame *frame;

	while (*known && walk->at[*known - 1].place.stack < place->stack)
		--*known;
	if (!*known)
		return false;
	frame = &walk->at[*known - 1];
	if (!is_at(frame, place))
		return false;
	if (frame->shown + shown <= NATIVE_FRAMES_MAX && is_unchanged(walk, *known - 1))
		return true;
	*known = 0;
	return false;
}

/* Puts the new frames behind the known ones, and derives what depends on their callers. */
static void join(struct native_walk *walk, uint32_t known, uint32_t next)
{
	walk->count = known + NATIVE_WALK_MAX - next;
	memmove(&walk->at[known], &walk->at[next], (NATIVE_WALK_MAX - next) * sizeof(walk->at[0]));
	for (uint32_t i = known; i < walk->count; i++) {
		struct native_walk_frame *frame = &walk->at[i];
		const struct native_walk_frame *outer = i ? frame - 1 : NULL;

		frame->shown = (uint16_t)((outer ? outer->shown : 0) + !frame->hidden);
		frame->needs_frame = frame->source.by_frame || (!frame->source.frame_at && outer && outer->needs_frame);
		walk->reusable &= !outer || frame->source.address_at;
	}
}

/* Walks until the last walk is met. Returns the number of its frames; new ones are at the end of at[], from *next. */
static uint32_t walk_up(struct native_walk *walk, struct unwind_place place, const struct unwind_bounds *bounds,
			uint32_t known, uint32_t *next)
{
	unsigned shown = 0;

	while (!meets_last(walk, &known, &place, shown)) {
		bool last = !place.address || unwind_is_eval(place.address);
		bool hidden = last || unwind_is_own(place.address);
		struct native_walk_frame *frame;

		shown += !hidden;
		walk->cut |= shown > NATIVE_FRAMES_MAX || !*next;
		if (walk->cut)
			return 0;
		if (--*next < known)
			known = 0;
		frame = &walk->at[*next];
		*frame = (struct native_walk_frame){.place = place, .hidden = hidden};
		if (last || !unwind_up(&place, bounds, &frame->source, &walk->cut))
			return 0;
	}
	return known;
}

/* Whether a walk that knows nothing finds the same frames. DEBUG builds only. */
static bool is_as_walked_anew(const struct native_walk *walk, struct unwind_place place,
			      const struct unwind_bounds *bounds)
{
	struct native_walk anew = {.reusable = true};
	uint32_t next = NATIVE_WALK_MAX;
	bool same;

	walk_up(&anew, place, bounds, 0, &next);
	join(&anew, 0, next);
	same = anew.cut == walk->cut && anew.count == walk->count;
	for (uint32_t i = 0; same && i < walk->count; i++)
		same = anew.at[i].place.address == walk->at[i].place.address &&
		       anew.at[i].place.stack == walk->at[i].place.stack && anew.at[i].hidden == walk->at[i].hidden &&
		       anew.at[i].shown == walk->at[i].shown && anew.at[i].needs_frame == walk->at[i].needs_frame;
	return same;
}

/* Whether the whole walk is as it was. */
static bool is_whole(struct native_walk *walk, const struct unwind_place *place, const struct unwind_bounds *bounds)
{
	return walk->reusable && walk->count && walk->high == bounds->high &&
	       is_at(&walk->at[walk->count - 1], place) && is_unchanged(walk, walk->count - 1);
}

struct native_walk *__attribute__((noinline)) native_walk(struct native_walks *walks, uint32_t *known)
{
	struct unwind_place place = {.address = (uintptr_t)__builtin_return_address(0) & UNWIND_ADDRESS_MASK,
				     .stack = (uintptr_t)__builtin_dwarf_cfa(),
				     .frame = *(const uintptr_t *)__builtin_frame_address(0)};
	struct unwind_bounds bounds = unwind_bounds(place.stack);
	struct native_walk *walk;
	uint32_t next = NATIVE_WALK_MAX;

	for (unsigned i = 0; bounds.whole && i < NATIVE_WALK_WAYS; i++) {
		walk = &walks->ways[(walks->last + i) % NATIVE_WALK_WAYS];
		if (!is_whole(walk, &place, &bounds))
			continue;
		invariant(is_as_walked_anew(walk, place, &bounds));
		walks->last += i;
		*known = walk->count;
		return walk;
	}
	walks->last = walks->next++;
	walk = &walks->ways[walks->last % NATIVE_WALK_WAYS];
	*known = walk->reusable && bounds.whole && walk->high == bounds.high ? walk->count : 0;
	walk->cut = false;
	walk->reusable = bounds.whole;
	walk->high = bounds.high;
	*known = walk_up(walk, place, &bounds, *known, &next);
	if (next != NATIVE_WALK_MAX || *known != walk->count)
		join(walk, *known, next);
	walk->reusable &= !walk->cut;
	invariant(is_as_walked_anew(walk, place, &bounds));
	return walk;
}
