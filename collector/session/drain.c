/*
 * drain.c - reads events from a process's shared memory. Called by the session, once a round.
 *
 * The process that wrote the data may be broken or hostile. A position is copied once, the copy is checked, and the
 * copy is used. A failed check ends the reading of that slot and nothing else.
 */
#include "session/drain.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring/events.h"
#include "ring/ring_read.h"
#include "evprof/invariant.h"
#include "base/log.h"
#include "session/process.h"
#include "trace/trace_output.h"

#define CHUNK_WORDS (UINT64_C(256) << 10 >> 3) /* a chunk worth writing */
#define AHEAD_BYTES (UINT64_C(256) << 10)      /* of a ring are populated ahead of its producer */
#define AHEAD_STEP_BYTES (UINT64_C(64) << 10)
#define GATHER_NS UINT64_C(200000000)		   /* longest stay of an event in a ring ... */
#define GATHER_WITH_INIT_NS UINT64_C(20000000)	   /* ... and where we may be killed together with the program */
#define PUNCH_BYTES (UINT64_C(256) << 10)	   /* a ring that used more has its memory freed */
#define UNREAD_PLAUSIBLE_BYTES (UINT64_C(1) << 20) /* below this the file is not checked */
#define THREAD_WORDS 128u			   /* cost of the beginning or end of a thread, counted in the share */
#define PUNCH_FROM_SLOT 4u			   /* the first few are reused soon */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* linux/mman.h, since 5.14 */
#endif

static void reader_damaged(struct process *process, struct slot_reader *reader, const char *what)
{
	if (!reader->corrupt)
		log_warning("thread %u of process %d: %s; no more of its events are read", reader->tid,
			    (int)process->pid, what);
	reader->corrupt = true;
	reader->head = reader->tail;
	reader->grown = 0;
	reader->lost.of[WIRE_NONE]++;
}

static bool is_ring(const struct ring_layout *layout, uint64_t offset, uint64_t words)
{
	return words && !(words & (words - 1)) && words <= RING_BYTES_MAX / sizeof(uint64_t) &&
	       layout_may_hold_ring(layout, offset, words * sizeof(uint64_t));
}

/* Makes the reader of a claimed slot, when the slot is first seen in use. NULL: no memory now. */
static struct slot_reader *open_reader(struct process *process, unsigned index)
{
	struct ring_slot *slot = &process->slots[index];
	struct slot_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->thread = trace_output_thread(process->trace);
	process->trace->open_threads++;
	reader->tid = *(volatile uint32_t *)&slot->tid;
	reader->ticks = reader->written = *(volatile uint64_t *)&slot->start_ticks;
	reader->data_offset = *(volatile uint64_t *)&slot->data_offset;
	reader->data_words = *(volatile uint64_t *)&slot->data_words;
	reader->tail = reader->head = ring_tail(slot); /* 0, except after a rejoin */
	process->readers[index] = reader;
	trace_output_json(
	    process->trace, process->number, reader->thread,
	    meta_thread(process->number, reader->thread, reader->tid, reader->ticks, atomic_load(&slot->sampled) != 0),
	    KEPT_STATE);
	reader->in_trace = !process->trace->failed;
	if (!is_ring(&process->layout, reader->data_offset, reader->data_words))
		reader_damaged(process, reader, "its ring is not inside the memfd");
	return reader;
}

/* Lost events of a thread, as counted by the thread and by the collector. */
static void reader_lost(const struct process *process, unsigned index, struct meta_counts *lost)
{
	const struct ring_slot *slot = &process->slots[index];

	*lost = process->readers[index]->lost;
	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		lost->of[kind] += atomic_load_explicit(&slot->lost[kind], memory_order_relaxed);
}

/* Frees the slot for another thread. Punching a hole into the file returns the memory of a large ring to the system. */
static void release_slot(struct process *process, unsigned index)
{
	struct slot_reader *reader = process->readers[index];
	struct ring_slot *slot = &process->slots[index];

	if (index >= PUNCH_FROM_SLOT && !reader->corrupt && reader->head * sizeof(uint64_t) > PUNCH_BYTES)
		fallocate(process->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)reader->data_offset,
			  (off_t)(reader->data_words * sizeof(uint64_t)));
	atomic_store_explicit(&slot->head, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->held, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->tail, 0, memory_order_relaxed);
	for (unsigned turn = 0; turn < 2; turn++)
		ring_note_tail(slot, turn, 0, 0);
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		atomic_store_explicit(&slot->lost[kind], 0, memory_order_relaxed);
	slot->tid = 0;
	slot->start_ticks = 0;
	/* Release: pairs with the target's acquire when it claims the slot. */
	atomic_store_explicit(&slot->state, RING_SLOT_FREE, memory_order_release);
}

/* Notes what changes the life of the process: fork, exec and exit. */
static void note_event(struct process *process, unsigned kind, uint64_t number, uint64_t ticks)
{
	if (kind == WIRE_FORK && number && number <= INT32_MAX)
		process_note_fork(process, (pid_t)number);
	else if (kind == WIRE_EXIT && number & WIRE_EXIT_KNOWN)
		process->status = number & 0xff;
	else if (kind == WIRE_EXEC || kind == WIRE_EXEC_FAILED)
		process->exec_seen = kind == WIRE_EXEC;
	if (kind != WIRE_PAUSE || ticks < process->totals.pause_ticks)
		return;
	process->totals.paused = number == 1;
	process->totals.pause_ticks = ticks;
}

static void note_lifecycle(struct process *process, const struct events *events)
{
	const uint64_t *extra = events->extra;
	uint64_t ticks = events->first_ticks;

	if (!(events->counts[WIRE_FORK] | events->counts[WIRE_EXIT] | events->counts[WIRE_EXEC] |
	      events->counts[WIRE_EXEC_FAILED] | events->counts[WIRE_PAUSE]))
		return;
	for (uint32_t i = 0; i < events->events; i++) {
		uint32_t head = events->heads[i];

		ticks = wire_time_of(wire_head_plain_kind(head), ticks, events->ticks[i], extra);
		if (wire_head_plain_kind(head) == WIRE_EXTENDED)
			note_event(process, wire_head_kind(head), wire_number(head, extra), ticks);
		extra += wire_extra_words(head);
	}
}

static void count_events(struct slot_reader *reader, const struct events *events, bool written)
{
	struct meta_counts *counts = written ? &reader->events : &reader->lost;

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		counts->of[kind] += events->counts[kind];
	reader->lost.of[WIRE_NONE] += events->unknown;
}

/* Number of lost events that the gaps among the events stand for. */
static uint64_t sum_gaps(const struct events *events)
{
	const uint64_t *extra = events->extra;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < events->events; i++) {
		sum += wire_head_kind(events->heads[i]) == WIRE_GAP ? *extra : 0;
		extra += wire_extra_words(events->heads[i]);
	}
	return sum;
}

/* last: written even when the disk is full. */
static bool write_chunk(struct process *process, struct slot_reader *reader, const struct events *events, bool last)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_EVENTS,
				    .process = process->number,
				    .thread = reader->thread,
				    .first_ticks = events->first_ticks,
				    .last_ticks = events->last_ticks,
				    .events = events->events,
				    .extras = events->extras};
	const void *payload;
	size_t bytes;

	if (events->events == 0 || (process->trace->failed && !last))
		return false;
	payload = events_payload(process->drain->events, events, &bytes);
	if ((last ? trace_output_last : trace_output_chunk)(process->trace, &chunk, payload, bytes) < 0)
		return false;
	reader->written = events->last_ticks;
	return true;
}

static void write_events(struct process *process, struct slot_reader *reader, const struct events *events)
{
	bool written = write_chunk(process, reader, events, false);

	count_events(reader, events, written);
	if (written)
		process->totals.events += trace_output_count_events(process->trace, events->counts);
	if (written && events->counts[WIRE_GAP])
		reader->in_gaps += sum_gaps(events);
	note_lifecycle(process, events);
	reader->ticks = events->last_ticks;
	if (events->last_ticks > process->last_ticks)
		process->last_ticks = events->last_ticks;
}

/*
 * Writes the last events that the thread could not: a gap for lost events that it did not mark, and the time at which
 * it ended with its process (0: it ended by itself).
 */
static void write_last_words(struct process *process, struct slot_reader *reader, uint64_t missing, uint64_t end_ticks)
{
	struct events_buffer *buffer = process->drain->events;
	uint64_t *words = buffer->words;
	struct events events;
	size_t count = 0;

	if (missing > 0) {
		words[count++] = wire_word(wire_head(WIRE_GAP, 0), 0);
		words[count++] = missing;
	}
	if (end_ticks > reader->written) {
		words[count++] = wire_word(wire_head(WIRE_TIME, 0), 0);
		words[count++] = end_ticks;
	}
	if (count == 0)
		return;
	events_split(buffer, count, reader->written, &events);
	write_chunk(process, reader, &events, true);
}

/* reuse: the image still runs, so another thread may claim the slot. Otherwise the slot is not used again. */
static void close_reader(struct process *process, unsigned index, bool reuse, uint64_t end_ticks)
{
	struct slot_reader *reader = process->readers[index];
	struct meta_counts lost;
	uint64_t sum;

	invariant(reader->tail == reader->head);
	reader_lost(process, index, &lost);
	sum = meta_lost(&lost);
	if (reader->in_trace) {
		write_last_words(process, reader, sum > reader->in_gaps ? sum - reader->in_gaps : 0, end_ticks);
		trace_output_json(process->trace, process->number, reader->thread,
				  meta_thread_end(reader->thread, &reader->events, &lost), KEPT_END);
	} else {
		meta_add(&process->lost_unlisted, &lost);
	}
	process->trace->lost += sum;
	process->totals.lost += sum;
	process->trace->open_threads--;
	if (reuse)
		release_slot(process, index);
	free(reader);
	process->readers[index] = NULL;
}

/* Copies a batch, frees its room in the ring, then processes the copy. False: nothing more to read now. */
static bool drain_slot_once(struct process *process, unsigned index)
{
	struct slot_reader *reader = process->readers[index];
	struct events_buffer *buffer = process->drain->events;
	uint64_t unread = reader->head - reader->tail;
	size_t count = unread < EVENTS_WORDS_MAX ? (size_t)unread : EVENTS_WORDS_MAX;
	struct events events;

	invariant(unread <= reader->data_words && !reader->corrupt);
	if (ring_read(process->memfd, buffer->words, count * sizeof(uint64_t), reader->data_offset,
		      reader->data_words * sizeof(uint64_t), reader->tail * sizeof(uint64_t))) {
		reader_damaged(process, reader, "its ring cannot be read");
		return false;
	}
	events_split(buffer, count, reader->ticks, &events);
	reader->tail += events.used_words;
	invariant(reader->tail <= reader->head);
	process_charge_words(process, events.used_words);
	ring_note_tail(&process->slots[index], reader->turn++, reader->tail, events.last_ticks);
	ring_consume(&process->slots[index], reader->tail);
	if (events.used_words > 0)
		write_events(process, reader, &events);
	return events.used_words > 0 && reader->tail != reader->head;
}

/* The number of words that makes a ring worth reading. */
static uint64_t chunk_words(const struct process *process, const struct slot_reader *reader, uint64_t now_ns)
{
	uint64_t chunk = now_ns < process->drain->young_until_ns ? CHUNK_WORDS / 2 : CHUNK_WORDS;

	return reader->data_words / 4 < chunk ? reader->data_words / 4 : chunk;
}

uint64_t drain_gather_ns(const struct drain_tools *tools)
{
	return tools->with_init ? GATHER_WITH_INIT_NS : GATHER_NS;
}

/* Decides whether this round drains the slot. Data found now may be as old as the previous round. */
static bool want_slot(const struct process *process, struct slot_reader *reader, enum drain_mode mode, bool waiting,
		      uint64_t now_ns)
{
	uint64_t gather_ns = drain_gather_ns(process->drain);
	uint64_t unread = reader->head - reader->tail;

	reader->wanted = false;
	if (unread == 0 || reader->corrupt) {
		reader->since_ns = 0;
		return reader->ended;
	}
	if (reader->since_ns == 0)
		reader->since_ns = process->looked_ns ? process->looked_ns : now_ns;
	reader->wanted = mode == DRAIN_LAST || waiting || reader->ended ||
			 unread >= chunk_words(process, reader, now_ns) || process->drain->gathered ||
			 now_ns - reader->since_ns >= gather_ns;
	return reader->wanted;
}

/* Drops an incomplete event of a producer that is gone: it was killed while writing the event. */
static void drop_torn_event(struct process *process, struct slot_reader *reader)
{
	uint64_t word;

	if (reader->tail == reader->head || reader->corrupt)
		return;
	if (ring_read(process->memfd, &word, sizeof(word), reader->data_offset, reader->data_words * sizeof(word),
		      reader->tail * sizeof(word)) == 0)
		reader->lost.of[wire_head_kind((uint32_t)word)]++;
	reader->tail = reader->head;
}

static void end_slot(struct process *process, unsigned index, bool reuse, uint64_t end_ticks)
{
	struct slot_reader *reader = process->readers[index];

	drop_torn_event(process, reader);
	close_reader(process, index, reuse, reader->ended ? 0 : end_ticks);
}

void drain_add_ring(struct drain_result *result, uint64_t unread, uint64_t chunk, uint64_t grown)
{
	uint64_t wanted = chunk > unread ? chunk - unread : 0;

	result->unread += unread;
	/* The times are wanted / grown of a round. */
	if (grown == 0 || (result->grown > 0 && result->wanted * grown <= wanted * result->grown))
		return;
	result->wanted = wanted;
	result->grown = grown;
}

static void drain_slot(struct process *process, unsigned index, enum drain_mode mode, uint64_t now_ns,
		       struct drain_result *result)
{
	struct slot_reader *reader = process->readers[index];
	uint64_t unread = reader->head - reader->tail;
	uint64_t before = reader->tail;
	bool cut = false;

	if (unread >= reader->data_words / 2 && unread > 0)
		result->pressed = true;
	if (reader->wanted) {
		while (process->share > 0 && drain_slot_once(process, index))
			continue;
		cut = process->share == 0 && reader->head != reader->tail;
		reader->since_ns = cut ? reader->since_ns : 0;
	}
	result->words += reader->tail - before;
	drain_add_ring(result, reader->head - reader->tail, chunk_words(process, reader, now_ns),
		       reader->ended ? 0 : reader->grown);
	if (cut && !process->cut)
		process->first_reader = reader->tail == before ? index : index + 1;
	process->cut |= cut;
	if (reader->ended && mode != DRAIN_LAST && !cut) {
		process_charge_words(process, THREAD_WORDS);
		end_slot(process, index, true, 0);
	}
}

/* Without memory, the threads in the slots above wait until there is some. */
static void grow_readers(struct process *process, unsigned count)
{
	struct slot_reader **readers = realloc(process->readers, count * sizeof(*readers));

	if (!readers)
		return;
	memset(readers + process->reader_count, 0, (count - process->reader_count) * sizeof(*readers));
	process->readers = readers;
	process->reader_count = count;
}

/*
 * Reads the head of a slot. All heads are read before the definitions: a definition is published before the first event
 * that uses it, so the definitions of all events below these heads are visible then.
 */
static void read_head(struct process *process, unsigned index, bool last)
{
	struct ring_slot *slot = &process->slots[index];
	struct slot_reader *reader = process->readers[index];
	uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
	uint64_t head = last ? ring_last_head(slot) : ring_head(slot);

	/* A thread killed while claiming its slot has written nothing, or its first words are complete. */
	if (!reader && (state == RING_SLOT_FREE || (state == RING_SLOT_CLAIMED && !(last && head > 0))))
		return;
	if (!reader && state > RING_SLOT_ENDED)
		return;
	if (!reader && process->share == 0) {
		process->cut = true;
		return;
	}
	if (!reader) {
		process_charge_words(process, THREAD_WORDS);
		reader = open_reader(process, index);
	}
	if (!reader || reader->corrupt) {
		if (reader)
			reader->ended = state == RING_SLOT_ENDED;
		return;
	}
	if (head - reader->tail > reader->data_words) {
		reader_damaged(process, reader, "its ring's positions make no sense");
		return;
	}
	reader->grown = head > reader->head ? head - reader->head : 0;
	reader->head = head;
	reader->ended = state == RING_SLOT_ENDED;
}

/*
 * Populates pages of a ring ahead of its producer. When a ring is first filled, each of its pages is allocated and
 * cleared, for which the producer would wait. This is done for the ring of the first thread (writer.c maps the pages
 * that it finds). Kernels before 5.14 have no call for it.
 */
static void prefault_pages(const struct process *process, struct slot_reader *reader)
{
	uint64_t ring_bytes = reader->data_words * sizeof(uint64_t), page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = reader->head * sizeof(uint64_t), to = from + AHEAD_BYTES, start;
	void *map;

	from = from > reader->taken ? from : reader->taken;
	to = to < ring_bytes ? to : ring_bytes;
	if (from >= to || (to - from < AHEAD_STEP_BYTES && to < ring_bytes))
		return;
	reader->taken = ring_bytes;
	start = (reader->data_offset + from) & ~(page - 1);
	map = mmap(NULL, reader->data_offset + to - start, PROT_READ, MAP_SHARED, process->memfd, (off_t)start);
	if (map == MAP_FAILED)
		return;
	if (!madvise(map, reader->data_offset + to - start, MADV_POPULATE_READ))
		reader->taken = to;
	munmap(map, reader->data_offset + to - start);
}

/*
 * Checks the amount of unread data against the allocated pages of the file. A hostile program may point its heads into
 * holes of a huge file, or many rings to one place: reading the same zeros for hours would block all others.
 */
static void check_unread(struct process *process)
{
	uint64_t unread = 0;
	struct stat status;

	for (unsigned i = 0; i < process->reader_count; i++) {
		if (process->readers[i])
			unread += (process->readers[i]->head - process->readers[i]->tail) * sizeof(uint64_t);
	}
	if (unread <= UNREAD_PLAUSIBLE_BYTES || fstat(process->memfd, &status) < 0 ||
	    unread <= (uint64_t)status.st_blocks * 512)
		return;
	for (unsigned i = 0; i < process->reader_count; i++) {
		if (process->readers[i] && process->readers[i]->head != process->readers[i]->tail)
			reader_damaged(process, process->readers[i], "more is to be read than was ever written");
	}
}

bool drain_process(struct process *process, enum drain_mode mode, uint64_t share, uint64_t now_ns,
		   struct drain_result *result)
{
	struct ring_header *header = process->header;
	uint32_t used = ring_slots_used(&process->layout, header);
	bool waiting = mode == DRAIN_FLUSH || atomic_load_explicit(&header->waiting, memory_order_relaxed) != 0;
	bool needed = waiting || mode == DRAIN_LAST;
	uint64_t file_bytes = process->trace->writer.offset;
	unsigned first;

	process->share = share;
	process->cut = false;
	atomic_fetch_add_explicit(&header->heartbeat, 1, memory_order_relaxed);
	if (used > process->reader_count)
		grow_readers(process, used);
	first = process->reader_count ? process->first_reader % process->reader_count : 0;
	for (unsigned i = 0; i < process->reader_count; i++)
		read_head(process, (first + i) % process->reader_count, mode == DRAIN_LAST);
	check_unread(process);
	if (process->drain->prefaults && process->reader_count > 0 && process->readers[0] &&
	    !process->readers[0]->corrupt && mode != DRAIN_LAST)
		prefault_pages(process, process->readers[0]);
	for (unsigned i = 0; i < process->reader_count; i++) {
		if (process->readers[i] && want_slot(process, process->readers[i], mode, waiting, now_ns))
			needed = true;
	}
	/* No event is written without its definitions. */
	process->cut |= !drain_definitions(process, needed);
	for (unsigned i = 0; i < process->reader_count && (process->share > 0 || !process->cut); i++) {
		if (process->readers[(first + i) % process->reader_count])
			drain_slot(process, (first + i) % process->reader_count, mode, now_ns, result);
	}
	if (waiting || process->cut)
		result->pressed = true;
	process->totals.trace_bytes += process->trace->writer.offset - file_bytes;
	process->looked_ns = now_ns;
	return !process->cut;
}

void drain_end(struct process *process, uint64_t end_ticks)
{
	for (unsigned i = 0; i < process->reader_count; i++) {
		if (process->readers[i])
			end_slot(process, i, false, end_ticks);
	}
}

uint64_t drain_lost(const struct process *process)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < process->reader_count; i++) {
		struct meta_counts lost;

		if (!process->readers[i])
			continue;
		reader_lost(process, i, &lost);
		sum += meta_lost(&lost);
	}
	return sum;
}
