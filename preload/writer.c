/*
 * writer.c - the slow path of the ring: threads that begin and end, full rings, gaps.
 *
 * Called from hooks, with or without the GIL, so: no allocation, no lock but the process's own, errno kept, and every
 * wait bounded.
 */
#include "writer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "definitions.h"
#include "greenlets.h"
#include "process.h"
#include "rejoin.h"

#define POPULATE_BYTES ((size_t)512 << 10)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* linux/mman.h, since 5.14 */
#endif

/*
 * How often the stack is repeated, for readers that begin in the middle. The depth counts, so that deep recursion costs
 * no more of the time than a shallow stack does (docs/design.md, Windows).
 */
#define STACK_EVERY_WORDS (UINT64_C(1) << 20)
#define STACK_WORDS_A_FRAME 4096

struct writer writer_absent;
int writer_fast;
static struct writer writer_ended; /* of a thread whose destructors already ran */

__thread struct thread_self thread_self __attribute__((tls_model("initial-exec"))) = {.writer = &writer_absent};

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static void thread_gone(void *value)
{
	(void)value;
	writer_end_thread();
}

static void make_thread_key(void)
{
	pthread_key_create(&thread_key, thread_gone);
}

/* The lowest free slot, so that many short threads use little memory. */
static struct ring_slot *claim_slot(void)
{
	for (unsigned i = 0; i < process->header->slot_count; i++) {
		struct ring_slot *slot = &process->slots[i];
		uint32_t free = RING_SLOT_FREE;

		if (atomic_load_explicit(&slot->state, memory_order_relaxed) == RING_SLOT_FREE &&
		    atomic_compare_exchange_strong_explicit(&slot->state, &free, RING_SLOT_CLAIMED,
							    memory_order_acquire, memory_order_relaxed)) {
			uint32_t used = atomic_load(&process->header->slots_used);

			while (used < i + 1 &&
			       !atomic_compare_exchange_weak(&process->header->slots_used, &used, i + 1))
				;
			return slot;
		}
	}
	return NULL;
}

static void lose_unslotted(unsigned kind)
{
	atomic_fetch_add_explicit(&process->header->lost_unslotted[kind], 1, memory_order_relaxed);
}

/*
 * The first thread of a process fills the beginning of its ring while Python starts: one call for those pages is cheaper
 * than a fault for each. Older kernels (before 5.14) do not know it, and fault.
 */
static void populate(struct writer *writer)
{
	size_t bytes = (writer->mask + 1) * sizeof(uint64_t);

	madvise(writer->words, bytes < POPULATE_BYTES ? bytes : POPULATE_BYTES, MADV_POPULATE_WRITE);
}

/* Field by field: another thread may take the room (process_set_status) at the same time. */
static void clear_writer(struct writer *writer, struct ring_slot *slot)
{
	writer_set_room(writer, 0, 0);
	writer->words = (uint64_t *)(process->base + slot->data_offset);
	writer->mask = slot->data_words - 1;
	writer->head = 0;
	writer->last_ticks = slot->start_ticks;
	writer->slot = slot;
	writer->gap = 0;
	writer->resync = 0;
	writer->throwing = 0;
	writer->unwinding = NULL;
}

/* Gives the calling thread a ring. NULL: there is none left. */
static struct writer *begin_thread(void)
{
	struct ring_slot *slot;
	struct writer *writer;

	process_lock(); /* the memory is not exchanged (rejoin.c) under a thread that begins */
	slot = claim_slot();
	if (!slot) {
		process_unlock();
		return NULL;
	}
	process_place_slot(slot);
	writer = &process->writers[slot - process->slots];
	slot->tid = (uint32_t)syscall(SYS_gettid);
	slot->start_ticks = clock_now();
	clear_writer(writer, slot);
	if (slot == process->slots)
		populate(writer);
	/* Release: the collector may read tid and start once it sees LIVE. */
	atomic_store_explicit(&slot->state, RING_SLOT_LIVE, memory_order_release);
	process_unlock();
	thread_self.writer = writer;
	pthread_once(&thread_key_once, make_thread_key);
	pthread_setspecific(thread_key, writer);
	return writer;
}

static uint64_t room_of(const struct writer *writer)
{
	return writer->mask + 1 - (writer->head - ring_tail(writer->slot));
}

static int has_quarter(const void *writer)
{
	return room_of(writer) >= (((const struct writer *)writer)->mask + 1) / 4;
}

/* Waits for room, within the bound. Less than what was hoped for will do. */
static int wait_for_room(struct writer *writer)
{
	return process_wait_for(has_quarter, writer) || room_of(writer) > 2 * WRITER_SPARE_WORDS;
}

void writer_lose(struct writer *writer, unsigned kind)
{
	_Atomic uint64_t *lost = &writer->slot->lost[kind];

	/* One writer: no read-modify-write needed. */
	atomic_store_explicit(lost, atomic_load_explicit(lost, memory_order_relaxed) + 1, memory_order_relaxed);
	writer->gap++;
	writer_set_room(writer, 0, 0);
}

/* Marks what was lost, now that there is room. The call stack follows where it can be read. */
static void close_gap(struct writer *writer)
{
	if (!writer->gap)
		return;
	writer_put_extra(writer, wire_head(WIRE_GAP, 0), writer->gap, 0);
	writer->gap = 0;
	writer->resync = 1;
}

static bool stack_is_due(const struct writer *writer)
{
	return writer->head >= writer->stack_due && config.events & (EVENT_CALL | EVENT_C_CALL);
}

/*
 * The stack can be read only by a call or return, which holds the GIL. Until one comes and there was a gap, memory events go
 * one by one through here; where the stack only is to be repeated, a few at a time.
 */
static void put_stack(struct writer *writer, unsigned kind)
{
	uint64_t depth;

	if (kind >= WIRE_EXCEPTION || !(writer->resync || stack_is_due(writer)))
		return;
	depth = definitions_put_stack(writer, kind, !writer->resync);
	writer->resync = 0;
	writer->stack_due = writer->head + STACK_EVERY_WORDS;
	if (depth > STACK_EVERY_WORDS / STACK_WORDS_A_FRAME)
		writer->stack_due = writer->head + depth * STACK_WORDS_A_FRAME;
}

/* How much of the room may be used until it is time to look again. */
static uint64_t next_look(const struct writer *writer, uint64_t room)
{
	uint64_t most = STACK_EVERY_WORDS;

	if (stack_is_due(writer))
		most = WRITER_AHEAD_WORDS; /* a memory event, most likely */
	else if (writer->stack_due > writer->head && writer->stack_due - writer->head < most)
		most = writer->stack_due - writer->head;
	if (config.socket[0] && most > REJOIN_EVERY_WORDS)
		most = REJOIN_EVERY_WORDS;
	if (unlikely(greenlets_expected) && !thread_self.greenlets)
		most = 1; /* the next event looks again */
	return room < most ? room : most;
}

static struct writer *refill(struct writer *writer, unsigned kind)
{
	uint64_t room;

	rejoin_if_lost(kind, false);
	if (unlikely(greenlets_expected) && kind < WIRE_EXCEPTION)
		greenlets_watch();
	if (room_of(writer) <= 2 * WRITER_SPARE_WORDS && !wait_for_room(writer)) {
		writer_lose(writer, kind);
		return NULL;
	}
	close_gap(writer);
	put_stack(writer, kind);
	room = room_of(writer);
	if (room <= 2 * WRITER_SPARE_WORDS) {
		writer_lose(writer, kind);
		return NULL;
	}
	room = next_look(writer, room - WRITER_SPARE_WORDS);
	room = writer->resync ? 0 : writer->head + room;
	writer_set_room(writer, room, writer_fast && !thread_self.unsettled ? room : 0);
	/* Against evprof_stop() in another thread, which sets the status first and takes the room then. */
	if (unlikely(atomic_load(&process->status) != PROCESS_JOINED))
		writer_set_room(writer, 0, 0);
	return writer;
}

struct writer *writer_refill(unsigned kind)
{
	int saved_errno = errno, recording = process_recording();
	struct writer *writer = thread_self.writer; /* joining may have changed it */

	if (!recording || writer == &writer_ended) {
		if (writer->slot)
			writer->resync = 1; /* calls and returns go by unseen */
		errno = saved_errno;
		return NULL;
	}
	if (!writer->slot) {
		writer = begin_thread();
		if (!writer) {
			lose_unslotted(kind);
			errno = saved_errno;
			return NULL;
		}
		writer->resync = (config.events & (EVENT_CALL | EVENT_C_CALL)) != 0;
		writer_put(writer, wire_head(WIRE_THREAD_START, 0));
	}
	writer = refill(writer, kind);
	errno = saved_errno;
	return writer;
}

void writer_expect_stack(void)
{
	struct writer *writer = thread_self.writer;

	if (!writer->slot)
		return;
	writer->resync = 1;
	writer_set_room(writer, 0, 0);
}

void writer_put_time(struct writer *writer, uint64_t now)
{
	/* A counter that went back a little (another core) stands still instead. */
	if ((int64_t)(now - writer->last_ticks) < 0)
		return;
	writer->words[writer->head & writer->mask] = wire_word(wire_head(WIRE_TIME, 0), 0);
	writer->words[(writer->head + 1) & writer->mask] = now;
	writer->head += 2;
	writer->last_ticks = now;
}

void writer_end_thread(void)
{
	struct writer *writer = thread_self.writer;
	struct ring_slot *slot = writer->slot;
	int recording;

	thread_self.writer = &writer_ended;
	if (!slot)
		return;
	recording = process_recording();
	/* A slot is given back while recording is stopped, too; its end is then not told. */
	if (!recording && atomic_load(&process->status) != PROCESS_STOPPED)
		return;
	if (recording && room_of(writer) > WRITER_SPARE_WORDS)
		writer_put(writer, wire_head(WIRE_THREAD_END, 0));
	writer->slot = NULL;
	/*
	 * Release: all words of the ring are there before the slot is seen to have ended. Last: from here on slot and
	 * writer may be another thread's.
	 */
	atomic_store_explicit(&slot->state, RING_SLOT_ENDED, memory_order_release);
}
