/*
 * call_tree.h - the call tree of a trace: each stack once, below its thread and its process, with calls, own and
 * cumulative time. Used by evprof tree.
 *
 * Memory: that of analysis/stacks.h for the stacks of all threads together, and 24 bytes for each.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_CALL_TREE_H
#define EVPROF_TOOLS_ANALYSIS_CALL_TREE_H

#include <stdint.h>

#include "analysis/stacks.h"
#include "replay/filter.h"
#include "util/progress.h"

/* A node's function is a number of `functions`, or with this bit one of `owners`: a process or a thread. */
#define CALL_TREE_OWNER (UINT32_C(1) << 31)

/* All zeros: empty. */
struct call_tree {
	struct stacks stacks; /* node 0 is above all processes */
	struct stack_functions functions;
	char **owners; /* names of processes and threads */
	uint32_t owner_count;
	size_t owners_allocated;
	uint32_t process; /* node of the current process; 0: none yet */
	uint32_t threads, processes;
	uint64_t *total_ns; /* by node: own time with that of all nodes below */
	/* By node: its child with the most time, and the next one of its parent; 0: none. */
	uint32_t *first;
	uint32_t *next;
};

/* Reads what the filter shows. Returns 0 or -errno; call call_tree_done() in both cases. */
int call_tree_read(struct call_tree *tree, struct trace *trace, const struct filter *filter, struct progress *progress);
void call_tree_done(struct call_tree *tree);

#endif
