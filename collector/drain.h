/*
 * drain.h - copies what a process has written from its rings into the trace.
 */
#ifndef COLLECTOR_DRAIN_H
#define COLLECTOR_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct process;
struct session;
struct session_tools;

enum drain_mode {
	DRAIN_GATHER, /* leave a little in the rings, so that chunks are of a good size */
	DRAIN_LAST,   /* everything, and the writer writes no more: drain_end() follows */
};

/* What a round found. */
struct drain_result {
	uint64_t words;	 /* read from rings */
	uint64_t unread; /* left in them */
	uint64_t chunk;	 /* so many words make some ring worth reading; 0: as drain_chunk_words() says */
	bool pressed;	 /* a ring was half full, or a thread waits: come back at once */
	bool woken;	 /* a process has ended our sleep: it is about to write */
};

/* No event waits longer in a ring. */
uint64_t drain_gather_ns(const struct session_tools *tools);

/* So many words make a chunk worth writing. */
uint64_t drain_chunk_words(const struct session_tools *tools, uint64_t now_ns);

/*
 * Reads as many words as the share, or a few more. False: there is more to be read than that, by a later round; another
 * thread is the first then. Adds to *result. Errors of the file fail the session (session.h) and count as loss.
 */
bool drain_process(struct process *process, enum drain_mode mode, uint64_t share, uint64_t now_ns,
		   struct drain_result *result);

/*
 * The process has ended, at that time: so have its threads, and whatever ran in those that did not end by themselves.
 * What a thread has lost since its last event stands in a gap at its end.
 */
void drain_end(struct process *process, uint64_t end_ticks);

/* What the threads that still have a ring have lost so far. */
uint64_t drain_lost(const struct process *process);

#endif
