/*
 * call_walk_merged.c - the threads of a process in cross-thread time order. See call_walk.h.
 *
 * The thread with the earliest next event runs up to the next event of any other thread. Threads of a process with a
 * GIL take turns of milliseconds, so this costs no more than one thread after the other.
 */
#include "replay/call_walk.h"

#include <errno.h>
#include <stdlib.h>

#include "util/time_heap.h"

struct together_thread {
	struct call_walk walk;
	struct walk_run run;
};

struct together {
	struct call_walk model; /* what the walks of all threads have in common */
	struct progress *progress;
	struct together_thread **threads; /* in the order of the process's; NULL: not begun, or at its end */
	struct time_heap heap;		  /* threads with events left, by the time of the next one in ticks */
	int error;
};

/* One tick after the next event of any other thread; UINT64_MAX if there is none. */
static uint64_t until_of(const struct together *together)
{
	uint64_t until = UINT64_MAX;

	for (size_t i = 1; i <= 2 && i < together->heap.count; i++)
		until = together->heap.at[i].time < until ? together->heap.at[i].time : until;
	return until < UINT64_MAX ? until + 1 : until;
}

static void begin_thread(struct together *together, uint32_t number)
{
	const struct call_walk *model = &together->model;
	struct together_thread *thread = together->threads[number] = calloc(1, sizeof(*thread));

	if (!thread) {
		together->error = -ENOMEM;
		return;
	}
	thread->walk = *model;
	thread->walk.thread = model->trace->threads[model->process->threads[number]];
	together->error = replay_init(&thread->walk.replay, model->process);
	thread->walk.replay.hidden = model->hidden;
	if (!together->error)
		together->error = walk_thread_begin(&thread->walk, &thread->run);
	together->model.look_back = thread->walk.look_back;
}

static void end_thread(struct together *together, uint32_t number)
{
	struct together_thread *thread = together->threads[number];

	if (!thread)
		return;
	if (!together->error && thread->walk.replay.out_of_memory)
		together->error = -ENOMEM;
	together->error = walk_thread_end(&thread->walk, &thread->run, together->error);
	replay_done(&thread->walk.replay);
	walk_done(&thread->walk);
	free(thread);
	together->threads[number] = NULL;
}

static void walk_first_thread(struct together *together)
{
	uint32_t number = together->heap.at[0].source;
	struct together_thread *thread;

	if (!together->threads[number])
		begin_thread(together, number);
	thread = together->threads[number];
	if (together->error)
		return;
	if (walk_run(&thread->walk, &thread->run, together->progress, until_of(together))) {
		time_heap_change_first(&together->heap, walk_run_next(&thread->walk, &thread->run));
	} else {
		end_thread(together, number);
		time_heap_remove_first(&together->heap);
	}
}

static int find_threads(struct together *together)
{
	const struct trace_process *process = together->model.process;

	together->threads = calloc(process->thread_count + 1, sizeof(struct together_thread *));
	together->heap.at = calloc(process->thread_count + 1, sizeof(*together->heap.at));
	if (!together->threads || !together->heap.at)
		return -ENOMEM;
	for (uint32_t i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = together->model.trace->threads[process->threads[i]];

		if (thread->place_count)
			time_heap_put(&together->heap, thread->places[0].first_ticks, i);
	}
	return filter_hide(together->model.filter, process, replay_keys_of(process), &together->model.hidden);
}

int walk_together(struct trace *trace, const struct trace_process *process, const struct filter *filter,
		  struct progress *progress, const struct call_visitor *visitor, void *owner)
{
	struct together together = {.progress = progress};

	walk_init(&together.model, trace, filter, visitor, owner);
	together.model.process = process;
	together.error = find_threads(&together);
	while (!together.error && together.heap.count)
		walk_first_thread(&together);
	for (size_t i = 0; i < together.heap.count; i++)
		end_thread(&together, together.heap.at[i].source);
	free(together.heap.at);
	free(together.threads);
	free(together.model.hidden);
	return together.error;
}
