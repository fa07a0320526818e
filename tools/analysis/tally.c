/*
 * tally.c - counting by function, on the visited calls. See tally.h.
 */
#include "analysis/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/visit.h"

static int reserve(struct tally *tally, uint32_t number)
{
	uint32_t allocated = tally->functions.allocated;
	struct tally_counts *counts;

	if (number < tally->allocated)
		return 0;
	counts = realloc(tally->counts, allocated * sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	tally->counts = counts;
	memset(counts + tally->allocated, 0, (allocated - tally->allocated) * sizeof(*counts));
	tally->allocated = allocated;
	return 0;
}

static int tally_process(void *owner, struct visit *visit)
{
	struct tally *tally = owner;

	free(tally->open);
	tally->open = calloc(visit_keys(visit), sizeof(*tally->open));
	return tally->open ? stack_functions_process(&tally->functions, visit) : -ENOMEM;
}

static void tally_push(void *owner, struct visit *visit, struct visit_frame *frame)
{
	struct tally *tally = owner;
	uint32_t number = stack_functions_find(&tally->functions, visit, frame->key);

	if (number == UINT32_MAX || reserve(tally, number) < 0) {
		visit_fail(visit, -ENOMEM);
		return;
	}
	frame->user = (uint64_t)number + 1;
	tally->open[frame->key]++;
	if (!(frame->key & 1) && !tally->qualified) {
		const struct wire_definition *definition = visit_definition(visit, frame->key);

		tally->qualified = definition && trace_string(definition, 2).length;
	}
}

static void tally_pop(void *owner, struct visit *visit, struct visit_frame *frame, unsigned how)
{
	struct tally *tally = owner;
	uint64_t total = (uint64_t)(visit->now_ns - frame->start_ns);
	uint64_t called = frame->kind != WIRE_FRAME;
	struct tally_counts *counts;

	(void)how;
	if (!frame->user)
		return;
	counts = &tally->counts[frame->user - 1];
	counts->calls += called;
	tally->sum.calls += called;
	counts->own_ns += total - frame->inner_ns;
	tally->sum.own_ns += total - frame->inner_ns;
	if (--tally->open[frame->key] == 0)
		counts->total_ns += total;
}

static void add_allocation(struct tally_counts *counts, uint64_t bytes)
{
	counts->allocations++;
	counts->allocated_bytes += bytes;
}

static void tally_other(void *owner, struct visit *visit, uint32_t head, const uint64_t *extra)
{
	unsigned kind = wire_head_kind(head);
	struct tally *tally = owner;
	uint64_t bytes, number;

	if (!wire_is_memory(kind))
		return;
	tally->memory = true;
	if (kind == WIRE_FREE || !wire_memory_address(extra[0]))
		return;
	bytes = wire_memory_size(head, extra[0]);
	add_allocation(&tally->sum, bytes);
	number = visit->shown ? visit->frames[visit->shown - 1].user : 0;
	if (number)
		add_allocation(&tally->counts[number - 1], bytes);
}

int tally_trace(struct tally *tally, struct trace *trace, const struct select *select, struct progress *progress)
{
	static const struct visitor visitor = {
	    .process = tally_process, .push = tally_push, .pop = tally_pop, .other = tally_other};
	int error = visit_trace(trace, select, progress, &visitor, tally);

	tally->sum.total_ns = tally->sum.own_ns;
	return error;
}

void tally_done(struct tally *tally)
{
	stack_functions_done(&tally->functions);
	free(tally->counts);
	free(tally->open);
	memset(tally, 0, sizeof(*tally));
}
