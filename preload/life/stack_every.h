/*
 * stack_every.h - how often a thread writes its whole stack, for readers that start in the middle.
 *
 * The interval grows with the depth: deep recursion spends no larger part of the time on stacks than a shallow stack
 * does (docs/design.md, Windows). A trace that keeps its last stretch (EVPROF_KEEP) keeps each thread's events from a
 * stack before the stretch on, so there it is shorter: at most a thousandth of the words are stacks.
 */
#ifndef PRELOAD_STACK_EVERY_H
#define PRELOAD_STACK_EVERY_H

#include <stdint.h>

#include "base/config.h"

/* In words, from a stack of that many frames to the next. */
static inline uint64_t stack_every(uint64_t frames)
{
	bool kept = config.keep.ns || config.keep.bytes;
	uint64_t least = UINT64_C(1) << (kept ? 17 : 20), words = frames << (kept ? 10 : 12);

	return words > least ? words : least;
}

#endif
