/*
 * life.h - the life of this process image and of its threads: joining a collector, room for events, the end.
 *
 *   life.c     joins a collector, at the start and in the child of a fork
 *   refill.c   gives a thread its ring, and room in it
 *   rejoin.c   moves an image whose collector is gone to the collector that has replaced it
 *   finish.c   ends the image, with the summary line
 */
#ifndef PRELOAD_LIFE_H
#define PRELOAD_LIFE_H

#include "ring/writer.h"

/*
 * Joins a collector: that of the process tree, the host's, or a new private one. start: enum wire_start. Also after
 * life_leave(), with another configuration and a new session. Returns 0 or
 * -errno, with a line on stderr if the user can do something about it. Any thread; a thread that waited for the lock
 * finds the work done.
 */
int life_join(int start);

/*
 * Whether this image records. Joins if it is the child of a fork that is to be recorded, and that was not stopped
 * (hooks/switch.h). 1 if recording.
 */
int life_recording(void);

/*
 * Writes the stack of the greenlet that goes on, after the event of its switch. Without room for it the slow path of
 * the next call or return does so. GIL held.
 */
void writer_put_greenlet_stack(void);

/* Joins in the child of a fork, unless children are not to be recorded. 1 if recording. */
int life_join_child(void);

/* Python starts once more in this image; none of its earlier objects is left. GIL held. */
void life_begin_again(void);

/* Called in the child of a fork. Only clears state; the first event joins. */
void life_forked(void);

/*
 * The image ends or execs: informs the collector that no more data follows. If this process owes its user the summary
 * line, waits for the trace, within a bound, and prints the line.
 */
#define LIFE_STATUS_UNKNOWN INT_MIN
void life_finish(int status);

/* As life_finish(), for an image that is about to end itself by this signal. */
void life_finish_by_signal(int number);

/*
 * Ends the recording of this image, which goes on, and waits for the trace, within a bound. No line is printed. True:
 * the trace has all of it.
 */
bool process_detach(void);

/*
 * Ends the recording of this image, which may be recorded again by life_join(). Does not wait for the trace. No thread
 * records any more, and the hooks are off. Leaves no descriptor, and of its shared memory only the pages of the
 * threads' slots. False: it is not recorded, or there is no memory to do so. GIL held.
 */
bool life_leave(void);

/*
 * The slow path: the end of a chunk, a new thread, a full ring, a fork, a stop. NULL: the event is lost (and counted),
 * or not wanted.
 */
struct writer *writer_refill(unsigned kind) __attribute__((cold, noinline));

/*
 * NULL, or what each thread calls on the slow path of its calls and returns, until it has set thread_self.greenlets.
 * GIL held.
 */
extern void (*refill_before_call)(void);

/*
 * Does what is due on the slow path at an event that is not recorded, and finds the room of those that follow: else
 * each of them comes here until one is recorded. Does nothing if there is no room without waiting, so nothing is lost.
 * GIL held.
 */
void writer_look(unsigned kind) __attribute__((cold, noinline));

/* Ends the calling thread's ring. */
void writer_end_thread(void);

static inline struct writer *writer_reserve(unsigned kind)
{
	struct writer *writer = thread_self.writer;

	return writer_has_room(writer) ? writer : writer_refill(kind);
}

/*
 * Writes an event of the process: it has one number, and may come in a signal handler. Over an event that is half
 * written it is lost, and counted.
 */
void writer_put_rare(unsigned kind, uint64_t number);

/* Between two checks whether the collector still exists: words of a thread, and time. */
#define REJOIN_EVERY_WORDS 8192
#define REJOIN_EVERY_US 500000

enum rejoin_when {
	REJOIN_AT_TIMES, /* if the next check is due */
	REJOIN_NOW,	 /* a thread has waited for the collector in vain */
	REJOIN_AT_END,	 /* the image ends */
};

/*
 * Joins the new collector if the present one is gone. Called by writers on their slow path, with or without the GIL,
 * and at the end of the image. Cheap: it reads the clock and, at most twice a second, checks the collector. kind: of
 * the event that is about to be written; ids can be assigned anew only under a kind whose hook holds the GIL. True:
 * another collector reads the rings from here on. errno may change.
 */
bool rejoin_if_lost(unsigned kind, enum rejoin_when when);

#endif
