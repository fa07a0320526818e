/*
 * greenlets.h - records the switches between greenlets, several of which, each with its own stack, run in one thread.
 */
#ifndef PRELOAD_GREENLETS_H
#define PRELOAD_GREENLETS_H

struct object;

/* Called at the audit event "import". name: the module that is about to be imported. GIL held. */
void greenlets_expect(struct object *name);

/*
 * Whether the module is about to be imported, or has been, where no audit event has announced it: there is none until
 * 3.7, nor before the library was loaded. GIL held.
 */
void greenlets_look(void);

/* Python starts once more in this thread: the module does not exist. GIL held. */
void greenlets_forget(void);

/*
 * Takes the trace function off this thread's greenlets; another thread takes its own off at its next switch. Recording
 * is stopped, GIL held.
 */
void greenlets_remove(void);

#endif
