/*
 * greenlets.h - records the switches between greenlets, several of which, each with its own stack, run in one thread.
 */
#ifndef PRELOAD_GREENLETS_H
#define PRELOAD_GREENLETS_H

struct object;

/* Called at the audit event "import". name: the module that is about to be imported. GIL held. */
void greenlets_expect(struct object *name);

/* Python starts once more in this thread: the module does not exist. GIL held. */
void greenlets_forget(void);

#endif
