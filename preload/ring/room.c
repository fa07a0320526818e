/*
 * room.c - the slow path of a writer that stays with its ring: its room, lost events, times.
 *
 * Called from hooks, with or without the GIL. Therefore it allocates nothing, takes no lock, and keeps errno.
 */
#include "ring/room.h"

#include <sys/mman.h>

#include "base/config.h"
#include "ring/process.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* linux/mman.h, since 5.14 */
#endif

_Static_assert(RING_BYTES_MIN / sizeof(uint64_t) % WRITER_CHUNK_WORDS == 0,
	       "a chunk does not go over the end of a ring");

#define WAKE_WORDS 32768 /* unread words in a ring, or a quarter of it: wakes a collector that sleeps */

struct writer writer_absent;
int writer_fast;

__thread struct thread_self thread_self __attribute__((tls_model("initial-exec"))) = {.writer = &writer_absent};

#ifdef EVPROF_DEBUG
__thread uint64_t writer_free_end __attribute__((tls_model("initial-exec")));

void room_begin_free_end(uint64_t end)
{
	writer_free_end = end;
}

/* A tail of a hostile collector may go back, and what was free before is not free any more. */
static void note_free_end(uint64_t end)
{
	if (end > writer_free_end)
		writer_free_end = end;
}
#else
void room_begin_free_end(uint64_t end)
{
	(void)end;
}

static void note_free_end(uint64_t end)
{
	(void)end;
}
#endif

void writer_populate(struct writer *writer, size_t most)
{
	size_t bytes = (writer->mask + 1) * sizeof(uint64_t);

	madvise(writer->words, bytes < most ? bytes : most, MADV_POPULATE_WRITE);
}

uint64_t room_of(const struct writer *writer)
{
	uint64_t room = ring_room(writer->mask + 1, writer->head, ring_tail(writer->slot));

	note_free_end(writer->head + room);
	return room;
}

void room_wake_collector(const struct writer *writer)
{
	uint32_t sleep = atomic_load_explicit(&process->header->sleep, memory_order_relaxed);
	uint64_t words = writer->mask + 1, enough = words / 4 < WAKE_WORDS ? words / 4 : WAKE_WORDS;

	if (unlikely(sleep != RING_AWAKE) && (sleep != RING_SLEEPS_UNTIL_FULL || words - room_of(writer) >= enough))
		process_wake_collector();
}

int room_has_quarter(const void *writer)
{
	return room_of(writer) >= (((const struct writer *)writer)->mask + 1) / 4;
}

void room_lose_until_tail_moves(struct writer *writer)
{
	uint64_t tail = ring_tail(writer->slot);
	bool full = writer->head - tail - 1 <= writer->mask && !room_has_quarter(writer);

	writer_set_room(writer, 0, full ? tail + 1 : 0);
	/* As in writer_take_chunk(). */
	if (unlikely(atomic_load(&process->status) != PROCESS_JOINED))
		writer_set_room(writer, 0, 0);
}

void room_count_lost(struct writer *writer, unsigned kind)
{
	writer_count_lost(writer, kind);
	if (kind == WIRE_MALLOC)
		thread_self.lost_block = WRITER_LOST_MALLOC;
}

void room_count_unwritten(unsigned kind)
{
	const struct writer *writer = thread_self.writer;
	_Atomic uint64_t *lost = writer->slot	   ? writer->slot->lost
				 : process->header ? process->header->lost_unslotted
						   : NULL;

	if (lost)
		atomic_fetch_add_explicit(&lost[kind], 1, memory_order_relaxed);
}

bool room_may_write(unsigned kind)
{
	const struct writer *writer = thread_self.writer;

	if (!thread_self.writing && !thread_self.nesting && (!writer->slot || writer_is_quiet(writer)))
		return true;
	room_count_unwritten(kind);
	return false;
}

void writer_lose(struct writer *writer, unsigned kind)
{
	room_count_lost(writer, kind);
	room_lose_until_tail_moves(writer);
}

bool writer_unlose(struct writer *writer)
{
	bool known;

	writer_enter();
	thread_self.lost_block = NULL;
	known = writer->gap && writer->gap == thread_self.lost_gap;
	if (known) {
		atomic_fetch_sub_explicit(&writer->slot->lost[WIRE_MALLOC], 1, memory_order_relaxed);
		writer->gap--;
	}
	writer_leave();
	return known;
}

void writer_take_chunk(struct writer *writer)
{
	uint64_t room = __atomic_load_n(&writer->room, __ATOMIC_RELAXED), end;

	room_wake_collector(writer);
	if (writer_fast && !thread_self.profile_checks) {
		end = writer_chunk(writer);
		writer->ids = ids_look(&process->ids);
		__atomic_store_n(&writer->limit, end < room ? end : room, __ATOMIC_SEQ_CST);
	}
	/* evprof_stop() and rejoin() in another thread set these first and clear the room afterwards. */
	if (unlikely(atomic_load(&process->status) != PROCESS_JOINED) ||
	    unlikely(__atomic_load_n(&writer->asked, __ATOMIC_SEQ_CST)))
		writer_set_room(writer, 0, 0);
}

void room_show_held(struct writer *writer)
{
	if (writer->held_end == writer->head)
		ring_publish(writer->slot, writer->head);
	writer->held_end = 0;
}

void room_settle(struct writer *writer)
{
	if (!writer->slot)
		return;
	if ((writer->head & writer->mask) == writer->mask && room_of(writer) > 1) { /* fills the lap's last word */
		writer_store(writer, writer->head, wire_word(wire_head(WIRE_NATIVE_STACK, 0), 0));
		ring_publish(writer->slot, ++writer->head);
	}
	writer->lap = (uintptr_t)writer->words - (writer->head & ~writer->mask) * sizeof(uint64_t);
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
	/* A counter that went back a little (another core) keeps its last value. */
	if ((int64_t)(now - writer->last_ticks) < 0)
		return;
	/* Few words follow, so the next check for a sleeping collector would be far away. */
	if (now - writer->last_ticks >= CLOCK_QUIET_TICKS) {
		writer_set_room(writer, 0, 0);
		room_wake_collector(writer);
	}
	writer_store(writer, writer->head,
		     config.events & EVENT_CPU ? wire_cpu_word(clock_thread_cpu())
					       : wire_word(wire_head(WIRE_TIME, 0), 0));
	writer_store(writer, writer->head + 1, now);
	writer->head += 2;
	writer->last_ticks = now;
	writer->cpu_due = (uint32_t)writer->head + CPU_EVERY_WORDS;
}

void writer_put_number(struct writer *writer, unsigned kind, uint64_t number)
{
	if (number <= WIRE_VALUE_MAX)
		writer_put(writer, wire_extended(kind, 0, (uint32_t)number));
	else
		writer_put_extra(writer, wire_extended(kind, 1, 0), number, 0);
}

void writer_put_words(struct writer *writer, uint32_t head, const uint64_t *extra)
{
	uint64_t stamp, at;

	writer_enter();
	stamp = writer_stamp(writer);
	at = writer->head;
	writer_store(writer, at++, stamp | head);
	for (unsigned i = 0; i < wire_extra_words(head); i++)
		writer_store(writer, at++, extra[i]);
	writer->head = at;
	ring_publish(writer->slot, at);
	writer_leave();
}

void writer_put_realloc_begin(struct writer *writer, const void *old)
{
	uint64_t address = (uintptr_t)old;

	writer_put_words(writer, wire_extended(WIRE_REALLOC_BEGIN, 1, 0), &address);
}
