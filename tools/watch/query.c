/*
 * query.c - see query.h.
 */
#include "watch/query.h"

#include <errno.h>
#include <stdlib.h>

#include "watch/followed.h"

/* --- functions --- */

static struct watch_count count_since(const struct watch_followed *followed, uint32_t key)
{
	return key < followed->since_count ? followed->since[key] : (struct watch_count){0};
}

static void add_functions(const struct watch_followed *followed, struct watch_function *functions, uint32_t count)
{
	const struct trace_process *process = followed->counted.process;

	for (uint32_t key = 0; key < followed->counted.keys; key++) {
		struct watch_count all = count_since(followed, key);
		uint32_t number = key < followed->number_count ? followed->numbers[key] : 0;
		struct watch_times now, since;

		if (!number || number > count)
			continue; /* it has not run since it is followed */
		now = watch_times_from(process, &followed->counted.counts[key]);
		since = watch_times_from(process, &all);
		watch_times_add(&functions[number - 1].now, &now);
		watch_times_add(&functions[number - 1].since, &since);
	}
}

/* focus: a slot, which has been counted for its function. */
static void add_edges(const struct watch_followed *followed, unsigned focus, struct watch_function *functions,
		      uint32_t count)
{
	for (uint32_t i = 0; i < followed->counted.edge_count; i++) {
		const struct watch_edge *edge = &followed->counted.edges[i];
		uint32_t number = edge->key < followed->number_count ? followed->numbers[edge->key] : 0;
		struct watch_times times = watch_times_from(followed->counted.process, &edge->count);

		if (edge->focus != focus + 1 || !number || number > count)
			continue;
		if (edge->is_callee) {
			functions[number - 1].is_callee = true;
			watch_times_add(&functions[number - 1].callee, &times);
		} else {
			functions[number - 1].is_caller = true;
			watch_times_add(&functions[number - 1].caller, &times);
		}
	}
}

int watch_query_functions(struct watch_host *host, const struct watch_query *query, struct watch_function **functions)
{
	uint32_t count = host->labels.count;
	struct watch_function *made = calloc(count + (size_t)1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < host->source_count; i++) {
		for (size_t k = 0; k < host->sources[i]->process_count; k++) {
			const struct watch_followed *followed = host->sources[i]->processes[k];

			if (query->pid && watch_followed_pid(followed) != query->pid)
				continue;
			add_functions(followed, made, count);
			if (query->focus < WATCH_FOCI && followed->foci[query->focus] == host->foci[query->focus])
				add_edges(followed, query->focus, made, count);
		}
	}
	/* With the processes that have ended. */
	for (uint32_t i = 0; !query->pid && i < count && i < host->allocated; i++) {
		made[i].now = host->functions[i].now;
		made[i].since = host->functions[i].since;
	}
	*functions = made;
	return 0;
}

/* --- stacks --- */

static const struct watch_thread *find_thread(const struct watch_followed *followed, uint32_t tid)
{
	for (size_t i = 0; followed && i < followed->counted.thread_count; i++)
		if (followed->counted.threads[i]->thread->tid == tid)
			return followed->counted.threads[i];
	return NULL;
}

int watch_query_stack(struct watch_host *host, const struct watch_thread_row *thread, struct watch_frame *frames,
		      unsigned most)
{
	struct watch_followed *followed = watch_followed_find(host, thread->pid);
	const struct watch_thread *found = find_thread(followed, thread->tid);
	uint32_t depth = found && !found->ended ? found->replay.depth : 0;

	for (uint32_t i = 0; i < depth && i < most; i++) {
		const struct replay_frame *frame = &found->replay.frames[depth - 1 - i];
		uint32_t number = watch_number_of(host, followed, frame->key);

		if (number == UINT32_MAX)
			return -ENOMEM;
		frames[i] = (struct watch_frame){.number = number, .line = frame->line};
	}
	return (int)depth;
}
