/*
 * greenlet_stacks.h - which of a thread's greenlets are known to a reader that begins at the last stack of the thread.
 *
 * The stack of a thread is that of its running greenlet. A reader that begins there knows the greenlets that have run
 * since. The stack of any other is written when it goes on (WIRE_GREENLET_STACK). So it is where a recording begins,
 * too.
 *
 * Each thread has a set of addresses. It is emptied where the thread's stack is written. It is bounded, and so are the
 * frames that are written between two stacks of the thread: beyond that, greenlets go on without a stack.
 */
#ifndef PRELOAD_GREENLET_STACKS_H
#define PRELOAD_GREENLET_STACKS_H

#include <stdint.h>

#include "ring/writer.h"

/* After the event of a switch. Keeps errno. GIL held. */
void greenlet_stacks_switch(struct writer *writer, const void *target, const void *origin);

/* The stack of the running greenlet was written, with so many frames. */
void greenlet_stacks_written(uint32_t frames);

/* The stack of the thread was written. */
void greenlet_stacks_begin(void);

/* The calling thread ends. */
void greenlet_stacks_end(void);

#endif
