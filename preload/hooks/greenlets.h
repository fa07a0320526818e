/*
 * greenlets.h - records the switches between greenlets, several of which, each with its own stack, run in one thread.
 */
#ifndef PRELOAD_GREENLETS_H
#define PRELOAD_GREENLETS_H

#include <stdbool.h>

struct object;

/* The module exists, or is about to: threads that do not record their switches yet call greenlets_watch(). */
extern bool greenlets_expected;

/* Called at the audit event "import". name: the module that is about to be imported. GIL held. */
void greenlets_expect(struct object *name);

/* Python starts once more in this thread: the module does not exist. GIL held. */
void greenlets_forget(void);

/* Starts recording this thread's switches, if the module exists. Cheap if they are recorded already. GIL held. */
void greenlets_watch(void);

#endif
