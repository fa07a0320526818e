/*
 * span_totals.c - see span_totals.h.
 */
#include "analysis/span_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/spans.h"
#include "util/grow.h"

struct counting {
	struct span_totals *totals;
	struct spans spans;
	bool has_calls; /* the process recorded calls, so tasks and greenlets are known */
};

/* --- durations --- */

/* The power of a duration, and which part of it. */
static unsigned power_of(uint64_t ns)
{
	return ns < SPAN_PARTS ? 0 : 58 - (unsigned)__builtin_clzll(ns);
}

static unsigned part_of(uint64_t ns, unsigned power)
{
	return power ? (unsigned)(ns >> (power - 1)) - SPAN_PARTS : (unsigned)ns;
}

/* The middle of a part. */
static uint64_t middle_of(unsigned power, unsigned part)
{
	if (!power)
		return part;
	return ((uint64_t)(part + SPAN_PARTS) << (power - 1)) + ((UINT64_C(1) << (power - 1)) >> 1);
}

static int note_duration(struct span_total *total, uint64_t ns)
{
	unsigned power = power_of(ns);

	if (!total->parts[power])
		total->parts[power] = calloc(SPAN_PARTS, sizeof(*total->parts[power]));
	if (!total->parts[power])
		return -ENOMEM;
	total->parts[power][part_of(ns, power)]++;
	return 0;
}

uint64_t span_quantile(const struct span_total *total, double fraction)
{
	uint64_t rank = (uint64_t)(fraction * (double)total->count + 0.999999), seen = 0;

	rank = rank ? rank : 1;
	for (unsigned power = 0; power < SPAN_POWERS; power++)
		for (unsigned part = 0; total->parts[power] && part < SPAN_PARTS; part++) {
			uint64_t ns = middle_of(power, part);

			seen += total->parts[power][part];
			if (seen < rank)
				continue;
			ns = ns > total->least_ns ? ns : total->least_ns;
			return ns < total->most_ns ? ns : total->most_ns;
		}
	return 0;
}

/* --- names --- */

/* Names whose hashes are equal count as one. */
static struct span_total *total_of(struct span_totals *totals, struct text name)
{
	uint64_t *index = u64_map_make(&totals->names, text_hash(TEXT_HASH_BEGIN, name) | 1);
	struct span_total *total;

	if (!index || (!*index && grow_by_one(&totals->at, &totals->allocated, totals->count, sizeof(*totals->at))))
		return NULL;
	if (*index)
		return &totals->at[*index - 1];
	total = &totals->at[totals->count];
	*total = (struct span_total){.bytes = malloc(name.length + 1), .least_ns = UINT64_MAX};
	if (!total->bytes)
		return NULL;
	memcpy(total->bytes, name.at, name.length);
	total->name = (struct text){total->bytes, name.length};
	totals->count++;
	*index = totals->count;
	return total;
}

/* --- the walk --- */

static void end_span(struct counting *counting, struct call_walk *walk, uint64_t number)
{
	struct span span = spans_end(&counting->spans, walk, number);
	struct span_total *total;
	uint64_t ns;

	if (!span.number)
		return;
	total = total_of(counting->totals, span_name(walk->process, span.name));
	ns = walk->now_ns > span.start_ns ? (uint64_t)(walk->now_ns - span.start_ns) : 0;
	if (!total || note_duration(total, ns)) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	total->count++;
	total->total_ns += ns;
	total->own_ns += ns > span.inner_ns ? ns - span.inner_ns : 0;
	total->no_own |= !counting->has_calls;
	total->least_ns = ns < total->least_ns ? ns : total->least_ns;
	total->most_ns = ns > total->most_ns ? ns : total->most_ns;
}

static void count_event(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct counting *counting = owner;
	unsigned kind = wire_head_kind(head);

	if (kind == WIRE_SPAN_BEGIN && filter_thread(walk->filter, walk->thread))
		spans_begin(&counting->spans, walk, extra);
	else if (kind == WIRE_SPAN_END)
		end_span(counting, walk, wire_number(head, extra));
}

static int count_unfinished(struct counting *counting, const struct trace_process *process)
{
	for (size_t i = 0; i < counting->spans.count; i++) {
		struct span_total *total;

		if (!counting->spans.at[i].number)
			continue;
		total = total_of(counting->totals, span_name(process, counting->spans.at[i].name));
		if (!total)
			return -ENOMEM;
		total->unfinished++;
	}
	return 0;
}

int span_totals_add(struct span_totals *totals, struct trace *trace, const struct filter *filter,
		    struct progress *progress)
{
	static const struct call_visitor visitor = {.other = count_event};
	int error = 0;

	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];
		struct counting counting = {.totals = totals};

		if (!process || !filter_process(filter, process))
			continue;
		counting.has_calls = trace_process_records(process, "call") && !trace_process_sample_rate(process);
		error = walk_together(trace, process, filter, progress, &visitor, &counting);
		if (!error)
			error = count_unfinished(&counting, process);
		spans_done(&counting.spans);
	}
	return error;
}

static int compare_totals(const void *a, const void *b)
{
	const struct span_total *one = a, *other = b;

	return compare_u64(other->total_ns, one->total_ns) ?: text_compare(one->name, other->name);
}

void span_totals_sort(struct span_totals *totals)
{
	if (totals->count)
		qsort(totals->at, totals->count, sizeof(*totals->at), compare_totals);
}

void span_totals_done(struct span_totals *totals)
{
	for (size_t i = 0; i < totals->count; i++) {
		for (unsigned power = 0; power < SPAN_POWERS; power++)
			free(totals->at[i].parts[power]);
		free(totals->at[i].bytes);
	}
	free(totals->at);
	u64_map_done(&totals->names);
}
