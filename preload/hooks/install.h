/* install.h - sets the hooks: once in the process, and in each thread. */
#ifndef PRELOAD_INSTALL_H
#define PRELOAD_INSTALL_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Sets the hooks of the current thread, if its thread state has none. The first call joins a collector. True: calls are
 * recorded from here on. GIL held.
 */
bool install_in_thread(void);

/*
 * Until 3.11: the calling thread has stored value under a thread-specific key. If value is the thread state with which
 * it will enter Python, sets its profile function. If value is NULL in place of one, the thread has left Python.
 * Without the GIL.
 */
void install_new_state(pthread_key_t key, const void *value);

/*
 * Until 3.11: the calling thread may have created a thread state, for itself or for another thread, and is about to
 * release the lock under which it did. A thread's key holds only its first state, and a thread that serves several
 * interpreters has one in each. So each state gets its profile function when it is created. Without the GIL.
 */
void install_made_state(void);

/* False: the key is known not to hold thread states. */
bool install_may_be_state(pthread_key_t key);

/*
 * Until 3.11: the program is about to replace evprof's profile function, or to remove its own. Once it has, evprof's is
 * put in front of it at one of the next events. Several events check for it, because some come while it is being set.
 * From 3.12 on: Python removes the program's function, which raised (hook_compat.c handles the other cases). Events
 * that it refused are not reported to evprof.
 */
void install_profile_changes(void);

/*
 * From 3.11 on: Python removes a trace function that raised. An end that it refused is not reported to profile
 * functions.
 */
void install_trace_changes(void);

/* Whether the first thread has installed what is installed once. */
bool install_has_begun(void);

/*
 * The next interpreter's thread state may get the address of this one's. No more hooks are set in this interpreter.
 */
void install_interpreter_ends(void);

/* Python ends. No hooks are set from here on, until it starts once more. */
void install_runtime_ends(void);
void install_runtime_begins(void);

#endif
