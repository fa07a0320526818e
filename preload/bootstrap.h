/* bootstrap.h - getting in: from the loader's constructor to hooks that are set. */
#ifndef PRELOAD_BOOTSTRAP_H
#define PRELOAD_BOOTSTRAP_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Looks for Python if libraries were loaded since, and prepares to be called by it. Keeps errno and dlerror().
 */
void bootstrap_look(void);

/* Sets the hooks of the current thread, if it has a thread state that has none. GIL held. */
void bootstrap_thread(void);

/*
 * Until 3.11: the calling thread has stored value under a key. If it is the thread state that it will enter Python
 * with, its profile function is set; if it is NULL in the place of one, the thread has left Python. Without the GIL.
 */
void bootstrap_new_state(pthread_key_t key, const void *value);

/*
 * Until 3.11: the calling thread may have made a thread state, for itself or for another thread, and is about to give
 * back the lock under which it did. A thread's key shows the first of its states only; a thread that serves several
 * interpreters has one in each. So each gets its profile function when it is made. Without the GIL.
 */
void bootstrap_made_state(void);

/* False: the key is known not to be that of thread states. */
bool bootstrap_may_be_state(pthread_key_t key);

/* Python was brought to its end and has not begun again. */
bool bootstrap_python_is_over(void);

/* Python has just freed its entry of our audit hook, at its end, and has no list of such any more. */
int bootstrap_hook_is_gone(void);

/* The calling thread is about to fork by os.fork() or os.forkpty(), whose child goes on in Python. */
extern __thread int bootstrap_forking;

#endif
