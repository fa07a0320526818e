/* bootstrap.h - starts evprof: from the loader's constructor to the first hooks. */
#ifndef PRELOAD_BOOTSTRAP_H
#define PRELOAD_BOOTSTRAP_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Searches for Python if libraries were loaded since the last call, and prepares to be called by it. Keeps errno and
 * dlerror().
 */
void bootstrap_look(void);

/* Sets the hooks of the current thread, if its thread state has none. GIL held. */
void bootstrap_thread(void);

/*
 * Until 3.11: the calling thread has stored value under a thread-specific key. If value is the thread state with which
 * it will enter Python, sets its profile function. If value is NULL in place of one, the thread has left Python.
 * Without the GIL.
 */
void bootstrap_new_state(pthread_key_t key, const void *value);

/*
 * Until 3.11: the calling thread may have created a thread state, for itself or for another thread, and is about to
 * release the lock under which it did. A thread's key holds only its first state, and a thread that serves several
 * interpreters has one in each. So each state gets its profile function when it is created. Without the GIL.
 */
void bootstrap_made_state(void);

/* False: the key is known not to hold thread states. */
bool bootstrap_may_be_state(pthread_key_t key);

/* Python has ended and has not started again. */
bool bootstrap_python_is_over(void);

/* Python has just freed its entry of evprof's audit hook, at its end, and has no audit hooks any more. */
int bootstrap_hook_is_gone(void);

/* The calling thread is about to fork by os.fork() or os.forkpty(), whose child continues in Python. */
extern __thread int bootstrap_forking;

#endif
