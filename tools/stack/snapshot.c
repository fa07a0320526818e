/* snapshot.c - see snapshot.h. */
#include "stack/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/proc.h"

static void read_command(struct snapshot *snapshot)
{
	char *text = snapshot->command;
	ssize_t length = proc_read_of(snapshot->process.target.pid, 0, "cmdline", text, sizeof(snapshot->command));

	while (length > 0 && text[length - 1] == 0)
		length--;
	for (ssize_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : ' ';
}

static size_t count_frames(const struct snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->threads.count; i++)
		count += snapshot->threads.at[i].count;
	for (size_t i = 0; i < snapshot->suspended.count; i++)
		count += snapshot->suspended.at[i].count;
	return count;
}

static struct remote_frame seen_again[REMOTE_FRAMES];

/* The variables of a thread's frames. Those of functions that have returned meanwhile are dropped. */
static int read_thread_locals(struct snapshot *snapshot, const struct stack_thread *thread, struct frame_locals *locals)
{
	int r = 0, count;

	for (size_t i = 0; i < thread->count && r == 0; i++)
		r = locals_read(&snapshot->layout, &snapshot->process, &thread->frames[i].at, &locals[i]);
	remote_refresh(snapshot->process.remote);
	count = remote_stack(snapshot->process.remote, thread->state, seen_again);
	for (size_t i = thread->count; i-- > 0; count--) {
		const struct remote_frame *was = &thread->frames[i].at, *is = count > 0 ? &seen_again[count - 1] : NULL;

		if (!is || was->frame != is->frame || was->code != is->code)
			locals_done(&locals[i]);
	}
	return r;
}

static int read_locals(struct snapshot *snapshot)
{
	size_t at = 0;
	int r = 0;

	snapshot->frame_count = count_frames(snapshot);
	snapshot->locals = calloc(snapshot->frame_count + 1, sizeof(*snapshot->locals));
	if (!snapshot->locals)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->threads.count && r == 0; i++) {
		r = read_thread_locals(snapshot, &snapshot->threads.at[i], snapshot->locals + at);
		at += snapshot->threads.at[i].count;
	}
	for (size_t i = 0; i < snapshot->suspended.count; i++)
		for (size_t k = 0; k < snapshot->suspended.at[i].count && r == 0; k++)
			r = locals_read(&snapshot->layout, &snapshot->process, &snapshot->suspended.at[i].frames[k].at,
					&snapshot->locals[at++]);
	return r;
}

/* -ENOMEM, or -1 with a line in why. */
static int read_native(struct snapshot *snapshot, char *why, size_t bytes)
{
	struct native native;
	int r = native_open(&native, &snapshot->process, why, bytes);

	if (r == 0 && !(snapshot->native = calloc(snapshot->threads.count + 1, sizeof(*snapshot->native))))
		r = -ENOMEM;
	for (size_t i = 0; i < snapshot->threads.count && r == 0; i++)
		r = native_read(&native, &snapshot->layout, &snapshot->process, &snapshot->codes,
				&snapshot->threads.at[i], &snapshot->native[i]);
	native_close(&native);
	return r;
}

int snapshot_take(struct snapshot *snapshot, pid_t pid, const struct snapshot_wish *wish, char *why, size_t bytes)
{
	int r;

	*snapshot = (struct snapshot){0};
	if (process_open(&snapshot->process, pid, why, bytes) < 0 ||
	    layout_find(&snapshot->layout, &snapshot->process, why, bytes) < 0)
		return -1;
	read_command(snapshot);
	r = stack_threads_read(&snapshot->layout, &snapshot->process, &snapshot->codes, &snapshot->threads);
	if (r == 0 && snapshot->threads.count && wish->native) {
		r = read_native(snapshot, why, bytes);
		if (r == -1)
			return -1;
	}
	if (r == 0 && snapshot->threads.count)
		r = suspended_read(&snapshot->layout, &snapshot->process, &snapshot->codes, &snapshot->suspended);
	if (r == 0 && wish->locals)
		r = read_locals(snapshot);
	if (r == 0 && snapshot->threads.count)
		return 0;
	snprintf(why, bytes,
		 r ? "no memory for the stacks of process %d" : "process %d has ended, or has no thread of Python's",
		 (int)pid);
	return -1;
}

void snapshot_done(struct snapshot *snapshot)
{
	for (size_t i = 0; snapshot->locals && i < snapshot->frame_count; i++)
		locals_done(&snapshot->locals[i]);
	for (size_t i = 0; snapshot->native && i < snapshot->threads.count; i++)
		native_stack_done(&snapshot->native[i]);
	free(snapshot->locals);
	free(snapshot->native);
	snapshot->locals = NULL;
	snapshot->native = NULL;
	suspended_done(&snapshot->suspended);
	stack_threads_done(&snapshot->threads);
	codes_done(&snapshot->codes);
	layout_done(&snapshot->layout);
	process_close(&snapshot->process);
}
