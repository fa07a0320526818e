/*
 * program_end.h - when a process had run its program, and the interpreter began to take itself down.
 *
 * Used by analysis/live.c: what the interpreter gives back at its end, which is nearly all, was alive as long as the
 * program ran.
 *
 * No event tells it. The first thread has no Python function on its stack any more once its program has run, and then
 * calls threading._shutdown(), if that is imported, to wait for the other threads; so it is the last of these at which
 * the outermost function ended, of the first thread:
 *
 *   <module>, runpy._run_module_as_main    where the program is Python itself: who embeds it runs modules at any time
 *   threading._shutdown
 *
 * If one of them is running at the end of the trace (it was killed, or left by os._exit()), the end is not known to
 * have been reached.
 */
#ifndef EVPROF_TOOLS_REPLAY_PROGRAM_END_H
#define EVPROF_TOOLS_REPLAY_PROGRAM_END_H

#include <stdint.h>

#include "trace/reader.h"
#include "util/progress.h"

#define PROGRAM_END_NONE INT64_MAX

/*
 * Sets *ns since the start of the trace, or PROGRAM_END_NONE. Reads the process's first thread. Returns 0 or -ENOMEM.
 */
int program_end_find(struct trace *trace, const struct trace_process *process, int64_t *ns);

#endif
