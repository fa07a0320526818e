/*
 * diff.c - evprof_trace_diff(): the functions of two traces, matched as evprof diff matches them, a row each.
 *
 *   file, line, name   of b, or of a where b does not have the function
 *   change             both, added (b only) or removed (a only)
 *   calls_a, calls_b, own_a, own_b, cumulative_a, cumulative_b (ns), allocations_a, allocations_b, bytes_a, bytes_b
 *                      0 where a trace does not have the function
 *
 * With the option by: the sites of their memory, as evprof diff --memory has them. From change on the columns are:
 *
 *   peak_bytes_a, peak_bytes_b, end_bytes_a, end_bytes_b, allocations_a, allocations_b, bytes_a, bytes_b, temporary_a,
 *   temporary_b
 */
#include <errno.h>
#include <string.h>

#include "analysis/function_diff.h"
#include "analysis/site_totals.h"
#include "api/handle.h"
#include "api/table.h"

enum { FILE_NAME, LINE, NAME, CHANGE, FIRST_COUNT, COLUMNS = FIRST_COUNT + 10 };

#define PLACE_FIELDS                                                                                                   \
	{"file", TABLE_INT32, true}, {"line", TABLE_INT32, false}, {"name", TABLE_INT32, true},                        \
	{                                                                                                              \
		"change", TABLE_INT32, true                                                                            \
	}
#define ALLOCATION_FIELDS                                                                                              \
	{"allocations_a", TABLE_INT64, false}, {"allocations_b", TABLE_INT64, false}, {"bytes_a", TABLE_INT64, false}, \
	{                                                                                                              \
		"bytes_b", TABLE_INT64, false                                                                          \
	}

static const struct table_field function_fields[COLUMNS] = {PLACE_FIELDS,
							    {"calls_a", TABLE_INT64, false},
							    {"calls_b", TABLE_INT64, false},
							    {"own_a", TABLE_INT64, false},
							    {"own_b", TABLE_INT64, false},
							    {"cumulative_a", TABLE_INT64, false},
							    {"cumulative_b", TABLE_INT64, false},
							    ALLOCATION_FIELDS};
static const struct table_field site_fields[COLUMNS] = {PLACE_FIELDS,
							{"peak_bytes_a", TABLE_INT64, false},
							{"peak_bytes_b", TABLE_INT64, false},
							{"end_bytes_a", TABLE_INT64, false},
							{"end_bytes_b", TABLE_INT64, false},
							ALLOCATION_FIELDS,
							{"temporary_a", TABLE_INT64, false},
							{"temporary_b", TABLE_INT64, false}};

/* The measures of the columns from FIRST_COUNT on, for both traces each. */
static const unsigned function_measures[] = {DIFF_CALLS, DIFF_TIME, DIFF_CUMTIME, DIFF_ALLOCS, DIFF_BYTES};
static const unsigned site_measures[] = {DIFF_PEAK, DIFF_END, DIFF_ALLOCS, DIFF_BYTES, DIFF_TEMPORARY};

/* What is compared: functions, or the sites of memory. */
struct comparison {
	const struct table_field *fields;
	const unsigned *measures;
	unsigned sorted_by;
};
static const struct comparison of_functions = {function_fields, function_measures, DIFF_TIME};
static const struct comparison of_sites = {site_fields, site_measures, DIFF_PEAK};

static void put_counts(struct evprof_table *table, const struct comparison *comparison,
		       const struct function_pair *pair)
{
	for (uint32_t i = 0; i < (COLUMNS - FIRST_COUNT) / 2; i++) {
		const struct diff_measure *measure = &diff_measures[comparison->measures[i]];
		uint32_t column = FIRST_COUNT + 2 * i;

		table_int64(table, column)[table->rows] = (int64_t)diff_value(measure, pair->a);
		table_int64(table, column + 1)[table->rows] = (int64_t)diff_value(measure, pair->b);
	}
}

static int put_pair(struct evprof_table *table, const struct comparison *comparison, const struct function_pair *pair)
{
	const struct function_side *side = diff_shown_side(pair);
	const char *change = !pair->a ? "added" : !pair->b ? "removed" : "both";

	if (table_reserve_one(table) < 0)
		return -ENOMEM;
	table_int32(table, LINE)[table->rows] = (int32_t)(side->line & INT32_MAX);
	put_counts(table, comparison, pair);
	if (!table_put_text(table, FILE_NAME, side->file) || !table_put_text(table, NAME, text_of(side->display)) ||
	    !table_put_text(table, CHANGE, text_of(change)))
		return -ENOMEM;
	table->rows++;
	return 0;
}

static int compare(const struct function_totals totals[2], const struct comparison *comparison,
		   struct evprof_table **made)
{
	struct evprof_table *table = table_new(comparison->fields, COLUMNS, NULL);
	struct function_pairs pairs = {0};
	int error = table ? function_pairs_match(&pairs, &totals[0], &totals[1]) : -ENOMEM;

	if (!error)
		function_pairs_sort(&pairs, &diff_measures[comparison->sorted_by]);
	for (size_t i = 0; !error && i < pairs.count; i++)
		error = put_pair(table, comparison, &pairs.at[i]);
	function_pairs_done(&pairs);
	if (error) {
		table_drop(table);
		return error;
	}
	table_trim(table);
	*made = table;
	return 0;
}

static int count_sites(struct function_totals *totals, struct trace *trace, const struct options *options,
		       const struct why *why)
{
	static const char *const names[] = {
	    [MEMORY_BY_LINE] = "line",	   [MEMORY_BY_FUNCTION] = "function", [MEMORY_BY_MODULE] = "module",
	    [MEMORY_BY_THREAD] = "thread", [MEMORY_BY_TASK] = "task",	      [MEMORY_BY_LIBRARY] = "library"};
	struct memory_options counted = {.filter = &options->filter};
	struct progress progress = {0};
	int error;

	for (unsigned i = MEMORY_BY_LINE; i <= MEMORY_BY_LIBRARY; i++)
		if (strcmp(names[i], options->by) == 0)
			counted.by = (enum memory_by)i;
	if (counted.by == MEMORY_BY_SITE)
		return why_set(why, -EINVAL,
			       "evprof: memory is by line, function, module, thread, task or library, not \"%s\"",
			       options->by);
	if (options->filter.clock != CPU_CLOCK_WALL)
		return why_set(why, -EINVAL, "evprof: a diff of memory has no clock");
	error = site_totals_count(totals, trace, &counted, &progress);
	if (!error && !totals->memory && !trace_records(trace, "mem"))
		return why_set(why, -EINVAL, "evprof: %s has no memory events; record with --memory", trace->path);
	return error;
}

/* The totals own their texts. */
static int count(struct evprof_trace *trace, const char *const *pairs, struct function_totals *totals,
		 const struct comparison **comparison, const struct why *why)
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
	if (!error && options.by) {
		error = count_sites(totals, trace->trace, &options, why);
		*comparison = &of_sites;
	} else if (!error) {
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
	const struct comparison *compared[2] = {&of_functions, &of_functions};
	int result;

	if (error_bytes)
		error[0] = 0;
	result = count(a, options_a, &totals[0], &compared[0], &why);
	if (!result)
		result = count(b, options_b, &totals[1], &compared[1], &why);
	if (!result && compared[0] != compared[1])
		result = why_set(&why, -EINVAL, "evprof: the option by is for both traces");
	if (!result)
		result = compare(totals, compared[0], table);
	function_totals_done(&totals[0]);
	function_totals_done(&totals[1]);
	if (result && error_bytes && !error[0])
		why_set(&why, result, "evprof: %s", strerror(-result));
	return result;
}
