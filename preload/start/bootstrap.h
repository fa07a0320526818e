/* bootstrap.h - starts evprof: from the loader's constructor to the first hooks. */
#ifndef PRELOAD_BOOTSTRAP_H
#define PRELOAD_BOOTSTRAP_H

#include <stdbool.h>

/*
 * Searches for Python if libraries were loaded since the last call, and prepares to be called by it. Keeps errno and
 * dlerror().
 */
void bootstrap_look(void);

/*
 * Sets the hooks at once, where the library was loaded into a Python that runs already. Does nothing without the GIL.
 */
void bootstrap_begin(void);

/*
 * Begins to record a Python that runs already, and whose library was loaded for it. settings: lines of NAME=VALUE in
 * place of the environment. Returns NULL, or why nothing is recorded: a line for the user. GIL held, in Python's main
 * thread, between two instructions of the program.
 */
const char *bootstrap_attach(const char *settings);

/*
 * Ends the recording and leaves Python as it was, but for the library and its audit hook, which does nothing (Python
 * cannot remove one). Returns NULL, or a line for the user. As bootstrap_attach(), which may follow.
 */
const char *bootstrap_detach(void);

/* The calling thread is about to fork by os.fork() or os.forkpty(), whose child continues in Python. */
extern __thread int bootstrap_forking;

#endif
