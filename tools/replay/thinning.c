/* thinning.c - see thinning.h. */
#include "replay/thinning.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

#define ENDS_FEWEST 4  /* of a stretch or a burst of which the slowdown is measured */
#define COST_ERROR 0.3 /* of the cost of events, relative, where that cost stands for the slowdown */

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
	free(thinning->change_keys);
	free(thinning->samples);
	u64_map_done(&thinning->pair_numbers);
	free(thinning->pairs);
	free(thinning->state);
	free(thinning->thinned);
	free(thinning);
}

void thinning_begin_thread(struct thinning *thinning)
{
	memset(thinning->state, THIN_RECORDED, thinning->keys);
	thinning->at_ns = 0;
	thinning->at_key = 0;
}

void thinning_clear(struct thinning *thinning)
{
	thinning->sample_count = 0;
	for (uint32_t i = 0; i < thinning->change_count; i++)
		thinning->changes[i].ends = thinning->changes[i].events = 0;
	for (uint32_t i = 0; i < thinning->pair_count; i++)
		thinning->pairs[i].sampled = false;
}

struct thin_change *thinning_change_at(struct thinning *thinning, uint64_t cpu_ns)
{
	uint64_t number = u64_map_number(&thinning->change_numbers, cpu_ns, &thinning->changes, &thinning->change_count,
					 &thinning->changes_allocated, sizeof(*thinning->changes));

	thinning->out_of_memory |= !number;
	return number ? &thinning->changes[number - 1] : NULL;
}

struct thin_change *thinning_last(struct thinning *thinning)
{
	return thinning->at_ns ? thinning_change_at(thinning, thinning->at_ns) : NULL;
}

static bool names(const struct thinning *thinning, const struct thin_change *change, uint32_t key)
{
	for (uint32_t i = 0; i < change->key_count; i++)
		if (thinning->change_keys[change->first_key + i] == key)
			return true;
	return false;
}

/* Whether a change has a key. Each thread names all keys in one order, so mostly it is the next one, or a new one. */
static bool has_key(struct thinning *thinning, const struct thin_change *change, uint32_t key)
{
	uint32_t at = thinning->at_key++;

	if (at == change->key_count)
		return false;
	return (at < change->key_count && thinning->change_keys[change->first_key + at] == key) ||
	       names(thinning, change, key);
}

/* The keys of a change are one after the other; those of another one may have come in between. */
static void add_key(struct thinning *thinning, struct thin_change *change, uint32_t key)
{
	bool moves = change->first_key + change->key_count != thinning->change_key_count;
	uint32_t count = thinning->change_key_count + (moves ? change->key_count : 0);

	if (has_key(thinning, change, key) || change->key_count == WIRE_THIN_SET_MOST)
		return;
	if (grow_for(&thinning->change_keys, &thinning->change_keys_allocated, count, sizeof(key)) < 0) {
		thinning->out_of_memory = true;
		return;
	}
	if (moves) {
		memcpy(&thinning->change_keys[thinning->change_key_count], &thinning->change_keys[change->first_key],
		       change->key_count * sizeof(key));
		change->first_key = thinning->change_key_count;
	}
	thinning->change_keys[count] = key;
	thinning->change_key_count = count + 1;
	change->key_count++;
}

void thinning_change(struct thinning *thinning, uint32_t head, const uint64_t *extra)
{
	bool sampled = wire_head_kind(head) == WIRE_THIN_END && wire_thin_why(head) == WIRE_BURST_RANDOM;
	enum thin_state state = wire_head_kind(head) == WIRE_THIN ? THIN_MISSING
				: sampled			  ? THIN_SAMPLED
								  : THIN_RECORDED;
	struct thin_change *change = wire_extra_words(head) && *extra ? thinning_change_at(thinning, *extra) : NULL;

	if (!change)
		return;
	change->cpu_ns = *extra;
	change->head = head;
	if (thinning->at_ns != *extra) {
		memset(thinning->state, THIN_RECORDED, thinning->keys);
		thinning->at_key = 0;
	}
	thinning->at_ns = *extra;
	for (unsigned i = 0; i < WIRE_THIN_MOST; i++) {
		uint32_t key = thinned_key(head, extra, i);

		if (!key || key >= thinning->keys)
			continue;
		thinning->state[key] = (uint8_t)state;
		thinning->thinned[key] = 1;
		thinning->any = true;
		add_key(thinning, change, key);
	}
}

static void note_pair(struct thinning *thinning, uint32_t key, uint32_t caller, bool sampled)
{
	uint64_t number = u64_map_number(&thinning->pair_numbers, (uint64_t)caller << 32 | key, &thinning->pairs,
					 &thinning->pair_count, &thinning->pairs_allocated, sizeof(*thinning->pairs));
	struct thin_pair *pair = number ? &thinning->pairs[number - 1] : NULL;

	thinning->out_of_memory |= !pair;
	if (pair)
		*pair = (struct thin_pair){.key = key, .caller = caller, .sampled = pair->sampled || sampled};
}

bool thinning_count(struct thinning *thinning, uint32_t key, uint32_t caller, const struct thin_values *values)
{
	struct thin_change *change = thinning_last(thinning);
	uint32_t by = !(key & 1) ? key : thinning_samples(thinning, caller) ? caller : caller | 1;
	bool sampled = thinning_samples(thinning, by);
	struct thin_sample *last = thinning->sample_count ? &thinning->samples[thinning->sample_count - 1] : NULL;

	if (change)
		change->events += 2;
	if (key & 1)
		note_pair(thinning, key, caller, sampled);
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

/* Ends of calls that are always recorded, in a burst, and what the stretch before it would have in that time. */
struct compared {
	double ends, expected;
};

struct bursts {
	/* The changes that name each key, in the order of time: those of a key begin at first[key]. */
	size_t *first;
	uint32_t *changes;
	uint32_t *numbers_of; /* by index of a change: 1 + index of the burst of the function at hand */
	/* Of the function at hand. */
	double *ns;		   /* CPU time of each burst */
	double *numbers;	   /* of each burst */
	struct compared *compared; /* of those with enough ends, and a missing stretch before with enough */
	uint32_t count, compared_count;
	double missing_ns, missing_squares; /* the sum of the missing stretches, and of their squares */
	double all_ns, cost_ns;		    /* of the bursts */
	double variance;		    /* of the rate of all events in all bursts of the process, relative */
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

static double event_ns(const struct thin_change *change)
{
	return wire_thin_cost(change->head) / 10.0;
}

static double length_ns(const struct thinning *thinning, uint32_t i)
{
	const struct thin_change *change = &thinning->changes[i];

	return i + 1 < thinning->change_count ? (double)(change[1].cpu_ns - change->cpu_ns) : 0;
}

static void add_burst(const struct thinning *thinning, uint32_t i, struct bursts *bursts)
{
	const struct thin_change *change = &thinning->changes[i], *before = i ? change - 1 : change;
	double ns = length_ns(thinning, i), ends = (double)change->ends;

	if (wire_head_kind(before->head) == WIRE_THIN && before->ends >= ENDS_FEWEST && change->ends >= ENDS_FEWEST)
		bursts->compared[bursts->compared_count++] =
		    (struct compared){ends, (double)before->ends * ns / length_ns(thinning, i - 1)};
	bursts->cost_ns += (double)change->events * event_ns(change);
	bursts->all_ns += ns;
	bursts->ns[bursts->count++] = ns;
}

/* A burst at a random time, of some length. */
static bool is_burst(const struct thinning *thinning, uint32_t i)
{
	uint32_t head = thinning->changes[i].head;

	return wire_head_kind(head) != WIRE_THIN && wire_thin_why(head) == WIRE_BURST_RANDOM &&
	       length_ns(thinning, i) > 0;
}

/* How much the bursts of a program differ: a function with few bursts may have had those of one phase. */
static double variance_of_bursts(const struct thinning *thinning)
{
	double events = 0, all = 0, residuals = 0, n = 0;

	for (uint32_t i = 0; i < thinning->change_count; i++) {
		if (!is_burst(thinning, i))
			continue;
		events += (double)thinning->changes[i].events;
		all += length_ns(thinning, i);
		n++;
	}
	for (uint32_t i = 0; i < thinning->change_count; i++) {
		double off = (double)thinning->changes[i].events - events / all * length_ns(thinning, i);

		residuals += is_burst(thinning, i) ? off * off : 0;
	}
	return n > 1 && events > 0 ? residuals * n * n / (n - 1) / (events * events) : 0;
}

/* Puts the changes of each key in order. Those with a key that was named twice count once. */
static int index_changes(const struct thinning *thinning, struct bursts *bursts)
{
	size_t *next = calloc((size_t)thinning->keys + 1, sizeof(*next));

	bursts->first = calloc((size_t)thinning->keys + 1, sizeof(*bursts->first));
	bursts->changes = malloc(((size_t)thinning->change_key_count + 1) * sizeof(*bursts->changes));
	if (!next || !bursts->first || !bursts->changes) {
		free(next);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < thinning->change_count; i++)
		for (uint32_t k = 0; k < thinning->changes[i].key_count; k++)
			bursts->first[thinning->change_keys[thinning->changes[i].first_key + k] + 1]++;
	for (uint32_t key = 0; key < thinning->keys; key++)
		next[key + 1] = bursts->first[key + 1] += bursts->first[key];
	for (uint32_t i = 0; i < thinning->change_count; i++)
		for (uint32_t k = 0; k < thinning->changes[i].key_count; k++)
			bursts->changes[next[thinning->change_keys[thinning->changes[i].first_key + k]]++] = i;
	free(next);
	return 0;
}

/* The stretches of a thinned function. */
static void find_stretches(const struct thinning *thinning, uint32_t by, struct bursts *bursts)
{
	bursts->count = bursts->compared_count = 0;
	bursts->missing_ns = bursts->missing_squares = bursts->all_ns = bursts->cost_ns = 0;
	for (size_t k = bursts->first[by]; k < bursts->first[by + 1]; k++) {
		uint32_t i = bursts->changes[k];
		double ns = length_ns(thinning, i);

		if (k > bursts->first[by] && bursts->changes[k - 1] == i)
			continue;
		bursts->numbers_of[i] = 0;
		if (ns <= 0)
			continue;
		if (wire_head_kind(thinning->changes[i].head) == WIRE_THIN) {
			bursts->missing_ns += ns;
			bursts->missing_squares += ns * ns;
		} else if (is_burst(thinning, i)) {
			add_burst(thinning, i, bursts);
			bursts->numbers_of[i] = bursts->count;
		}
	}
}

/* Student's t for an interval of 95 %, for so many numbers. */
static double quantile(uint32_t numbers)
{
	static const double small[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
	uint32_t freedom = numbers - 1;

	return freedom <= 10 ? small[freedom - 1] : 1.96 + 2.6 / freedom;
}

/* A number and half of its interval. */
struct scaled {
	double value, width;
};

/* How much slower the program is in a burst: by what its events cost there. */
static struct scaled slowdown_by_cost(const struct bursts *bursts)
{
	double cost = bursts->all_ns > 0 ? bursts->cost_ns / bursts->all_ns : 0;

	cost = cost < WIRE_THIN_COST_MOST ? cost : WIRE_THIN_COST_MOST;
	return (struct scaled){1 / (1 - cost), COST_ERROR * cost / (1 - cost) / (1 - cost)};
}

/*
 * By the ends of calls that are always recorded: those in all bursts, and as many as the stretches before would have in
 * that time. A burst and the stretch before it may be of different phases of the program; then the interval is wide.
 */
static struct scaled slowdown_by_ends(const struct bursts *bursts)
{
	double expected = 0, ends = 0, residuals = 0, n = bursts->compared_count, off;
	struct scaled slower;

	for (uint32_t i = 0; i < bursts->compared_count; i++) {
		expected += bursts->compared[i].expected;
		ends += bursts->compared[i].ends;
	}
	slower.value = expected / ends;
	for (uint32_t i = 0; i < bursts->compared_count; i++) {
		off = bursts->compared[i].expected - slower.value * bursts->compared[i].ends;
		residuals += off * off;
	}
	off = quantile(bursts->compared_count) * sqrt(residuals * n / (n - 1)) / expected + 1.96 / sqrt(ends);
	slower.width = slower.value * off;
	return slower;
}

/* What is known better. No program is faster in a burst: then the ends are of different phases. */
static struct scaled slowdown(const struct bursts *bursts)
{
	struct scaled by_cost = slowdown_by_cost(bursts), by_ends = by_cost;

	if (bursts->compared_count >= 2)
		by_ends = slowdown_by_ends(bursts);
	if (bursts->cost_ns <= 0)
		return by_ends;
	return by_ends.value >= 1 && by_ends.width / by_ends.value < by_cost.width / by_cost.value ? by_ends : by_cost;
}

/*
 * Scales the numbers of the bursts to the missing stretches: a ratio estimate, with the interval of its residuals. A
 * burst that a garbage collection or the like has made longer than all others together tells as much as one burst does.
 */
static struct scaled scale(const struct bursts *bursts, struct scaled slower, double calls)
{
	double sum = 0, all = bursts->all_ns, missing = bursts->missing_ns, residuals = 0, squares = 0, n, least, width;
	struct scaled scaled = {0};

	for (uint32_t i = 0; i < bursts->count; i++) {
		sum += bursts->numbers[i];
		squares += bursts->ns[i] * bursts->ns[i];
	}
	n = all * all / squares;
	n = n < 2 ? 2 : n;
	for (uint32_t i = 0; i < bursts->count; i++) {
		double off = bursts->numbers[i] - sum / all * bursts->ns[i];

		residuals += off * off;
	}
	scaled.value = sum / all * slower.value * missing;
	if (bursts->count < 2)
		return scaled;
	/* Few bursts may agree by chance, and calls that come one by one never do. */
	residuals = residuals * n / (n - 1) + sum * sum / (calls + 1);
	least = bursts->variance * sum * sum / n;
	residuals = residuals < least ? least : residuals;
	/* The rate in each of the missing stretches differs from the mean as those of the bursts do. */
	width = sqrt(residuals * (missing * missing + n * bursts->missing_squares)) / all * slower.value;
	scaled.width = hypot(quantile((uint32_t)n) * width, scaled.value * slower.width / slower.value);
	return scaled;
}

static double value_of(const struct thin_values *values, int which)
{
	return which == 0 ? values->calls : which == 1 ? values->own : values->total;
}

/* The burst of a sample, 1 + its index among those of the function; 0: it is none of them. */
static uint32_t burst_of(const struct thinning *thinning, const struct bursts *bursts, uint64_t burst_ns)
{
	struct thin_change wanted = {.cpu_ns = burst_ns};
	const struct thin_change *found =
	    bsearch(&wanted, thinning->changes, thinning->change_count, sizeof(wanted), by_time);

	return found ? bursts->numbers_of[found - thinning->changes] : 0;
}

static void sum_bursts(struct bursts *bursts, const struct thin_sample *samples, size_t count, int which,
		       const struct thinning *thinning)
{
	memset(bursts->numbers, 0, bursts->count * sizeof(*bursts->numbers));
	for (size_t i = 0; i < count; i++) {
		uint32_t number = burst_of(thinning, bursts, samples[i].burst_ns);

		if (number)
			bursts->numbers[number - 1] += value_of(&samples[i].values, which);
	}
}

/* The samples of one function, by one thinned function. */
static void estimate_one(const struct thinning *thinning, struct bursts *bursts, const struct thin_sample *samples,
			 size_t count, struct thin_estimate *estimate)
{
	struct scaled scaled[3], slower;
	double calls = 0;

	*estimate = (struct thin_estimate){.key = samples->key, .known = bursts->count > 1};
	if (!bursts->count)
		return;
	slower = slowdown(bursts);
	for (size_t i = 0; i < count; i++)
		calls += samples[i].values.calls;
	for (int which = 0; which < 3; which++) {
		sum_bursts(bursts, samples, count, which, thinning);
		scaled[which] = scale(bursts, slower, calls);
	}
	estimate->missing = (struct thin_values){scaled[0].value, scaled[1].value, scaled[2].value};
	estimate->width = (struct thin_values){scaled[0].width, scaled[1].width, scaled[2].width};
}

/* A function whose calls are missing, and in no sample: it may have been called where no burst was. */
static int estimate_unsampled(uint32_t key, int (*take)(void *owner, const struct thin_estimate *estimate), void *owner)
{
	struct thin_estimate estimate = {.key = key};

	return take(owner, &estimate);
}

static int estimate_samples(struct thinning *thinning, struct bursts *bursts, bool *sampled,
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
		find_stretches(thinning, samples->by, bursts);
		estimate_one(thinning, bursts, samples, end - first, &estimate);
		error = take(owner, &estimate);
	}
	return error;
}

static int estimate_others(struct thinning *thinning, const bool *sampled,
			   int (*take)(void *owner, const struct thin_estimate *estimate), void *owner)
{
	int error = 0;

	for (uint32_t key = 0; key < thinning->keys && !error; key += 2)
		if (thinning->thinned[key] && !sampled[key])
			error = estimate_unsampled(key, take, owner);
	for (uint32_t i = 0; i < thinning->pair_count && !error; i++) {
		const struct thin_pair *pair = &thinning->pairs[i];
		uint32_t by = pair->caller;

		if (pair->sampled || pair->caller & 1)
			continue;
		by = thinning_was(thinning, by) ? by : by | 1;
		if (by < thinning->keys && thinning->thinned[by])
			error = estimate_unsampled(pair->key, take, owner);
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
	if (bytes)
		memcpy(*sorted, thinning->changes, bytes);
	qsort(*sorted, thinning->change_count, sizeof(**sorted), by_time);
	return 0;
}

static int find_room(const struct thinning *thinning, struct bursts *bursts)
{
	size_t changes = (size_t)thinning->change_count + 1;

	bursts->ns = calloc(changes, sizeof(*bursts->ns));
	bursts->numbers = calloc(changes, sizeof(*bursts->numbers));
	bursts->compared = calloc(changes, sizeof(*bursts->compared));
	bursts->numbers_of = calloc(changes, sizeof(*bursts->numbers_of));
	return bursts->ns && bursts->numbers && bursts->compared && bursts->numbers_of ? 0 : -ENOMEM;
}

static void free_bursts(struct bursts *bursts)
{
	free(bursts->first);
	free(bursts->changes);
	free(bursts->ns);
	free(bursts->compared);
	free(bursts->numbers);
	free(bursts->numbers_of);
}

int thinning_estimate(struct thinning *thinning, int (*take)(void *owner, const struct thin_estimate *estimate),
		      void *owner)
{
	struct thin_change *unsorted = thinning->changes, *sorted;
	struct bursts bursts = {0};
	bool *sampled = calloc(thinning->keys, sizeof(*sampled));
	int error = thinning->out_of_memory || !sampled ? -ENOMEM : find_room(thinning, &bursts);

	error = error ? error : sorted_changes(thinning, &sorted);
	if (!error) {
		thinning->changes = sorted;
		error = index_changes(thinning, &bursts);
		bursts.variance = variance_of_bursts(thinning);
		if (thinning->samples && !error) {
			qsort(thinning->samples, thinning->sample_count, sizeof(*thinning->samples), by_key);
			error = estimate_samples(thinning, &bursts, sampled, take, owner);
		}
		if (!error)
			error = estimate_others(thinning, sampled, take, owner);
		thinning->changes = unsorted;
		free(sorted);
	}
	free_bursts(&bursts);
	free(sampled);
	return error;
}
