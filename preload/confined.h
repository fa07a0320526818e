/*
 * confined.h - whether the program has taken system calls from itself (seccomp).
 *
 * A filter may end the process at a call that it forbids, and cannot be asked what it forbids. So a process that has put one on
 * makes none for evprof that the program itself need not make: it opens no socket, asks for no other process, and does not
 * join. What it had joined before goes on: that is memory.
 */
#ifndef PRELOAD_CONFINED_H
#define PRELOAD_CONFINED_H

#include <stdbool.h>

/* The program has done what goes before a filter (prctl). Forked children know it, too. */
void confined_look(void);

/* Whether there is one. Says no of a filter from before this image: evprof joins under that, or has not joined. */
bool confined(void);

#endif
