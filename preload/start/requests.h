/*
 * requests.h - what somebody asks of this process from outside: to stop or start the recording, to set a mark, or to
 * have what it did last copied.
 *
 *   EVPROF_SIGNAL                    a signal of the user's choice stops or starts, or asks for a snapshot
 *   evprof stop, start, mark         the collector writes the request to the header, and sends SIGURG
 *
 *   signal -> handler, in any thread -> pending call, in Python's main thread -> the request is followed
 *
 * The handler may interrupt anything, and Py_AddPendingCall() takes a lock. So it is called only where the thread
 * cannot hold that lock: between Python's instructions, in a system call, in a hook, or where nobody holds it.
 * Elsewhere the handler asks the kernel to send the signal once more, a little later. An audit event of any thread
 * follows a request of the collector, too, where the main thread is in C code; 3.6 and 3.7 have none. Once Python has
 * ended nothing is followed.
 *
 * SIGURG, because it does nothing to a process without a handler: a program that was just executed, for example.
 */
#ifndef PRELOAD_REQUESTS_H
#define PRELOAD_REQUESTS_H

#include <signal.h>
#include <stdbool.h>

/* Sets the handler of EVPROF_SIGNAL, if the signal that it names has none. Once, when Python has started. */
void requests_begin(void);

/*
 * Until 3.7: whether the handler of SIGURG is still to be set. Then requests_ask_look() is to be called whenever Python
 * has released a lock: each 16th time it has the main thread call requests_look(). Any thread, without the GIL.
 */
extern bool requests_wait __attribute__((visibility("hidden")));
void requests_ask_look(void);

/*
 * At an audit event, or as above: sets the handler of SIGURG once Python has its table of handlers, which the program
 * could read it from otherwise, and follows a request of the collector. A stopped child of a fork joins first, or it
 * would get none. GIL held.
 */
void requests_look(void);

/* Python starts once more: its budget, if there is one, is to begin. */
void requests_begin_again(void);

/*
 * The set that a program may wait for which takes blocked signals: without evprof's own, which would wake it. They are
 * its own where it has a handler, or waits for nothing else. without: place for a copy. Any thread.
 */
const sigset_t *requests_without_own(const sigset_t *set, sigset_t *without);

/*
 * The program is about to set the action of a signal. If that is SIGURG, evprof sends it no more, and the program sees
 * none that is pending: a request is followed at the next audit event, the budget's steps are taken by the slow path.
 * Any thread, also in a signal handler or the child of a vfork.
 */
void requests_handler_changes(int number);

/* Signals have their default actions again, and no timer is left. GIL held. */
void requests_end(void);

#endif
