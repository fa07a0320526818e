/* thinning.c - see thinning.h. */
#include "replay/thinning.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

#define NEAR 0.1
#define COST_ERROR 0.35 /* of the cost of an event, relative: the interval of the time's clock has it */

struct thinning *thinning_new(uint32_t keys)
{
	struct thinning *thinning = calloc(1, sizeof(*thinning));

	if (!thinning)
		return NULL;
	thinning->keys = keys;
	thinning->state = calloc(keys, 1);
	thinning->thinned = calloc(keys, 1);
	if (thinning->state && thinning->thinned)
		return thinning;
	thinning_free(thinning);
	return NULL;
}

void thinning_free(struct thinning *thinning)
{
	if (!thinning)
		return;
	u64_map_done(&thinning->change_numbers);
	free(thinning->changes);
	free(thinning->samples);
	free(thinning->state);
	free(thinning->thinned);
	free(thinning);
}

void thinning_begin_thread(struct thinning *thinning)
{
	memset(thinning->state, THIN_RECORDED, thinning->keys);
	thinning->at_ns = 0;
}

void thinning_clear(struct thinning *thinning)
{
	thinning->sample_count = 0;
	for (uint32_t i = 0; i < thinning->change_count; i++)
		thinning->changes[i].ends = thinning->changes[i].events = 0;
}

static struct thin_change *change_at(struct thinning *thinning, uint64_t cpu_ns)
{
	uint64_t number = u64_map_number(&thinning->change_numbers, cpu_ns, &thinning->changes, &thinning->change_count,
					 &thinning->changes_allocated, sizeof(*thinning->changes));

	thinning->out_of_memory |= !number;
	return number ? &thinning->changes[number - 1] : NULL;
}

void thinning_change(struct thinning *thinning, uint32_t head, const uint64_t *extra)
{
	bool sampled = wire_head_kind(head) == WIRE_THIN_END && wire_thin_why(head) == WIRE_BURST_RANDOM;
	enum thin_state state = wire_head_kind(head) == WIRE_THIN ? THIN_MISSING
				: sampled			  ? THIN_SAMPLED
								  : THIN_RECORDED;
	struct thin_change *change = wire_extra_words(head) && *extra ? change_at(thinning, *extra) : NULL;

	if (!change)
		return;
	change->cpu_ns = *extra;
	change->head = head;
	memcpy(change->extra, extra, wire_extra_words(head) * sizeof(*extra));
	memset(thinning->state, THIN_RECORDED, thinning->keys);
	thinning->at_ns = *extra;
	for (unsigned i = 0; i < WIRE_THIN_MOST; i++) {
		uint32_t key = wire_thinned(head, extra, i) * 2;

		if (!key || key >= thinning->keys)
			continue;
		thinning->state[key] = (uint8_t)state;
		thinning->thinned[key] = 1;
	}
}

bool thinning_count(struct thinning *thinning, uint32_t key, uint32_t caller, const struct thin_values *values)
{
	struct thin_change *change = thinning->at_ns ? change_at(thinning, thinning->at_ns) : NULL;
	uint32_t by = thinning_samples(thinning, key) ? key : caller;
	bool sampled = thinning_samples(thinning, by) && (by == key || key & 1);
	struct thin_sample *last = thinning->sample_count ? &thinning->samples[thinning->sample_count - 1] : NULL;

	if (change)
		change->events += 2;
	if (!sampled) {
		if (change)
			change->ends++;
		return false;
	}
	if (!last || last->key != key || last->by != by || last->burst_ns != thinning->at_ns) {
		if (grow_by_one(&thinning->samples, &thinning->samples_allocated, thinning->sample_count,
				sizeof(*thinning->samples)) < 0) {
			thinning->out_of_memory = true;
			return true;
		}
		last = &thinning->samples[thinning->sample_count++];
		*last = (struct thin_sample){.key = key, .by = by, .burst_ns = thinning->at_ns};
	}
	last->values.calls += values->calls;
	last->values.own += values->own;
	last->values.total += values->total;
	return true;
}

/* --- estimates --- */

/* One burst, or all stretches in which the function is missing. */
struct stretch {
	double ends, ns;
};

struct bursts {
	struct stretch *at;
	double *numbers; /* of each burst */
	uint32_t count;
	struct stretch missing, squares; /* the sum of the stretches, and of their squares */
	double overhead;		 /* share of the time of the bursts that recording took */
};

static int by_time(const void *left, const void *right)
{
	const struct thin_change *a = left, *b = right;

	return compare_u64(a->cpu_ns, b->cpu_ns);
}

static int by_key(const void *left, const void *right)
{
	const struct thin_sample *a = left, *b = right;

	return compare_u64(a->key, b->key) ?: compare_u64(a->by, b->by) ?: compare_u64(a->burst_ns, b->burst_ns);
}

static bool names(const struct thin_change *change, uint32_t key)
{
	for (unsigned i = 0; i < WIRE_THIN_MOST; i++)
		if (wire_thinned(change->head, change->extra, i) * 2 == key)
			return true;
	return false;
}

static double event_ns(const struct thin_change *change)
{
	return wire_thin_cost(change->head) / 10.0;
}

/* The stretches of a thinned function. burst_numbers: 1 + index of the burst, by index of the change. */
static void find_stretches(const struct thinning *thinning, uint32_t by, struct bursts *bursts, uint32_t *burst_numbers)
{
	double taken = 0, all = 0;

	bursts->count = 0;
	bursts->missing = bursts->squares = (struct stretch){0};
	for (uint32_t i = 0; i < thinning->change_count; i++) {
		const struct thin_change *change = &thinning->changes[i];
		double ns = i + 1 < thinning->change_count ? (double)(change[1].cpu_ns - change->cpu_ns) : 0, cost;
		bool random = wire_thin_why(change->head) == WIRE_BURST_RANDOM;

		burst_numbers[i] = 0;
		if (ns <= 0 || !names(change, by))
			continue;
		cost = (double)change->events * event_ns(change);
		cost = cost < 0.95 * ns ? cost : 0.95 * ns;
		if (wire_head_kind(change->head) == WIRE_THIN) {
			bursts->missing.ends += (double)change->ends;
			bursts->missing.ns += ns - cost;
			bursts->squares.ends += (double)change->ends * (double)change->ends;
			bursts->squares.ns += (ns - cost) * (ns - cost);
		} else if (random) {
			bursts->at[bursts->count++] = (struct stretch){(double)change->ends, ns - cost};
			burst_numbers[i] = bursts->count;
			taken += cost;
			all += ns;
		}
	}
	bursts->overhead = all > 0 ? taken / all : 0;
}

/* Student's t for an interval of 95 %, for so many bursts. */
static double quantile(uint32_t bursts)
{
	static const double small[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
	uint32_t freedom = bursts - 1;

	return freedom <= 10 ? small[freedom - 1] : 1.96 + 2.6 / freedom;
}

struct scaled {
	double value, width;
};

/* Of the time of the bursts without the cost of events, relative. */
static double cost_error(const struct bursts *bursts)
{
	return COST_ERROR * bursts->overhead / (1 - bursts->overhead);
}

/* Scales the numbers of the bursts to the missing stretches: a ratio estimate, with the interval of its residuals. */
static struct scaled scale(const struct bursts *bursts, bool by_ends, double calls)
{
	double sum = 0, clock = 0, missing = by_ends ? bursts->missing.ends : bursts->missing.ns, residuals = 0,
	       squares, n;
	struct scaled scaled = {0};

	for (uint32_t i = 0; i < bursts->count; i++) {
		sum += bursts->numbers[i];
		clock += by_ends ? bursts->at[i].ends : bursts->at[i].ns;
	}
	if (clock <= 0)
		return (struct scaled){0, HUGE_VAL};
	for (uint32_t i = 0; i < bursts->count; i++) {
		double off = bursts->numbers[i] - sum / clock * (by_ends ? bursts->at[i].ends : bursts->at[i].ns);

		residuals += off * off;
	}
	n = bursts->count;
	scaled.value = sum / clock * missing;
	/* Few bursts may agree by chance, and calls that come one by one never do. */
	if (bursts->count > 1) {
		residuals = residuals * n / (n - 1) + sum * sum / (calls + 1);
		/* The rate in each of the missing stretches differs from the mean as those of the bursts do. */
		squares = by_ends ? bursts->squares.ends : bursts->squares.ns;
		scaled.width = quantile(bursts->count) * sqrt(residuals * (missing * missing + n * squares)) / clock;
	}
	if (!by_ends)
		scaled.width += scaled.value * cost_error(bursts);
	return scaled;
}

/*
 * Not where the program did something else while the function was missing: then the clocks differ by more than the
 * error of the cost explains.
 */
static bool ends_are_better(const struct bursts *bursts, double calls)
{
	struct scaled ends = scale(bursts, true, calls), time = scale(bursts, false, calls);

	double near = (cost_error(bursts) + NEAR) * time.value;

	return bursts->count > 1 && ends.width < time.width && fabs(ends.value - time.value) < near;
}

static double value_of(const struct thin_values *values, int which)
{
	return which == 0 ? values->calls : which == 1 ? values->own : values->total;
}

static void sum_bursts(struct bursts *bursts, const struct thin_sample *samples, size_t count, int which,
		       const struct thinning *thinning, const uint32_t *burst_numbers)
{
	memset(bursts->numbers, 0, bursts->count * sizeof(*bursts->numbers));
	for (size_t i = 0, k = 0; i < count; i++) {
		while (k < thinning->change_count && thinning->changes[k].cpu_ns < samples[i].burst_ns)
			k++;
		if (k < thinning->change_count && burst_numbers[k])
			bursts->numbers[burst_numbers[k] - 1] += value_of(&samples[i].values, which);
	}
}

/* The samples of one function, by one thinned function. */
static void estimate_one(const struct thinning *thinning, struct bursts *bursts, const struct thin_sample *samples,
			 size_t count, const uint32_t *burst_numbers, struct thin_estimate *estimate)
{
	struct scaled scaled[3];
	bool by_ends = false;
	double calls = 0;

	*estimate = (struct thin_estimate){.key = samples->key, .known = bursts->count > 1};
	if (!bursts->count)
		return;
	for (size_t i = 0; i < count; i++)
		calls += samples[i].values.calls;
	for (int which = 0; which < 3; which++) {
		sum_bursts(bursts, samples, count, which, thinning, burst_numbers);
		if (!which)
			by_ends = ends_are_better(bursts, calls);
		scaled[which] = scale(bursts, by_ends, calls);
	}
	estimate->missing = (struct thin_values){scaled[0].value, scaled[1].value, scaled[2].value};
	estimate->width = (struct thin_values){scaled[0].width, scaled[1].width, scaled[2].width};
}

/* A thinned function without a sample. */
static void no_sample(const struct bursts *bursts, uint32_t key, struct thin_estimate *estimate)
{
	*estimate = (struct thin_estimate){.key = key, .known = bursts->count > 1};
}

static int estimate_samples(struct thinning *thinning, struct bursts *bursts, uint32_t *burst_numbers, bool *sampled,
			    int (*take)(void *owner, const struct thin_estimate *estimate), void *owner)
{
	struct thin_estimate estimate;
	size_t first, end;
	int error = 0;

	for (first = 0; first < thinning->sample_count && !error; first = end) {
		const struct thin_sample *samples = &thinning->samples[first];

		for (end = first; end < thinning->sample_count && thinning->samples[end].key == samples->key &&
				  thinning->samples[end].by == samples->by;
		     end++)
			;
		sampled[samples->key] |= samples->key == samples->by;
		find_stretches(thinning, samples->by, bursts, burst_numbers);
		estimate_one(thinning, bursts, samples, end - first, burst_numbers, &estimate);
		error = take(owner, &estimate);
	}
	return error;
}

static int estimate_others(struct thinning *thinning, struct bursts *bursts, uint32_t *burst_numbers,
			   const bool *sampled, int (*take)(void *owner, const struct thin_estimate *estimate),
			   void *owner)
{
	struct thin_estimate estimate;
	int error = 0;

	for (uint32_t key = 0; key < thinning->keys && !error; key++) {
		if (!thinning->thinned[key] || sampled[key])
			continue;
		find_stretches(thinning, key, bursts, burst_numbers);
		no_sample(bursts, key, &estimate);
		error = take(owner, &estimate);
	}
	return error;
}

/* The changes in the order of time; the numbers in change_numbers stay those of `changes`. */
static int sorted_changes(const struct thinning *thinning, struct thin_change **sorted)
{
	size_t bytes = thinning->change_count * sizeof(**sorted);

	*sorted = malloc(bytes + 1);
	if (!*sorted)
		return -ENOMEM;
	memcpy(*sorted, thinning->changes, bytes);
	qsort(*sorted, thinning->change_count, sizeof(**sorted), by_time);
	return 0;
}

int thinning_estimate(struct thinning *thinning, int (*take)(void *owner, const struct thin_estimate *estimate),
		      void *owner)
{
	struct thin_change *unsorted = thinning->changes, *sorted;
	size_t changes = (size_t)thinning->change_count + 1;
	struct bursts bursts = {.at = calloc(changes, sizeof(*bursts.at)),
				.numbers = calloc(changes, sizeof(*bursts.numbers))};
	uint32_t *burst_numbers = calloc(changes, sizeof(*burst_numbers));
	bool *sampled = calloc(thinning->keys, sizeof(*sampled));
	int error = thinning->out_of_memory || !bursts.at || !bursts.numbers || !burst_numbers || !sampled
			? -ENOMEM
			: sorted_changes(thinning, &sorted);

	if (!error) {
		thinning->changes = sorted;
		qsort(thinning->samples, thinning->sample_count, sizeof(*thinning->samples), by_key);
		error = estimate_samples(thinning, &bursts, burst_numbers, sampled, take, owner);
		if (!error)
			error = estimate_others(thinning, &bursts, burst_numbers, sampled, take, owner);
		thinning->changes = unsorted;
		free(sorted);
	}
	free(bursts.at);
	free(bursts.numbers);
	free(burst_numbers);
	free(sampled);
	return error;
}
