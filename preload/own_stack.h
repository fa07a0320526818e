/*
 * own_stack.h - a stack for what is done in somebody's signal handler: 8 KiB are usual there, of which the kernel's own
 * frame takes three with AVX-512, and a line for people takes more than what is left. Called by interpose.c.
 */
#ifndef PRELOAD_OWN_STACK_H
#define PRELOAD_OWN_STACK_H

#include <signal.h>

/* Calls it, on another stack if this one is an alternate signal stack. Keeps errno. */
void own_stack_call(void (*call)(void *argument), void *argument);

/* The calling thread has set that alternate stack. */
void own_stack_note(const stack_t *set);

/* The child of a fork, in the child: the thread that has the stack may not be in it. */
void own_stack_forked(void);

#endif
