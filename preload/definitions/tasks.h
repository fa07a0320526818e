/* tasks.h - the tasks of asyncio, and their names. */
#ifndef PRELOAD_TASKS_H
#define PRELOAD_TASKS_H

#include <stdint.h>

/*
 * The frame of the task that a coroutine runs for: that of the outermost coroutine, which is its own, or one that is
 * not recorded. NULL: a coroutine that is recorded awaits it, so it is no step. frame: its own, a PyFrameObject (until
 * 3.10) or its f_frame. back: the frame that runs it, or NULL. GIL held.
 */
const void *definitions_task_frame(const void *frame, const void *back);

/*
 * The extra word of WIRE_TASK for the task of this frame, whose step begins with an event of this kind. It has the name
 * if asyncio created the task and the program named it. GIL held.
 */
uint64_t definitions_task(unsigned kind, const void *frame);

/*
 * The address of the task that runs in the calling thread, if no coroutine of it that runs is recorded; else 0. The GIL
 * need not be held.
 */
uint64_t definitions_hidden_task(void);

#endif
