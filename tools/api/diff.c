/*
 * diff.c - evprof_trace_diff(): the functions of two traces, matched as evprof diff matches them, a row each.
 *
 *   file, line, name   of b, or of a where b does not have the function
 *   change             both, added (b only) or removed (a only)
 *   calls_a, calls_b, own_a, own_b, cumulative_a, cumulative_b (ns), allocations_a, allocations_b, bytes_a, bytes_b
 *                      0 where a trace does not have the function
 */
#include <errno.h>
#include <string.h>

#include "analysis/function_diff.h"
#include "api/handle.h"
#include "api/table.h"

enum { FILE_NAME, LINE, NAME, CHANGE, FIRST_COUNT, COLUMNS = FIRST_COUNT + 10 };

static const struct table_field fields[COLUMNS] = {
    {"file", TABLE_INT32, true},	  {"line", TABLE_INT32, false},		 {"name", TABLE_INT32, true},
    {"change", TABLE_INT32, true},	  {"calls_a", TABLE_INT64, false},	 {"calls_b", TABLE_INT64, false},
    {"own_a", TABLE_INT64, false},	  {"own_b", TABLE_INT64, false},	 {"cumulative_a", TABLE_INT64, false},
    {"cumulative_b", TABLE_INT64, false}, {"allocations_a", TABLE_INT64, false}, {"allocations_b", TABLE_INT64, false},
    {"bytes_a", TABLE_INT64, false},	  {"bytes_b", TABLE_INT64, false}};

/* Every second column from FIRST_COUNT + which on. */
static void put_counts(struct evprof_table *table, const struct function_side *side, uint32_t which)
{
	const struct function_total none = {0}, *counts = side ? side->counts : &none;
	const uint64_t values[] = {counts->calls, counts->own_ns, counts->total_ns, counts->allocations,
				   counts->allocated_bytes};

	for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		table_int64(table, FIRST_COUNT + 2 * i + which)[table->rows] = (int64_t)values[i];
}

static int put_pair(struct evprof_table *table, const struct function_pair *pair)
{
	const struct function_side *side = diff_shown_side(pair);
	const char *change = !pair->a ? "added" : !pair->b ? "removed" : "both";

	if (table_reserve_one(table) < 0)
		return -ENOMEM;
	table_int32(table, LINE)[table->rows] = (int32_t)(side->line & INT32_MAX);
	put_counts(table, pair->a, 0);
	put_counts(table, pair->b, 1);
	if (!table_put_text(table, FILE_NAME, side->file) || !table_put_text(table, NAME, text_of(side->display)) ||
	    !table_put_text(table, CHANGE, text_of(change)))
		return -ENOMEM;
	table->rows++;
	return 0;
}

static int compare(const struct function_totals totals[2], struct evprof_table **made)
{
	struct evprof_table *table = table_new(fields, COLUMNS, NULL);
	struct function_pairs pairs = {0};
	int error = table ? function_pairs_match(&pairs, &totals[0], &totals[1]) : -ENOMEM;

	if (!error)
		function_pairs_sort(&pairs, &diff_measures[1]);
	for (size_t i = 0; !error && i < pairs.count; i++)
		error = put_pair(table, &pairs.at[i]);
	function_pairs_done(&pairs);
	if (error) {
		table_drop(table);
		return error;
	}
	table_trim(table);
	*made = table;
	return 0;
}

/* The totals own their texts. */
static int count(struct evprof_trace *trace, const char *const *pairs, struct function_totals *totals,
		 const struct why *why)
{
	struct progress progress = {0};
	struct handle_call call;
	struct options options;
	int error = handle_enter(&call, trace, why);

	if (error)
		return error;
	error = options_parse(&options, pairs, why);
	if (!error)
		error = options_check(&options, trace->trace, why);
	if (!error && options.filter.min_duration_ns)
		error = why_set(why, -EINVAL, "evprof: diff() has no min_duration");
	if (!error) {
		trace->trace->clock = options.filter.clock;
		error = function_totals_count(totals, trace->trace, &options.filter, &progress);
	}
	options_done(&options);
	handle_leave(&call);
	return error;
}

int evprof_trace_diff(struct evprof_trace *a, const char *const *options_a, struct evprof_trace *b,
		      const char *const *options_b, struct evprof_table **table, char *error, size_t error_bytes)
{
	const struct why why = {error, error_bytes};
	struct function_totals totals[2] = {{.functions = {0}}, {.functions = {0}}};
	int result;

	if (error_bytes)
		error[0] = 0;
	result = count(a, options_a, &totals[0], &why);
	if (!result)
		result = count(b, options_b, &totals[1], &why);
	if (!result)
		result = compare(totals, table);
	function_totals_done(&totals[0]);
	function_totals_done(&totals[1]);
	if (result && error_bytes && !error[0])
		why_set(&why, result, "evprof: %s", strerror(-result));
	return result;
}
