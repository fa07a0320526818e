/*
 * function_diff.c - functions of two traces, matched and ordered by change. See function_diff.h.
 */
#include "analysis/function_diff.h"

#include <errno.h>
#include <stdlib.h>

#include "util/grow.h"

/* The rounds: what is the same. */
enum round { SAME_PLACE, SAME_FILE_AND_NAME, SAME_BASE_AND_NAME, ROUNDS };

static int compare_sides(enum round round, const struct function_side *a, const struct function_side *b)
{
	bool base = round == SAME_BASE_AND_NAME;
	int order =
	    base ? text_compare(text_base_name(a->file), text_base_name(b->file)) : text_compare(a->file, b->file);

	if (!order)
		order = text_compare(a->name, b->name);
	if (order)
		return order;
	return round == SAME_PLACE ? compare_u64(a->line, b->line) : compare_u64(a->offset, b->offset);
}

/* Sorts by what the round compares, then by place. */
static int sort_sides(const void *a, const void *b, void *round)
{
	const struct function_side *const *left = a, *const *right = b;
	int order = compare_sides(*(enum round *)round, *left, *right);

	return order ? order : compare_sides(SAME_PLACE, *left, *right);
}

/* The unmatched functions of a side, sorted. */
static struct function_side **unmatched_sides(const struct function_sides *sides, enum round round, size_t *count)
{
	struct function_side **list = malloc((sides->count + 1) * sizeof(*list));

	*count = 0;
	for (size_t i = 0; list && i < sides->count; i++)
		if (!sides->at[i].matched)
			list[(*count)++] = &sides->at[i];
	if (list)
		qsort_r(list, *count, sizeof(*list), sort_sides, &round);
	return list;
}

static int match_round(struct function_pairs *pairs, enum round round)
{
	size_t a_count, b_count, i = 0, k = 0;
	struct function_side **left = unmatched_sides(&pairs->sides[0], round, &a_count);
	struct function_side **right = unmatched_sides(&pairs->sides[1], round, &b_count);

	while (left && right && i < a_count && k < b_count) {
		int order = compare_sides(round, left[i], right[k]);

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
		    .offset = function->line - function->begins,
		    .label = label,
		    .display = function->name,
		    .counts = &totals->counts[i],
		};
	}
	return 0;
}

int function_pairs_match(struct function_pairs *pairs, const struct function_totals *a, const struct function_totals *b)
{
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
	for (enum round round = SAME_PLACE; !error && round < ROUNDS; round++)
		error = match_round(pairs, round);
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

const struct diff_measure diff_measures[DIFF_MEASURES] = {
    {"calls", "ncalls", "ncalls", "call count", offsetof(struct function_total, calls), false, false, false},
    {"time", "tottime_ns", "tottime", "internal time", offsetof(struct function_total, own_ns), true, false, false},
    {"cumtime", "cumtime_ns", "cumtime", "cumulative time", offsetof(struct function_total, total_ns), true, false,
     false},
    {"peak", "peak_bytes", "peak", "bytes at the peak", offsetof(struct function_total, peak_bytes), false, true, true},
    {"end", "end_bytes", "end", "bytes at the end", offsetof(struct function_total, end_bytes), false, true, true},
    {"allocs", "allocs", "allocs", "number of allocations", offsetof(struct function_total, allocations), false, true,
     false},
    {"bytes", "bytes", "bytes", "allocated bytes", offsetof(struct function_total, allocated_bytes), false, true, true},
    {"temporary", "temporary", "temporary", "number of temporary allocations",
     offsetof(struct function_total, temporary), false, true, false},
};

unsigned diff_unknown_of_sites(const struct trace *trace)
{
	return (trace_memory_interval(trace) ? 1u << DIFF_TEMPORARY : 0) |
	       (trace_is_alive_only(trace) ? 1u << DIFF_PEAK : 0);
}

uint64_t diff_value(const struct diff_measure *measure, const struct function_side *side)
{
	return side ? diff_measured(measure, side->counts) : 0;
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

/* --- changes and regressions --- */

static bool is_beyond(const struct diff_threshold *threshold, uint64_t a, uint64_t b)
{
	uint64_t difference = a < b ? b - a : a - b;

	return difference > threshold->amount && (double)difference * 100 > (double)a * threshold->percent;
}

unsigned diff_count_changes(const struct diff_rules *rules, const struct function_total *a,
			    const struct function_total *b)
{
	unsigned changed = 0;

	for (unsigned i = 0; i < DIFF_MEASURES; i++)
		if (is_beyond(&rules->thresholds[i], a ? diff_measured(&diff_measures[i], a) : 0,
			      b ? diff_measured(&diff_measures[i], b) : 0))
			changed |= 1u << i;
	return changed & rules->compared;
}

static unsigned growths_of(const struct diff_rules *rules, const struct function_total *a,
			   const struct function_total *b)
{
	unsigned grown = diff_count_changes(rules, a, b);

	for (unsigned i = 0; i < DIFF_MEASURES; i++)
		if (a && (!b || diff_measured(&diff_measures[i], b) < diff_measured(&diff_measures[i], a)))
			grown &= ~(1u << i);
	return grown;
}

static const struct function_total *counts_of(const struct function_side *side)
{
	return side ? side->counts : NULL;
}

unsigned diff_changes(const struct diff_rules *rules, const struct function_pair *pair)
{
	return diff_count_changes(rules, counts_of(pair->a), counts_of(pair->b));
}

unsigned diff_regressions(const struct diff_rules *rules, const struct function_pair *pair)
{
	return rules->fail_on & growths_of(rules, counts_of(pair->a), counts_of(pair->b));
}

unsigned diff_total_regressions(const struct diff_rules *rules, const struct function_total *a,
				const struct function_total *b)
{
	return rules->fail_on_total & growths_of(rules, a, b);
}

int64_t function_pairs_put_regressions_first(struct function_pairs *pairs, const struct diff_rules *rules)
{
	struct function_pair *others = malloc((pairs->count + 1) * sizeof(*others));
	size_t first = 0, rest = 0;

	if (!others)
		return -ENOMEM;
	for (size_t i = 0; i < pairs->count; i++) {
		if (diff_regressions(rules, &pairs->at[i]))
			pairs->at[first++] = pairs->at[i];
		else
			others[rest++] = pairs->at[i];
	}
	for (size_t i = 0; i < rest; i++)
		pairs->at[first + i] = others[i];
	free(others);
	return (int64_t)first;
}
