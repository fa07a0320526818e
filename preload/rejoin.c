/*
 * rejoin.c - a process whose host's collector is gone joins the one that has taken its place.
 *
 * No descriptor of the shared memory is kept in the program, so the new collector gets new memory: a copy of what the
 * old one had not read, with all definitions that are still there, laid over the old memory at the same address. So
 * every pointer of every thread stays good, and a thread that is in the middle of an event ends it in the copy. Other
 * threads find no room while this goes on, and wait for the lock on their slow path.
 *
 * What the old collector had read but not written yet is the only thing that is gone; a private collector is not
 * replaced, because its trace would be.
 */
#include "rejoin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "handshake.h"
#include "log.h"
#include "process.h"

#define LOOK_EVERY_US 1000000
#define SETTLE_NS 200000 /* for threads in the few instructions between their look at the room and their event */

static uint64_t coarse_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* It has said goodbye, or it has been silent since the last look and its process is not there or nobody listens. */
static bool is_gone(void)
{
	const struct ring_header *header = process->header;
	uint32_t state = atomic_load(&header->collector_state), beat = atomic_load(&header->heartbeat);
	bool silent = beat == process->rejoin_beat;
	pid_t pid = atomic_load(&header->collector_pid);

	process->rejoin_beat = beat;
	if (state == RING_COLLECTOR_FINISHED)
		return true;
	if (state != RING_COLLECTOR_ATTACHED || !silent)
		return false;
	return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

/* The time at the tail: that of the last event less what the unread ones tell. */
static uint64_t ticks_at_tail(const struct writer *writer, uint64_t tail, uint64_t head)
{
	uint64_t ticks = writer->last_ticks, sum = 0;

	for (uint64_t at = tail; at < head; at++) {
		uint64_t word = writer->words[at & writer->mask];
		unsigned kind = wire_head_kind((uint32_t)word);

		sum += word >> 32;
		if (kind == WIRE_TIME) { /* behind a pause: what lies before cannot be told, and is set right there */
			ticks = writer->words[(at + 1) & writer->mask];
			break;
		}
		at += wire_extra_words(kind);
	}
	return ticks - sum;
}

static void copy_words(uint8_t *copy, const struct writer *writer, uint64_t data_offset, uint64_t tail, uint64_t head)
{
	uint64_t *to = (uint64_t *)(copy + data_offset);

	for (uint64_t at = tail; at < head; at++)
		to[at & writer->mask] = writer->words[at & writer->mask];
}

static void copy_slot(uint8_t *copy, uint32_t number)
{
	const struct ring_slot *slot = &process->slots[number];
	struct ring_slot *to = (struct ring_slot *)(copy + ((const uint8_t *)slot - process->base));
	const struct writer *writer = &process->writers[number];
	uint64_t head = ring_head(slot), tail = ring_tail(slot);
	uint32_t state = atomic_load(&slot->state);

	if (state != RING_SLOT_LIVE && state != RING_SLOT_ENDED)
		return; /* nobody claims one while the lock is held */
	memcpy(to, slot, sizeof(*to));
	if (head - tail > slot->data_words)
		tail = head;
	to->start_ticks = ticks_at_tail(writer, tail, head);
	atomic_store(&to->tail, tail);
	copy_words(copy, writer, slot->data_offset, tail, head);
}

/* Definitions from the first on, if all are still there: then the ids that were given stay good. */
static void copy_definitions(uint8_t *copy, bool all)
{
	const struct ring_header *header = process->header;
	uint64_t head = atomic_load(&header->definitions_head), offset = header->definitions_offset;

	memcpy(copy + offset, process->base + offset, all ? head : header->definitions_bytes);
}

static void copy_header(uint8_t *copy, bool all_definitions)
{
	const struct ring_header *header = process->header;
	struct ring_header *to = (struct ring_header *)copy;

	/* From the target's constants on, without what the old collector has said. */
	memcpy(to, header, offsetof(struct ring_header, definitions_tail));
	atomic_store(&to->target_state, RING_TARGET_RUNNING);
	atomic_store(&to->definitions_tail, all_definitions ? 0 : atomic_load(&header->definitions_tail));
}

/* A sealed memfd with the copy, laid over the old memory. Returns the descriptor, or -errno with nothing changed. */
static int move_memory(bool all_definitions)
{
	uint64_t size = process->header->size_bytes;
	uint32_t used = atomic_load(&process->header->slots_used);
	int fd = memfd_create("evprof", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;
	uint8_t *copy = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (copy == MAP_FAILED) {
		r = -errno;
		close(fd);
		return r;
	}
	copy_definitions(copy, all_definitions);
	copy_header(copy, all_definitions);
	for (uint32_t i = 0; i < used && i < process->header->slot_count; i++)
		copy_slot(copy, i);
	atomic_store(&process->header->target_state, RING_TARGET_REPLACED);
	r = mmap(process->base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) ==
		    MAP_FAILED
		? -errno
		: fd;
	munmap(copy, size);
	if (r < 0)
		close(fd);
	return r;
}

/* Stacks were not written to the new collector: each thread tells its own. */
static void tell_stacks(void)
{
	for (uint32_t i = 0; i < atomic_load(&process->header->slots_used); i++)
		__atomic_store_n(&process->writers[i].resync, 1, __ATOMIC_RELAXED);
}

static void rejoin(unsigned kind)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};
	bool all = atomic_load(&process->header->definitions_head) <= process->header->definitions_bytes;
	void *scratch = mmap(NULL, HANDSHAKE_SCRATCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd;

	if (scratch == MAP_FAILED)
		return;
	if (!all && kind >= WIRE_EXCEPTION) /* ids are given anew, for which the GIL is needed */
		goto done;
	process_set_status(PROCESS_MOVING);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &settle, NULL);
	fd = move_memory(all);
	if (fd >= 0) {
		if (!all)
			process_forget_ids();
		tell_stacks();
		if (!handshake_join(fd, WIRE_START_REJOIN, scratch)) {
			atomic_store(&process->stalled_heartbeat, 0);
			log_line(LOG_INFO, "joined the collector that now answers at %s", session.socket);
		}
		close(fd);
	}
	process_set_status(PROCESS_JOINED);
done:
	munmap(scratch, HANDSHAKE_SCRATCH_BYTES);
}

void rejoin_if_lost(unsigned kind, bool last)
{
	uint64_t now_us;

	if (!config.socket[0] || strcmp(config.socket, session.socket) != 0)
		return;
	now_us = coarse_us();
	if (now_us < process->rejoin_after_us && !last)
		return;
	process_lock();
	if (now_us >= process->rejoin_after_us || last) {
		process->rejoin_after_us = now_us + LOOK_EVERY_US;
		if (atomic_load(&process->status) == PROCESS_JOINED && is_gone() && handshake_poke())
			rejoin(kind);
	}
	process_unlock();
}
