/*
 * curve.c - see curve.h.
 */
#include "html/curve.h"

static void merge_point(struct html_curve_point *into, const struct html_curve_point *point)
{
	into->low = point->low < into->low ? point->low : into->low;
	into->high = point->high > into->high ? point->high : into->high;
	into->last = point->last;
}

static void halve_points(struct html_curve *curve)
{
	uint32_t i, count = 0;

	curve->shift++;
	for (i = 0; i < curve->count; i++) {
		struct html_curve_point point = curve->points[i];

		point.stretch >>= 1;
		if (count && curve->points[count - 1].stretch == point.stretch)
			merge_point(&curve->points[count - 1], &point);
		else
			curve->points[count++] = point;
	}
	curve->count = count;
}

void html_curve_add(struct html_curve *curve, int64_t ns, uint64_t value)
{
	struct html_curve_point point = {(uint64_t)ns >> curve->shift, value, value, value};

	if (curve->count && curve->points[curve->count - 1].stretch == point.stretch) {
		merge_point(&curve->points[curve->count - 1], &point);
		return;
	}
	while (curve->count == HTML_CURVE_POINTS)
		halve_points(curve);
	point.stretch = (uint64_t)ns >> curve->shift;
	if (curve->count && curve->points[curve->count - 1].stretch == point.stretch)
		merge_point(&curve->points[curve->count - 1], &point);
	else
		curve->points[curve->count++] = point;
}

void html_curve_columns(const struct html_curve *curve, struct html_column *columns)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < curve->count; i++) {
		const struct html_curve_point *point = &curve->points[i];

		html_column_put(&columns[0], point->stretch - before);
		html_column_put(&columns[1], point->low);
		html_column_put(&columns[2], point->high - point->low);
		html_column_put(&columns[3], point->last - point->low);
		before = point->stretch;
	}
}
