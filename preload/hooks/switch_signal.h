/*
 * switch_signal.h - EVPROF_SIGNAL: a signal of the user's choice stops the recording, or starts it again.
 *
 *   signal -> handler, in any thread -> pending call, in Python's main thread -> switch_stop() or switch_start()
 *
 * The handler may interrupt anything, and Py_AddPendingCall() takes a lock. So it is called only where the thread
 * cannot hold that lock: between Python's instructions, or in a system call. Elsewhere the handler asks the kernel to
 * send the signal once more, two milliseconds later.
 */
#ifndef PRELOAD_SWITCH_SIGNAL_H
#define PRELOAD_SWITCH_SIGNAL_H

/* Sets the handler, if EVPROF_SIGNAL names a signal that has none. Once, when Python has started. */
void switch_signal_begin(void);

#endif
