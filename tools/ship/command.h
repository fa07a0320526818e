/* command.h - the processes of evprof ship for one trace: the command, and the redaction before it. */
#ifndef EVPROF_TOOLS_SHIP_COMMAND_H
#define EVPROF_TOOLS_SHIP_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cut/redact.h"

/* Set by SIGTERM and SIGINT: a running command is ended. */
extern volatile sig_atomic_t ship_ends;

/* A copy of the word with {}, {name} and {host} replaced. NULL: no memory. */
char *ship_words(const char *word, const char *path, const char *name);
/* Waits for the child, and ends it and its children when its time is over. Returns whether it ended with status 0. */
bool ship_wait(pid_t child, int timeout_ms);

/* Runs the command with the words replaced (ship.h). Returns whether it ended with status 0 within that time. */
bool ship_command(char *const *command, const char *path, const char *name, int timeout_ms);
/*
 * Writes the redacted trace. A damaged one ends the process that does it, and no other. Returns whether it is there.
 * name_tells: gets whether the name of the trace has words that were dropped from it (redact_cuts_program()).
 */
bool ship_redact(const struct redact *redact, const char *path, const char *to, int timeout_ms, bool *name_tells);

#endif
