/* stack.h - the Python stack of the calling thread, as ids. */
#ifndef PRELOAD_STACK_H
#define PRELOAD_STACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Stores the ids of the calling thread's Python stack, innermost first, at most `most` of them. The top frame is left
 * out if the event of this kind is about to push it. lines: gets the current line of each frame, or NULL. *more: the
 * stack has more frames. Returns the number of ids.
 */
uint32_t definitions_stack(unsigned kind, uint32_t *ids, int *lines, uint32_t most, bool *more);

#endif
