/*
 * site_totals.c - sums of sites over all processes. See site_totals.h.
 */
#include "analysis/site_totals.h"

#include <errno.h>

#include "util/grow.h"

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
