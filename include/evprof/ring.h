/*
 * ring.h - the shared memory between one process image (the target) and the collector.
 *
 * Owns the layout of the memfd, its states, and the inline steps of producers and consumers: claiming a slot,
 * publishing and consuming events, writing a definition. The target creates the memfd, seals it against shrinking and
 * sends it with the handshake (control.h). Prose: docs/wire.md.
 *
 *   offset 0                 struct ring_header, one page
 *   definitions_offset       bytes of the definitions ring
 *   slots_offset             struct ring_slot[slot_count], one for each live thread
 *   slot's data_offset       64-bit words of that thread's event ring
 *
 * The file is sparse: only written pages take memory. The collector maps the header and the slots only. It reads
 * definitions and events with pread(2), so nothing that the target does to the file can fault the collector.
 *
 * The comment of each group of fields names its writer: T the target, C the collector. Every shared position is a count
 * since the start and only grows; the place in the ring is the count modulo the size.
 */
#ifndef EVPROF_RING_H
#define EVPROF_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "evprof/invariant.h"
#include "evprof/wire.h"

#define RING_MAGIC UINT64_C(0x31676e6972707665) /* "evpring1" */
#define RING_VERSION 3u
#define RING_PAGE_BYTES 4096u
#define RING_TEXT_BYTES 768u
#define RING_REQUEST_NAME_BYTES 256u

/*
 * A slot has one of three sizes, so that a thousand live threads each have a ring while the total stays bounded. A
 * thread takes the lowest free slot. Ring sizes are fractions of EVPROF_RING_SIZE, at least RING_BYTES_MIN.
 *
 *   slots 0..15        ring_size
 *   slots 16..127      ring_size / 8
 *   slots 128..4095    ring_size / 64
 */
#define RING_SLOTS 4096u
#define RING_SLOTS_LARGE 16u
#define RING_SLOTS_MEDIUM 128u
#define RING_BYTES_DEFAULT (UINT64_C(4) << 20)
#define RING_BYTES_MIN (UINT64_C(64) << 10)
#define RING_BYTES_MAX (UINT64_C(1) << 30)
#define RING_DEFINITIONS_BYTES (UINT64_C(2) << 20)
#define RING_HELD_WORDS 16u /* maximum of held - head */
#define RING_TAIL_LOOKS 4u  /* a tail that moves more often belongs to a collector that is not gone */

enum ring_clock {
	RING_CLOCK_MONOTONIC = 0, /* clock_gettime(CLOCK_MONOTONIC), ns, without the offset of the time namespace */
	RING_CLOCK_TSC = 1,	  /* x86-64 rdtsc, the same for all processes of the host */
	RING_CLOCK_CNTVCT = 2,	  /* aarch64 cntvct_el0, likewise */
};

/* collector_state: written by C. The target may read it at any time. It waits on it (futex) only at its end. */
enum ring_collector_state {
	RING_COLLECTOR_NONE = 0,     /* not read yet */
	RING_COLLECTOR_ATTACHED = 1, /* reading */
	RING_COLLECTOR_REFUSED = 2,  /* final; text has the reason */
	RING_COLLECTOR_FAILED = 3,   /* final; text has the reason. The file is valid up to here, the rest is lost */
	RING_COLLECTOR_DRAINED = 4,  /* this process is complete in the file; others of its session still run */
	RING_COLLECTOR_FINISHED = 5, /* final; the trace file is complete */
};

/* target_state: written by T. */
enum ring_target_state {
	RING_TARGET_RUNNING = 0,
	RING_TARGET_EXITING = 1,  /* this image writes no more events; the process may wait for the summary */
	RING_TARGET_REPLACED = 2, /* the image continues with another ring (rejoin); this one is complete */
};

/* What the resident size of T consists of, by mapping, as /proc/self/smaps has it. */
enum ring_resident {
	RING_RESIDENT_FILES,  /* mapped files, private copies of their pages among them */
	RING_RESIDENT_STACKS, /* of threads */
	RING_RESIDENT_HEAP,   /* brk(), and arenas of glibc */
	RING_RESIDENT_ANONYMOUS,
	RING_RESIDENT_SHARED,
	RING_RESIDENT_EVPROF, /* its rings */
	RING_RESIDENTS
};

/*
 * sleep: set by the collector before it sleeps for more than a few milliseconds. A target whose header has `wakes` sets
 * AWAKE and connects to the socket (control.h) to wake it.
 */
enum ring_sleep {
	RING_AWAKE = 0,
	RING_SLEEPS_UNTIL_FULL = 1,  /* to be woken when a ring fills: it polls a few times a second */
	RING_SLEEPS_UNTIL_EVENT = 2, /* to be woken at the first event of an idle thread: it polls every few seconds */
};

/*
 * The offsets and sizes. Written by T before the handshake and constant afterwards, except slot_count, which T may
 * decrease. The other side can change the shared copy at any time. So every producer and consumer uses a private copy:
 * T the one that it made, C and the sampler one that they have checked.
 */
struct ring_layout {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* sizeof(struct ring_header) of the writer */
	uint64_t size_bytes;   /* of the memfd */
	uint64_t definitions_offset;
	uint64_t definitions_bytes; /* a power of two */
	uint64_t slots_offset;
	uint32_t slot_count;
	uint32_t slot_bytes; /* sizeof(struct ring_slot) of the writer */
	uint32_t clock_kind;
	uint32_t clock_shift; /* ticks in events = clock >> clock_shift */
	uint64_t start_ticks; /* shifted; creation of the memory */
	uint64_t ring_bytes;  /* of a large ring, see ring_slot_bytes() */
	uint64_t data_offset; /* of the first slot's ring */
	uint32_t first_small; /* slots from here on have rings of RING_BYTES_MIN; 0: none. In T's private copy only */
};

struct ring_header {
	struct ring_layout layout;

	/* T, while running */
	_Alignas(64) _Atomic uint64_t definitions_head; /* bytes written */
	_Atomic uint32_t target_state;
	_Atomic uint32_t forks;	     /* forks begun: the collector waits a moment for the child to join */
	_Atomic uint32_t slots_used; /* 1 + the highest slot ever claimed */
	_Atomic uint32_t waiting;    /* backpressure: a thread waits for room, so poll soon */
	_Atomic uint64_t lost_definitions;
	_Atomic uint64_t waits;		  /* number of waits for room ... */
	_Atomic uint64_t waited_us;	  /* ... and their total time, over all threads */
	_Atomic uint64_t samples;	  /* stacks that the sampler has read ... */
	_Atomic uint64_t samples_torn;	  /* ... and those combined from several reads because they changed meanwhile */
	_Atomic uint32_t ending_signal;	  /* with EXITING: the signal by which the image ends itself next; 0: none */
	_Atomic uint32_t wakes;		  /* 1: T wakes a sleeping collector; 0: it cannot, so C has to poll */
	_Atomic uint32_t defines;	  /* enum ring_defines: the current writer of definitions */
	_Atomic uint64_t samples_dropped; /* of `samples`, those that were not recorded */
	_Atomic uint32_t flush;		  /* number of requests to write all that is in the rings */
	_Atomic uint64_t peak_rss_bytes;  /* with EXITING: VmHWM of T; 0: not known */
	/* With EXITING, where malloc() is recorded: resident bytes by mapping, and when; 0: not known. */
	_Atomic uint64_t resident_ticks; /* shifted */
	_Atomic uint64_t resident[RING_RESIDENTS];
	/* Lost events of threads that found no free slot, by kind. */
	_Alignas(64) _Atomic uint64_t lost_unslotted[WIRE_KINDS];

	/* C, while running */
	_Alignas(64) _Atomic uint64_t definitions_tail; /* bytes read */
	_Atomic uint32_t collector_state;		/* futex */
	_Atomic uint32_t heartbeat;			/* changes each time that the collector polls this ring */
	_Atomic int32_t collector_pid;			/* 0: C is in another pid namespace than T */
	/*
	 * C, valid once collector_state is DRAINED or FINISHED: the totals of the closing line, for the whole session
	 * so far
	 */
	_Atomic uint32_t summary_processes;
	_Atomic uint32_t summary_running;   /* processes still alive, without this one */
	_Atomic uint32_t summary_unsampled; /* processes whose sampler ended before them */
	_Atomic uint64_t summary_events;
	_Atomic uint64_t summary_lost;
	_Atomic uint64_t collector_start_time; /* as start_time in control.h; 0: not known */
	/*
	 * C, valid with a collector_state: the reason of REFUSED or FAILED, else the path of the trace file or "".
	 * NUL-terminated UTF-8.
	 */
	char text[RING_TEXT_BYTES];
	/* enum ring_sleep. C and T, as described there. */
	_Atomic uint32_t sleep;
	/* C: `flush` as it was before what the file has was written. */
	_Atomic uint32_t flushed;
	/*
	 * C: what somebody asks of T from outside: its number * 4 + enum ring_request; 0: nothing yet. request_name is
	 * written first: of RING_REQUEST_MARK, or the list of RING_REQUEST_EVENTS; NUL-terminated UTF-8.
	 */
	_Atomic uint32_t request;
	char request_name[RING_REQUEST_NAME_BYTES];
	/*
	 * T: the last request that it has followed; that it could not follow (a mark while recording is stopped, events
	 * that it cannot change to), which it wrote first; and whether it has a handler of SIGURG, which announces one.
	 */
	_Atomic uint32_t followed;
	_Atomic uint32_t refused;
	_Atomic uint32_t follows;
	/* T: its wish for a copy of what it did last: the number of the wish * 64 + enum ring_snapshot; 0: none yet. */
	_Atomic uint32_t snapshot;
	/*
	 * T, where somebody has changed it: what is recorded (enum setting_event; 0: as in the join), and since when
	 * (shifted), which it wrote first.
	 */
	_Atomic uint32_t events;
	_Atomic uint64_t events_ticks;
};

/* Why T wants a copy of what it did last. */
enum ring_snapshot {
	RING_SNAPSHOT_SIGNAL = 0,    /* EVPROF_SIGNAL */
	RING_SNAPSHOT_EXCEPTION = 1, /* one went uncaught: the collector knows whether that is a trigger */
};
#define RING_SNAPSHOTS 64u

/* What T is asked for from outside (evprof stop, start, mark, start --events). */
enum ring_request {
	RING_REQUEST_STOP = 0,
	RING_REQUEST_START = 1,
	RING_REQUEST_MARK = 2,
	RING_REQUEST_EVENTS = 3, /* what is recorded from now on; whether anything is stays as it was */
};

/* The current writer of definitions. The collector releases the turn of a sampler that is gone. */
enum ring_defines {
	RING_DEFINES_NOBODY = 0,
	RING_DEFINES_PROCESS = 1,
	RING_DEFINES_SAMPLER = 2,
};

/*
 * A slot: the states of one thread's ring.
 *
 *   FREE --T: compare and swap--> CLAIMED --T--> LIVE --T: the thread ends--> ENDED --C: drained--> FREE
 *
 * invariant: tail <= head <= tail + data_words
 * invariant: emitted events of a kind = those between 0 and head + lost[kind]
 */
enum ring_slot_state {
	RING_SLOT_FREE = 0,
	RING_SLOT_CLAIMED = 1,
	RING_SLOT_LIVE = 2,
	RING_SLOT_ENDED = 3,
};

/*
 * The time at a tail. The words behind it give it only up to one with an absolute time. C writes it before that tail,
 * in the place that the current tail does not need. So a target whose collector was killed at any moment finds the one
 * of its tail.
 */
struct ring_tail_time {
	_Atomic uint64_t tail;
	_Atomic uint64_t ticks; /* shifted */
};

struct ring_slot {
	/* T while CLAIMED, constant while LIVE and ENDED. state: as drawn above */
	_Atomic uint32_t state;
	uint32_t tid;		 /* the kernel's thread id, in the target's pid namespace */
	uint64_t start_ticks;	 /* shifted; base of the ticks of the event at start_position */
	uint64_t data_offset;	 /* the same each time that the slot is claimed; written then, for C only */
	uint64_t data_words;	 /* likewise; a power of two */
	uint64_t start_position; /* the first tail: 0, except after a rejoin */

	/* T: the thread that owns the slot */
	_Alignas(64) _Atomic uint64_t head; /* words written */
	_Atomic uint64_t sampled;	    /* 1: the sampler owns the slot (sampling.h). 0: a thread of the target */
	/* If above head: the end of the held event, see ring_hold(). Else meaningless. */
	_Atomic uint64_t held;

	/* C */
	_Alignas(64) _Atomic uint64_t tail;  /* words read */
	struct ring_tail_time tail_times[2]; /* in turn: the time at the tail, and at the previous or next one */

	/* T: the thread that owns the slot */
	_Alignas(64) _Atomic uint64_t lost[WIRE_KINDS];
	uint64_t reserved[8];
};

_Static_assert(sizeof(struct ring_header) <= RING_PAGE_BYTES, "the header is one page");
_Static_assert(sizeof(struct ring_slot) == 768, "a slot is 768 bytes");

static inline uint64_t ring_slot_bytes(unsigned slot, uint64_t ring_bytes)
{
	uint64_t bytes = ring_bytes;

	if (slot >= RING_SLOTS_MEDIUM)
		bytes /= 64;
	else if (slot >= RING_SLOTS_LARGE)
		bytes /= 8;
	return bytes < RING_BYTES_MIN ? RING_BYTES_MIN : bytes;
}

/* Total size of the rings of the first `slots` slots. */
static inline uint64_t ring_data_bytes(uint32_t slots, uint64_t ring_bytes)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < slots; i++)
		bytes += ring_slot_bytes(i, ring_bytes);
	return bytes;
}

/* The ring of a slot: its offset in the memory in bytes, and its size in words, a power of two. */
struct ring_extent {
	uint64_t offset, words;
};

static inline struct ring_extent ring_extent(const struct ring_layout *layout, uint32_t number)
{
	uint32_t small = layout->first_small, whole = small && number > small ? small : number;
	uint64_t bytes = small && number >= small ? RING_BYTES_MIN : ring_slot_bytes(number, layout->ring_bytes);

	invariant(number <= layout->slot_count); /* slot_count itself gives the end of all rings */
	return (struct ring_extent){.offset = layout->data_offset + ring_data_bytes(whole, layout->ring_bytes) +
					      (number - whole) * RING_BYTES_MIN,
				    .words = bytes / sizeof(uint64_t)};
}

/* 1 + the highest slot ever claimed, at most slot_count. */
static inline uint32_t ring_slots_used(const struct ring_layout *layout, const struct ring_header *header)
{
	uint32_t used = atomic_load(&header->slots_used);

	return used < layout->slot_count ? used : layout->slot_count;
}

/*
 * T: claims the lowest free slot from `from` on, so that many short-lived threads use little memory. Lock-free: any
 * number of threads and the sampler may call it concurrently. NULL: all are taken.
 */
static inline struct ring_slot *ring_claim(const struct ring_layout *layout, struct ring_header *header,
					   struct ring_slot *slots, uint32_t from)
{
	for (uint32_t i = from; i < layout->slot_count; i++) {
		uint32_t free = RING_SLOT_FREE, used;

		if (atomic_load_explicit(&slots[i].state, memory_order_relaxed) != RING_SLOT_FREE ||
		    !atomic_compare_exchange_strong_explicit(&slots[i].state, &free, RING_SLOT_CLAIMED,
							     memory_order_acquire, memory_order_relaxed))
			continue;
		used = atomic_load(&header->slots_used);
		/*
		 * Each failure means that another slot was taken, so slot_count bounds them whatever the other side
		 * writes here.
		 */
		for (uint32_t tries = 0; used < i + 1 && tries < layout->slot_count; tries++)
			if (atomic_compare_exchange_strong(&header->slots_used, &used, i + 1))
				break;
		return &slots[i];
	}
	return NULL;
}

/* T: writes the place of the ring into a claimed slot. */
static inline void ring_place(struct ring_slot *slot, struct ring_extent extent)
{
	slot->data_offset = extent.offset;
	slot->data_words = extent.words;
}

/* T: words that may be written without overwriting unread ones. An impossible tail leaves no room. */
static inline uint64_t ring_room(uint64_t words, uint64_t head, uint64_t tail)
{
	return head - tail <= words ? words - (head - tail) : 0;
}

/*
 * T: bytes that may be written to the definitions ring. Acquire: pairs with the collector, which has read what will be
 * overwritten.
 */
static inline uint64_t ring_definitions_room(const struct ring_layout *layout, const struct ring_header *header)
{
	uint64_t head = atomic_load_explicit(&header->definitions_head, memory_order_relaxed);

	return ring_room(layout->definitions_bytes, head, atomic_load(&header->definitions_tail));
}

/* Copies to position `at`, which is not trusted: it is taken modulo the size, so the copy stays in the ring. */
static inline uint64_t ring_copy_definition(const struct ring_layout *layout, uint8_t *base, uint64_t at,
					    const void *bytes, size_t size)
{
	uint8_t *ring = base + layout->definitions_offset;
	size_t place = at & (layout->definitions_bytes - 1), room = layout->definitions_bytes - place;
	size_t first = size < room ? size : room;

	memcpy(ring + place, bytes, first);
	memcpy(ring, (const char *)bytes + first, size - first);
	return at + size;
}

/*
 * T and its sampler: the right to write definitions, held while one is copied. A caller that does not get it retries a
 * moment later. Acquire and release: the holder sees the head that the previous one left.
 */
static inline bool ring_definitions_take(struct ring_header *header, enum ring_defines who)
{
	uint32_t nobody = RING_DEFINES_NOBODY;

	return atomic_compare_exchange_strong_explicit(&header->defines, &nobody, who, memory_order_acquire,
						       memory_order_relaxed);
}

static inline void ring_definitions_give(struct ring_header *header)
{
	atomic_store_explicit(&header->defines, RING_DEFINES_NOBODY, memory_order_release);
}

/*
 * T: writes a definition, for which there is room. One caller at a time. base: start of the memory. record: has its
 * lengths set.
 */
static inline void ring_define(const struct ring_layout *layout, uint8_t *base, const struct wire_definition *record,
			       const char *const strings[WIRE_DEFINITION_STRINGS])
{
	struct ring_header *header = (struct ring_header *)base;
	uint64_t begin = atomic_load_explicit(&header->definitions_head, memory_order_relaxed), at = begin;
	const uint64_t zeros = 0;

	invariant(record->size_bytes == wire_definition_bytes(record));
	invariant(record->size_bytes <= WIRE_DEFINITION_MAX_BYTES);
	invariant(record->size_bytes <= layout->definitions_bytes);
	at = ring_copy_definition(layout, base, at, record, sizeof(*record));
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		at = ring_copy_definition(layout, base, at, strings[i], record->length[i]);
	ring_copy_definition(layout, base, at, &zeros, begin + record->size_bytes - at);
	/* Release: pairs with the collector's read of definitions_head; the bytes are visible before it. */
	atomic_store_explicit(&header->definitions_head, begin + record->size_bytes, memory_order_release);
}

/* T: makes all words below head visible. Pairs with ring_head(). */
static inline void ring_publish(struct ring_slot *slot, uint64_t head)
{
	atomic_store_explicit(&slot->head, head, memory_order_release);
}

/* C: the words below the result may be read. Pairs with ring_publish(). */
static inline uint64_t ring_head(const struct ring_slot *slot)
{
	return atomic_load_explicit(&slot->head, memory_order_acquire);
}

/*
 * T: holds the event between begin and end. The thread may still discard it until it publishes the next event.
 * Everything before begin is published, an event held until now included. C reads a held event only if the thread
 * writes no more. ring_release() precedes overwriting a discarded event.
 */
static inline void ring_hold(struct ring_slot *slot, uint64_t begin, uint64_t end)
{
	invariant(begin < end && end - begin <= RING_HELD_WORDS);
	ring_publish(slot, begin);
	atomic_store_explicit(&slot->held, end, memory_order_release);
}

static inline void ring_release(struct ring_slot *slot)
{
	atomic_store_explicit(&slot->held, 0, memory_order_relaxed);
	/* A release store alone would let the stores of the next words move before it. */
	atomic_thread_fence(memory_order_release);
}

/* C: ring_head() for a thread that writes no more: includes a held event. */
static inline uint64_t ring_last_head(const struct ring_slot *slot)
{
	uint64_t head = ring_head(slot), held = atomic_load_explicit(&slot->held, memory_order_acquire);

	return held > head && held - head <= RING_HELD_WORDS ? held : head;
}

/*
 * C: notes the time at the next tail. turn: alternates. Release: who reads the new ticks in the place of a former tail
 * sees that the tail has moved since.
 */
static inline void ring_note_tail(struct ring_slot *slot, unsigned turn, uint64_t tail, uint64_t ticks)
{
	struct ring_tail_time *time = &slot->tail_times[turn & 1];

	atomic_store_explicit(&time->ticks, ticks, memory_order_release);
	atomic_store_explicit(&time->tail, tail, memory_order_release);
}

/* C: gives the words below tail back to the writer. Pairs with ring_tail(). */
static inline void ring_consume(struct ring_slot *slot, uint64_t tail)
{
	atomic_store_explicit(&slot->tail, tail, memory_order_release);
}

/* T: the words below the result may be written again. Pairs with ring_consume(). */
static inline uint64_t ring_tail(const struct ring_slot *slot)
{
	return atomic_load_explicit(&slot->tail, memory_order_acquire);
}

/*
 * T: the tail, and the time there. A collector that still reads may move the tail in between; then this looks again.
 * The time is the collector's word, so it may be anything.
 */
static inline uint64_t ring_tail_ticks(const struct ring_slot *slot, uint64_t *ticks)
{
	unsigned looks = 0;
	uint64_t tail;

	do {
		tail = ring_tail(slot);
		*ticks = slot->start_ticks;
		for (unsigned i = 0; i < 2 && tail != slot->start_position; i++)
			if (atomic_load_explicit(&slot->tail_times[i].tail, memory_order_acquire) == tail)
				*ticks = atomic_load_explicit(&slot->tail_times[i].ticks, memory_order_acquire);
	} while (ring_tail(slot) != tail && ++looks < RING_TAIL_LOOKS);
	return tail;
}

#endif
