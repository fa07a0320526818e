/*
 * own_stack.h - a stack for code that runs in a signal handler. Alternate signal stacks usually have 8 KiB, of which
 * the kernel's frame takes three with AVX-512; printing a line takes more than the rest. Called by interpose.c.
 */
#ifndef PRELOAD_OWN_STACK_H
#define PRELOAD_OWN_STACK_H

#include <signal.h>
#include <stdbool.h>

/* Calls a function, on another stack if this one is an alternate signal stack. Keeps errno; no cancellation point. */
void own_stack_call(void (*call)(void *argument), void *argument);

/* Whether own_stack_call() would use another stack. */
bool own_stack_is_wanted(void);

/* Stores the alternate stack that the calling thread has set. */
void own_stack_note(const stack_t *set);

/* Called in the child of a fork: the thread that uses the stack may not exist there. */
void own_stack_forked(void);

#endif
