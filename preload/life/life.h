/*
 * life.h - the life of this process image and of its threads: joining a collector, room for events, the end.
 *
 *   life.c     joins a collector, at the start and in the child of a fork
 *   refill.c   gives a thread its ring, and room in it
 *   finish.c   ends the image, with the summary line
 */
#ifndef PRELOAD_LIFE_H
#define PRELOAD_LIFE_H

#include "ring/writer.h"

/*
 * Joins a collector: that of the process tree, the host's, or a new private one. start: enum wire_start. Returns 0 or
 * -errno, with a line on stderr if the user can do something about it. Any thread; a thread that waited for the lock
 * finds the work done.
 */
int process_join(int start);

/* Whether this image records. Joins if it is the child of a fork that is to be recorded. 1 if recording. */
int process_recording(void);

/* Python starts once more in this image; none of its earlier objects is left. GIL held. */
void process_begin_again(void);

/* Called in the child of a fork. Only clears state; the first event joins. */
void process_forked(void);

/*
 * The image ends or execs: informs the collector that no more data follows. If this process owes its user the summary
 * line, waits for the trace, within a bound, and prints the line.
 */
void process_finish(int status);

/* As process_finish(), for an image that is about to end itself by this signal. */
void process_finish_by_signal(int number);

/* The slow path: a new thread, a full ring, a fork, a stop. NULL: the event is lost (and counted), or not wanted. */
struct writer *writer_refill(unsigned kind) __attribute__((cold, noinline));

/*
 * NULL, or what each thread calls on the slow path of its calls and returns, until it has set thread_self.greenlets.
 * GIL held.
 */
extern void (*refill_before_call)(void);

/* Ends the calling thread's ring. */
void writer_end_thread(void);

static inline struct writer *writer_reserve(unsigned kind)
{
	struct writer *writer = thread_self.writer;

	if (unlikely(writer->head >= __atomic_load_n(&writer->room, __ATOMIC_RELAXED)))
		return writer_refill(kind);
	if (unlikely(writer->head >= __atomic_load_n(&writer->limit, __ATOMIC_RELAXED)))
		writer_take_chunk(writer);
	return writer;
}

#endif
