/*
 * writer.h - how events get into the ring of the calling thread: the fast path.
 *
 * The hooks call, in this order: writer_reserve(), whatever they need for the argument, writer_put(). Reserving comes
 * first because it may join a collector (after a fork), which gives all ids a new meaning.
 */
#ifndef PRELOAD_WRITER_H
#define PRELOAD_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "evprof/invariant.h"
#include "evprof/ring.h"
#include "ids.h"

struct object;

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Words kept free beyond limit, so that one reservation fits any event with its WIRE_TIME. */
#define WRITER_SPARE_WORDS 16

/* After so many the fast path looks up, see writer_take_chunk(). A page, which is fetched as one. */
#define WRITER_CHUNK_WORDS 512
#define WRITER_LINE_WORDS 8 /* of the cache */

/*
 * What a thread may still write after its room was taken and the status changed: what it was about to, and what goes
 * before that (its start, a gap, the head of a stack). Frames of a stack are not among it, see write_stack().
 */
#define WRITER_PENDING_WORDS 64

/* The time of the event that ends at a place of the ring. */
struct writer_point {
	uint64_t head, ticks;
};

/*
 * The private side of a slot. Cleared by a fork (process.h); cleared means "no room", which leads to the slow path.
 *
 * invariant: limit <= room <= tail + size - WRITER_SPARE_WORDS; while events are lost room is 0, and limit <= head
 * invariant: all places below limit, and one more, are in the lap that head is in.
 */
struct writer {
	/* Where the word at position 0 would be, if the words of all laps stood before those of this one. */
	uintptr_t lap;
	uint64_t head;
	/*
	 * Of the fast path; head or less to force the slow path, see writer_goes_on_losing(). Taken back by other
	 * threads (process_set_status), which leaves 0.
	 */
	uint64_t limit;
	uint64_t last_ticks;
	uint64_t pause; /* so many ticks after the event before, or more, WIRE_TIME is needed */
	struct ring_slot *slot;
	struct ids_view ids; /* where the fast path looks, see writer_take_chunk() */
	/* from here on for the slow path */
	uint64_t room; /* likewise taken back */
	uint64_t *words;
	uint64_t mask;
	uint64_t gap;		 /* events lost since the last one written */
	uint8_t resync;		 /* the call stack must be written again before the next call or return */
	uint8_t throwing;	 /* a generator is being thrown into, see hooks_profile.c and hooks_monitoring.c */
	uint8_t point;		 /* how many points were noted; the last one holds */
	uint8_t asked;		 /* for the stack, by another thread: the memory was exchanged (rejoin.c), or so */
	uint32_t cpu_due;	 /* the low half of the head from which on the CPU time is to be told again */
	const void *unwinding;	 /* the exception that unwinds the frames, see hooks_monitoring.c */
	uint64_t stack_due : 63; /* the head from which on the stack is to be written again, see WIRE_OPEN */
	uint64_t stack_cut : 1;	 /* of the stack, only the inner part was written */
	struct writer_point points[2]; /* in turn: where the owner came by the slow path last, for rejoin.c */
	/* Of the event that is held, see writer_hold(). */
	uint64_t held_end; /* none is, unless this is head */
	struct writer_point before_held;
	struct writer_point start; /* where the words begin that were not read yet when the memory was exchanged last */
};

_Static_assert(sizeof(struct writer) == 192, "three cache lines, shared with nobody");
_Static_assert(offsetof(struct writer, room) == 64, "the fast path needs the first line only");

/* What each thread has. Small, because the static TLS of a process is (initial-exec). */
struct thread_self {
	struct writer *writer;
	uint32_t nesting; /* > 0: inside an allocator or inside evprof itself: memory events are not the program's */
	uint32_t entered; /* this thread was seen by the hooks' installer */
	uint32_t
	    unsettled;	/* until 3.11: so many more events are looked at for a profile function that replaced ours */
	uint8_t locked; /* how often this thread has taken python_lock() */
	bool greenlets; /* switches of this thread's greenlets are seen (greenlets.c) */
	bool telling;	/* until 3.11: the program's own profile function runs */
	bool called;	/* EVPROF_CALIBRATE, 3.12 and later: a call was told that has not come to anything yet */
	bool untold;	/* likewise: a function begins that no call was told of */
	const void *event_block;  /* allocated for an event, and freed next (event_blocks.h) */
	const void *lost_block;	  /* of an event that was lost and would be held, see writer_lose() ... */
	uint64_t lost_gap;	  /* ... which is the last one that was lost while the writer's gap is this */
	const void *raised_in;	  /* the greenlet in which the program's trace function raised, until that is seen */
	const void *hooked_state; /* the PyThreadState that has our profile function */
	const void *made_state;	  /* until 3.11: a block that may become a PyThreadState, see bootstrap_made_state() */
	int (*chained)(struct object *, struct object *, int, struct object *); /* the program's own profile function */
};

extern __thread struct thread_self thread_self __attribute__((tls_model("initial-exec")));
extern struct writer writer_absent; /* the writer of a thread that has none yet: no room */

/* The slow path: a new thread, a full ring, a fork, a stop. NULL: the event is lost (and counted) or not wanted. */
struct writer *writer_refill(unsigned kind) __attribute__((cold, noinline));

/*
 * The call stack of the calling thread is not as the events say: it is written before the next call or return. GIL
 * held.
 */
void writer_expect_stack(void) __attribute__((cold, noinline));

/*
 * Takes the pages of the ring's first so many bytes: one call is cheaper than a fault for each. Older kernels (before
 * 5.14) do not know it, and fault.
 */
void writer_populate(struct writer *writer, size_t most);

/* Ends the calling thread's ring. */
void writer_end_thread(void);

/*
 * Counts one event as lost; the gap is marked before the next event that can be written. Of an allocation that would be
 * held the caller puts the block in thread_self.lost_block, where this leaves WRITER_LOST_MALLOC, and notes the gap.
 */
#define WRITER_LOST_MALLOC ((const void *)1)
void writer_lose(struct writer *writer, unsigned kind) __attribute__((cold, noinline));

/*
 * Sequentially consistent, as the status is: a thread that gives itself room looks at the status afterwards, one that
 * sets the status takes the room afterwards, and one of the two sees the other.
 */
static inline void writer_set_room(struct writer *writer, uint64_t room, uint64_t limit)
{
	__atomic_store_n(&writer->room, room, __ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->limit, limit, __ATOMIC_SEQ_CST);
}

/* Words below it were free when the calling thread looked at its room last. In DEBUG builds only. */
extern __thread uint64_t writer_free_end __attribute__((tls_model("initial-exec")));

/* Relaxed: ring_publish() makes it visible to the collector. Atomic, because rejoin.c may look at the place, too. */
static inline void writer_store(struct writer *writer, uint64_t at, uint64_t word)
{
	invariant(at < writer_free_end);
	__atomic_store_n(&writer->words[at & writer->mask], word, __ATOMIC_RELAXED);
}

/*
 * The fast path goes on for another chunk, or as far as there is room and the ring has no end. Nowhere else it is
 * looked at where words go, which table has the ids, or whether the cache has the place. Only with room.
 */
void writer_take_chunk(struct writer *writer) __attribute__((cold, noinline));

static inline struct writer *writer_reserve(unsigned kind)
{
	struct writer *writer = thread_self.writer;

	if (unlikely(writer->head >= __atomic_load_n(&writer->room, __ATOMIC_RELAXED)))
		return writer_refill(kind);
	if (unlikely(writer->head >= __atomic_load_n(&writer->limit, __ATOMIC_RELAXED)))
		writer_take_chunk(writer);
	return writer;
}

/*
 * To lose an event is to be the cheapest thing that a hook does. So after one was lost those that follow are lost, too,
 * by a look at nothing but the tail, until that moves; and then until a quarter of the ring is free. Everything else is
 * looked at once in WRITER_LOSE_AT_ONCE events. Only for what happens often: what happens once (an exit, a fork) is
 * written into any room.
 *
 * invariant: while this is so, limit is 1 + the tail of the last look.
 */
#define WRITER_LOSE_AT_ONCE 256

static inline bool writer_goes_on_losing(const struct writer *writer)
{
	return writer->gap % WRITER_LOSE_AT_ONCE &&
	       __atomic_load_n(&writer->limit, __ATOMIC_RELAXED) == ring_tail(writer->slot) + 1;
}

/* Such an event, of no memory. The thread counts alone, but rejoin.c may add what was counted in the memory before. */
static inline void writer_count_lost(struct writer *writer, unsigned kind)
{
	atomic_fetch_add_explicit(&writer->slot->lost[kind], 1, memory_order_relaxed);
	writer->gap++;
}

/* A WIRE_TIME with the time of the event that follows, and the thread's CPU time where that is wanted. */
void writer_put_time(struct writer *writer, uint64_t now) __attribute__((cold, noinline));

static inline uint64_t writer_stamp(struct writer *writer)
{
	uint64_t now = clock_now(), ticks = now - writer->last_ticks;

	if (unlikely(ticks >= writer->pause)) {
		writer_put_time(writer, now);
		ticks = 0;
	}
	writer->last_ticks += ticks;
	invariant(!(ticks >> 32));
	return ticks << 32;
}

static inline void writer_put(struct writer *writer, uint32_t head)
{
	uint64_t stamp = writer_stamp(writer);

	invariant(wire_head_kind(head) && !wire_extra_words(wire_head_kind(head)));
	writer_store(writer, writer->head, stamp | head);
	ring_publish(writer->slot, ++writer->head);
}

/* With the extra words of the kind; extra_2 only where there are two. To be published or held. */
static inline void writer_write_extra(struct writer *writer, uint32_t head, uint64_t extra, uint64_t extra_2)
{
	uint64_t stamp = writer_stamp(writer), at = writer->head;

	invariant(wire_extra_words(wire_head_kind(head)));
	writer_store(writer, at++, stamp | head);
	writer_store(writer, at++, extra);
	if (wire_extra_words(wire_head_kind(head)) == 2)
		writer_store(writer, at++, extra_2);
	writer->head = at;
}

static inline void writer_put_extra(struct writer *writer, uint32_t head, uint64_t extra, uint64_t extra_2)
{
	writer_write_extra(writer, head, extra, extra_2);
	ring_publish(writer->slot, writer->head);
}

/* Where an event begins that is to be held. */
static inline struct writer_point writer_here(const struct writer *writer)
{
	return (struct writer_point){.head = writer->head, .ticks = writer->last_ticks};
}

/*
 * In place of ring_publish(): the event that was written may be taken back, until the next one is put, with which it is
 * published. The collector sees it where there is no next one. At most WRITER_SPARE_WORDS.
 */
static inline void writer_hold(struct writer *writer, struct writer_point before)
{
	invariant(before.ticks <= writer->last_ticks);
	writer->before_held = before;
	writer->held_end = writer->head;
	ring_hold(writer->slot, before.head, writer->head);
}

static inline bool writer_holds(const struct writer *writer)
{
	return writer->held_end == writer->head && writer->head;
}

/* The last event that was lost is none of the program's: it is the allocation of this block. */
bool writer_unlose(struct writer *writer) __attribute__((cold, noinline));

/* Takes the event back that is held, or was lost. False: it is not the allocation of this block, or none is. */
static inline bool writer_take_back(struct writer *writer, const void *block)
{
	if (unlikely(thread_self.lost_block == block && block))
		return writer_unlose(writer);
	if (!writer_holds(writer) || wire_memory_address(writer->words[(writer->head - 1) & writer->mask]) !=
					 wire_memory_address((uintptr_t)block))
		return false;
	invariant(writer->before_held.head < writer->head);
	ring_release(writer->slot);
	writer->head = writer->before_held.head;
	writer->last_ticks = writer->before_held.ticks;
	return true;
}

/* An allocation and, before it, its native stack. One time for both. To be published or held. */
void writer_write_with_native(struct writer *writer, uint32_t frame, uint32_t head, uint64_t extra, uint64_t extra_2);

/*
 * The fast path of the hooks. They ask for room, find the id by loads alone and put the word; whenever something is out
 * of the ordinary they leave everything to a function that goes the long way. A writer has room here only where the
 * counter is the clock (writer_fast), so that is not looked at again.
 */
extern int writer_fast;

/*
 * A ring is larger than a core's own cache, and the collector has read what is to be written over: without fetching it
 * ahead each line would be waited for when the first word of it is written (measured: a quarter of the cost of an
 * event).
 */
static inline void writer_fetch(const uint64_t *words)
{
	for (unsigned i = 0; i < WRITER_CHUNK_WORDS; i += WRITER_LINE_WORDS) {
#if defined(__x86_64__)
		/* The builtin makes the weaker prefetcht0 of this, unless the compiler is told of a newer processor. */
		__asm__ volatile("prefetchw %0" : : "m"(words[i]));
#else
		__builtin_prefetch(&words[i], 1, 3);
#endif
	}
}

/*
 * The chunk in which head is. Returns its end; but the last word of a lap goes the long way, as an event may have
 * another one. Fetches the chunk after it.
 */
static inline uint64_t writer_chunk(struct writer *writer)
{
	uint64_t end = (writer->head | (WRITER_CHUNK_WORDS - 1)) + 1;

	writer->lap = (uintptr_t)writer->words - (writer->head & ~writer->mask) * sizeof(uint64_t);
	writer_fetch(&writer->words[end & writer->mask]);
	return end & writer->mask ? end : end - 1;
}

/* A call, resume or throw that is the step of a task. One time for both events. */
static inline void writer_put_step(struct writer *writer, uint32_t head, uint64_t task)
{
	writer_put_extra(writer, wire_head(WIRE_TASK, wire_head_arg(head)), task, 0);
	writer_store(writer, writer->head, head);
	ring_publish(writer->slot, ++writer->head);
}

static inline int writer_has_room(const struct writer *writer)
{
	return likely(writer->head < __atomic_load_n(&writer->limit, __ATOMIC_RELAXED));
}

/* The place of a word of this lap. */
static inline uint64_t *writer_at(const struct writer *writer, uint64_t at)
{
	invariant(at < writer_free_end);
	invariant(writer->lap + at * sizeof(uint64_t) == (uintptr_t)&writer->words[at & writer->mask]);
	return (uint64_t *)(writer->lap + at * sizeof(uint64_t));
}

/* 0: a WIRE_TIME is needed, nothing was written. */
static inline int writer_put_fast(struct writer *writer, uint32_t head)
{
	uint64_t now = clock_counter() >> CLOCK_SHIFT, ticks = now - writer->last_ticks, at = writer->head;

	if (unlikely(ticks >= writer->pause))
		return 0;
	invariant(wire_head_kind(head) && !wire_extra_words(wire_head_kind(head)) && !(ticks >> 32));
	writer->last_ticks = now;
	__atomic_store_n(writer_at(writer, at), ticks << 32 | head, __ATOMIC_RELAXED);
	writer->head = ++at;
	ring_publish(writer->slot, at);
	return 1;
}

/* For what is no event, and is left out where there is none. */
static inline int writer_finds_room(struct writer *writer)
{
	if (!writer_has_room(writer) && writer->head < __atomic_load_n(&writer->room, __ATOMIC_RELAXED))
		writer_take_chunk(writer);
	return writer_has_room(writer);
}

/* WIRE_TIME_OF_CALL. Only where there is room. */
static inline void writer_put_told_call(struct writer *writer)
{
	uint64_t now = clock_counter() >> CLOCK_SHIFT, at;

	if (unlikely(now - writer->last_ticks >= writer->pause))
		writer_put_time(writer, now);
	else
		writer->last_ticks = now;
	at = writer->head;
	writer_store(writer, at, wire_word(wire_head(WIRE_TIME, WIRE_TIME_OF_CALL), 0));
	writer_store(writer, at + 1, writer->last_ticks);
	writer->head = at + 2;
	ring_publish(writer->slot, at + 2);
}

/* WIRE_TIME_OF_FAR or WIRE_TIME_OF_PLACE, for the event that follows. Only with room. */
static inline void writer_put_mark_of_place(struct writer *writer, uint32_t head)
{
	uint64_t at = writer->head;

	writer_store(writer, at, wire_word(head, 0));
	writer_store(writer, at + 1, writer->last_ticks);
	writer->head = at + 2;
	ring_publish(writer->slot, at + 2);
}

/* hold: see writer_hold(); a constant. */
static inline __attribute__((always_inline)) int writer_put_fast_extra(struct writer *writer, uint32_t head,
								       uint64_t extra, bool hold)
{
	struct writer_point before = writer_here(writer);
	uint64_t now = clock_counter() >> CLOCK_SHIFT, ticks = now - writer->last_ticks, at = writer->head;

	if (unlikely(ticks >= writer->pause))
		return 0;
	invariant(wire_extra_words(wire_head_kind(head)) == 1 && !(ticks >> 32));
	writer->last_ticks = now;
	__atomic_store_n(writer_at(writer, at++), ticks << 32 | head, __ATOMIC_RELAXED);
	__atomic_store_n(writer_at(writer, at++), extra, __ATOMIC_RELAXED);
	writer->head = at;
	if (hold)
		writer_hold(writer, before);
	else
		ring_publish(writer->slot, at);
	return 1;
}

#endif
