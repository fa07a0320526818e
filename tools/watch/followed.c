/*
 * followed.c - see followed.h.
 */
#include "watch/followed.h"

#include <stdlib.h>

#include "analysis/memory_estimate.h"
#include "util/grow.h"

void watch_followed_free(struct watch_followed *followed)
{
	watch_process_done(&followed->counted);
	free(followed->numbers);
	free(followed->focus);
	free(followed->since);
	free(followed);
}

void watch_source_free(struct watch_source *source)
{
	for (size_t i = 0; i < source->process_count; i++)
		watch_followed_free(source->processes[i]);
	free(source->processes);
	trace_close(source->trace);
	free(source);
}

uint32_t watch_number_of(struct watch_host *host, struct watch_followed *followed, uint32_t key)
{
	uint32_t number;

	if (grow_for(&followed->numbers, &followed->number_count, key, sizeof(*followed->numbers)) < 0)
		return UINT32_MAX;
	if (followed->numbers[key])
		return followed->numbers[key] - 1;
	number = labels_find(&host->labels, followed->counted.process, key / 2, key & 1);
	if (number == UINT32_MAX || grow_for(&host->functions, &host->allocated, number, sizeof(*host->functions)) < 0)
		return UINT32_MAX;
	followed->numbers[key] = number + 1;
	return number;
}

struct watch_times watch_times_from(const struct trace_process *process, const struct watch_count *count)
{
	return (struct watch_times){.calls = count->calls,
				    .own_ns = trace_span_ns(process, count->own),
				    .total_ns = trace_span_ns(process, count->total),
				    .allocations = estimate_whole(count->allocations),
				    .bytes = count->bytes};
}

void watch_times_add(struct watch_times *into, const struct watch_times *times)
{
	into->calls += times->calls;
	into->own_ns += times->own_ns;
	into->total_ns += times->total_ns;
	into->allocations += times->allocations;
	into->bytes += times->bytes;
}

struct watch_followed *watch_followed_find(const struct watch_host *host, int64_t pid)
{
	for (size_t i = 0; i < host->source_count; i++) {
		const struct watch_source *source = host->sources[i];

		for (size_t k = 0; k < source->process_count; k++)
			if (watch_followed_pid(source->processes[k]) == pid)
				return source->processes[k];
	}
	return NULL;
}
