/* copies.c - see copies.h. Called by session.c and session_end.c. */
#include "session/copies.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "session/process.h"
#include "trace/tool_run.h"
#include "trace/trace_output.h"

#define HOLD_MS 120000

struct copy {
	struct copy *next;
	struct tool_run run;
	uint64_t hold;
	char path[PATH_MAX];
};

/* False: the name is too long. */
static bool name_copy(const char *trace, int pid, char path[PATH_MAX])
{
	const char *name = strrchr(trace, '/'), *ending = strrchr(name ? name : trace, '.');
	int stem = ending ? (int)(ending - trace) : (int)strlen(trace);

	return snprintf(path, PATH_MAX, "%.*s-%d-killed.evp", stem, trace, pid) < PATH_MAX;
}

static void start(struct copy *copy, struct loop *loop, const struct trace_output *trace, int pid)
{
	uint64_t since_ns = trace->kept.since_ns ? trace->kept.since_ns : 1;
	char since[32], number[16];
	const char *argv[] = {"evprof", "cut", "--since",  since,	"--process",
			      number,	"-o",  copy->path, trace->path, NULL};

	snprintf(since, sizeof(since), "%llu", (unsigned long long)since_ns);
	snprintf(number, sizeof(number), "%d", pid);
	tool_run_start(&copy->run, loop, argv);
}

void copies_add(struct copies *copies, struct loop *loop, struct trace_output *trace, const struct process *process,
		uint64_t now_ns)
{
	struct copy *copy = copies->count < COPIES_MAX ? calloc(1, sizeof(*copy)) : NULL;

	if (!copy || !name_copy(trace->path, (int)process->pid, copy->path)) {
		log_warning("what process %d did before it was killed is not copied: too many were killed together",
			    (int)process->pid);
		free(copy);
		return;
	}
	trace_output_write_clocks(trace, now_ns);
	kept_hold(&trace->kept, &trace->writer, now_ns, HOLD_MS);
	copy->hold = trace->kept.hold;
	start(copy, loop, trace, (int)process->pid);
	copy->next = copies->first;
	copies->first = copy;
	copies->count++;
}

bool copies_check(struct copies *copies, struct trace_output *trace)
{
	struct copy **link = &copies->first, *copy;

	while ((copy = *link)) {
		if (copy->run.running) {
			link = &copy->next;
			continue;
		}
		*link = copy->next;
		copies->count--;
		if (trace->kept.hold == copy->hold)
			trace->kept.held_until_ns = 0;
		free(copy);
	}
	return copies->count > 0;
}

void copies_stop(struct copies *copies)
{
	struct copy *next;

	for (struct copy *copy = copies->first; copy; copy = next) {
		next = copy->next;
		tool_run_stop(&copy->run);
		free(copy);
	}
	*copies = (struct copies){0};
}
