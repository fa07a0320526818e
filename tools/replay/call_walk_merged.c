/*
 * call_walk_merged.c - the threads of a process in cross-thread time order. See call_walk.h.
 *
 * The thread with the earliest next event runs up to the next event of any other thread. Threads of a process with a
 * GIL take turns of milliseconds, so this costs no more than one thread after the other.
 */
#include "replay/call_walk.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/initial_stack.h"
#include "util/time_heap.h"

struct together_thread {
	struct call_walk walk;
	struct walk_run run;
};

struct together_source {
	const struct trace_thread *thread;
	struct together_thread *open; /* NULL: not begun */
};

struct together {
	struct trace *trace;
	const struct trace_process *process;
	const struct filter *filter;
	struct progress *progress;
	const struct call_visitor *visitor;
	void *owner;
	struct together_source *sources;
	struct time_heap heap; /* threads with events left, by the time of the next one in ticks */
	uint8_t *hidden;       /* by key */
	uint64_t look_back;
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

static void begin_source(struct together *together, struct together_source *source)
{
	struct together_thread *open = calloc(1, sizeof(*open));
	struct call_walk *walk;

	source->open = open;
	if (!open) {
		together->error = -ENOMEM;
		return;
	}
	walk = &open->walk;
	walk_init(walk, together->trace, together->filter, together->visitor, together->owner);
	walk->process = together->process;
	walk->thread = source->thread;
	walk->look_back = together->look_back;
	together->error = replay_init(&walk->replay, together->process);
	walk->replay.hidden = together->hidden;
	if (!together->error)
		together->error = walk_thread_begin(walk, &open->run);
	together->look_back = walk->look_back;
}

static void end_source(struct together *together, struct together_source *source)
{
	struct together_thread *open = source->open;

	if (!open)
		return;
	if (!together->error && open->walk.replay.out_of_memory)
		together->error = -ENOMEM;
	together->error = walk_thread_end(&open->walk, &open->run, together->error);
	replay_done(&open->walk.replay);
	walk_done(&open->walk);
	free(open);
	source->open = NULL;
}

/* Runs the earliest thread. */
static void walk_first_source(struct together *together)
{
	struct together_source *first = &together->sources[together->heap.at[0].source];

	if (!first->open)
		begin_source(together, first);
	if (together->error)
		return;
	if (walk_run(&first->open->walk, &first->open->run, together->progress, until_of(together))) {
		time_heap_change_first(&together->heap, walk_run_next(&first->open->walk, &first->open->run));
	} else {
		end_source(together, first);
		time_heap_remove_first(&together->heap);
	}
}

static int find_threads(struct together *together)
{
	const struct trace_process *process = together->process;

	together->sources = calloc(process->thread_count + 1, sizeof(*together->sources));
	together->heap.at = calloc(process->thread_count + 1, sizeof(*together->heap.at));
	if (!together->sources || !together->heap.at)
		return -ENOMEM;
	for (size_t i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = together->trace->threads[process->threads[i]];

		if (!thread->place_count)
			continue;
		together->sources[i].thread = thread;
		time_heap_put(&together->heap, thread->places[0].first_ticks, (uint32_t)i);
	}
	return filter_hide(together->filter, process, replay_keys_of(process), &together->hidden);
}

int walk_together(struct trace *trace, const struct trace_process *process, const struct filter *filter,
		  struct progress *progress, const struct call_visitor *visitor, void *owner)
{
	struct together together = {.trace = trace,
				    .process = process,
				    .filter = filter,
				    .progress = progress,
				    .visitor = visitor,
				    .owner = owner,
				    .look_back = INITIAL_STACK_LOOK_BACK_EVENTS};

	together.error = find_threads(&together);
	while (!together.error && together.heap.count)
		walk_first_source(&together);
	for (size_t i = 0; i < together.heap.count; i++)
		end_source(&together, &together.sources[together.heap.at[i].source]);
	free(together.heap.at);
	free(together.sources);
	free(together.hidden);
	return together.error;
}
