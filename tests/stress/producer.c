/*
 * producer.c - the program's side of the stress programs: there is no Python, only threads that write.
 */
#include "tests/stress/producer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/ring/clock.h"
#include "preload/base/config.h"
#include "preload/definitions/names.h"
#include "preload/life/life.h"
#include "preload/python/python.h"
#include "preload/ring/process.h"
#include "tests/stress/consumer.h"

#define LONG_THREADS 3
#define SPAWNERS 2
#define JOLT_US 3000
#define LONG_LIFE (UINT64_C(1) << 23)
#define MARKS 6000u /* more than the table of names holds: some are defined again */

static _Atomic uint64_t written, lost, lives, unslotted, while_stopped;
static _Atomic bool enough;
static _Atomic uint64_t bases;
static _Atomic uint64_t stops; /* odd: recording was stopped, and that call has returned */
static pthread_t threads[LONG_THREADS + SPAWNERS];
static _Atomic pid_t tids[LONG_THREADS + SPAWNERS]; /* of those that write */

void producers_nap(unsigned us)
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

static void no_object(struct object *object)
{
	(void)object;
}

int producers_open(uint32_t wait_ms, uint64_t ring_bytes)
{
	size_t slots_offset = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES;
	size_t slots_bytes = PRODUCER_SLOTS * sizeof(struct ring_slot);
	size_t data_offset = slots_offset + (slots_bytes + RING_PAGE_BYTES - 1) / RING_PAGE_BYTES * RING_PAGE_BYTES;
	size_t size = data_offset + PRODUCER_SLOTS * ring_bytes;
	int memfd = memfd_create("stress", MFD_CLOEXEC);

	config.wait_ms = wait_ms;
	if (process_init() < 0 || memfd < 0 || ftruncate(memfd, (off_t)size) < 0)
		abort();
	process->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (process->base == MAP_FAILED)
		abort();
	process->header = (struct ring_header *)process->base;
	process->slots = (struct ring_slot *)(process->base + slots_offset);
	process->mapped_bytes = size;
	process->pid = getpid();
	process->next_mark = 0;
	atomic_store(&process->stalled_heartbeat, 0);
	process_forget_ids();
	process->layout = (struct ring_layout){.size_bytes = size,
					       .definitions_offset = RING_PAGE_BYTES,
					       .definitions_bytes = RING_DEFINITIONS_BYTES,
					       .slots_offset = slots_offset,
					       .slot_count = PRODUCER_SLOTS,
					       .clock_kind = clock_kind,
					       .clock_shift = CLOCK_SHIFT,
					       .ring_bytes = ring_bytes,
					       .data_offset = data_offset};
	*process->header = (struct ring_header){.layout = process->layout};
	atomic_store(&process->header->collector_pid, getpid());
	atomic_store(&process->status, PROCESS_JOINED);
	return memfd;
}

void producers_close(void)
{
	munmap(process->base, process->layout.size_bytes);
}

/*
 * One numbered event (consumer.h), as the hooks write theirs. 1: written; 0: lost, so that a gap will count it; -1:
 * not recorded.
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
	    writer_put_fast_extra(writer, wire_memory_head(WIRE_MALLOC, 0, number & 0xffff), address, false,
				  writer_here(writer)))
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
		writer_put_number(writer, WIRE_MARK, mark);
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

struct life {
	uint64_t events;
	_Atomic pid_t *tid;
};

static void *one_life(void *argument)
{
	const struct life *life = argument;

	*life->tid = (pid_t)syscall(SYS_gettid);
	produce(life->events);
	*life->tid = 0;
	return NULL;
}

/* One thread after the other: all long, or of very different length. */
static void *spawner(void *number)
{
	uint64_t seed = (uintptr_t)&seed >> 4;
	bool all_long = (_Atomic pid_t *)number < tids + LONG_THREADS;

	while (!enough) {
		struct life life = {.events = LONG_LIFE, .tid = number};
		pthread_t thread;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (!all_long)
			life.events = seed >> 60 ? seed >> 56 : 20000;
		if (pthread_create(&thread, NULL, one_life, &life))
			abort();
		pthread_join(thread, NULL);
	}
	return NULL;
}

void producers_begin(void)
{
	written = lost = lives = unslotted = while_stopped = stops = 0;
	enough = false;
	for (int i = 0; i < LONG_THREADS + SPAWNERS; i++)
		if (pthread_create(&threads[i], NULL, spawner, &tids[i]))
			abort();
}

void producers_stop(bool stop)
{
	if (stop)
		process_set_status(PROCESS_STOPPED);
	stops++;
	if (!stop)
		atomic_store(&process->status, PROCESS_JOINED);
}

struct producer_counts producers_end(void)
{
	enough = true;
	for (int i = 0; i < LONG_THREADS + SPAWNERS; i++)
		pthread_join(threads[i], NULL);
	return (struct producer_counts){
	    .written = written, .lost = lost, .lives = lives, .while_stopped = while_stopped};
}

static void be_jolted(int number)
{
	int saved_errno = errno;

	(void)number;
	producers_nap(JOLT_US);
	errno = saved_errno;
}

void producers_jolt(void)
{
	static unsigned jolts;

	jolts++;
	for (unsigned i = 0; i < LONG_THREADS + SPAWNERS; i++)
		if (tids[i] && (jolts >> i % 4 & 1))
			syscall(SYS_tgkill, getpid(), tids[i], SIGUSR1);
}

void producers_init(void)
{
	struct sigaction action = {.sa_handler = be_jolted, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &action, NULL);
	config_read(false);
	config.events = EVENT_MEM | EVENT_CALL; /* a gap asks for the stack, too */
	clock_init();
	writer_fast = clock_kind != RING_CLOCK_MONOTONIC;
	python.PyErr_Fetch = no_exception;
	python.PyErr_Restore = no_restore;
	python.PyEval_GetFrame = no_frame;
	python.Py_IncRef = no_object;
	python.Py_DecRef = no_object;
}

int producers_compare(const char *what, uint64_t found, uint64_t expected)
{
	if (found == expected)
		return 0;
	fprintf(stderr, "stress: %s: %llu, not %llu\n", what, (unsigned long long)found, (unsigned long long)expected);
	return 1;
}

int producers_judge(const struct producer_counts *done, const struct consumer_counts *seen)
{
	int wrong = seen->failures > 0;

	wrong += producers_compare("events read", seen->events, done->written);
	wrong += producers_compare("events lost", seen->lost, done->lost);
	wrong += producers_compare("events in gaps", seen->in_gaps, done->lost);
	wrong += producers_compare("lives read", seen->threads, done->lives);
	wrong += producers_compare("lives ended", seen->ended, done->lives);
	return wrong;
}
