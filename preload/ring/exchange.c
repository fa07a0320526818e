/*
 * exchange.c - replaces the shared memory of a process that joins another collector, while its threads write.
 *
 * The program keeps no descriptor of the shared memory, so the new collector gets new memory, mapped at the same
 * address. It holds what the old collector had not read, and all definitions that still exist. Every pointer of every
 * thread stays valid.
 *
 * Other threads write during the exchange, and nothing stops them in the middle of an event: a thread that has checked
 * its room may store its words and its head at any later time. The memory is therefore exchanged in this order:
 *
 *   1. The status changes and all rooms are cleared. Each thread stores at most its event in progress
 *      (WRITER_PENDING_WORDS), and then waits for the lock on its slow path.
 *   2. The new memory gets what threads read there (the tails), and NOBODYS_WORD in the places of those pending words.
 *   3. mmap() replaces the old memory at the address. From here on the old memory no longer changes: it has what was
 *      stored before, and the new memory gets what is stored later.
 *   4. The content of the old memory is merged into the new: words below its heads as they are; heads unless the
 *      thread's own is higher; words above the heads only where NOBODYS_WORD still stands. Counters are added: the new
 *      ones began at zero.
 *   5. Only then does the new collector get the memory.
 *
 * After each step every published event in the memory is whole. Step 4 reassembles an event whose words were stored in
 * both memories (tests/model/exchange.pml, tests/stress/stress_preload_exchange.c).
 *
 * Only the data that the old collector had read and not yet written is lost.
 */
#include "ring/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "evprof/system_calls.h"
#include "ring/memory.h"
#include "ring/process.h"

/* No event has this word, first or extra: its kind is none; as an address, size, time or number it is too large. */
#define NOBODYS_WORD (UINT64_MAX << WIRE_KIND_BITS)

/* The two mappings that exist during the exchange, in addition to the one at process->base. */
struct exchange {
	int memfd;	/* the new memory */
	uint64_t size;	/* mapped bytes of it */
	uint8_t *fresh; /* the new memory */
	uint8_t *old;	/* the old memory */
	uint64_t definitions_head;
	uint64_t definitions_bytes; /* of the definitions, from the start of their ring, are copied */
};

static int open_exchange(struct exchange *exchange, bool all_definitions)
{
	uint64_t size = process->mapped_bytes, ring = process->layout.definitions_bytes;
	uint64_t head = atomic_load(&process->header->definitions_head);
	int r = memory_check_file_size(process->layout.size_bytes);

	*exchange = (struct exchange){.size = size, .fresh = MAP_FAILED, .old = MAP_FAILED};
	exchange->definitions_head = all_definitions && head > ring ? ring : head;
	exchange->definitions_bytes = all_definitions ? exchange->definitions_head : ring;
	if (r < 0)
		return r;
	exchange->memfd = system_memfd_create("evprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (exchange->memfd < 0)
		return -errno;
	if (ftruncate(exchange->memfd, (off_t)process->layout.size_bytes) < 0 ||
	    fcntl(exchange->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto failed;
	exchange->fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, exchange->memfd, 0);
	/* With a size of zero, mremap() maps shared memory a second time. */
	exchange->old = mremap(process->base, 0, size, MREMAP_MAYMOVE);
	if (exchange->fresh == MAP_FAILED || exchange->old == MAP_FAILED)
		goto failed;
	/* A child forked now inherits only the mapping that it inherits at any other time. */
	madvise(exchange->fresh, size, MADV_DONTFORK);
	madvise(exchange->old, size, MADV_DONTFORK);
	return 0;
failed:
	r = -errno;
	close(exchange->memfd);
	exchange->memfd = -1;
	return r;
}

static void close_exchange(const struct exchange *exchange)
{
	if (exchange->fresh != MAP_FAILED)
		munmap(exchange->fresh, exchange->size);
	if (exchange->old != MAP_FAILED)
		munmap(exchange->old, exchange->size);
}

/* The same place in another mapping. */
static void *place_in(uint8_t *mapping, const void *place)
{
	return mapping + ((const uint8_t *)place - process->base);
}

static struct writer *writer_of(const struct ring_slot *slot)
{
	return &process->writers[slot - process->slots];
}

/*
 * The state of a slot: LIVE if a thread of this process has it, else what the slot says. None is claimed under the
 * lock.
 */
static uint32_t state_of(const struct ring_slot *slot)
{
	return writer_of(slot)->slot ? RING_SLOT_LIVE : atomic_load(&slot->state);
}

static bool is_in_use(const struct ring_slot *slot)
{
	uint32_t state = state_of(slot);

	return state == RING_SLOT_LIVE || state == RING_SLOT_ENDED;
}

/* The extent of a slot, whichever mapping its copy is in. */
static struct ring_extent extent_of(const struct ring_slot *slot)
{
	return ring_extent(&process->layout, (uint32_t)(slot - process->slots));
}

/* End of the pending words: after the head, and before the lap reaches the tail. */
static uint64_t pending_end(uint64_t tail, uint64_t words, uint64_t head)
{
	uint64_t full = tail + words, end = head + WRITER_PENDING_WORDS;

	return end < full ? end : full;
}

/* The tail, if the unread words fit the ring; else it is invalid, and all words count as read. */
static uint64_t tail_before(uint64_t head, uint64_t tail, uint64_t words)
{
	return head - tail <= words ? tail : head;
}

/* Sets what the slot's thread may read or overwrite while the memory is replaced. */
static void prepare_slot(const struct exchange *exchange, const struct ring_slot *slot)
{
	struct ring_slot *fresh = place_in(exchange->fresh, slot);
	struct ring_extent extent = extent_of(slot);
	uint64_t *words = (uint64_t *)(exchange->fresh + extent.offset), mask = extent.words - 1;
	uint64_t ticks, head = ring_head(slot), tail = ring_tail_ticks(slot, &ticks);

	tail = tail_before(head, tail, extent.words);
	fresh->tid = slot->tid;
	ring_place(fresh, extent);
	fresh->start_position = tail;
	fresh->start_ticks = ticks;
	atomic_store(&fresh->head, head);
	atomic_store(&fresh->tail, tail);
	atomic_store(&fresh->state, state_of(slot));
	for (uint64_t at = head, end = pending_end(tail, extent.words, head); at < end; at++)
		words[at & mask] = NOBODYS_WORD;
}

static void prepare_header(const struct exchange *exchange, bool all_definitions)
{
	const struct ring_header *header = process->header;
	struct ring_header *fresh = (struct ring_header *)exchange->fresh;
	uint32_t used = process_slots_used();

	fresh->layout = process->layout;
	atomic_store(&fresh->definitions_head, exchange->definitions_head);
	atomic_store(&fresh->definitions_tail, all_definitions ? 0 : atomic_load(&header->definitions_tail));
	atomic_store(&fresh->slots_used, used);
	atomic_store(&fresh->wakes, 1); /* the handshake has just reached the new collector */
	/* Threads that waited in vain for the old collector have not waited for the new one. */
	atomic_store(&fresh->heartbeat, atomic_load(&header->heartbeat) + 1);
	for (uint32_t i = 0; i < used; i++)
		if (is_in_use(&process->slots[i]))
			prepare_slot(exchange, &process->slots[i]);
}

static void raise_head(struct ring_slot *slot, uint64_t head)
{
	uint64_t found = ring_head(slot);

	/* Release: a reader that sees the head sees the words, as with ring_publish(). */
	while (found < head && !atomic_compare_exchange_weak_explicit(&slot->head, &found, head, memory_order_release,
								      memory_order_acquire))
		continue;
}

static void merge_words(const struct exchange *exchange, struct ring_extent extent, uint64_t tail, uint64_t head)
{
	uint64_t *words = (uint64_t *)(process->base + extent.offset), mask = extent.words - 1;
	const uint64_t *old = (const uint64_t *)(exchange->old + extent.offset);

	for (uint64_t at = tail; at < head; at++)
		__atomic_store_n(&words[at & mask], old[at & mask], __ATOMIC_RELAXED);
	for (uint64_t at = head, end = pending_end(tail, extent.words, head); at < end; at++) {
		uint64_t nobodys = NOBODYS_WORD;

		__atomic_compare_exchange_n(&words[at & mask], &nobodys, old[at & mask], false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	}
}

static void merge_slot(const struct exchange *exchange, uint32_t number)
{
	struct ring_slot *slot = &process->slots[number];
	const struct ring_slot *old = place_in(exchange->old, slot);
	struct ring_extent extent = extent_of(slot);
	uint64_t head = ring_head(old), tail = tail_before(head, ring_tail(slot), extent.words);

	if (tail == ring_tail(slot)) { /* else the old collector wrote there in between */
		merge_words(exchange, extent, tail, head);
		raise_head(slot, head);
	}
	if (!writer_of(slot)->slot && atomic_load(&old->sampled)) /* its sampler ends with the old memory */
		atomic_store(&slot->state, RING_SLOT_ENDED);
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		atomic_fetch_add(&slot->lost[kind], atomic_load(&old->lost[kind]));
}

static void merge_rings(const struct exchange *exchange)
{
	struct ring_header *header = process->header;
	const struct ring_header *old = (const struct ring_header *)exchange->old;
	uint64_t definitions = process->layout.definitions_offset;
	uint32_t used = process_slots_used(); /* as in the new header */

	memcpy(process->base + definitions, exchange->old + definitions, exchange->definitions_bytes);
	for (uint32_t i = 0; i < used; i++)
		if (is_in_use(&process->slots[i]))
			merge_slot(exchange, i);
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		atomic_fetch_add(&header->lost_unslotted[kind], atomic_load(&old->lost_unslotted[kind]));
	atomic_fetch_add(&header->forks, atomic_load(&old->forks));
	atomic_fetch_add(&header->lost_definitions, atomic_load(&old->lost_definitions));
	atomic_fetch_add(&header->waits, atomic_load(&old->waits));
	atomic_fetch_add(&header->waited_us, atomic_load(&old->waited_us));
}

/* Maps the new memory in place of the old. Returns 0 or -errno. */
static int replace(const struct exchange *exchange)
{
	if (mmap(process->base, exchange->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
		 exchange->memfd, 0) == MAP_FAILED)
		return -errno;
	madvise(process->base, exchange->size, MADV_DONTDUMP);
	return 0;
}

/* A collector that was only slow takes its part as ended. */
static void end_old(const struct exchange *exchange)
{
	atomic_store(&((struct ring_header *)exchange->old)->target_state, RING_TARGET_REPLACED);
}

/* Slots keep their threads. Their pages are the only ones that the memory has. */
static void prepare_left(const struct exchange *exchange)
{
	struct ring_header *fresh = (struct ring_header *)exchange->fresh;
	uint32_t used = process_slots_used();

	fresh->layout = process->layout;
	atomic_store(&fresh->slots_used, used);
	for (uint32_t i = 0; i < used; i++) {
		struct ring_slot *slot = place_in(exchange->fresh, &process->slots[i]);

		if (!process->writers[i].slot)
			continue;
		slot->tid = process->slots[i].tid;
		ring_place(slot, extent_of(&process->slots[i]));
		atomic_store(&slot->state, RING_SLOT_LIVE);
	}
}

int exchange_leave(void)
{
	struct exchange exchange;
	int r = open_exchange(&exchange, true);

	if (r == 0) {
		prepare_left(&exchange);
		r = replace(&exchange);
		close(exchange.memfd);
	}
	if (r == 0)
		end_old(&exchange);
	close_exchange(&exchange);
	return r;
}

/* The thread goes on where it was, with nothing unread and at this time. */
static void begin_again(struct writer *writer, struct ring_slot *slot, uint64_t now)
{
	slot->start_position = writer->head;
	slot->start_ticks = writer->last_ticks = now;
	atomic_store(&slot->head, writer->head);
	atomic_store(&slot->tail, writer->head);
	writer->gap = writer->stack_due = writer->held_end = writer->paused = 0;
	writer->cpu_due = 0;
	writer->pause = config.events & EVENT_CPU ? CLOCK_WAIT_TICKS : CLOCK_QUIET_TICKS;
}

int exchange_return(void)
{
	uint64_t now = clock_now();

	for (uint32_t i = 0; i < process_slots_used(); i++) {
		if (process->writers[i].slot)
			begin_again(&process->writers[i], &process->slots[i], now);
		else
			atomic_store(&process->slots[i].state, RING_SLOT_FREE);
	}
	process->layout.start_ticks = now;
	return exchange_memory(true);
}

int exchange_memory(bool all_definitions)
{
	struct exchange exchange;
	int r = open_exchange(&exchange, all_definitions);

	if (r < 0)
		goto done;
	prepare_header(&exchange, all_definitions);
	r = replace(&exchange);
	if (r < 0) {
		close(exchange.memfd);
		goto done;
	}
	merge_rings(&exchange);
	end_old(&exchange);
	r = exchange.memfd;
done:
	close_exchange(&exchange);
	return r;
}
