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
 *   temporary_b: -1 where a trace does not have the measure (diff_unknown_of_sites())
 */
#include <errno.h>
#include <string.h>

#include "analysis/function_diff.h"
#include "api/handle.h"
#include "api/table.h"

enum { CHANGE = TABLE_PLACE_COLUMNS, FIRST_COUNT, COUNTS = 10, COLUMNS = FIRST_COUNT + COUNTS };

#define CHANGE_FIELDS                                                                                                  \
	TABLE_PLACE_FIELDS,                                                                                            \
	{                                                                                                              \
		"change", TABLE_INT32, true                                                                            \
	}
#define ALLOCATION_FIELDS                                                                                              \
	{"allocations_a", TABLE_INT64, false}, {"allocations_b", TABLE_INT64, false}, {"bytes_a", TABLE_INT64, false}, \
	{                                                                                                              \
		"bytes_b", TABLE_INT64, false                                                                          \
	}

static const struct table_field function_fields[COLUMNS] = {CHANGE_FIELDS,
							    {"calls_a", TABLE_INT64, false},
							    {"calls_b", TABLE_INT64, false},
							    {"own_a", TABLE_INT64, false},
							    {"own_b", TABLE_INT64, false},
							    {"cumulative_a", TABLE_INT64, false},
							    {"cumulative_b", TABLE_INT64, false},
							    ALLOCATION_FIELDS};
static const struct table_field site_fields[COLUMNS] = {CHANGE_FIELDS,
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

static int put_pair(struct evprof_table *table, const struct comparison *comparison, const unsigned unknown[2],
		    const struct function_pair *pair)
{
	const struct function_side *side = diff_shown_side(pair);
	const char *change = !pair->a ? "added" : !pair->b ? "removed" : "both";
	uint64_t counts[COUNTS];

	for (size_t i = 0; i < COUNTS; i++) {
		unsigned measure = comparison->measures[i / 2];
		bool known = !(unknown[i % 2] & 1u << measure);

		counts[i] = known ? diff_value(&diff_measures[measure], i % 2 ? pair->b : pair->a) : UINT64_MAX;
	}
	if (table_begin_row(table, side->file, side->line, text_of(side->display)) < 0 ||
	    !table_put_text(table, CHANGE, text_of(change)))
		return -ENOMEM;
	table_end_row(table, FIRST_COUNT, counts, COUNTS);
	return 0;
}

static int compare(const struct function_totals totals[2], const unsigned unknown[2],
		   const struct comparison *comparison, struct evprof_table **made)
{
	bool sorted = !((unknown[0] | unknown[1]) & 1u << comparison->sorted_by);
	struct evprof_table *table = table_new(comparison->fields, COLUMNS);
	struct function_pairs pairs = {0};
	int error = table ? function_pairs_match(&pairs, &totals[0], &totals[1]) : -ENOMEM;

	if (!error)
		function_pairs_sort(&pairs, &diff_measures[sorted ? comparison->sorted_by : DIFF_END]);
	for (size_t i = 0; !error && i < pairs.count; i++)
		error = put_pair(table, comparison, unknown, &pairs.at[i]);
	function_pairs_done(&pairs);
	if (error) {
		table_drop(table);
		return error;
	}
	table_trim(table);
	*made = table;
	return 0;
}

static int count_sites(struct function_totals *totals, struct request *request)
{
	const struct why *why = &request->why;
	const struct trace *trace = request->trace;
	struct memory_options counted = {.filter = &request->options.filter};
	int error;

	for (unsigned i = MEMORY_BY_LINE; i <= MEMORY_BY_LIBRARY; i++)
		if (strcmp(memory_by_names[i], request->options.by) == 0)
			counted.by = (enum memory_by)i;
	if (counted.by == MEMORY_BY_SITE)
		return why_set(why, -EINVAL,
			       "evprof: memory is by line, function, module, thread, task or library, not \"%s\"",
			       request->options.by);
	error = options_need_wall_clock(&request->options, "a diff of memory", why);
	if (!error)
		error = site_totals_count(totals, request->trace, &counted, &request->progress);
	if (!error && !totals->memory && !trace_records(trace, "mem"))
		return why_set(why, -EINVAL, "evprof: %s has no memory events; record with --memory", trace->path);
	return error;
}

/* The totals own their texts. */
static int count(struct request *request, struct function_totals *totals, const struct comparison **comparison)
{
	const struct filter *filter = &request->options.filter;

	if (filter->min_duration_ns)
		return why_set(&request->why, -EINVAL, "evprof: diff() has no min_duration");
	*comparison = request->options.by ? &of_sites : &of_functions;
	return request->options.by ? count_sites(totals, request)
				   : function_totals_count(totals, request->trace, filter, &request->progress);
}

int evprof_trace_diff(struct evprof_trace *a, const char *const *options_a, struct evprof_trace *b,
		      const char *const *options_b, struct evprof_table **table, char *error, size_t error_bytes)
{
	struct evprof_trace *const traces[2] = {a, b};
	const char *const *const options[2] = {options_a, options_b};
	struct function_totals totals[2] = {{.functions = {0}}, {.functions = {0}}};
	const struct comparison *compared[2] = {&of_functions, &of_functions};
	unsigned unknown[2] = {0};
	struct why why;
	int result = 0;

	for (size_t i = 0; i < 2 && !result; i++) {
		struct request request;

		result = request_begin(&request, traces[i], options[i], error, error_bytes);
		if (!result) {
			result = count(&request, &totals[i], &compared[i]);
			unknown[i] = compared[i] == &of_sites ? diff_unknown_of_sites(request.trace) : 0;
		}
		result = request_end(&request, result);
	}
	if (result)
		goto done;
	why = why_begin(error, error_bytes);
	if (compared[0] == compared[1])
		result = why_end(&why, compare(totals, unknown, compared[0], table));
	else
		result = why_set(&why, -EINVAL, "evprof: the option by is for both traces");
done:
	function_totals_done(&totals[0]);
	function_totals_done(&totals[1]);
	return result;
}
