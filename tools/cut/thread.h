/*
 * thread.h - the events of one thread in a cut.
 */
#ifndef EVPROF_TOOLS_CUT_THREAD_H
#define EVPROF_TOOLS_CUT_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cut/file.h"
#include "replay/replay.h"
#include "util/progress.h"

struct cut_thread {
	struct trace *trace;
	struct cut_file *file;
	struct progress *progress;
	const struct cut_stretch *stretch;
	const struct trace_thread *thread;
	struct replay *replay; /* of the thread's process, as replay_begin_thread() leaves it */
	uint64_t *look_back;   /* initial_stack.h */
	bool own;	       /* its stream is the own one of a sampled thread, whose stacks are the sampler's */
};

/* Whether the thread has events before the stretch. */
bool cut_thread_has_before(const struct cut_thread *cut);
/* Writes what the stretch has of the thread, if anything. Returns 0 or -ENOMEM; errors of writing are the file's. */
int cut_thread_write(const struct cut_thread *cut);

#endif
