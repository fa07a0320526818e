/* gc_lists.h - walks the lists of the garbage collector of another process. */
#ifndef EVPROF_TOOLS_STACK_GC_LISTS_H
#define EVPROF_TOOLS_STACK_GC_LISTS_H

#include "stack/layout.h"

/*
 * Calls visit() with each object that Python's garbage collector tracks, some more than once, and its type. False:
 * there are too many, or a list was collected each time, or has changed so that it led nowhere; the rest is left out.
 * Takes ten seconds at most, whatever is in that process.
 */
bool gc_lists_walk(const struct layout *layout, struct process *process,
		   void (*visit)(void *context, uint64_t object, uint64_t type), void *context);

#endif
