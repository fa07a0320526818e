/*
 * process.h - what process.c does for harness.c only: the begin and the end of a test, and a look at its processes.
 */
#ifndef EVPROF_E2E_PROCESS_H
#define EVPROF_E2E_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* From here on, whatever is started below this process becomes its child when its own parent ends. */
void process_adopt(void);

/* EVPROF_EVENTS=..., for jobs of the running test that do not set it; NULL: they have the default. */
void process_events(const char *variable);
bool process_calls_only(void); /* ... and that calls of C functions are not among them */
/* Ends all that is left of what was started here. */
void process_kill_all(void);
void process_remove_directories(void);
/* With all that is in it. */
void directory_remove(const char *directory);
/* A child or orphan of this test whose name in /proc is this (15 characters at most); 0 where none is. */
pid_t process_child_named(const char *name);
bool process_has_ended(pid_t pid); /* it may be a zombie */

#endif
