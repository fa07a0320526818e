/* threads.c - see threads.h. */
#include "stack/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/proc.h"
#include "evprof/wire.h"
#include "stack/objects.h"
#include "util/clock.h"
#include "util/grow.h"

#define TRIES 50
#define TRIES_NS 20000000
#define SECONDS_MAX 10	      /* for all threads */
#define FRAMES_MAX (1u << 20) /* of all threads */
#define FRAMES_AT_ONCE 256
#define FRAME_HEAD_BYTES 128 /* what is read of a frame is in these */

/* --- stacks --- */

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

static struct remote_frame at_hand[REMOTE_FRAMES], later[REMOTE_FRAMES];
static struct stack_frame seen[REMOTE_FRAMES];

/*
 * Reads the pages of a stack at once: a frame may cross into the next page. What is outside of the first FRAMES_AT_ONCE
 * frames changes least.
 */
static void refresh_frames(struct process *process, uint64_t state, const struct remote_frame *frames, int count)
{
	const struct sampling *layout = &process->remote->layout;
	uint64_t addresses[2 + 2 * FRAMES_AT_ONCE];
	size_t used = 0;

	addresses[used++] = state + layout->state_frame;
	if (layout->frame_holder && remote_word(process->remote, state + layout->state_frame, &addresses[used]))
		used++;
	for (int i = 0; i < count && i < FRAMES_AT_ONCE; i++) {
		addresses[used++] = frames[i].frame;
		addresses[used++] = frames[i].frame + FRAME_HEAD_BYTES;
	}
	remote_refresh_pages(process->remote, process->target.pid, addresses, used);
}

/*
 * How many of the frames, from the outermost one on, are as they were: a caller that stands at another instruction has
 * called something else meanwhile.
 */
static int count_same(struct process *process, const struct remote_frame *frames, int count)
{
	int same = 0;

	while (same < count && remote_same_frame(process->remote, &frames[count - 1 - same], same < count - 1))
		same++;
	return same;
}

/*
 * How many of the outermost frames of at_hand[], at most `same`, are on the stack now: one that has returned may stay
 * in memory as it was.
 */
static int count_still_there(struct process *process, uint64_t state, int count, int same)
{
	int now, still = 0;

	remote_refresh(process->remote);
	now = remote_stack(process->remote, state, later);
	while (still < same && still < now) {
		const struct remote_frame *one = &at_hand[count - 1 - still], *other = &later[now - 1 - still];

		if (one->frame != other->frame || one->code != other->code || one->instruction != other->instruction)
			break;
		still++;
	}
	return still;
}

/*
 * Reads a stack into seen[] and its frames twice more, and returns how many, from the outermost one on, were there each
 * time; *whole: all were, and no other ones. -1: there is no stack to be read. A loop may come to the same place while
 * the pages are read, so twice is not enough.
 */
static int read_again(const struct layout *layout, struct process *process, struct codes *codes, uint64_t state,
		      int *count, bool *whole)
{
	uint64_t first, now;
	int same;

	remote_refresh(process->remote);
	*count =
	    remote_first_frame(process->remote, state, &first) ? remote_stack(process->remote, state, at_hand) : -1;
	same = *count;
	if (same < 0 || !find_codes(layout, process, codes, at_hand, same, seen))
		return -1;
	*whole = true;
	for (int i = 0; i < 2; i++) {
		refresh_frames(process, state, at_hand, *count);
		*whole = *whole && remote_first_frame(process->remote, state, &now) && now == first;
		same = count_same(process, at_hand + *count - same, same);
	}
	*whole = *whole && same == *count;
	return *whole ? same : count_still_there(process, state, *count, same);
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

/* *exact: the thread has not run while its stack was read. */
static int read_once(const struct layout *layout, struct process *process, struct codes *codes,
		     const struct stack_thread *thread, int *count, bool *whole, bool *exact)
{
	pid_t pid = process->target.pid;
	uint64_t before = 0, after = 0;
	bool off = wait_is_off(pid, thread->tid, &before);
	int same = read_again(layout, process, codes, thread->state, count, whole);

	*exact = off && *whole && wait_is_off(pid, thread->tid, &after) && before == after;
	return same;
}

/*
 * A thread that waits for a moment has an exact stack. One that runs all the time does not: its stack may seem to end
 * at a frame that has just returned, or at a suspended generator. It ends at its base, where most reads end. Frames
 * that have returned may also seem to be above it: only those that are there in all reads are kept, the fewest.
 */
static int read_stack(const struct layout *layout, struct process *process, struct codes *codes,
		      struct stack_thread *thread, int64_t limit_ns)
{
	int64_t end_ns = time_ns(CLOCK_MONOTONIC) + TRIES_NS;
	uint64_t base = 0;
	int fewest = 0, votes = 0, r = 0;
	bool exact = false;

	thread->changed = layout->fields.frame_instruction != 0; /* 0: no thread is in Python code */
	if (!thread->changed)
		return 0;
	for (int i = 0; !exact && r == 0 && time_ns(CLOCK_MONOTONIC) < (i < TRIES ? limit_ns : end_ns); i++) {
		bool whole = false;
		int count, same = read_once(layout, process, codes, thread, &count, &whole, &exact);
		uint64_t outermost;

		if (exact && same == 0) { /* it is in no Python function */
			thread->count = 0;
			thread->changed = false;
			break;
		}
		if (same <= 0 || codes->at[seen[count - 1].code].is.flags & WIRE_GENERATOR_CO_FLAGS) {
			exact = false;
			continue;
		}
		outermost = seen[count - 1].at.frame;
		votes += outermost == base ? 1 : -1;
		if (votes < 0) {
			base = outermost;
			votes = 1;
			fewest = 0;
			thread->changed = true;
		}
		if (!exact && (outermost != base || !thread->changed || (!whole && fewest && same > fewest)))
			continue;
		fewest = same;
		thread->changed = !exact && (!whole || votes < 2);
		r = keep_frames(thread, seen + count - same, same);
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
	if (proc_read_of(pid, tid, "comm", name, bytes) < 0)
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
	r = read_stack(layout, process, codes, &thread, threads->end_ns);
	find_name(layout, process, codes, &thread);
	threads->frames += thread.count;
	threads->at[threads->count++] = thread;
	return r;
}

int stack_threads_read(const struct layout *layout, struct process *process, struct codes *codes,
		       struct stack_threads *threads)
{
	uint64_t *states = malloc(LAYOUT_STATES_MAX * sizeof(*states));
	int r = states ? 0 : -ENOMEM;

	threads->end_ns = time_ns(CLOCK_MONOTONIC) + INT64_C(1000000000) * SECONDS_MAX;
	for (size_t i = 0; i < layout->interpreter_count && r == 0 && !threads->cut; i++) {
		size_t count = layout_states(layout, process, layout->interpreters[i], states, LAYOUT_STATES_MAX);

		for (; count > 0 && r == 0 && !threads->cut; count--) {
			threads->cut = threads->frames >= FRAMES_MAX || time_ns(CLOCK_MONOTONIC) >= threads->end_ns;
			if (!threads->cut)
				r = read_thread(layout, process, codes, states[count - 1], threads);
		}
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
