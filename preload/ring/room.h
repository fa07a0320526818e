/* room.h - a writer's slow path, for the policy of life/refill.c. */
#ifndef PRELOAD_ROOM_H
#define PRELOAD_ROOM_H

#include "ring/writer.h"

/* The longest distance between two CPU times. Short interruptions are not seen; the bound keeps their sum small. */
#define CPU_EVERY_WORDS 16384

/* Words that the writer may still write. */
uint64_t room_of(const struct writer *writer);

/* Whether a quarter of the ring is free. writer: a struct writer. */
int room_has_quarter(const void *writer);

/* A ring begins: the words below this position are free. DEBUG builds check each store against that. */
void room_begin_free_end(uint64_t end);

/*
 * Wakes a sleeping collector, so that it drains the ring before it is full, and soon after a long pause ends. The fast
 * path does not check for this: after a pause, and after each chunk, a thread takes the slow path.
 */
void room_wake_collector(const struct writer *writer);

/* Publishes the held event: it cannot be retracted once another event follows, even if that one is lost. */
void room_show_held(struct writer *writer);

/*
 * Called after the slow path of an event that may have interrupted another: that one has checked its room and is about
 * to take one word. It gets it in this lap.
 */
void room_settle(struct writer *writer);

/* Counts an event as lost, as writer_lose() does. */
void room_count_lost(struct writer *writer, unsigned kind);

/* Counts an event that does not touch the writer as lost. */
void room_count_unwritten(unsigned kind);

/*
 * Whether the calling thread may write an event that may come in a signal handler: no other one of its events is half
 * written. False: the event is counted as lost.
 */
bool room_may_write(unsigned kind);

/*
 * Sends events to the short path that loses them, until the tail moves. Where the ring is not full (the definition of
 * the event could not be written), or the tail is invalid, the next event takes the whole slow path.
 */
void room_lose_until_tail_moves(struct writer *writer);

#endif
