/*
 * function_diff.c - functions of two traces, matched and ordered by change. See function_diff.h.
 */
#include "analysis/function_diff.h"

#include <errno.h>
#include <stdlib.h>

static int compare_lines(const struct function_side *a, const struct function_side *b)
{
	return (a->line > b->line) - (a->line < b->line);
}

static int by_place(const struct function_side *a, const struct function_side *b)
{
	int order = text_compare(a->file, b->file);

	if (!order)
		order = text_compare(a->name, b->name);
	return order ? order : compare_lines(a, b);
}

static int by_file_and_name(const struct function_side *a, const struct function_side *b)
{
	int order = text_compare(a->file, b->file);

	return order ? order : text_compare(a->name, b->name);
}

static int by_base_and_name(const struct function_side *a, const struct function_side *b)
{
	int order = text_compare(text_base_name(a->file), text_base_name(b->file));

	return order ? order : text_compare(a->name, b->name);
}

typedef int comparison(const struct function_side *a, const struct function_side *b);

/* Sorts by what the round compares, then by place. */
static int sort_sides(const void *a, const void *b, void *same)
{
	comparison *compare = *(comparison **)same;
	const struct function_side *const *left = a, *const *right = b;
	int order = compare(*left, *right);

	return order ? order : by_place(*left, *right);
}

/* The unmatched functions of a side, sorted. */
static struct function_side **unmatched_sides(const struct function_sides *sides, comparison *compare, size_t *count)
{
	struct function_side **list = malloc((sides->count + 1) * sizeof(*list));

	*count = 0;
	for (size_t i = 0; list && i < sides->count; i++)
		if (!sides->at[i].matched)
			list[(*count)++] = &sides->at[i];
	if (list)
		qsort_r(list, *count, sizeof(*list), sort_sides, &compare);
	return list;
}

static int match_round(struct function_pairs *pairs, comparison *compare)
{
	size_t a_count, b_count, i = 0, k = 0;
	struct function_side **left = unmatched_sides(&pairs->sides[0], compare, &a_count);
	struct function_side **right = unmatched_sides(&pairs->sides[1], compare, &b_count);

	while (left && right && i < a_count && k < b_count) {
		int order = compare(left[i], right[k]);

		if (!order) {
			left[i]->matched = right[k]->matched = true;
			pairs->at[pairs->count++] = (struct function_pair){left[i], right[k]};
		}
		i += order <= 0;
		k += order >= 0;
	}
	free(left);
	free(right);
	return left && right ? 0 : -ENOMEM;
}

static int list_sides(struct function_sides *sides, const struct function_totals *totals, bool qualified)
{
	sides->at = calloc((size_t)totals->functions.count + 1, sizeof(*sides->at));
	if (!sides->at)
		return -ENOMEM;
	for (uint32_t i = 0; i < totals->functions.count; i++) {
		const struct stack_function *function = &totals->functions.at[i];
		const struct label *label = &totals->functions.labels.at[i];

		sides->at[sides->count++] = (struct function_side){
		    .file = function->file,
		    .name = qualified || function->is_c ? text_of(function->name) : label->name,
		    .line = function->line,
		    .label = label,
		    .display = function->name,
		    .counts = &totals->counts[i],
		};
	}
	return 0;
}

int function_pairs_match(struct function_pairs *pairs, const struct function_totals *a, const struct function_totals *b)
{
	static comparison *const rounds[] = {by_place, by_file_and_name, by_base_and_name};
	bool qualified = a->qualified && b->qualified;
	struct function_sides *left = &pairs->sides[0], *right = &pairs->sides[1];
	int error = list_sides(left, a, qualified);

	if (!error)
		error = list_sides(right, b, qualified);
	if (error)
		return error;
	pairs->at = calloc(left->count + right->count + 1, sizeof(*pairs->at));
	if (!pairs->at)
		return -ENOMEM;
	for (size_t i = 0; !error && i < sizeof(rounds) / sizeof(rounds[0]); i++)
		error = match_round(pairs, rounds[i]);
	for (size_t i = 0; i < left->count; i++)
		if (!left->at[i].matched)
			pairs->at[pairs->count++] = (struct function_pair){&left->at[i], NULL};
	for (size_t i = 0; i < right->count; i++)
		if (!right->at[i].matched)
			pairs->at[pairs->count++] = (struct function_pair){NULL, &right->at[i]};
	return error;
}

void function_pairs_done(struct function_pairs *pairs)
{
	free(pairs->sides[0].at);
	free(pairs->sides[1].at);
	free(pairs->at);
}

/* --- order --- */

static uint64_t calls_of(const struct function_total *counts)
{
	return counts->calls;
}

static uint64_t own_of(const struct function_total *counts)
{
	return counts->own_ns;
}

static uint64_t total_of(const struct function_total *counts)
{
	return counts->total_ns;
}

static uint64_t allocations_of(const struct function_total *counts)
{
	return counts->allocations;
}

static uint64_t bytes_of(const struct function_total *counts)
{
	return counts->allocated_bytes;
}

const struct diff_measure diff_measures[DIFF_MEASURES] = {
    {"calls", "ncalls", "ncalls", "call count", calls_of, false, false},
    {"time", "tottime_ns", "tottime", "internal time", own_of, true, false},
    {"cumtime", "cumtime_ns", "cumtime", "cumulative time", total_of, true, false},
    {"allocs", "allocs", "allocs", "number of allocations", allocations_of, false, true},
    {"bytes", "bytes", "bytes", "allocated bytes", bytes_of, false, true},
};

uint64_t diff_value(const struct diff_measure *measure, const struct function_side *side)
{
	return side ? measure->of(side->counts) : 0;
}

int64_t diff_change(const struct diff_measure *measure, const struct function_pair *pair)
{
	return (int64_t)(diff_value(measure, pair->b) - diff_value(measure, pair->a));
}

const struct function_side *diff_shown_side(const struct function_pair *pair)
{
	return pair->b ? pair->b : pair->a;
}

/* The largest change first, increase or decrease. */
static int by_change(const void *a, const void *b, void *by)
{
	const struct function_pair *left = a, *right = b;
	int64_t first = diff_change(by, left), second = diff_change(by, right);
	uint64_t first_size = first < 0 ? -(uint64_t)first : (uint64_t)first;
	uint64_t second_size = second < 0 ? -(uint64_t)second : (uint64_t)second;

	if (first_size != second_size)
		return first_size > second_size ? -1 : 1;
	if (first != second)
		return first > second ? -1 : 1;
	return label_compare(diff_shown_side(left)->label, diff_shown_side(right)->label);
}

void function_pairs_sort(struct function_pairs *pairs, const struct diff_measure *measure)
{
	qsort_r(pairs->at, pairs->count, sizeof(*pairs->at), by_change, (void *)measure);
}
