/*
 * functions.c - tables of functions: times, memory, and what changed between two traces. And of lines. See
 * trace_tables.h.
 *
 * functions   as evprof report: file, line, name (cProfile's), calls, primitive_calls, own, cumulative (ns)
 * memory      as evprof diff counts: file, line, name (qualified), calls, allocations, bytes; peak_blocks, peak_bytes;
 *             end_blocks, end_bytes; temporary
 * memory_lines  as evprof memory --by line: file, line (0: not known), name; from allocations on as memory; pid
 * lines       as evprof annotate: file, line, function, hits, own (ns), calls of the function at its first line
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/function_totals.h"
#include "analysis/line_costs.h"
#include "analysis/memory.h"
#include "analysis/profile.h"
#include "api/trace_tables.h"
#include "report/rows.h"

static int put_place(struct evprof_table *table, struct text file, uint32_t line, struct text name)
{
	table_int32(table, 1)[table->rows] = (int32_t)(line & INT32_MAX);
	return table_put_text(table, 0, file) && table_put_text(table, 2, name) ? 0 : -ENOMEM;
}

/* Drops the table on an error. */
static int finish(struct evprof_table *table, int error, struct evprof_table **made)
{
	if (error)
		table_drop(table);
	else
		*made = table;
	return error;
}

#define PLACE_FIELDS                                                                                                   \
	{"file", TABLE_INT32, true}, {"line", TABLE_INT32, false},                                                     \
	{                                                                                                              \
		"name", TABLE_INT32, true                                                                              \
	}

/* --- functions --- */

static const struct table_field function_fields[] = {PLACE_FIELDS,
						     {"calls", TABLE_INT64, false},
						     {"primitive_calls", TABLE_INT64, false},
						     {"own", TABLE_INT64, false},
						     {"cumulative", TABLE_INT64, false}};

static int put_function(struct evprof_table *table, const struct label *label, const struct profile_times *times)
{
	uint64_t row = table->rows;

	if (table_reserve_one(table) < 0 || put_place(table, label->file, label->line, label->name) < 0)
		return -ENOMEM;
	table_int64(table, 3)[row] = (int64_t)times->calls;
	table_int64(table, 4)[row] = (int64_t)report_primitive_calls(times);
	table_int64(table, 5)[row] = (int64_t)times->own_ns;
	table_int64(table, 6)[row] = (int64_t)times->total_ns;
	table->rows++;
	return 0;
}

int table_functions(struct evprof_trace *handle, const struct options *options, struct evprof_table **made,
		    const struct why *why)
{
	const struct profile_options counted = {.filter = &options->filter};
	struct evprof_table *table =
	    table_new(function_fields, sizeof(function_fields) / sizeof(function_fields[0]), NULL);
	struct profile profile = {0};
	struct progress progress = {0};
	int error = table ? profile_add(&profile, handle->trace, &counted, &progress) : -ENOMEM;

	(void)why;
	for (uint32_t i = 0; !error && i < profile.labels.count; i++)
		error = put_function(table, &profile.labels.at[i], &profile.times[i]);
	profile_done(&profile);
	return finish(table, error, made);
}

/* --- memory --- */

#define LIVE_FIELDS                                                                                                    \
	{"allocations", TABLE_INT64, false}, {"bytes", TABLE_INT64, false}, {"peak_blocks", TABLE_INT64, false},       \
	    {"peak_bytes", TABLE_INT64, false}, {"end_blocks", TABLE_INT64, false}, {"end_bytes", TABLE_INT64, false}, \
	{                                                                                                              \
		"temporary", TABLE_INT64, false                                                                        \
	}

/* The columns of LIVE_FIELDS from that one on. */
static void put_weights(struct evprof_table *table, uint32_t column, const struct live_weights *weights)
{
	const uint64_t values[] = {weights->made.blocks, weights->made.bytes, weights->peak.blocks, weights->peak.bytes,
				   weights->end.blocks,	 weights->end.bytes,  weights->temporary};

	for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		table_int64(table, column + i)[table->rows] = (int64_t)values[i];
}

static const struct table_field memory_fields[] = {PLACE_FIELDS, {"calls", TABLE_INT64, false}, LIVE_FIELDS};

static int put_memory(struct evprof_table *table, const struct stack_function *function,
		      const struct function_total *total, const struct live_weights *live)
{
	struct live_weights weights = *live;

	if (table_reserve_one(table) < 0 ||
	    put_place(table, function->file, function->line, text_of(function->name)) < 0)
		return -ENOMEM;
	weights.made = (struct live_held){total->allocations, total->allocated_bytes};
	table_int64(table, 3)[table->rows] = (int64_t)total->calls;
	put_weights(table, 4, &weights);
	table->rows++;
	return 0;
}

/* Without min_duration: allocations of short calls would count for the wrong function. */
static int check_memory(const struct options *options, const struct why *why)
{
	if (!options->filter.min_duration_ns)
		return 0;
	return why_set(why, -EINVAL,
		       "evprof: memory() has no min_duration: allocations of short calls would "
		       "count for the wrong function");
}

int table_memory(struct evprof_trace *handle, const struct options *options, struct evprof_table **made,
		 const struct why *why)
{
	struct evprof_table *table = table_new(memory_fields, sizeof(memory_fields) / sizeof(memory_fields[0]), NULL);
	struct function_totals totals = {0};
	struct live_weights *weights = NULL;
	struct progress progress = {0};
	uint32_t count = 0;
	int error = table ? check_memory(options, why) : -ENOMEM;

	if (!error)
		error = function_totals_count(&totals, handle->trace, &options->filter, &progress);
	count = totals.functions.count < totals.allocated ? totals.functions.count : totals.allocated;
	if (!error)
		error = function_totals_live(&totals, handle->trace, &options->filter, &progress, &weights);
	for (uint32_t i = 0; !error && i < count; i++)
		error = put_memory(table, &totals.functions.at[i], &totals.counts[i], &weights[i]);
	free(weights);
	function_totals_done(&totals);
	return finish(table, error, made);
}

static const struct table_field memory_line_fields[] = {PLACE_FIELDS, LIVE_FIELDS, {"pid", TABLE_INT64, false}};

static int put_sites(void *owner, struct memory *memory)
{
	struct evprof_table *table = owner;

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];

		if (table_reserve_one(table) < 0 || put_place(table, site->file, site->line, site->name) < 0)
			return -ENOMEM;
		put_weights(table, 3, &site->weights);
		table_int64(table, 10)[table->rows] = memory->process->pid;
		table->rows++;
	}
	return 0;
}

int table_memory_lines(struct evprof_trace *handle, const struct options *options, struct evprof_table **made,
		       const struct why *why)
{
	const struct memory_options counted = {.filter = &options->filter, .by = MEMORY_BY_LINE};
	struct evprof_table *table =
	    table_new(memory_line_fields, sizeof(memory_line_fields) / sizeof(memory_line_fields[0]), NULL);
	struct memory memory = {0};
	struct progress progress = {0};
	int error = table ? check_memory(options, why) : -ENOMEM;

	if (!error)
		error = memory_visit(&memory, handle->trace, &counted, &progress, put_sites, table);
	memory_done(&memory);
	return finish(table, error, made);
}

/* --- lines --- */

static const struct table_field line_fields[] = {
    PLACE_FIELDS, {"hits", TABLE_INT64, false}, {"own", TABLE_INT64, false}, {"calls", TABLE_INT64, false}};

static int put_line(struct evprof_table *table, const struct line_costs *costs, const struct cost_line *line)
{
	const struct label *label = &costs->labels.at[line->function];
	uint64_t row = table->rows;

	if (table_reserve_one(table) < 0 || put_place(table, label->file, line->line, label->name) < 0)
		return -ENOMEM;
	table_int64(table, 3)[row] = (int64_t)line->hits;
	table_int64(table, 4)[row] = (int64_t)line->own_ns;
	table_int64(table, 5)[row] = (int64_t)line->starts;
	table->rows++;
	return 0;
}

int table_lines(struct evprof_trace *handle, const struct options *options, struct evprof_table **made,
		const struct why *why)
{
	struct evprof_table *table = table_new(line_fields, sizeof(line_fields) / sizeof(line_fields[0]), NULL);
	struct line_costs costs = {.by_line = line_costs_by_line(handle->trace, &options->filter)};
	struct progress progress = {0};
	int error = table ? line_costs_add(&costs, handle->trace, &options->filter, &progress, NULL, NULL) : -ENOMEM;

	(void)why;
	if (!error)
		error = line_costs_sort(&costs);
	for (uint32_t i = 0; !error && i < costs.line_count; i++)
		error = put_line(table, &costs, &costs.lines[i]);
	line_costs_done(&costs);
	return finish(table, error, made);
}
