/* snapshot.c - see snapshot.h. */
#include "stack/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "evprof/proc.h"

static void read_command(struct snapshot *snapshot)
{
	char path[64], *text = snapshot->command;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)snapshot->process.target.pid);
	length = proc_read(path, text, sizeof(snapshot->command));
	while (length > 0 && text[length - 1] == 0)
		length--;
	for (ssize_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : ' ';
}

int snapshot_take(struct snapshot *snapshot, pid_t pid, char *why, size_t bytes)
{
	int r;

	*snapshot = (struct snapshot){0};
	if (process_open(&snapshot->process, pid, why, bytes) < 0 ||
	    layout_find(&snapshot->layout, &snapshot->process, why, bytes) < 0)
		return -1;
	read_command(snapshot);
	r = stack_threads_read(&snapshot->layout, &snapshot->process, &snapshot->codes, &snapshot->threads);
	if (r == 0 && snapshot->threads.count)
		r = suspended_read(&snapshot->layout, &snapshot->process, &snapshot->codes, &snapshot->suspended);
	if (r == 0 && snapshot->threads.count)
		return 0;
	snprintf(why, bytes,
		 r ? "no memory for the stacks of process %d" : "process %d has ended, or has no thread of Python's",
		 (int)pid);
	return -1;
}

void snapshot_done(struct snapshot *snapshot)
{
	suspended_done(&snapshot->suspended);
	stack_threads_done(&snapshot->threads);
	codes_done(&snapshot->codes);
	layout_done(&snapshot->layout);
	process_close(&snapshot->process);
}
