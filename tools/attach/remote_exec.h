/*
 * remote_exec.h - what sys.remote_exec() does, for Python 3.14 and later: the main thread runs a file.
 *
 * Source of the format: CPython's documentation, "Remote debugging attachment protocol", and _Py_DebugOffsets in
 * Include/internal/pycore_debug_offsets.h.
 */
#ifndef EVPROF_TOOLS_ATTACH_REMOTE_EXEC_H
#define EVPROF_TOOLS_ATTACH_REMOTE_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/target.h"

/* Whether this Python has the protocol. */
bool remote_exec_is_for(const struct target *target);

/*
 * Returns 0, or -1 with one line, without a period, in why. The file must stay until the script has run. wait_ms: for a
 * Python that still starts: it has no main thread.
 */
int remote_exec(const struct target *target, const char *script, int wait_ms, char *why, size_t why_bytes);

/* Has the main thread not run this script, if it has not begun yet. Nothing where another one was asked for since. */
void remote_exec_withdraw(const struct target *target, const char *script);

#endif
