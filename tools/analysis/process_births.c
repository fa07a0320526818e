/*
 * process_births.c - which process a fork made. See process_births.h.
 */
#include "analysis/process_births.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/grow.h"

static int by_birth(const void *a, const void *b)
{
	const struct process_birth *left = a, *right = b;

	return compare_i64(left->ppid, right->ppid) ?: compare_i64(left->pid, right->pid)
		   ?: compare_i64(left->ns, right->ns);
}

int process_births_find(struct process_births *births, const struct trace *trace)
{
	births->at = calloc((size_t)trace->process_count + 1, sizeof(*births->at));
	if (!births->at)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && process->known)
			births->at[births->count++] = (struct process_birth){
			    process->ppid, process->pid, trace_ns(process, process->start_ticks), process};
	}
	qsort(births->at, births->count, sizeof(*births->at), by_birth);
	return 0;
}

static bool is_same(const struct process_birth *birth, const struct process_birth *fork)
{
	return birth->ppid == fork->ppid && birth->pid == fork->pid;
}

const struct trace_process *process_births_child(const struct process_births *births, int64_t ppid, int64_t pid,
						 int64_t ns)
{
	const struct process_birth fork = {ppid, pid, ns, NULL}, *at = births->at;
	uint32_t low = 0, high = births->count;
	bool before, after;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (by_birth(&at[middle], &fork) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	before = low > 0 && is_same(&at[low - 1], &fork);
	after = low < births->count && is_same(&at[low], &fork);
	if (before && after)
		before = ns - at[low - 1].ns <= at[low].ns - ns;
	return before ? at[low - 1].process : after ? at[low].process : NULL;
}
