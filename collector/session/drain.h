/* drain.h - copies events and definitions from a process's rings into the trace. */
#ifndef COLLECTOR_DRAIN_H
#define COLLECTOR_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct events_buffer;
struct process;

#define DRAIN_DEFINITIONS_BYTES ((size_t)128 << 10)

/* State that all processes of a collector share. The buffers are used by one process at a time. */
struct drain_tools {
	struct events_buffer *events;
	uint8_t *definitions; /* DRAIN_DEFINITIONS_BYTES */
	/*
	 * The first process of our pid namespace is recorded here, or holds a session. When it ends, the kernel
	 * kills all processes of the namespace, us included. While it waits for our answer, there is time to write
	 * everything.
	 */
	bool with_init;
	/* Until then a session is young: chunks of half the size, for programs that end soon. */
	uint64_t young_until_ns;
	/*
	 * All rings with data of some age are drained in the same round: draining each at its own time would need as
	 * many rounds.
	 */
	uint64_t gathered_ns; /* time of the last such round */
	bool gathered;	      /* this round is one */
	bool prefaults;	      /* populates ring pages ahead of producers: both share their memory accounting */
};

enum drain_mode {
	DRAIN_GATHER, /* leave small amounts in the rings, so that chunks have a good size */
	DRAIN_FLUSH,  /* everything: the producer waits for it to be in the file */
	DRAIN_LAST,   /* everything; the producer writes no more, and drain_end() follows */
};

/* The result of a round. */
struct drain_result {
	uint64_t words;	 /* words read from rings */
	uint64_t unread; /* words left in them */
	/* Of the ring that has a chunk first, at the rate at which it grew since the round before: */
	uint64_t wanted; /* words that it lacks for a chunk ... */
	uint64_t grown;	 /* ... and by which it grew; 0: no ring grew */
	bool pressed;	 /* a ring was half full, or a thread waits: the next round follows at once */
	bool woken;	 /* a process has woken us: it is about to write */
};

/* Adds a ring to *result: its unread words, those that make it worth reading, and those by which it grew. */
void drain_add_ring(struct drain_result *result, uint64_t unread, uint64_t chunk, uint64_t grown);

/* The longest time for which an event stays in a ring. */
uint64_t drain_gather_ns(const struct drain_tools *tools);

/*
 * Reads about `share` words. False: more are left for a later round, which begins with another thread. Adds to *result.
 * A failed write fails the trace (trace_output.h), and its events count as lost.
 */
bool drain_process(struct process *process, enum drain_mode mode, uint64_t share, uint64_t now_ns,
		   struct drain_result *result);

/*
 * The process has ended at that time, and so have its threads and the functions that still ran in them. Events lost
 * since a thread's last event become a gap at its end.
 */
void drain_end(struct process *process, uint64_t end_ticks);

/* Lost events of the threads that still have a ring. The counters are the program's to write: any number. */
uint64_t drain_lost(const struct process *process);

/* --- between drain.c and drain_definitions.c --- */

/*
 * Drains definitions. Like events, they wait until they make a chunk, but never longer than an event that may use them.
 * False: the share is used up, and more are left.
 */
bool drain_definitions(struct process *process, bool needed);

#endif
