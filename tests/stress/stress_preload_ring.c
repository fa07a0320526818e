/*
 * stress_preload_ring.c - threads that write with the library's writer.c, process.c and definitions.c while drain.c of the
 * collector reads, in one process, so that the thread sanitizer sees both sides. Run by `make stress` and `make TSAN=1
 * stress`.
 *
 *   stress_preload_ring [SECONDS]     of each phase, 3 unless told
 *
 * Phases: a full ring is waited for; a full ring loses; the program stops and starts recording all the while. In each,
 * long threads fill their rings and short ones take and leave the few slots. consumer.h says what is checked of each word;
 * in the end what was written and what was lost must be what was read and what the gaps tell.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../preload/clock.h"
#include "../../preload/config.h"
#include "../../preload/definitions.h"
#include "../../preload/process.h"
#include "tests/stress/consumer.h"

#define SLOTS 6u /* fewer than threads: some find none */
#define LONG_THREADS 3
#define SPAWNERS 2
#define MARKS 6000u /* more than the table of names holds: some are defined again */

struct phase {
	const char *name;
	uint32_t wait_ms;
	bool stops;
	unsigned pause_us; /* between two rounds of the collector */
};

/* What all producers did. */
static _Atomic uint64_t written, lost, lives, unslotted, while_stopped, kept;
static _Atomic bool enough, producers_gone;
static _Atomic uint64_t bases;
static _Atomic uint64_t stops; /* odd: recording was stopped, and that call has returned */

static void nap(unsigned us)
{
	const struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* There is no Python: no exception to put aside, and no frame. */
static void no_exception(struct object **type, struct object **value, struct object **traceback)
{
	*type = *value = *traceback = NULL;
}

static void no_restore(struct object *type, struct object *value, struct object *traceback)
{
	(void)type, (void)value, (void)traceback;
}

static struct object *no_frame(void)
{
	return NULL;
}

/* A process that has joined; the memory of the phase before is gone. Gives the memfd. */
static int set_up(const struct phase *phase)
{
	size_t slots_offset = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES;
	size_t data_offset = slots_offset + RING_PAGE_BYTES, size = data_offset + SLOTS * RING_BYTES_MIN;
	int memfd = memfd_create("stress", MFD_CLOEXEC);

	config.wait_ms = phase->wait_ms;
	if (process_init() < 0 || memfd < 0 || ftruncate(memfd, (off_t)size) < 0)
		abort();
	process->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (process->base == MAP_FAILED)
		abort();
	process->header = (struct ring_header *)process->base;
	process->slots = (struct ring_slot *)(process->base + slots_offset);
	process->ring_bytes = RING_BYTES_MIN;
	process->data_offset = data_offset;
	process->pid = getpid();
	process->next_mark = 0;
	atomic_store(&process->stalled_heartbeat, 0);
	process_forget_ids();
	*process->header = (struct ring_header){.size_bytes = size,
						.definitions_offset = RING_PAGE_BYTES,
						.definitions_bytes = RING_DEFINITIONS_BYTES,
						.slots_offset = slots_offset,
						.slot_count = SLOTS};
	atomic_store(&process->header->collector_pid, getpid());
	atomic_store(&process->status, PROCESS_JOINED);
	written = lost = lives = unslotted = while_stopped = kept = stops = 0;
	enough = producers_gone = false;
	return memfd;
}

/*
 * One numbered event (consumer.h), as the hooks write theirs. 1: written; 0: lost, so that a gap will tell of it; -1: not
 * recorded.
 */
static int put_number(uint64_t number)
{
	struct writer *writer = thread_self.writer;
	uint32_t low = (uint32_t)number & WIRE_ARG_MAX;
	uint64_t gap = writer->gap, address = number & STRESS_ADDRESS_MASK;
	uint32_t mark = 0;

	if (number % 4 < 2 && writer_has_room(writer) && writer_put_fast(writer, wire_head(WIRE_CALL, low)))
		return 1;
	if (number % 4 == 2 && writer_has_room(writer) &&
	    writer_put_fast_extra(writer, wire_memory_head(WIRE_MALLOC, 0, number & 0xffff), address))
		return 1;
	if (number % 64 == 63) {
		char name[32];

		snprintf(name, sizeof(name), "mark-%u", (unsigned)(number / 64 % MARKS));
		mark = definitions_mark(name);
	}
	writer = writer_reserve(mark ? WIRE_MARK : number % 4 < 2 ? WIRE_CALL : WIRE_REALLOC);
	if (!writer)
		return thread_self.writer->slot && thread_self.writer->gap == gap + 1 ? 0 : -1;
	if (mark)
		writer_put(writer, wire_head(WIRE_MARK, mark));
	else if (number % 4 < 2)
		writer_put(writer, wire_head(WIRE_CALL, low));
	else
		writer_put_extra(writer, wire_memory_head(WIRE_REALLOC, 0, 64), address, ~number & STRESS_ADDRESS_MASK);
	return 1;
}

/* The first event of a life. False: there is no slot, or nothing is recorded. */
static bool put_base(uint64_t base)
{
	struct writer *writer = writer_reserve(WIRE_SWITCH);

	if (!writer) {
		unslotted++;
		return false;
	}
	writer_put_extra(writer, wire_head(WIRE_SWITCH, 0), base, ~base);
	lives++;
	return true;
}

static void produce(uint64_t events)
{
	uint64_t number = (atomic_fetch_add(&bases, 1) + 1) << 24, sure = 0, gone = 0;

	if (!put_base(number))
		return;
	for (uint64_t i = 0; i < events && !atomic_load_explicit(&enough, memory_order_relaxed); i++) {
		uint64_t before = atomic_load(&stops);
		int done = put_number(number + 1);

		number += done >= 0;
		sure += done == 1;
		gone += done == 0;
		/* The stop was there before and after: nothing may have been recorded. */
		if (done == 1 && before % 2 == 1 && atomic_load(&stops) == before)
			while_stopped++;
	}
	written += sure;
	lost += gone;
}

static void *long_thread(void *unused)
{
	(void)unused;
	produce(UINT64_C(1) << 23);
	return NULL;
}

static void *short_thread(void *events)
{
	produce(*(const uint64_t *)events);
	return NULL;
}

/* One thread after the other, of very different length. */
static void *spawner(void *unused)
{
	uint64_t seed = (uintptr_t)&seed >> 4;

	(void)unused;
	while (!enough) {
		uint64_t events;
		pthread_t thread;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		events = seed >> 60 ? seed >> 56 : 20000;
		if (pthread_create(&thread, NULL, short_thread, &events))
			abort();
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void *collector(void *argument)
{
	const struct phase *phase = argument;

	while (!producers_gone) {
		consumer_round(false);
		nap(phase->pause_us);
	}
	/* All threads have ended, so one more round gives all slots back, and the last finds nothing. */
	consumer_round(false);
	for (unsigned i = 0; i < SLOTS; i++)
		kept += atomic_load(&process->slots[i].state) != RING_SLOT_FREE;
	consumer_round(true);
	return NULL;
}

/* Recording goes on and off while everybody writes. */
static void spend(const struct phase *phase, unsigned seconds)
{
	for (unsigned ms = 0; ms < seconds * 1000; ms += 10) {
		nap(5000);
		if (phase->stops) {
			process_set_status(PROCESS_STOPPED);
			stops++;
		}
		nap(5000);
		if (phase->stops) {
			stops++;
			atomic_store(&process->status, PROCESS_JOINED);
		}
	}
}

static int compare(const char *what, uint64_t found, uint64_t expected)
{
	if (found == expected)
		return 0;
	fprintf(stderr, "stress: %s: %llu, not %llu\n", what, (unsigned long long)found, (unsigned long long)expected);
	return 1;
}

static int judge(const struct phase *phase, const struct consumer_counts *counts)
{
	int wrong = counts->failures > 0;

	wrong += compare("events read", counts->events, written);
	wrong += compare("events lost", counts->lost, lost);
	wrong += compare("events in gaps", counts->in_gaps, lost);
	wrong += compare("lives read", counts->threads, lives);
	wrong += compare("lives ended", counts->ended, lives);
	wrong += compare("written while stopped", while_stopped, 0);
	wrong += compare("slots kept by threads that have ended", kept, 0);
	/* What the phase is for must have happened. */
	wrong += compare("something was lost", lost > 0, phase->wait_ms == 0);
	wrong += compare("slots were used again", lives > 2 * SLOTS, 1);
	printf("  %s: %llu events, %llu lost, %llu lives, %llu definitions, %llu rounds: %s\n", phase->name,
	       (unsigned long long)counts->events, (unsigned long long)counts->lost,
	       (unsigned long long)counts->threads, (unsigned long long)counts->definitions,
	       (unsigned long long)counts->rounds, wrong ? "WRONG" : "right");
	return wrong;
}

static int run(struct phase *phase, unsigned seconds)
{
	pthread_t producers[LONG_THREADS + SPAWNERS], reader;
	int memfd = set_up(phase);
	struct consumer_counts counts;

	consumer_open(process->base, memfd);
	if (pthread_create(&reader, NULL, collector, phase))
		abort();
	for (int i = 0; i < LONG_THREADS + SPAWNERS; i++)
		if (pthread_create(&producers[i], NULL, i < LONG_THREADS ? long_thread : spawner, NULL))
			abort();
	spend(phase, seconds);
	enough = true;
	for (int i = 0; i < LONG_THREADS + SPAWNERS; i++)
		pthread_join(producers[i], NULL);
	producers_gone = true;
	pthread_join(reader, NULL);
	counts = consumer_close();
	munmap(process->base, process->header->size_bytes);
	close(memfd);
	return judge(phase, &counts);
}

int main(int argc, char **argv)
{
	struct phase phases[] = {{"a full ring is waited for", 10000, false, 1000},
				 {"a full ring loses", 0, false, 3000},
				 {"stops and starts", 10000, true, 300}};
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
	int wrong = 0;

	config_read(false);
	config.events = EVENT_MEM | EVENT_CALL; /* a gap asks for the stack, too */
	clock_init();
	writer_fast = clock_kind != RING_CLOCK_MONOTONIC;
	python.PyErr_Fetch = no_exception;
	python.PyErr_Restore = no_restore;
	python.PyEval_GetFrame = no_frame;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		wrong += run(&phases[i], seconds);
	return wrong ? 1 : 0;
}
