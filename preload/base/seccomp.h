/*
 * seccomp.h - whether a seccomp filter restricts the system calls of this process.
 *
 * A filter may end the process at a call that it forbids, and cannot be queried. So a process that has installed one
 * makes no system call for evprof that the program itself need not make: it opens no socket, examines no other process,
 * and does not join. What it had joined before continues: that is memory. Under a filter older than this image, as in
 * most containers, a child tests the calls first.
 */
#ifndef PRELOAD_SECCOMP_H
#define PRELOAD_SECCOMP_H

#include <stdbool.h>

/* The program has made the prctl() call that precedes a filter. Forked children know it, too. */
void seccomp_note(void);

/*
 * Probes whether a filter older than this image would end it. Called once, before any call for which that may happen.
 */
void seccomp_inherited(void);

/*
 * Whether a filter is active: installed by this image, on the calling thread or on one that has asked before, or older
 * and known to end a process that joins. Asked by each thread before it makes such a call.
 */
bool seccomp_active(void);

#endif
