/* tasks.h - the tasks of asyncio, and their names. */
#ifndef PRELOAD_TASKS_H
#define PRELOAD_TASKS_H

#include <stdint.h>

/*
 * The extra word of WIRE_TASK for the task whose step begins with an event of this kind in this frame. It has the name
 * if asyncio created the task and the program named it. GIL held.
 */
uint64_t definitions_task(unsigned kind, const void *frame);

#endif
