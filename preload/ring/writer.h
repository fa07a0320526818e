/*
 * writer.h - writes events into the ring of the calling thread: the fast path. Its slow functions are in room.c.
 *
 * A hook calls writer_reserve() (life.h), then computes the event's argument, then calls writer_put(). Reserving comes
 * first because it may join a collector (after a fork), which assigns all ids anew.
 *
 * A signal handler that allocates records its allocation (hooks_malloc.c) over whatever it interrupts. It must not do
 * so while an event is being written, and recognises that without an instruction of the fast path's:
 *
 *   the fast path    takes its words first (writer_take()), and publishes them last: head is above what is published
 *   slow functions   count thread_self.writing up meanwhile (writer_enter())
 *   allocators       keep thread_self.nesting above 0 until their event is written
 */
#ifndef PRELOAD_WRITER_H
#define PRELOAD_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/invariant.h"
#include "evprof/ring.h"
#include "ring/clock.h"
#include "ring/ids.h"

struct object;
struct memory_stack;
struct greenlet_stacks;

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Words kept free beyond limit, so that one reservation fits any event with its WIRE_TIME. */
#define WRITER_SPARE_WORDS 16

/* Words between two slow-path checks, see writer_take_chunk(). A page, which is prefetched as a whole. */
#define WRITER_CHUNK_WORDS 512
#define WRITER_LINE_WORDS 8 /* of a cache line */

/*
 * The most words that a thread may still write after its room was cleared and the status changed: the event in
 * progress, and what precedes it (the thread's start, a gap, the head of a stack). Frames of a stack are not included,
 * see write_stack().
 */
#define WRITER_PENDING_WORDS 64

/* The time of the event that ends at a position of the ring. */
struct writer_point {
	uint64_t head, ticks;
};

/*
 * The private side of a slot. A fork clears it (process.h); a cleared one has no room, which leads to the slow path.
 *
 *   invariant: limit <= room <= tail + size - WRITER_SPARE_WORDS; while events are lost room is 0, and limit <= head
 *   invariant: all positions below limit, and one more, are in the same lap as head.
 */
struct writer {
	/* The address of the word at position 0 if the words of all earlier laps lay before those of this lap. */
	_Alignas(64) uintptr_t lap;
	uint64_t head;
	/*
	 * End of the fast path's room; at most head: forces the slow path, see writer_goes_on_losing(). Other threads
	 * (process_set_status()) clear it to 0.
	 */
	uint64_t limit;
	uint64_t last_ticks;
	uint64_t pause; /* an event this many ticks or more after the one before needs a WIRE_TIME */
	struct ring_slot *slot;
	struct ids_view ids; /* the fast path's view of the table, see writer_take_chunk() */
	/* from here on for the slow path */
	uint64_t room; /* end of the room; cleared likewise */
	uint64_t *words;
	uint64_t mask;
	uint64_t gap;	  /* events lost since the last one written */
	uint8_t resync;	  /* the call stack must be written before the next call or return */
	uint8_t throwing; /* a generator is being thrown into, see hooks_profile.c and hooks_monitoring.c */
	uint8_t asked; /* by another thread: WRITER_ASKED_*, because the memory was exchanged (rejoin.c), for example */
	uint8_t
	    knows_stack;  /* the trace has the stack, or the place, of the thread's last allocation (memory_stack.h) */
	uint32_t cpu_due; /* the low half of the head at which the next CPU time is due */
	const void *unwinding;	 /* the exception that unwinds the frames, see hooks_monitoring.c */
	uint64_t stack_due : 62; /* the head at which the stack is due again, see WIRE_OPEN */
	uint64_t stack_cut : 1;	 /* only the inner part of the stack was written */
	uint64_t paused : 1;	 /* a pause is to be written before the next event */
	/* The held event, see writer_hold(). */
	uint64_t held_end; /* none is held unless this equals head */
	struct writer_point before_held;
	/* The place of the thread's last allocation, with knows_stack, see memory_place.h. */
	uintptr_t place_code, place_instruction;
	uint64_t thin_words; /* of those in the ring so far, what thin_put() has written; relaxed */
};

/* What a thread writes before its next event. */
enum { WRITER_ASKED_STACK = 1, WRITER_ASKED_PAUSE = 2, WRITER_ASKED_THIN = 4 };

_Static_assert(sizeof(struct writer) == 192, "three cache lines, shared with nobody");
_Static_assert(offsetof(struct writer, room) == 64, "the fast path needs the first line only");

/* The state of each thread. Small, because it lives in the process's static TLS (initial-exec). */
struct thread_self {
	struct writer *writer;
	uint64_t sampling_left;	 /* bytes that the thread allocates before the next sampled one (memory_sampling.h) */
	uint32_t nesting;	 /* > 0: inside an allocator or inside evprof itself: memory events are not recorded */
	uint32_t writing;	 /* > 0: an event is being written: another one in a signal handler is lost */
	uint32_t entered;	 /* the hooks' installer has seen this thread */
	uint32_t profile_checks; /* until 3.11: events left that check whether another profile function replaced ours */
	uint32_t no_native_stack; /* > 0: the native stack may not be read here */
	uint32_t unslotted;	  /* events that were lost because no slot was free (refill.c) */
	uint8_t end_rounds;	  /* of the thread's destructors that have run (refill.c) */
	bool sampling_begun;	  /* sampling_left is set */
	bool stopped;		  /* the thread has written the begin of the last pause itself */
	bool greenlets;		  /* switches between this thread's greenlets are recorded (greenlets.c) */
	bool greenlet_unknown;	  /* the running one's stack is to be written (greenlet_stacks.h) */
	bool in_program_profile;  /* until 3.11: the program's own profile function runs */
	bool called;		  /* EVPROF_CALIBRATE, 3.12 and later: a reported call has not started a function yet */
	bool unreported;	  /* likewise: a function starts without a reported call */
	bool releases; /* until 3.11: it is about to release a lock of Python's, and gives a new state its hook */
	uint64_t sampling_state;  /* of the random numbers of memory_sampling.h */
	const void *event_block;  /* allocated for an event, and the next block to be freed (event_blocks.h) */
	const void *lost_block;	  /* of an allocation that was lost and would be held, see writer_lose() ... */
	uint64_t lost_gap;	  /* ... and is the last lost event while the writer's gap equals this */
	const void *raised_in;	  /* the greenlet in which the program's trace function raised, until that is noticed */
	const void *hooked_state; /* the PyThreadState that has evprof's profile function */
	const void
	    *evaluated; /* until 3.11: the frame of the event, if it begins or has ended: it is not the running one */
	struct memory_stack *stack;		 /* of the last allocation; NULL: none yet (memory_stack.h) */
	struct greenlet_stacks *greenlet_stacks; /* NULL: no switch yet */
	bool thin_due;		/* a change of what is thinned is to be written before the next event (thin.h) */
	bool placed;		/* an allocation had a place: the thread runs Python (memory_place.h) */
	const void *made_state; /* until 3.11: a block that may become a PyThreadState, see install_made_state() */
	int (*chained)(struct object *, struct object *, int, struct object *); /* the program's own profile function */
	/* EVPROF_PROGRAM_ONLY, in the thread that started Python (hooks/program.h). */
	bool outside; /* the program does not run: only events of the process and what it asks for are written */
	uint32_t program_depth; /* calls of the code below that have not ended */
	const void *program;	/* the outermost code of the program; NULL: outside, or in another thread */
};

extern __thread struct thread_self thread_self __attribute__((tls_model("initial-exec")));
extern struct writer writer_absent; /* the writer of a thread that has none yet: no room */

/*
 * The stack of the calling thread no longer matches its events: it is written before the next call or return. GIL held.
 */
void writer_expect_stack(void) __attribute__((cold, noinline));

/*
 * Allocates the pages of the ring's first `most` bytes: one call is cheaper than a fault for each page. Kernels before
 * 5.14 lack the call, and fault.
 */
void writer_populate(struct writer *writer, size_t most);

/*
 * Counts one event as lost. The gap is written before the next event that fits. For an allocation that would be held
 * this sets thread_self.lost_block to WRITER_LOST_MALLOC; the caller replaces it by the block and notes the gap.
 */
#define WRITER_LOST_MALLOC ((const void *)1)
void writer_lose(struct writer *writer, unsigned kind) __attribute__((cold, noinline));

/*
 * Sequentially consistent, like the status. A thread that sets its own room reads the status afterwards; a thread that
 * sets the status clears the room afterwards. So one of the two sees the other.
 */
static inline void writer_set_room(struct writer *writer, uint64_t room, uint64_t limit)
{
	__atomic_store_n(&writer->room, room, __ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->limit, limit, __ATOMIC_SEQ_CST);
}

/* The words below this position were free at a check of the calling thread's room. DEBUG builds only. */
extern __thread uint64_t writer_free_end __attribute__((tls_model("initial-exec")));

/*
 * Relaxed: ring_publish() makes the word visible to the collector. Atomic, because exchange.c may access the word, too.
 */
static inline void writer_store(struct writer *writer, uint64_t at, uint64_t word)
{
	invariant(at < writer_free_end);
	__atomic_store_n(&writer->words[at & writer->mask], word, __ATOMIC_RELAXED);
}

/*
 * Extends the fast path by another chunk, or to the end of the room or of the ring. Only here the fast path's word
 * address and id table are updated and the next chunk is prefetched. Only with room.
 */
void writer_take_chunk(struct writer *writer) __attribute__((cold, noinline));

/*
 * Losing an event is the cheapest path of a hook. After one event is lost, the following ones are lost, too, by a check
 * of the tail alone, until it moves; and from then on until a quarter of the ring is free. The whole slow path runs
 * once in WRITER_LOSE_AT_ONCE events. This applies to frequent events only: rare ones (an exit, a fork) are written
 * into any room.
 *
 *   invariant: meanwhile limit is 1 + the tail of the last check.
 */
#define WRITER_LOSE_AT_ONCE 256

static inline bool writer_goes_on_losing(const struct writer *writer)
{
	return writer->gap % WRITER_LOSE_AT_ONCE &&
	       __atomic_load_n(&writer->limit, __ATOMIC_RELAXED) == ring_tail(writer->slot) + 1;
}

/*
 * Counts such an event, other than an allocation. Atomic although only this thread counts: exchange.c may add the
 * counts of the memory before.
 */
static inline void writer_count_lost(struct writer *writer, unsigned kind)
{
	atomic_fetch_add_explicit(&writer->slot->lost[kind], 1, memory_order_relaxed);
	writer->gap++;
}

/* Around all that changes a writer, except for the fast path. Meanwhile a signal handler's event is counted as lost. */
static inline void writer_enter(void)
{
	thread_self.writing++;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void writer_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	thread_self.writing--;
}

/*
 * Takes words for an event, and returns the position of the first. Between two instructions a signal handler may write
 * an event of its own, so this is one, and everything else about the writer is read after it.
 */
static inline uint64_t writer_take(struct writer *writer, uint64_t words)
{
#if defined(__x86_64__)
	__asm__ volatile("xaddq %0, %1" : "+r"(words), "+m"(writer->head) : : "cc", "memory");
	return words;
#else
	uint64_t at = __atomic_fetch_add(&writer->head, words, __ATOMIC_RELAXED);

	atomic_signal_fence(memory_order_seq_cst);
	return at;
#endif
}

/* Gives back what was taken last, before anything of it is published. */
static inline void writer_give_back(struct writer *writer, uint64_t at)
{
	atomic_signal_fence(memory_order_seq_cst);
	__atomic_store_n(&writer->head, at, __ATOMIC_RELAXED);
}

/* Whether no event is being written in the fast path. The writer has a slot. */
static inline bool writer_is_quiet(const struct writer *writer)
{
	return atomic_load_explicit(&writer->slot->head, memory_order_relaxed) == writer->head ||
	       atomic_load_explicit(&writer->slot->held, memory_order_relaxed) == writer->head;
}

/* Writes a WIRE_TIME with the time of the event that follows, or a WIRE_CPU where CPU times are recorded. */
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
	uint64_t stamp;

	invariant(wire_head_kind(head) && !wire_extra_words(head));
	writer_enter();
	stamp = writer_stamp(writer);
	writer_store(writer, writer->head, stamp | head);
	ring_publish(writer->slot, ++writer->head);
	writer_leave();
}

/* Writes an event from WIRE_THREAD_START on that has one number, or none (0). */
void writer_put_number(struct writer *writer, unsigned kind, uint64_t number);

/* Writes an event with any number of extra words that is in its head. */
void writer_put_words(struct writer *writer, uint32_t head, const uint64_t *extra);

/* Writes WIRE_REALLOC_BEGIN. */
void writer_put_realloc_begin(struct writer *writer, const void *old);

/* Writes an event with its extra words; extra_2 only if there are two. The caller publishes or holds it. */
static inline void writer_write_extra(struct writer *writer, uint32_t head, uint64_t extra, uint64_t extra_2)
{
	uint64_t stamp, at;

	invariant(wire_extra_words(head));
	writer_enter();
	stamp = writer_stamp(writer);
	at = writer->head;
	writer_store(writer, at++, stamp | head);
	writer_store(writer, at++, extra);
	if (wire_extra_words(head) == 2)
		writer_store(writer, at++, extra_2);
	writer->head = at;
	writer_leave();
}

/* Writes an allocation after its native stack. Both have one timestamp. The caller publishes or holds it. */
static inline void writer_write_with_native_stack(struct writer *writer, uint32_t frame, uint32_t head, uint64_t extra,
						  uint64_t extra_2)
{
	uint64_t stamp, at;

	writer_enter();
	stamp = writer_stamp(writer);
	at = writer->head;
	writer_store(writer, at++, stamp | wire_head(WIRE_NATIVE_STACK, frame));
	writer_store(writer, at++, head);
	writer_store(writer, at++, extra);
	if (wire_extra_words(head) == 2)
		writer_store(writer, at++, extra_2);
	writer->head = at;
	writer_leave();
}

static inline void writer_put_extra(struct writer *writer, uint32_t head, uint64_t extra, uint64_t extra_2)
{
	writer_write_extra(writer, head, extra, extra_2);
	ring_publish(writer->slot, writer->head);
}

/* The position before an event that may be held. */
static inline struct writer_point writer_here(const struct writer *writer)
{
	return (struct writer_point){.head = writer->head, .ticks = writer->last_ticks};
}

/*
 * Holds an event, in place of ring_publish(): it may be retracted until the next event, which publishes both. If there
 * is no next event, the collector reads it all the same. At most WRITER_SPARE_WORDS.
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

/* Retracts the last lost event: it is the allocation of this block, which is not the program's. */
bool writer_unlose(struct writer *writer) __attribute__((cold, noinline));

/*
 * Retracts the event that is held, or was lost, if it is the allocation of this block. False: it is not, or there is
 * none.
 */
static inline bool writer_retract(struct writer *writer, const void *block)
{
	if (unlikely(thread_self.lost_block == block && block))
		return writer_unlose(writer);
	if (!writer_holds(writer) || wire_memory_address(writer->words[(writer->head - 1) & writer->mask]) !=
					 wire_memory_address((uintptr_t)block))
		return false;
	invariant(writer->before_held.head < writer->head);
	/* From here on a signal handler writes nothing. If it did just before, the event is published. */
	ring_release(writer->slot);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(!writer_holds(writer)))
		return false;
	writer->last_ticks = writer->before_held.ticks;
	if (writer->before_held.head + 2 != writer->head) /* with its place */
		writer->knows_stack = 0;
	writer_give_back(writer, writer->before_held.head);
	return true;
}

/*
 * The fast path of the hooks: they check for room, find the id by loads alone and store the word. Every rare case goes
 * to a slow function. A writer has room here only if the clock is the processor's counter (writer_fast), which is
 * therefore not checked again.
 */
extern int writer_fast;

/*
 * Prefetches a chunk. A ring is larger than a core's private cache, and the collector has read the lines that are to be
 * overwritten: without the prefetch the first store to each line waits for it (measured: a quarter of the cost of an
 * event).
 */
static inline void writer_fetch(const uint64_t *words)
{
	for (unsigned i = 0; i < WRITER_CHUNK_WORDS; i += WRITER_LINE_WORDS) {
#if defined(__x86_64__)
		/* The builtin emits the weaker prefetcht0 unless the compiler targets a newer processor. */
		__asm__ volatile("prefetchw %0" : : "m"(words[i]));
#else
		__builtin_prefetch(&words[i], 1, 3);
#endif
	}
}

/*
 * Sets the lap, prefetches the next chunk, and returns the end of the chunk that holds head. The last word of a lap is
 * left to the slow path, because an event may have an extra word.
 */
static inline uint64_t writer_chunk(struct writer *writer)
{
	uint64_t end = (writer->head | (WRITER_CHUNK_WORDS - 1)) + 1;

	writer->lap = (uintptr_t)writer->words - (writer->head & ~writer->mask) * sizeof(uint64_t);
	writer_fetch(&writer->words[end & writer->mask]);
	return end & writer->mask ? end : end - 1;
}

/* Writes a call, resume or throw that is the step of a task. Both events have one timestamp. */
static inline void writer_put_step(struct writer *writer, uint32_t head, uint64_t task)
{
	writer_enter();
	writer_put_extra(writer, wire_head(WIRE_TASK, wire_head_arg(head)), task, 0);
	writer_store(writer, writer->head, head);
	ring_publish(writer->slot, ++writer->head);
	writer_leave();
}

static inline int writer_has_room(const struct writer *writer)
{
	return likely(writer->head < __atomic_load_n(&writer->limit, __ATOMIC_RELAXED));
}

/* The address of a word of this lap. */
static inline uint64_t *writer_at(const struct writer *writer, uint64_t at)
{
	invariant(at < writer_free_end);
	invariant(writer->lap + at * sizeof(uint64_t) == (uintptr_t)&writer->words[at & writer->mask]);
	return (uint64_t *)(writer->lap + at * sizeof(uint64_t));
}

/* 0: a WIRE_TIME is needed, nothing was written. */
static inline int writer_put_fast(struct writer *writer, uint32_t head)
{
	uint64_t at = writer_take(writer, 1), now = clock_counter() >> CLOCK_SHIFT, ticks = now - writer->last_ticks;

	if (unlikely(ticks >= writer->pause)) {
		writer_give_back(writer, at);
		return 0;
	}
	invariant(wire_head_kind(head) && !wire_extra_words(head) && !(ticks >> 32));
	writer->last_ticks = now;
	__atomic_store_n(writer_at(writer, at), ticks << 32 | head, __ATOMIC_RELAXED);
	ring_publish(writer->slot, at + 1);
	return 1;
}

/* For marks that are no events: they are left out if there is no room. */
static inline int writer_finds_room(struct writer *writer)
{
	if (!writer_has_room(writer) && writer->head < __atomic_load_n(&writer->room, __ATOMIC_RELAXED))
		writer_take_chunk(writer);
	return writer_has_room(writer);
}

/* Writes an event without extra words, after a pause of any length. Only with room. */
static inline void writer_put_plain(struct writer *writer, uint32_t head)
{
	if (unlikely(!writer_put_fast(writer, head)))
		writer_put(writer, head);
}

/* Writes WIRE_AT_LINE for the event before. Only with room. */
static inline void writer_put_line(struct writer *writer, uint32_t line)
{
	uint32_t shown = line < WIRE_ARG_MAX ? line : WIRE_ARG_MAX;

	writer_enter();
	writer_store(writer, writer->head, wire_word(wire_head(WIRE_AT_LINE, shown), 0));
	ring_publish(writer->slot, ++writer->head);
	writer_leave();
}

/* Under thread_self.nesting. hold: see writer_hold(), with before; a compile-time constant. */
static inline __attribute__((always_inline)) int writer_put_fast_extra(struct writer *writer, uint32_t head,
								       uint64_t extra, bool hold,
								       struct writer_point before)
{
	uint64_t now = clock_counter() >> CLOCK_SHIFT, ticks = now - writer->last_ticks, at = writer->head;

	if (unlikely(ticks >= writer->pause))
		return 0;
	invariant(wire_extra_words(head) == 1 && !(ticks >> 32));
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
