/*
 * ring.h - the shared memory between one process image (the target) and the collector.
 *
 * Owns the layout of the memfd, the states in it, and the inline steps of whoever writes or reads a ring: claiming a
 * slot, publishing and consuming events, writing a definition. The target creates the memfd, seals it against shrinking
 * and sends it with the handshake (control.h). Prose: docs/wire.md.
 *
 *   offset 0                 struct ring_header, one page
 *   definitions_offset       bytes of the definitions ring
 *   slots_offset             struct ring_slot[slot_count], one for each live thread
 *   slot's data_offset       64-bit words of that thread's event ring
 *
 * The file is sparse: memory is used where it was written. The collector maps the header and the slots only; it reads
 * definitions and events with pread(2), so nothing that the target does to the file can fault it.
 *
 * Who may write a field is said in the comment of its group: T the target, C the collector. Every shared position is
 * a count since the start that only grows; the place in the ring is the count modulo the size.
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
#define RING_VERSION 1u
#define RING_VERSION_NATIVE 2u /* there may be definitions of native stacks; nothing else differs */
#define RING_PAGE_BYTES 4096u
#define RING_TEXT_BYTES 768u

/*
 * Slots come in three classes, so that a thousand live threads have a ring each while the whole stays bounded. A
 * thread takes the lowest free slot. Sizes are fractions of EVPROF_RING_SIZE, with a floor.
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
#define RING_HELD_WORDS 16u /* the most between head and held */

enum ring_clock {
	RING_CLOCK_MONOTONIC = 0, /* clock_gettime(CLOCK_MONOTONIC), ns, as outside of the time namespace */
	RING_CLOCK_TSC = 1,	  /* x86-64 rdtsc, the same for all processes of the host */
	RING_CLOCK_CNTVCT = 2,	  /* aarch64 cntvct_el0, likewise */
};

/* collector_state: written by C. The target may read it at any time; it waits on it (futex) only when it ends. */
enum ring_collector_state {
	RING_COLLECTOR_NONE = 0,     /* not read yet */
	RING_COLLECTOR_ATTACHED = 1, /* reading */
	RING_COLLECTOR_REFUSED = 2,  /* final; text says why */
	RING_COLLECTOR_FAILED = 3,   /* final; text says why: what is in the trace file is whole, the rest is lost */
	RING_COLLECTOR_DRAINED = 4,  /* this process is complete in the file; others of the tree still run */
	RING_COLLECTOR_FINISHED = 5, /* final; the trace file is complete */
};

/* target_state: written by T. */
enum ring_target_state {
	RING_TARGET_RUNNING = 0,
	RING_TARGET_EXITING = 1,  /* no more events will come from this image; the process may wait for the summary */
	RING_TARGET_REPLACED = 2, /* the image goes on with another ring (rejoin); this one is complete */
};

/*
 * sleep: what the collector says before it sleeps for more than some milliseconds. Where the header says that the
 * target wakes it, the target sets AWAKE and connects to the socket (control.h).
 */
enum ring_sleep {
	RING_AWAKE = 0,
	RING_SLEEPS_UNTIL_FULL = 1,  /* wake it when a ring fills: it looks a few times a second */
	RING_SLEEPS_UNTIL_EVENT = 2, /* wake it at the first event of a thread that was quiet: it looks in seconds */
};

/*
 * Where everything is: of T, before the handshake; constant afterwards, but for slot_count, which T may make smaller.
 * Whoever writes or reads a ring goes by a copy in its own memory, which it made itself (T) or has checked (C, the
 * sampler), and never by what stands here: the other side can change that at any time.
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
	uint64_t start_ticks; /* shifted; when the memory was made */
	uint64_t ring_bytes;  /* of a large ring, see ring_slot_bytes() */
	uint64_t data_offset; /* of the first slot's ring */
	uint32_t first_small; /* slots from here on have rings of RING_BYTES_MIN; 0: none. Of T's own copy only */
};

struct ring_header {
	struct ring_layout layout;

	/* T, while running */
	_Alignas(64) _Atomic uint64_t definitions_head; /* bytes written */
	_Atomic uint32_t target_state;
	_Atomic uint32_t forks;	     /* forks begun, so that the collector waits a moment for the child to join */
	_Atomic uint32_t slots_used; /* 1 + the highest slot ever claimed */
	_Atomic uint32_t waiting;    /* a thread waits for room: poll soon */
	_Atomic uint64_t lost_definitions;
	_Atomic uint64_t waits;		/* how often a thread waited for room ... */
	_Atomic uint64_t waited_us;	/* ... and how long, all threads together */
	_Atomic uint64_t samples;	/* stacks that a sampler read ... */
	_Atomic uint64_t samples_torn;	/* ... and those that changed so that they were put together of several looks */
	_Atomic uint32_t ending_signal; /* with EXITING: by which the image is about to end itself; 0: it exits */
	_Atomic uint32_t wakes;		/* 1: wakes a collector that sleeps; 0: it cannot, and has to be looked at */
	_Atomic uint32_t defines;	/* enum ring_defines: who writes a definition */
	/* Events of threads that found no free slot, by kind. */
	_Alignas(64) _Atomic uint64_t lost_unslotted[WIRE_KIND_SLOTS];

	/* C, while running */
	_Alignas(64) _Atomic uint64_t definitions_tail; /* bytes read */
	_Atomic uint32_t collector_state;		/* futex */
	_Atomic uint32_t heartbeat;			/* changes whenever the collector looks here */
	_Atomic int32_t collector_pid;			/* 0: it is in another pid namespace than T */
	/*
	 * C, valid once collector_state is DRAINED or FINISHED: what the closing line says, for the whole tree so far
	 */
	_Atomic uint32_t summary_processes;
	_Atomic uint32_t summary_running;   /* processes still alive, this one not counted */
	_Atomic uint32_t summary_unsampled; /* processes whose sampler was ended before them */
	_Atomic uint64_t summary_events;
	_Atomic uint64_t summary_lost;
	_Atomic uint64_t collector_start_time; /* like control.h's start_time; 0: not known */
	/* C, valid once collector_state says so: the reason, or the path of the trace file. NUL-terminated UTF-8. */
	char text[RING_TEXT_BYTES];
	/* enum ring_sleep. C and T, as said there. */
	_Atomic uint32_t sleep;
};

/* Whose turn it is to write definitions. The collector takes that of a sampler that is gone. */
enum ring_defines {
	RING_DEFINES_NOBODY = 0,
	RING_DEFINES_PROCESS = 1,
	RING_DEFINES_SAMPLER = 2,
};

/*
 * A slot: the life of one thread's ring.
 *
 *   FREE --T: compare and swap--> CLAIMED --T--> LIVE --T: the thread ends--> ENDED --C: drained--> FREE
 *
 * invariant: tail <= head <= tail + data_words
 * invariant: events of a kind that the thread emitted = those between 0 and head + lost[kind]
 */
enum ring_slot_state {
	RING_SLOT_FREE = 0,
	RING_SLOT_CLAIMED = 1,
	RING_SLOT_LIVE = 2,
	RING_SLOT_ENDED = 3,
};

struct ring_slot {
	/* T while CLAIMED, constant while LIVE and ENDED; state as drawn above */
	_Atomic uint32_t state;
	uint32_t tid;		 /* the kernel's, in the target's pid namespace */
	uint64_t start_ticks;	 /* shifted; the ticks of the event at start_position count from here */
	uint64_t data_offset;	 /* the same for each life of the slot; written when it is claimed, for C alone */
	uint64_t data_words;	 /* likewise; a power of two */
	uint64_t start_position; /* the tail at first: 0, but after a rejoin */

	/* T: the thread that owns the slot */
	_Alignas(64) _Atomic uint64_t head; /* words written */
	/*
	 * Where a sampler owns the slot (sampling.h): the time of the event that ends at head, or will in a moment;
	 * else 0.
	 */
	_Atomic uint64_t head_ticks;
	/* Above head: where the event ends that the thread holds, see ring_hold(). Otherwise it says nothing. */
	_Atomic uint64_t held;

	/* C */
	_Alignas(64) _Atomic uint64_t tail; /* words read */

	/* T: the thread that owns the slot */
	_Alignas(64) _Atomic uint64_t lost[WIRE_KIND_SLOTS];
	uint64_t reserved[8];
};

_Static_assert(sizeof(struct ring_header) <= RING_PAGE_BYTES, "the header is one page");
_Static_assert(sizeof(struct ring_slot) == 512, "a slot is 512 bytes");

static inline uint64_t ring_slot_bytes(unsigned slot, uint64_t ring_bytes)
{
	uint64_t bytes = ring_bytes;

	if (slot >= RING_SLOTS_MEDIUM)
		bytes /= 64;
	else if (slot >= RING_SLOTS_LARGE)
		bytes /= 8;
	return bytes < RING_BYTES_MIN ? RING_BYTES_MIN : bytes;
}

/* How many bytes the rings of so many slots have in all. */
static inline uint64_t ring_data_bytes(uint32_t slots, uint64_t ring_bytes)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < slots; i++)
		bytes += ring_slot_bytes(i, ring_bytes);
	return bytes;
}

/* The ring of a slot: bytes from the start of the memory, and how many words, a power of two. */
struct ring_extent {
	uint64_t offset, words;
};

static inline struct ring_extent ring_extent(const struct ring_layout *layout, uint32_t number)
{
	uint32_t small = layout->first_small, whole = small && number > small ? small : number;
	uint64_t bytes = small && number >= small ? RING_BYTES_MIN : ring_slot_bytes(number, layout->ring_bytes);

	invariant(number <= layout->slot_count); /* the end of all rings, too */
	return (struct ring_extent){.offset = layout->data_offset + ring_data_bytes(whole, layout->ring_bytes) +
					      (number - whole) * RING_BYTES_MIN,
				    .words = bytes / sizeof(uint64_t)};
}

/* 1 + the highest slot ever claimed, of those that there are. */
static inline uint32_t ring_slots_used(const struct ring_layout *layout, const struct ring_header *header)
{
	uint32_t used = atomic_load(&header->slots_used);

	return used < layout->slot_count ? used : layout->slot_count;
}

/*
 * T: claims the lowest free slot from this one on, so that many short threads use little memory. Any thread may,
 * without a lock, and a sampler beside them. NULL: all are taken.
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
		/* Each failure is another slot that was taken: there are no more of them, whoever else writes here. */
		for (uint32_t tries = 0; used < i + 1 && tries < layout->slot_count; tries++)
			if (atomic_compare_exchange_strong(&header->slots_used, &used, i + 1))
				break;
		return &slots[i];
	}
	return NULL;
}

/* T: publishes where the ring of a slot that was claimed is. */
static inline void ring_place(struct ring_slot *slot, struct ring_extent extent)
{
	slot->data_offset = extent.offset;
	slot->data_words = extent.words;
}

/* T: words that may be written before those of the tail are reached. A tail that makes no sense leaves none. */
static inline uint64_t ring_room(uint64_t words, uint64_t head, uint64_t tail)
{
	return head - tail <= words ? words - (head - tail) : 0;
}

/*
 * T: bytes that may be written to the definitions. Acquire: pairs with the collector, which has read what is
 * overwritten.
 */
static inline uint64_t ring_definitions_room(const struct ring_layout *layout, const struct ring_header *header)
{
	uint64_t head = atomic_load_explicit(&header->definitions_head, memory_order_relaxed);

	return ring_room(layout->definitions_bytes, head, atomic_load(&header->definitions_tail));
}

/* At a place of which nothing is believed: it stays in the ring wherever it is. */
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
 * T and its sampler: the right to write definitions, for as long as it takes to copy one. Who does not get it tries
 * again a moment later. Acquire and release: who has it sees the head that the one before has left.
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

/* T: writes a definition, for which there is room. One at a time. base: of the memory. The record has its lengths. */
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
	/* Release: the collector reads the bytes once it sees the head. */
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
 * T: what stands between begin and end is an event that the thread may yet take back, until it publishes the next one.
 * All before it is published: of what was held until now, too. C reads it only if the thread writes no more.
 * ring_release() comes before what is taken back is written over.
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
	/* A release store alone would let the words that are written next go before it. */
	atomic_thread_fence(memory_order_release);
}

/* C: as ring_head(), of a thread that writes no more. */
static inline uint64_t ring_last_head(const struct ring_slot *slot)
{
	uint64_t head = ring_head(slot), held = atomic_load_explicit(&slot->held, memory_order_acquire);

	return held > head && held - head <= RING_HELD_WORDS ? held : head;
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

#endif
