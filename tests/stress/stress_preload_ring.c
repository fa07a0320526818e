/*
 * stress_preload_ring.c - threads that write with the library's room.c, refill.c and define.c (producer.h)
 * while drain.c of the collector reads (consumer.h), in one process, so that the thread sanitizer sees both sides. Run
 * by `make stress` and `make TSAN=1 stress`.
 *
 *   stress_preload_ring [SECONDS]     of each phase, default: 3
 *
 * Phases: a full ring is waited for; a full ring loses; the program stops and starts recording all the while.
 * consumer.h says what is checked of each word; in the end what was written and what was lost must be what was read and
 * what the gaps count.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/ring/process.h"
#include "tests/stress/consumer.h"
#include "tests/stress/producer.h"

struct phase {
	const char *name;
	uint32_t wait_ms;
	bool stops;
	unsigned pause_us; /* between two rounds of the collector */
};

static _Atomic bool producers_gone;
static uint64_t kept; /* slots of threads that have ended */

static void *collector(void *argument)
{
	const struct phase *phase = argument;

	while (!producers_gone) {
		consumer_round(false);
		producers_nap(phase->pause_us);
	}
	/* All threads have ended, so one more round gives all slots back, and the last finds nothing. */
	consumer_round(false);
	for (unsigned i = 0; i < PRODUCER_SLOTS; i++)
		kept += atomic_load(&process->slots[i].state) != RING_SLOT_FREE;
	consumer_round(true);
	return NULL;
}

/* Recording goes on and off while everybody writes. */
static void spend(const struct phase *phase, unsigned seconds)
{
	for (unsigned ms = 0; ms < seconds * 1000; ms += 10) {
		producers_nap(5000);
		if (phase->stops)
			producers_stop(true);
		producers_nap(5000);
		if (phase->stops)
			producers_stop(false);
	}
}

static int judge(const struct phase *phase, const struct producer_counts *done, const struct consumer_counts *seen)
{
	int wrong = producers_judge(done, seen);

	wrong += producers_compare("written while stopped", done->while_stopped, 0);
	wrong += producers_compare("slots kept by threads that have ended", kept, 0);
	/* What the phase is for must have happened. */
	wrong += producers_compare("something was lost", done->lost > 0, phase->wait_ms == 0);
	wrong += producers_compare("slots were used again", done->lives > 2 * PRODUCER_SLOTS, 1);
	printf("  %s: %llu events, %llu lost, %llu lives, %llu definitions, %llu rounds: %s\n", phase->name,
	       (unsigned long long)seen->events, (unsigned long long)seen->lost, (unsigned long long)seen->threads,
	       (unsigned long long)seen->definitions, (unsigned long long)seen->rounds, wrong ? "WRONG" : "right");
	return wrong;
}

static int run(struct phase *phase, unsigned seconds)
{
	int memfd = producers_open(phase->wait_ms, RING_BYTES_MIN);
	struct producer_counts done;
	struct consumer_counts seen;
	pthread_t reader;

	producers_gone = false;
	kept = 0;
	consumer_open(process->base, memfd);
	if (pthread_create(&reader, NULL, collector, phase))
		abort();
	producers_begin();
	spend(phase, seconds);
	done = producers_end();
	producers_gone = true;
	pthread_join(reader, NULL);
	seen = consumer_close();
	producers_close();
	close(memfd);
	return judge(phase, &done, &seen);
}

int main(int argc, char **argv)
{
	struct phase phases[] = {{"a full ring is waited for", PRODUCERS_WAIT_MS, false, 1000},
				 {"a full ring loses", 0, false, 3000},
				 {"stops and starts", PRODUCERS_WAIT_MS, true, 300}};
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
	int wrong = 0;

	producers_init();
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		wrong += run(&phases[i], seconds);
	return wrong ? 1 : 0;
}
