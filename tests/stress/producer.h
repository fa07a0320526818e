/*
 * producer.h - threads that write numbered events (consumer.h) with the library's own room.c, refill.c and
 * define.c.
 *
 * Long ones fill their rings; short ones, of very different length, take and leave the few slots. Used by the programs
 * of tests/stress.
 */
#ifndef TESTS_STRESS_PRODUCER_H
#define TESTS_STRESS_PRODUCER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/stress/consumer.h"

#define PRODUCER_SLOTS 6u /* fewer than threads: some find none */

/* What all producers did. */
struct producer_counts {
	uint64_t written;
	uint64_t lost;	/* the gaps must count them */
	uint64_t lives; /* of slots */
	uint64_t while_stopped;
};

/* For phases that lose nothing: however long they wait for room, it is within the wait budget. */
#define PRODUCERS_WAIT_MS 3600000

/* Once, before everything else. */
void producers_init(void);

/* Makes a process that has joined, with fresh memory at process->base. Gives the memfd, which is the caller's. */
int producers_open(uint32_t wait_ms, uint64_t ring_bytes);
void producers_begin(void);

/* Stops recording, or goes on with it, while everybody writes. */
void producers_stop(bool stop);

/* Waits for the last of them. */
struct producer_counts producers_end(void);
/* Unmaps the memory. */
void producers_close(void);

/*
 * Holds some of them up for a moment, others the next time, wherever they are: in the middle of an event, too. The
 * thread sanitizer puts that off until they call something.
 */
void producers_jolt(void);

void producers_nap(unsigned us);

/* Prints `what` if found is not expected. Returns 1 then. */
int producers_compare(const char *what, uint64_t found, uint64_t expected);

/* What holds in every phase: each event is read once, or reported lost. Returns how much does not. */
int producers_judge(const struct producer_counts *done, const struct consumer_counts *seen);

#endif
