/*
 * process_end.h - the end of a process image: exit, exec, killed or detached. Used by the session.
 */
#ifndef COLLECTOR_PROCESS_END_H
#define COLLECTOR_PROCESS_END_H

#include <stdint.h>

#include "base/users.h"
#include "session/process.h"

/* How the image ended: "exit", "exec", "killed" or "detached"; NULL: it still runs. Uses a lookup of the user. */
const char *process_end_reason(struct process *process, struct user *user, uint64_t now_ns);
/* Drains what is left, and writes the end to the trace. The process is complete afterwards. */
void process_end_write(struct process *process, const char *how, uint64_t now_ns);

#endif
