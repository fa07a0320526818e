/*
 * load_clocks.c - loads CLOCK chunks, and maps the ticks of each process to ns. See load.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"

int trace_load_clocks(struct trace *trace, struct trace_payload *payload)
{
	size_t count = payload->chunk.raw_bytes / sizeof(struct trace_clock);
	struct trace_clock *grown;

	if (payload->chunk.raw_bytes % sizeof(struct trace_clock))
		return -EBADMSG;
	if (count == 0)
		return 0;
	if (trace_keep(trace, payload->chunk.raw_bytes) < 0)
		return -EBADMSG;
	grown = realloc(trace->clocks, (trace->clock_count + count) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	trace->clocks = grown;
	memcpy(grown + trace->clock_count, payload->raw, count * sizeof(*grown));
	trace->clock_count += count;
	return 0;
}

static struct trace_line line_through(const struct trace_clock *first, const struct trace_clock *last)
{
	struct trace_line line = {.ticks = first->ticks, .ns = (int64_t)first->monotonic_ns, .shift = 63};
	uint64_t ns = last->monotonic_ns - first->monotonic_ns;
	uint64_t ticks = last->ticks - first->ticks;

	while (line.shift && ((unsigned __int128)ns << line.shift) / ticks >> 63)
		line.shift--;
	line.factor = (uint64_t)(((unsigned __int128)ns << line.shift) / ticks);
	return line;
}

bool trace_line_clocks(const struct trace *trace, const struct trace_process *process, const struct trace_clock **first,
		       const struct trace_clock **last)
{
	size_t i;

	*first = *last = NULL;
	for (i = 0; i < trace->clock_count; i++) {
		const struct trace_clock *clock = &trace->clocks[i];

		if (clock->clock_kind != process->clock_kind || clock->clock_shift != process->clock_shift)
			continue;
		if (!*first || clock->ticks < (*first)->ticks)
			*first = clock;
		if (!*last || clock->ticks > (*last)->ticks)
			*last = clock;
	}
	return *first && (*first)->ticks < (*last)->ticks && (*first)->monotonic_ns < (*last)->monotonic_ns &&
	       (*first)->monotonic_ns < TRACE_NS_FAR;
}

static void set_line(struct trace *trace, struct trace_process *process)
{
	const struct trace_clock *first, *last;

	process->line = (struct trace_line){.factor = UINT64_C(1) << (process->clock_shift & 31)};
	if (process->clock_kind == 0) /* RING_CLOCK_MONOTONIC: ticks are ns */
		return;
	if (trace_line_clocks(trace, process, &first, &last))
		process->line = line_through(first, last);
	else if (process->known)
		trace->damage.no_clock = true;
}

/* A process mostly has the clock of the one before, and then shares its line. */
void trace_set_lines(struct trace *trace)
{
	const struct trace_process *before = NULL;

	for (uint32_t i = 0; i < trace->process_count; i++) {
		struct trace_process *process = trace->processes[i];

		if (!process)
			continue;
		if (before && before->known && before->clock_kind == process->clock_kind &&
		    before->clock_shift == process->clock_shift)
			process->line = before->line;
		else
			set_line(trace, process);
		before = process;
	}
}
