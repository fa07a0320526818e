/*
 * thinned_set.h - which functions are thinned within a budget (budget.h), until when each stays so, and which were
 * before the last burst. GIL held.
 */
#ifndef PRELOAD_HOOKS_THINNED_SET_H
#define PRELOAD_HOOKS_THINNED_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "definitions/definitions.h"
#include "life/thin.h"

/* What is thinned, and what was until thinned_set_end(). */
const struct thin_set *thinned_set(void);
const struct thin_set *thinned_set_before(void);

bool thinned_set_is_full(void);
enum thinned thinned_set_of(uint32_t id);
bool thinned_set_has_exceptions(void);

/*
 * Thins a function, or exceptions. until_ns: the CPU time until which that stays so after a burst. False: it is thinned
 * already, or the set is full.
 */
bool thinned_set_take(uint32_t id, enum thinned thinned, uint64_t until_ns);
bool thinned_set_take_exceptions(uint64_t until_ns);

/*
 * After a burst: takes what was thinned before it, and was called too often not long ago. A burst shows one phase of
 * the program, and the next phase may be one that was there before. Returns how many are taken; the rest of the set is
 * for other phases.
 */
uint32_t thinned_set_take_before(uint64_t now_ns);

/* Nothing is thinned any more. Of what was, thinned_set_before() has what it was, or nothing. */
void thinned_set_end(void);
void thinned_set_forget(void);

#endif
