/*
 * seccomp_state.h - whether the program has taken system calls from itself (seccomp).
 *
 * A filter may end the process at a call that it forbids, and cannot be asked what it forbids. So a process that has
 * put one on makes none for evprof that the program itself need not make: it opens no socket, asks for no other
 * process, and does not join. What it had joined before goes on: that is memory. Under a filter from before this image,
 * as in most containers, the calls are tried first, by a child (seccomp_probe.h).
 */
#ifndef PRELOAD_SECCOMP_STATE_H
#define PRELOAD_SECCOMP_STATE_H

#include <stdbool.h>

/* The program has done what goes before a filter (prctl). Forked children know it, too. */
void seccomp_note(void);

/*
 * Before anything is done that a filter may end the process for: looks whether one from before this image would. Once.
 */
void seccomp_inherited(void);

/* Whether there is one, put on by this image, or from before it and known to end whoever joins. */
bool seccomp_active(void);

#endif
