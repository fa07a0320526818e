/*
 * thin.h - what the trace says about thinned functions (EVPROF_BUDGET): from where to where their events are missing.
 *
 * hooks/budget.c decides, and switches the events. Each thread writes WIRE_THIN or WIRE_THIN_END before its next event,
 * so the events of a thread are on the right side of it. A thread without events in between leaves changes out.
 */
#ifndef PRELOAD_LIFE_THIN_H
#define PRELOAD_LIFE_THIN_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/writer.h"

#define THIN_WORDS_MOST (WIRE_THIN_EVENTS * (WIRE_EXTRA_MAX + 1)) /* that thin_put() writes */

struct thin_set {
	uint32_t ids[WIRE_THIN_SET_MOST]; /* code ids, some with WIRE_THIN_C_CALLS */
	uint32_t count;
};

/*
 * These functions are thinned from here on (kind WIRE_THIN), or were until here (WIRE_THIN_END, with value:
 * wire_thin_value()). cpu_ns: the CPU time of the process. GIL held.
 */
void thin_change(unsigned kind, uint32_t value, uint64_t cpu_ns, const struct thin_set *set);

/* The child of a fork, or another collector: nothing is thinned. */
void thin_forget(void);

/* Whether a thread that begins has to write what is thinned. */
bool thin_any(void);

/* Writes the last change. With room for THIN_WORDS_MOST. Its words are no events: they count in writer->thin_words. */
void thin_put(struct writer *writer);

#endif
