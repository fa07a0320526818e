/*
 * greenlets.h - records the switches between greenlets, several of which, each with its own stack, run in one thread.
 */
#ifndef PRELOAD_GREENLETS_H
#define PRELOAD_GREENLETS_H

struct object;

/*
 * Called at the audit event "import", which comes once more for an extension module, with the path of the library that
 * is loaded next (else None). name and path are borrowed, or NULL. GIL held.
 */
void greenlets_note_import(struct object *name, struct object *path);

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
