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

/* Python has ended and has not started again. */
bool bootstrap_python_is_over(void);

/* The calling thread is about to fork by os.fork() or os.forkpty(), whose child continues in Python. */
extern __thread int bootstrap_forking;

#endif
