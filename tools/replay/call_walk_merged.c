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

struct together_thread {
	struct call_walk walk;
	struct walk_run run;
};

struct together_source {
	const struct trace_thread *thread;
	struct together_thread *open; /* NULL: not begun */
	uint64_t next;		      /* time of its next event, in ticks */
};

struct together {
	struct trace *trace;
	const struct trace_process *process;
	const struct filter *filter;
	struct progress *progress;
	const struct call_visitor *visitor;
	void *owner;
	struct together_source *sources;
	struct together_source **heap; /* threads with events left, the earliest first */
	size_t count;
	uint8_t *hidden; /* by key */
	uint64_t look_back;
	int error;
};

static bool is_before(const struct together_source *one, const struct together_source *other)
{
	return one->next != other->next ? one->next < other->next : one->thread->number < other->thread->number;
}

static void sift_down(struct together *together, size_t place)
{
	struct together_source **heap = together->heap, *moved = heap[place];

	for (;;) {
		size_t child = 2 * place + 1;

		if (child >= together->count)
			break;
		child += child + 1 < together->count && is_before(heap[child + 1], heap[child]);
		if (!is_before(heap[child], moved))
			break;
		heap[place] = heap[child];
		place = child;
	}
	heap[place] = moved;
}

/* One tick after the next event of any other thread; UINT64_MAX if there is none. */
static uint64_t until_of(const struct together *together)
{
	uint64_t until = UINT64_MAX;

	for (size_t i = 1; i <= 2 && i < together->count; i++)
		until = together->heap[i]->next < until ? together->heap[i]->next : until;
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
	struct together_source *first = together->heap[0];

	if (!first->open)
		begin_source(together, first);
	if (together->error)
		return;
	if (walk_run(&first->open->walk, &first->open->run, together->progress, until_of(together))) {
		first->next = walk_run_next(&first->open->walk, &first->open->run);
	} else {
		end_source(together, first);
		together->heap[0] = together->heap[--together->count];
	}
	if (together->count)
		sift_down(together, 0);
}

static int find_threads(struct together *together)
{
	const struct trace_process *process = together->process;

	together->sources = calloc(process->thread_count + 1, sizeof(*together->sources));
	together->heap = calloc(process->thread_count + 1, sizeof(struct together_source *));
	if (!together->sources || !together->heap)
		return -ENOMEM;
	for (size_t i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = together->trace->threads[process->threads[i]];

		if (!thread->place_count)
			continue;
		together->sources[i] =
		    (struct together_source){.thread = thread, .next = thread->places[0].first_ticks};
		together->heap[together->count++] = &together->sources[i];
	}
	for (size_t i = together->count; i-- > 0;)
		sift_down(together, i);
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
	while (!together.error && together.count)
		walk_first_source(&together);
	while (together.count > 0)
		end_source(&together, together.heap[--together.count]);
	free(together.heap);
	free(together.sources);
	free(together.hidden);
	return together.error;
}
