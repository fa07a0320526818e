/*
 * switch.h - stops and starts the recording of this image.
 *
 * While it is stopped, no hook is set: each hook takes itself off at its next event, when it finds that nothing is
 * recorded (hooks.h, "..._take_off"). So stopping needs neither the GIL nor the other threads. Starting sets the hooks
 * of the whole interpreter again, with the GIL; each thread then writes the pause and its stack before its next event.
 *
 * What stays set has no cost for running code: the audit hook, the wrapped functions of other tools at the same hooks
 * (hook_compat.h), the death of code objects. In an interpreter with a GIL of its own, recording starts at its next
 * audit event.
 */
#ifndef PRELOAD_SWITCH_H
#define PRELOAD_SWITCH_H

#include <stdbool.h>

/*
 * In the child of a fork whose recording was stopped: joins, so that the collector can reach it, and stays stopped.
 * Nothing elsewhere. At an audit event.
 */
void switch_join_stopped(void);

/* Nothing if recording is stopped already, or the image records nothing. Any thread, with or without the GIL. */
void switch_stop(void);

/* Likewise, if recording is not stopped. Without the GIL, the hooks are set a moment later by Python's main thread. */
void switch_start(void);

/*
 * Records other events from now on: a list as in EVPROF_EVENTS. Threads write a pause and their stacks, as after a stop
 * and a start; a stopped recording stays stopped. False: the list is wrong, or the image cannot change to it, and all
 * is as before. GIL held, in the main interpreter.
 */
bool switch_events(const char *list);

#endif
