/*
 * function_totals.c - counts by function in a call walk. See function_totals.h.
 */
#include "analysis/function_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "replay/call_walk.h"
#include "util/grow.h"

static int function_totals_process(void *owner, struct call_walk *walk)
{
	struct function_totals *totals = owner;

	free(totals->open);
	totals->interval = trace_process_memory_interval(walk->process);
	totals->open = calloc(walk_keys(walk), sizeof(*totals->open));
	return totals->open ? stack_functions_process(&totals->functions, walk) : -ENOMEM;
}

static void function_totals_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct function_totals *totals = owner;
	uint32_t number = stack_functions_find(&totals->functions, walk, frame->key);

	if (number == UINT32_MAX || grow_zeroed(&totals->counts, &totals->allocated,
						(uint32_t)totals->functions.allocated, sizeof(*totals->counts)) < 0) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	frame->user = (uint64_t)number + 1;
	totals->open[frame->key]++;
	if (!(frame->key & 1) && !totals->qualified) {
		const struct wire_definition *definition = walk_definition(walk, frame->key);

		totals->qualified = definition && trace_string(definition, 2).length;
	}
}

static void function_totals_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct function_totals *totals = owner;
	uint64_t total = (uint64_t)(walk->now_ns - frame->start_ns);
	uint64_t called = frame->kind != WIRE_FRAME;
	struct function_total *counts;

	(void)how;
	if (!frame->user)
		return;
	counts = &totals->counts[frame->user - 1];
	counts->calls += called;
	totals->sum.calls += called;
	counts->own_ns += total - frame->inner_ns;
	totals->sum.own_ns += total - frame->inner_ns;
	if (--totals->open[frame->key] == 0)
		counts->total_ns += total;
}

static void add_allocation(struct function_total *counts, uint64_t units, uint64_t bytes)
{
	counts->allocations += units;
	counts->allocated_bytes += bytes;
}

static void function_totals_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct function_totals *totals = owner;
	uint64_t number, units, bytes;

	totals->memory |= wire_is_memory(wire_head_kind(head));
	if (!estimate_event(totals->interval, head, extra, &units, &bytes))
		return;
	add_allocation(&totals->sum, units, bytes);
	number = walk->shown ? walk->frames[walk->shown - 1].user : 0;
	if (number)
		add_allocation(&totals->counts[number - 1], units, bytes);
}

int function_totals_count(struct function_totals *totals, struct trace *trace, const struct filter *filter,
			  struct progress *progress)
{
	static const struct call_visitor visitor = {.process = function_totals_process,
						    .push = function_totals_push,
						    .pop = function_totals_pop,
						    .other = function_totals_other};
	int error = walk_trace(trace, filter, progress, &visitor, totals);

	for (uint32_t i = 0; i < totals->allocated; i++)
		totals->counts[i].allocations = estimate_whole(totals->counts[i].allocations);
	totals->sum.allocations = estimate_whole(totals->sum.allocations);
	totals->sum.total_ns = totals->sum.own_ns;
	return error;
}

/* --- live blocks --- */

struct holders {
	struct function_totals *totals;
	struct live live;
	struct live_weights *weights; /* by function */
	uint32_t allocated;
	struct progress *progress;
};

/*
 * The innermost function of the stack that is not of a native frame, whatever its line. UINT32_MAX: none, below the
 * thread's own node.
 */
static uint32_t holder(const struct holders *holders, uint32_t number)
{
	const struct stack_function *functions = holders->totals->functions.at;
	const struct stack_node *node = &holders->live.stacks.at[number];

	while (node->parent && functions[node->function].library.length)
		node = &holders->live.stacks.at[node->parent];
	if (!node->parent)
		return UINT32_MAX;
	return functions[node->function].whole ? functions[node->function].whole - 1 : node->function;
}

static int holders_process(void *owner, struct call_walk *walk)
{
	struct holders *holders = owner;
	struct stack_functions *functions = &holders->totals->functions;
	int64_t end_ns;
	int error = stack_functions_process(functions, walk);

	if (!error)
		error = live_find_both(&holders->live, walk, functions, holders->progress, NULL, NULL, &end_ns);
	if (!error)
		error = grow_zeroed(&holders->weights, &holders->allocated, (uint32_t)functions->allocated + 1,
				    sizeof(*holders->weights));
	for (uint32_t i = 1; !error && i < holders->live.stacks.count; i++) {
		const struct live_weights weights = live_weigh(&holders->live, i);
		uint32_t function = holder(holders, i);

		if (function != UINT32_MAX)
			live_weights_add(&holders->weights[function], &weights);
	}
	live_forget(&holders->live);
	return error;
}

int function_totals_live(struct function_totals *totals, struct trace *trace, const struct filter *filter,
			 struct progress *progress, struct live_weights **weights)
{
	static const struct call_visitor visitor = {.process = holders_process, .no_events = true};
	struct holders holders = {.totals = totals, .progress = progress};
	int error = walk_trace(trace, filter, progress, &visitor, &holders);

	if (!error)
		error = grow_zeroed(&holders.weights, &holders.allocated, totals->functions.count + 1,
				    sizeof(*holders.weights));
	live_done(&holders.live);
	if (error)
		free(holders.weights);
	else
		*weights = holders.weights;
	return error;
}

/* --- sites --- */

static void add_weights(struct function_total *counts, const struct live_weights *weights)
{
	counts->allocations += weights->made.blocks;
	counts->allocated_bytes += weights->made.bytes;
	counts->peak_bytes += weights->peak.bytes;
	counts->end_bytes += weights->end.bytes;
	counts->temporary += weights->temporary;
}

static int add_site(struct function_totals *totals, const struct memory_site *site)
{
	const struct label label = {.file = site->file.length ? site->file : text_of(""),
				    .name = site->name,
				    .line = site->line ? site->line : site->begins};
	uint32_t number = stack_functions_find_place(&totals->functions, &label, site->begins);

	if (number == UINT32_MAX || grow_zeroed(&totals->counts, &totals->allocated,
						(uint32_t)totals->functions.allocated, sizeof(*totals->counts)) < 0)
		return -ENOMEM;
	add_weights(&totals->counts[number], &site->weights);
	return 0;
}

static int add_process(void *owner, struct memory *memory)
{
	struct function_totals *totals = owner;
	int error = 0;

	totals->memory = totals->qualified = true;
	add_weights(&totals->sum, &memory->all);
	for (uint32_t i = 0; !error && i < memory->site_count; i++)
		error = add_site(totals, &memory->sites[i]);
	return error;
}

int site_totals_count(struct function_totals *totals, struct trace *trace, const struct memory_options *options,
		      struct progress *progress)
{
	struct memory memory;
	int error = memory_visit(&memory, trace, options, progress, add_process, totals);

	memory_done(&memory);
	return error;
}

void function_totals_done(struct function_totals *totals)
{
	stack_functions_done(&totals->functions);
	free(totals->counts);
	free(totals->open);
	memset(totals, 0, sizeof(*totals));
}
