/*
 * heaps.c - the memory of the HTML report. See heaps.h.
 */
#include "html/heaps.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/live.h"
#include "analysis/heap_curve.h"
#include "replay/program_end.h"

/* --- the curve --- */

static void merge_point(struct html_curve_point *into, const struct html_curve_point *point)
{
	into->low = point->low < into->low ? point->low : into->low;
	into->high = point->high > into->high ? point->high : into->high;
	into->last = point->last;
}

/* Adds a point to its interval, which is the last or a new one. */
static void add_curve_point(struct html_curve *curve, const struct html_curve_point *point)
{
	if (curve->count && curve->points[curve->count - 1].stretch == point->stretch)
		merge_point(&curve->points[curve->count - 1], point);
	else
		curve->points[curve->count++] = *point;
}

static void halve_points(struct html_curve *curve)
{
	uint32_t count = curve->count;

	curve->shift++;
	curve->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct html_curve_point point = curve->points[i];

		point.stretch >>= 1;
		add_curve_point(curve, &point);
	}
}

void html_curve_add(struct html_curve *curve, int64_t ns, uint64_t value)
{
	struct html_curve_point point = {(uint64_t)ns >> curve->shift, value, value, value};

	if (curve->count == HTML_CURVE_POINTS && curve->points[curve->count - 1].stretch != point.stretch) {
		while (curve->count == HTML_CURVE_POINTS)
			halve_points(curve);
		point.stretch = (uint64_t)ns >> curve->shift;
	}
	add_curve_point(curve, &point);
}

void html_curve_columns(const struct html_curve *curve, struct html_column *columns)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < curve->count; i++) {
		const struct html_curve_point *point = &curve->points[i];

		html_row_put(columns,
			     (uint64_t[HTML_CURVE_COLUMNS]){point->stretch - before, point->low,
							    point->high - point->low, point->last - point->low},
			     HTML_CURVE_COLUMNS);
		before = point->stretch;
	}
}

/* --- heaps --- */

/* Clocks of threads may differ slightly, so a time may precede the last one. */
static void add_point(void *owner, int64_t ns, uint64_t bytes)
{
	struct html_heaps *heaps = owner;

	if (ns > heaps->curve_ns)
		heaps->curve_ns = ns;
	html_curve_add(heaps->curve, heaps->curve_ns, bytes);
}

static int write_curves(struct html_heaps *heaps)
{
	if (!heaps->curves[0].used && !heaps->curves[0].failed)
		return 0;
	return html_block_write(heaps->packer, heaps->curves_block, heaps->curves, HTML_CURVE_COLUMNS);
}

static int write_sites(struct html_heaps *heaps)
{
	if (!heaps->sites[0].used && !heaps->sites[0].failed)
		return 0;
	return html_block_write(heaps->packer, heaps->sites_block, heaps->sites, HTML_SITE_COLUMNS);
}

/* Returns the number of rows, or -ENOMEM. */
static int64_t add_sites(struct html_heaps *heaps, struct html_sites *sites)
{
	uint32_t most = heaps->site_values < HTML_SITES_VALUES ? HTML_SITES_MAX : HTML_SITES_FEW, left_out = 0;
	int64_t rows;

	if (!heaps->sites[0].used)
		heaps->sites_block = (*heaps->blocks)++;
	rows = html_sites_columns(sites, most, heaps->sites, &left_out);
	heaps->sites_left_out += left_out;
	heaps->site_values += rows > 0 ? (uint64_t)rows * sites->moments : 0;
	return rows;
}

static int add_curve(struct html_heaps *heaps, uint32_t process, struct html_sites *sites, int64_t end_ns)
{
	const struct html_curve *curve = heaps->curve;
	int64_t rows;
	int error;

	if (!curve->count)
		return 0;
	rows = add_sites(heaps, sites);
	if (rows < 0)
		return (int)rows;
	if (!heaps->curves[0].used)
		heaps->curves_block = (*heaps->blocks)++;
	html_row_put(heaps->table,
		     (uint64_t[HTML_HEAP_COLUMNS]){process, curve->shift, heaps->curves_block, curve->count,
						   (uint64_t)sites->live->peak_ns,
						   end_ns == PROGRAM_END_NONE ? 0 : (uint64_t)end_ns + 1,
						   heaps->sites_block, sites->moments, (uint64_t)rows},
		     HTML_HEAP_COLUMNS);
	html_curve_columns(curve, heaps->curves);
	error = heaps->curves[0].used < HTML_CURVE_POINTS ? 0 : write_curves(heaps);
	if (!error && heaps->sites[HTML_SITE_VALUES].used >= HTML_CURVE_POINTS)
		error = write_sites(heaps);
	return error;
}

/* The resident size of a process: the highest of each `group` looks. */
struct resident_points {
	struct html_column *columns;
	uint32_t process, group, count;
	struct rss_point highest;
};

static void put_resident(struct resident_points *points)
{
	if (points->count)
		html_row_put(points->columns,
			     (uint64_t[HTML_RESIDENT_COLUMNS]){points->process, (uint64_t)points->highest.ns,
							       points->highest.bytes},
			     HTML_RESIDENT_COLUMNS);
	points->count = 0;
}

static void add_resident(void *owner, const struct rss_point *point)
{
	struct resident_points *points = owner;

	if (!points->count || point->bytes > points->highest.bytes)
		points->highest = *point;
	if (++points->count == points->group)
		put_resident(points);
}

static void write_resident(struct html_heaps *heaps, const struct call_walk *walk, uint32_t process)
{
	struct resident_points points = {.columns = heaps->resident,
					 .process = process,
					 .group = walk->process->resident_count / HTML_RESIDENT_POINTS + 1};

	rss_curve(walk->trace, walk->process, walk->filter, add_resident, &points);
	put_resident(&points);
}

int html_heaps_process(struct html_heaps *heaps, const struct call_walk *walk, uint32_t process)
{
	struct html_sites sites = {
	    .from_ns = heaps->from_ns, .to_ns = heaps->to_ns, .functions = &heaps->made_by, .walk = walk};
	struct live live = {.lines = true};
	int64_t end_ns;
	int error = stack_functions_process(&heaps->made_by, walk);

	heaps->curve = calloc(1, sizeof(*heaps->curve));
	heaps->curve_ns = 0;
	if (!heaps->curve)
		error = -ENOMEM;
	html_sites_begin(&sites, &live);
	if (!error)
		error = live_find_both(&live, walk, &heaps->made_by, heaps->progress, add_point, heaps, &end_ns);
	if (!error)
		error = html_memory_add(&heaps->weights, process, &live, &heaps->made_by);
	if (!error)
		error = html_sites_end(&sites, end_ns);
	if (!error)
		error = add_curve(heaps, process, &sites, end_ns);
	write_resident(heaps, walk, process);
	heaps->missing |= live.missing;
	html_sites_done(&sites);
	live_done(&live);
	free(heaps->curve);
	heaps->curve = NULL;
	return error;
}

static int write_weights(struct html_heaps *heaps, struct html_functions *functions, uint32_t nodes_max)
{
	struct html_column columns[HTML_MEMORY_FUNCTION_COLUMNS] = {0};
	uint32_t *numbers = html_functions_of_stacks(functions, &heaps->made_by);
	int error = -ENOMEM;

	heaps->weights_block = *heaps->blocks;
	if (numbers)
		error = html_memory_tree(&heaps->weights, numbers, nodes_max, columns, &heaps->weights_least);
	if (!error) {
		html_block_write(heaps->packer, (*heaps->blocks)++, columns, HTML_MEMORY_TREE_COLUMNS);
		html_memory_functions(&heaps->weights, numbers, columns);
		html_block_write(heaps->packer, (*heaps->blocks)++, columns, HTML_MEMORY_FUNCTION_COLUMNS);
		for (uint32_t i = 0; i < heaps->made_by.count; i++)
			html_column_put(&columns[0], numbers[i]);
		error = html_block_write(heaps->packer, (*heaps->blocks)++, columns, 1);
	}
	html_columns_done(columns, HTML_MEMORY_FUNCTION_COLUMNS);
	free(numbers);
	return error;
}

int html_heaps_write(struct html_heaps *heaps, struct html_functions *functions, uint32_t nodes_max)
{
	int error = heaps->weights.tree.count ? write_weights(heaps, functions, nodes_max) : 0;

	if (!error)
		error = write_curves(heaps);
	return error ? error : write_sites(heaps);
}

void html_heaps_done(struct html_heaps *heaps)
{
	html_columns_done(heaps->table, HTML_HEAP_COLUMNS);
	html_columns_done(heaps->resident, HTML_RESIDENT_COLUMNS);
	html_columns_done(heaps->curves, HTML_CURVE_COLUMNS);
	html_columns_done(heaps->sites, HTML_SITE_COLUMNS);
	stack_functions_done(&heaps->made_by);
	html_memory_done(&heaps->weights);
}
