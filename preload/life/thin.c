/* thin.c - see thin.h. */
#include "life/thin.h"

#include <stdatomic.h>

#include "ring/process.h"
#include "ring/room.h"

struct change {
	uint32_t count;
	struct thin_event {
		uint32_t head;
		uint64_t extra[WIRE_EXTRA_MAX];
	} events[WIRE_THIN_EVENTS];
};

/*
 * Threads read the last change without a lock. Two changes are some ms apart, so a slot is not written again while
 * somebody reads it; if it were, the reader would write the ids of two changes, all of which exist.
 */
#define CHANGES 8
static struct change changes[CHANGES];
static unsigned next;
static _Atomic(const struct change *) last; /* NULL: nothing was thinned yet */

void thin_change(unsigned kind, uint32_t value, uint64_t cpu_ns, const struct thin_set *set)
{
	struct change *change = &changes[next++ % CHANGES];
	uint32_t at = 0;

	change->count = 0;
	do {
		struct thin_event *event = &change->events[change->count++];

		event->head = wire_thin_event(kind, value, cpu_ns, set->ids, set->count, &at, event->extra);
	} while (at < set->count);
	atomic_store_explicit(&last, change, memory_order_release);
	process_expect_thin();
}

void thin_forget(void)
{
	atomic_store_explicit(&last, NULL, memory_order_relaxed);
}

bool thin_any(void)
{
	return atomic_load_explicit(&last, memory_order_relaxed) != NULL;
}

void thin_put(struct writer *writer)
{
	const struct change *change = atomic_load_explicit(&last, memory_order_acquire);
	uint64_t begin = writer->head;

	for (uint32_t i = 0; change && i < change->count; i++)
		writer_put_words(writer, change->events[i].head, change->events[i].extra);
	__atomic_store_n(&writer->thin_words, writer->thin_words + writer->head - begin, __ATOMIC_RELAXED);
}
