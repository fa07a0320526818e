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

#define COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))

/* --- functions --- */

static const struct table_field function_fields[] = {TABLE_PLACE_FIELDS,
						     {"calls", TABLE_INT64, false},
						     {"primitive_calls", TABLE_INT64, false},
						     {"own", TABLE_INT64, false},
						     {"cumulative", TABLE_INT64, false}};

static int put_row(struct evprof_table *table, const struct label *label, uint32_t line, const uint64_t *numbers)
{
	if (table_begin_row(table, label->file, line, label->name) < 0)
		return -ENOMEM;
	table_end_row(table, TABLE_PLACE_COLUMNS, numbers, table->column_count - TABLE_PLACE_COLUMNS);
	return 0;
}

static int make_functions(struct request *request, struct evprof_table *table)
{
	const struct profile_options counted = {.filter = &request->options.filter};
	struct profile profile = {0};
	int error = profile_add(&profile, request->trace, &counted, &request->progress);

	for (uint32_t i = 0; !error && i < profile.labels.count; i++) {
		const struct profile_times *times = &profile.times[i];

		error =
		    put_row(table, &profile.labels.at[i], profile.labels.at[i].line,
			    (uint64_t[]){times->calls, report_primitive_calls(times), times->own_ns, times->total_ns});
	}
	profile_done(&profile);
	return error;
}

const struct table_kind table_functions = {"functions", function_fields, COUNT(function_fields), make_functions};

/* --- memory --- */

#define LIVE_FIELDS                                                                                                    \
	{"allocations", TABLE_INT64, false}, {"bytes", TABLE_INT64, false}, {"peak_blocks", TABLE_INT64, false},       \
	    {"peak_bytes", TABLE_INT64, false}, {"end_blocks", TABLE_INT64, false}, {"end_bytes", TABLE_INT64, false}, \
	{                                                                                                              \
		"temporary", TABLE_INT64, false                                                                        \
	}
/* What cannot be known is -1: the peak of what is alive, what is temporary in a sample. */
#define KNOWN(number, unknown) ((unknown) ? UINT64_MAX : (number))
#define LIVE_NUMBERS(made, weights, alive, sampled)                                                                    \
	(made).blocks, (made).bytes, KNOWN((weights)->peak.blocks, alive), KNOWN((weights)->peak.bytes, alive),        \
	    (weights)->end.blocks, (weights)->end.bytes, KNOWN((weights)->temporary, sampled)

static const struct table_field memory_fields[] = {TABLE_PLACE_FIELDS, {"calls", TABLE_INT64, false}, LIVE_FIELDS};

static int put_memory(struct evprof_table *table, const struct trace *trace, const struct stack_function *function,
		      const struct function_total *total, const struct live_weights *weights)
{
	const struct live_held made = {total->allocations, total->allocated_bytes};
	const struct label label = {.file = function->file, .name = text_of(function->name)};

	return put_row(table, &label, function->line,
		       (uint64_t[]){total->calls, LIVE_NUMBERS(made, weights, trace_is_alive_only(trace),
							       trace_memory_interval(trace) != 0)});
}

/* Without min_duration: allocations of short calls would count for the wrong function. */
static int check_memory(const struct request *request)
{
	if (!request->options.filter.min_duration_ns)
		return options_need_wall_clock(&request->options, "memory()", &request->why);
	return why_set(&request->why, -EINVAL,
		       "evprof: memory() has no min_duration: allocations of short calls would "
		       "count for the wrong function");
}

static int make_memory(struct request *request, struct evprof_table *table)
{
	const struct filter *filter = &request->options.filter;
	struct function_totals totals = {0};
	struct live_weights *weights = NULL;
	uint32_t count = 0;
	int error = check_memory(request);

	if (!error)
		error = function_totals_count(&totals, request->trace, filter, &request->progress);
	count = totals.functions.count < totals.allocated ? totals.functions.count : totals.allocated;
	if (!error)
		error = function_totals_live(&totals, request->trace, filter, &request->progress, &weights);
	for (uint32_t i = 0; !error && i < count; i++)
		error = put_memory(table, request->trace, &totals.functions.at[i], &totals.counts[i], &weights[i]);
	free(weights);
	function_totals_done(&totals);
	return error;
}

const struct table_kind table_memory = {"memory", memory_fields, COUNT(memory_fields), make_memory};

static const struct table_field memory_line_fields[] = {TABLE_PLACE_FIELDS, LIVE_FIELDS, {"pid", TABLE_INT64, false}};

static int put_sites(void *owner, struct memory *memory)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const struct label label = {.file = site->file, .name = site->name};

		error = put_row(owner, &label, site->line,
				(uint64_t[]){LIVE_NUMBERS(site->weights.made, &site->weights, memory->live.alive_only,
							  memory->live.interval != 0),
					     (uint64_t)memory->process->pid});
	}
	return error;
}

static int make_memory_lines(struct request *request, struct evprof_table *table)
{
	const struct memory_options counted = {.filter = &request->options.filter, .by = MEMORY_BY_LINE};
	struct memory memory = {0};
	int error = check_memory(request);

	if (!error)
		error = memory_visit(&memory, request->trace, &counted, &request->progress, put_sites, table);
	memory_done(&memory);
	return error;
}

const struct table_kind table_memory_lines = {"memory_lines", memory_line_fields, COUNT(memory_line_fields),
					      make_memory_lines};

/* --- lines --- */

static const struct table_field line_fields[] = {
    TABLE_PLACE_FIELDS, {"hits", TABLE_INT64, false}, {"own", TABLE_INT64, false}, {"calls", TABLE_INT64, false}};

static int make_lines(struct request *request, struct evprof_table *table)
{
	const struct filter *filter = &request->options.filter;
	struct line_costs costs = {.by_line = line_costs_by_line(request->trace, filter)};
	int error = line_costs_add(&costs, request->trace, filter, &request->progress, NULL, NULL);

	if (!error)
		error = line_costs_sort(&costs);
	for (uint32_t i = 0; !error && i < costs.line_count; i++) {
		const struct cost_line *line = &costs.lines[i];

		error = put_row(table, &costs.labels.at[line->function], line->line,
				(uint64_t[]){line->hits, line->own_ns, line->starts});
	}
	line_costs_done(&costs);
	return error;
}

const struct table_kind table_lines = {"lines", line_fields, COUNT(line_fields), make_lines};
