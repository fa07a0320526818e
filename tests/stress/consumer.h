/*
 * consumer.h - the collector's drain.c as a thread of the stress program, and what it checks of each word that it
 * reads.
 *
 * Used by the programs of tests/stress. Kept apart from them because the collector and the library have types of the
 * same name.
 */
#ifndef TESTS_STRESS_CONSUMER_H
#define TESTS_STRESS_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a producer writes. A life of a slot begins with WIRE_SWITCH, whose extra words are its base and ~base; the
 * events that follow are numbered from base + 1 and have their number in them:
 *
 *   CALL     argument: low bits of the number
 *   MALLOC   argument (domain 0) and address: low bits
 *   REALLOC  address and old address: low bits, and their complement
 *   MARK     a mark that was defined; the number is not in it but counts
 */
#define STRESS_ADDRESS_MASK ((UINT64_C(1) << 48) - 1)

/* What was seen. */
struct consumer_counts {
	uint64_t events;      /* numbered ones */
	uint64_t lost;	      /* as drain.c counts them */
	uint64_t in_gaps;     /* as the gaps count them */
	uint64_t threads;     /* lives of slots that were begun ... */
	uint64_t ended;	      /* ... and closed */
	uint64_t definitions; /* of marks */
	uint64_t rounds;
	uint64_t moves;	     /* to other memory ... */
	uint64_t from_start; /* ... with all definitions */
	uint64_t lives_moved;
	uint64_t failures; /* each said on stderr */
};

/* base: the producers' mapping of memfd. Takes neither over. */
void consumer_open(uint8_t *base, int memfd);

/*
 * The collector dies as it stands between two rounds, and another goes on with the memory that the process has moved to
 * (rejoin.c). Lives go on where the first one left them. The first memory is not looked at any more.
 */
void consumer_move(uint8_t *base, int memfd);

/*
 * One round. last: nobody writes any more, and everything is read; true also says that those without an end are closed.
 */
void consumer_round(bool last);

/* Frees everything. */
struct consumer_counts consumer_close(void);

#endif
