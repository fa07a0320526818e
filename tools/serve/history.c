/*
 * history.c - see history.h.
 */
#include "serve/history.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/grow.h"

static struct history_process *find_process(const struct history *history, int64_t pid)
{
	for (size_t i = 0; i < history->count; i++)
		if (history->processes[i].pid == pid)
			return &history->processes[i];
	return NULL;
}

/* A place of a process that has gone; NULL: none. */
static struct history_process *find_oldest(const struct history *history, uint64_t number)
{
	struct history_process *oldest = NULL;

	for (size_t i = 0; i < history->count; i++) {
		struct history_process *process = &history->processes[i];

		if (process->last + 1 < number && (!oldest || process->last < oldest->last))
			oldest = process;
	}
	return oldest;
}

/* NULL: no memory, or no place. */
static struct history_process *make_process(struct history *history, int64_t pid, uint64_t number)
{
	struct history_process *process = history->count == HISTORY_PROCESSES ? find_oldest(history, number) : NULL;
	struct history_sample *samples = process ? process->samples : NULL;

	if (!process) {
		if (history->count == HISTORY_PROCESSES ||
		    grow_by_one(&history->processes, &history->allocated, history->count, sizeof(*history->processes)))
			return NULL;
		samples = malloc(HISTORY_SAMPLES * sizeof(*samples));
		if (!samples)
			return NULL;
		process = &history->processes[history->count++];
	}
	for (size_t i = 0; i < HISTORY_SAMPLES; i++)
		samples[i] = (struct history_sample){0};
	*process = (struct history_process){.pid = pid, .samples = samples};
	return process;
}

static void add_known(int64_t *sum, int64_t value)
{
	if (value >= 0)
		*sum = (*sum > 0 ? *sum : 0) + value;
}

static void add_row(struct history_sample *sum, const struct watch_process_row *row)
{
	sum->events += row->events;
	sum->calls += row->now.calls;
	sum->allocations += row->now.allocations;
	sum->bytes += row->now.bytes;
	sum->lost += row->lost;
	add_known(&sum->cpu_ns, row->cpu_ns);
	add_known(&sum->rss_bytes, row->rss_bytes);
}

void history_add(struct history *history, const struct watch_host *host, uint64_t number, int64_t at_ms)
{
	struct history_sample empty = {
	    .number = number, .at_ms = at_ms, .stretch_ns = host->stretch_ns, .cpu_ns = -1, .rss_bytes = -1};
	struct history_sample *all = &history->all[number % HISTORY_SAMPLES];

	*all = empty;
	for (size_t i = 0; i < host->process_count; i++) {
		const struct watch_process_row *row = &host->processes[i];
		struct history_process *process = find_process(history, row->pid);

		add_row(all, row);
		if (!process)
			process = make_process(history, row->pid, number);
		if (!process)
			continue;
		/* Two images of a process follow each other in one refresh. */
		if (process->last != number)
			process->samples[number % HISTORY_SAMPLES] = empty;
		process->last = number;
		add_row(&process->samples[number % HISTORY_SAMPLES], row);
	}
}

static void put_known(struct output *output, int64_t value)
{
	if (value < 0)
		output_string(output, ", null");
	else
		output_format(output, ", %" PRId64, value);
}

static void put_sample(struct output *output, const struct history_sample *sample)
{
	output_format(output,
		      "[%" PRIu64 ", %" PRId64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
		      ", %" PRIu64,
		      sample->number, sample->at_ms, sample->stretch_ns, sample->events, sample->calls,
		      sample->allocations, sample->bytes, sample->lost);
	put_known(output, sample->cpu_ns);
	put_known(output, sample->rss_bytes);
	output_char(output, ']');
}

void history_put(const struct history *history, int64_t pid, uint64_t after, struct output *output)
{
	const struct history_process *process = pid ? find_process(history, pid) : NULL;
	const struct history_sample *samples = process ? process->samples : history->all;
	uint64_t newest = 0;
	bool put = false;

	output_char(output, '[');
	for (size_t i = 0; i < HISTORY_SAMPLES && (process || !pid); i++)
		newest = samples[i].number > newest ? samples[i].number : newest;
	for (uint64_t i = newest < HISTORY_SAMPLES ? 1 : newest - HISTORY_SAMPLES + 1; i <= newest; i++) {
		const struct history_sample *sample = &samples[i % HISTORY_SAMPLES];

		if (sample->number != i || i <= after)
			continue;
		output_string(output, put ? ", " : "");
		put_sample(output, sample);
		put = true;
	}
	output_char(output, ']');
}

void history_done(struct history *history)
{
	for (size_t i = 0; i < history->count; i++)
		free(history->processes[i].samples);
	free(history->processes);
	*history = (struct history){0};
}
