/* drain.h - copies events and definitions from a process's rings into the trace. */
#ifndef COLLECTOR_DRAIN_H
#define COLLECTOR_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct process;
struct session;
struct session_tools;

enum drain_mode {
	DRAIN_GATHER, /* leave small amounts in the rings, so that chunks have a good size */
	DRAIN_LAST,   /* everything; the producer writes no more, and drain_end() follows */
};

/* The result of a round. */
struct drain_result {
	uint64_t words;	 /* words read from rings */
	uint64_t unread; /* words left in them */
	uint64_t chunk;	 /* least number of words that makes a ring worth reading; 0: see drain_chunk_words() */
	bool pressed;	 /* a ring was half full, or a thread waits: the next round follows at once */
	bool woken;	 /* a process has woken us: it is about to write */
};

/* The longest time for which an event stays in a ring. */
uint64_t drain_gather_ns(const struct session_tools *tools);

/* The number of words that makes a chunk worth writing. */
uint64_t drain_chunk_words(const struct session_tools *tools, uint64_t now_ns);

/*
 * Reads about `share` words. False: more are left for a later round, which begins with another thread. Adds to *result.
 * A failed write fails the session (session.h), and its events count as lost.
 */
bool drain_process(struct process *process, enum drain_mode mode, uint64_t share, uint64_t now_ns,
		   struct drain_result *result);

/*
 * The process has ended at that time, and so have its threads and the functions that still ran in them. Events lost
 * since a thread's last event become a gap at its end.
 */
void drain_end(struct process *process, uint64_t end_ticks);

/* Lost events of the threads that still have a ring. */
uint64_t drain_lost(const struct process *process);

#endif
