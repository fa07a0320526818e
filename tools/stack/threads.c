/* threads.c - see threads.h. */
#include "stack/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/proc.h"
#include "stack/objects.h"
#include "util/grow.h"

#define TRIES 200

/* --- stacks --- */

/* A caller that stands at another instruction has called something else meanwhile. */
static bool same_frame(const struct stack_frame *frame, const struct remote_frame *at, bool innermost)
{
	return frame->at.frame == at->frame && frame->at.code == at->code &&
	       (innermost || frame->at.instruction == at->instruction);
}

/* The functions of the frames. Those from the first one that cannot be read on outwards are wrong, so nothing is. */
static bool find_codes(const struct layout *layout, struct process *process, struct codes *codes,
		       const struct remote_frame *read, int count, struct stack_frame *frames)
{
	for (int i = 0; i < count; i++) {
		frames[i] = (struct stack_frame){.at = read[i]};
		if (!codes_find(codes, process, read[i].code, &frames[i].code))
			return false;
		frames[i].line = codes_line(codes, layout, frames[i].code, read[i].instruction);
	}
	return true;
}

static struct remote_frame at_hand[REMOTE_FRAMES];
static struct stack_frame seen[REMOTE_FRAMES];

/*
 * Reads a stack into seen[] and once more, and returns how many of its frames, from the outermost one on, were there
 * both times; *whole: all were. -1: there is no stack to be read.
 */
static int read_twice(const struct layout *layout, struct process *process, struct codes *codes, uint64_t state,
		      int *first, bool *whole)
{
	int again, same = 0;

	remote_refresh(process->remote);
	*first = remote_stack(process->remote, state, at_hand);
	if (*first < 0 || !find_codes(layout, process, codes, at_hand, *first, seen))
		return -1;
	remote_refresh(process->remote);
	again = remote_stack(process->remote, state, at_hand);
	while (same < *first && same < again &&
	       same_frame(&seen[*first - 1 - same], &at_hand[again - 1 - same], *first == again && same == again - 1))
		same++;
	*whole = same == *first && same == again;
	return same;
}

static int keep_frames(struct stack_thread *thread, const struct stack_frame *frames, int count)
{
	struct stack_frame *kept = malloc(((size_t)count + 1) * sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	memcpy(kept, frames, (size_t)count * sizeof(*kept));
	free(thread->frames);
	thread->frames = kept;
	thread->count = (size_t)count;
	return 0;
}

static int read_stack(const struct layout *layout, struct process *process, struct codes *codes,
		      struct stack_thread *thread)
{
	int best = 0, r = 0;
	bool whole = false;

	thread->changed = true;
	for (int i = 0; i < TRIES && !whole && r == 0; i++) {
		int first, same = read_twice(layout, process, codes, thread->state, &first, &whole);

		if (same < best || (same == 0 && !whole))
			continue;
		best = same;
		thread->changed = !whole;
		r = keep_frames(thread, seen + first - same, same);
	}
	return r;
}

/* --- names --- */

/* The first local variable of threading.Thread._bootstrap() is the Thread. */
static bool read_python_name(const struct layout *layout, struct process *process, const struct codes *codes,
			     struct stack_thread *thread)
{
	static const char file[] = "threading.py";

	for (size_t i = thread->count; i-- > 0;) {
		const struct code *code = &codes->at[thread->frames[i].code];
		size_t length = strlen(code->file);
		uint64_t object, name;

		if (strcmp(code->name, "_bootstrap") != 0 || length < sizeof(file) - 1 ||
		    strcmp(code->file + length - (sizeof(file) - 1), file) != 0)
			continue;
		return process_word(process, thread->frames[i].at.frame + layout->row->layout.locals, &object) &&
		       object_attribute(layout, process, object & ~UINT64_C(7), "_name", &name) &&
		       object_text(layout, process, name, thread->name, sizeof(thread->name));
	}
	return false;
}

static void read_kernel_name(pid_t pid, pid_t tid, char *name, size_t bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (proc_read(path, name, bytes) < 0)
		name[0] = 0;
	name[strcspn(name, "\n")] = 0;
}

static void find_name(const struct layout *layout, struct process *process, const struct codes *codes,
		      struct stack_thread *thread)
{
	pid_t pid = process->target.pid;

	remote_refresh(process->remote);
	if (read_python_name(layout, process, codes, thread))
		return;
	if (thread->tid == pid) {
		snprintf(thread->name, sizeof(thread->name), "MainThread");
		return;
	}
	read_kernel_name(pid, thread->tid, thread->name, sizeof(thread->name));
	if (!strcmp(thread->name, process->target.program))
		thread->name[0] = 0;
}

/* --- all --- */

static int read_thread(const struct layout *layout, struct process *process, struct codes *codes, uint64_t state,
		       struct stack_threads *threads)
{
	struct stack_thread thread = {.state = state};
	int r;

	remote_refresh(process->remote);
	thread.tid = layout_tid(layout, process, state);
	if (!thread.tid)
		return 0;
	if (grow_by_one(&threads->at, &threads->room, threads->count, sizeof(thread)) < 0)
		return -ENOMEM;
	wait_find(layout, process, thread.tid, &thread.wait);
	r = read_stack(layout, process, codes, &thread);
	find_name(layout, process, codes, &thread);
	threads->at[threads->count++] = thread;
	return r;
}

int stack_threads_read(const struct layout *layout, struct process *process, struct codes *codes,
		       struct stack_threads *threads)
{
	uint64_t *states = malloc(LAYOUT_STATES_MAX * sizeof(*states));
	int r = states ? 0 : -ENOMEM;

	for (size_t i = 0; i < layout->interpreter_count && r == 0; i++) {
		size_t count;

		remote_refresh(process->remote);
		count = layout_states(layout, process, layout->interpreters[i], states, LAYOUT_STATES_MAX);
		while (count-- > 0 && r == 0)
			r = read_thread(layout, process, codes, states[count], threads);
	}
	free(states);
	return r;
}

void stack_threads_done(struct stack_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++)
		free(threads->at[i].frames);
	free(threads->at);
	*threads = (struct stack_threads){0};
}
