/*
 * program_end.h - the time at which a process has run its program, before the interpreter finalizes.
 *
 * Used by analysis/live.c: finalization frees nearly all blocks, and those were live as long as the program ran.
 *
 * No event records this time. After the program the main thread has no Python function on its stack; it then calls
 * threading._shutdown(), if threading is imported, to wait for the other threads. So the program ends with the last end
 * of one of these as the outermost function of the main thread:
 *
 *   <module>, runpy._run_module_as_main    where the executable is Python itself: an embedder runs modules at any time
 *   threading._shutdown
 *
 * Where calls are not recorded, the stack without that function is recorded before the main thread's next memory event.
 * The program ends right before that event: until then the main thread may have waited while others ran.
 *
 * A frozen <module> does not count: "getpath" runs before the program.
 *
 * If one of them still runs at the end of the trace (the process was killed, or left by os._exit()), or the events of
 * its end are lost, the time is unknown.
 */
#ifndef EVPROF_TOOLS_REPLAY_PROGRAM_END_H
#define EVPROF_TOOLS_REPLAY_PROGRAM_END_H

#include <stdint.h>

#include "trace/reader.h"
#include "util/progress.h"

#define PROGRAM_END_NONE INT64_MAX

/* Whether the function with that key, as the outermost one of the main thread, is the program. */
bool program_end_is_program(const struct trace_process *process, uint32_t key);
/* Whether it is the main thread: its tid is the pid. */
static inline bool program_end_is_main(const struct trace_process *process, const struct trace_thread *thread)
{
	return (int64_t)thread->tid == process->pid;
}

/*
 * Sets *ns to the time since the start of the trace, or to PROGRAM_END_NONE. Reads the process's main thread. Returns 0
 * or -ENOMEM.
 */
int program_end_find(struct trace *trace, const struct trace_process *process, int64_t *ns);

#endif
