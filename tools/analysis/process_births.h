/*
 * process_births.h - which process of the trace a fork made. For exporters that link the two.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_PROCESS_BIRTHS_H
#define EVPROF_TOOLS_ANALYSIS_PROCESS_BIRTHS_H

#include <stdint.h>

#include "trace/reader.h"

/* A process image and its start, in ns of CLOCK_MONOTONIC. */
struct process_birth {
	int64_t ppid;
	int64_t pid;
	int64_t ns;
	const struct trace_process *process;
};

/* By parent, pid and time. The caller frees at. */
struct process_births {
	struct process_birth *at;
	uint32_t count;
};

/* Returns 0 or -ENOMEM. */
int process_births_find(struct process_births *births, const struct trace *trace);
/*
 * The process that a fork at that time made. A pid may be used again, so it is the nearest in time. NULL if the child
 * was not recorded.
 */
const struct trace_process *process_births_child(const struct process_births *births, int64_t ppid, int64_t pid,
						 int64_t ns);

#endif
