/* greenlets.h - tells the switches between greenlets, each of which has a stack of its own in one thread. */
#ifndef PRELOAD_GREENLETS_H
#define PRELOAD_GREENLETS_H

#include <stdbool.h>

struct object;

/* The module is there, or about to be: threads that do not watch their switches yet should try (greenlets_watch). */
extern bool greenlets_expected;

/* At the audit event "import": name is that of a module that is about to be imported. GIL held. */
void greenlets_expect(struct object *name);

/* Python begins once more in this thread: the module is not there. GIL held. */
void greenlets_forget(void);

/* Has this thread's switches told from now on, if the module is there. Cheap where they are already. GIL held. */
void greenlets_watch(void);

#endif
