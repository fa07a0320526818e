/* thinning.c - see thinning.h. */
#include "replay/thinning.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

#define COST_ERROR 0.5	 /* half of the interval of what the library has measured, relative: bursts are short */
#define COST_SHARE 0.8	 /* of a burst, at most: a call takes the program some time, too */
#define COST_DENSEST 0.9 /* of the burst with the most events, at most */
#define COST_LEAST 10	 /* times the most, below 0 */
#define ENDS_MANY 10	 /* in the time of a burst */
#define OFF_MOST 3	 /* times what is expected: more is another phase */
#define FIT_STEPS 40
#define NEIGHBOURS 3

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
	free(thinning->inner);
	free(thinning->state);
	free(thinning->thinned);
	free(thinning);
}

static void begin_stretch(struct thinning *thinning)
{
	memset(thinning->state, THIN_RECORDED, thinning->keys);
	thinning->at_key = 0;
	if (thinning->inner)
		memset(thinning->inner, 0, thinning->inner_allocated * sizeof(*thinning->inner));
}

void thinning_begin_thread(struct thinning *thinning)
{
	begin_stretch(thinning);
	thinning->at_ns = 0;
}

void thinning_clear(struct thinning *thinning)
{
	thinning->sample_count = 0;
	for (uint32_t i = 0; thinning->counts == THIN_COUNT_ALL && i < thinning->change_count; i++)
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

void thinning_change(struct thinning *thinning, uint64_t ticks, uint32_t head, const uint64_t *extra)
{
	bool sampled = wire_head_kind(head) == WIRE_THIN_END && wire_thin_why(head) == WIRE_BURST_RANDOM;
	enum thin_state state = wire_head_kind(head) == WIRE_THIN ? THIN_MISSING
				: sampled			  ? THIN_SAMPLED
								  : THIN_RECORDED;
	struct thin_change *change = wire_extra_words(head) && *extra ? thinning_change_at(thinning, *extra) : NULL;

	if (!change)
		return;
	change->ticks = change->cpu_ns && change->ticks < ticks ? change->ticks : ticks;
	change->cpu_ns = *extra;
	change->head = head;
	if (thinning->at_ns != *extra)
		begin_stretch(thinning);
	thinning->at_ns = *extra;
	for (unsigned i = 0; i < WIRE_THIN_MOST; i++) {
		uint32_t key = thinned_key(head, extra, i);

		if (!key || key >= thinning->keys)
			continue;
		thinning->state[key] = (uint8_t)state;
		thinning->thinned[key] = 1;
		thinning->any |= key != THINNED_EXCEPTIONS;
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

/* The calls that have ended in a call that ends now. */
static struct thin_inner take_inner(struct thinning *thinning, uint32_t depth)
{
	struct thin_inner inner = {0};

	if (grow_for(&thinning->inner, &thinning->inner_allocated, depth + 1, sizeof(*thinning->inner)) < 0) {
		thinning->out_of_memory = true;
		return inner;
	}
	inner = thinning->inner[depth + 1];
	thinning->inner[depth + 1] = (struct thin_inner){0};
	thinning->inner[depth].direct++;
	thinning->inner[depth].all += 1 + inner.all;
	return inner;
}

static struct thin_sample *sample_of(struct thinning *thinning, uint32_t key, uint32_t by)
{
	struct thin_sample *last = thinning->sample_count ? &thinning->samples[thinning->sample_count - 1] : NULL;

	if (last && last->key == key && last->by == by && last->burst_ns == thinning->at_ns)
		return last;
	if (grow_by_one(&thinning->samples, &thinning->samples_allocated, thinning->sample_count,
			sizeof(*thinning->samples)) < 0) {
		thinning->out_of_memory = true;
		return NULL;
	}
	last = &thinning->samples[thinning->sample_count++];
	*last = (struct thin_sample){.key = key, .by = by, .burst_ns = thinning->at_ns};
	return last;
}

/*
 * An exception takes the hooks about as long as any other event: of 25 million of async_generators (pyperformance,
 * 3.13, at 5 %) 23 are estimated, and 14 if it counts as no event, 62 as two.
 */
void thinning_count_exception(struct thinning *thinning)
{
	bool sampled = thinning_samples(thinning, THINNED_EXCEPTIONS);
	struct thin_change *change = sampled ? thinning_last(thinning) : NULL;
	struct thin_sample *sample;

	if (!change)
		return;
	if (thinning->counts != THIN_COUNT_SAMPLES)
		change->events++;
	if (thinning->counts == THIN_COUNT_EVENTS)
		return;
	sample = sample_of(thinning, THINNED_EXCEPTIONS, THINNED_EXCEPTIONS);
	if (sample)
		sample->values.calls++;
}

void thinning_count_hidden(struct thinning *thinning, uint32_t depth)
{
	struct thin_inner inner = take_inner(thinning, depth);

	if (!thinning->out_of_memory)
		thinning->inner[depth].direct += inner.direct;
}

/* What was thinned if calls of a function are: itself, or for a C function its caller; 0: that is not known. */
static uint32_t by_of(const struct thinning *thinning, const struct thin_call *call)
{
	if (!(call->key & 1))
		return call->key;
	if (!call->caller || call->caller & 1)
		return 0;
	return thinning_samples(thinning, call->caller) ? call->caller : call->caller | 1;
}

bool thinning_count(struct thinning *thinning, const struct thin_call *call)
{
	struct thin_change *change = thinning->counts == THIN_COUNT_SAMPLES ? NULL : thinning_last(thinning);
	uint32_t key = call->key, by = by_of(thinning, call);
	bool sampled = thinning_samples(thinning, by);
	struct thin_sample *sample;
	struct thin_inner inner;

	if (change) {
		change->events += 2;
		change->ends += !sampled;
	}
	if (thinning->counts == THIN_COUNT_EVENTS)
		return sampled;
	inner = take_inner(thinning, call->depth);
	if (key & 1 && by)
		note_pair(thinning, key, call->caller, sampled);
	if (!sampled)
		return false;
	sample = sample_of(thinning, key, by);
	if (!sample)
		return true;
	sample->values.calls += call->values.calls;
	sample->values.own += call->values.own;
	sample->values.total += call->values.total;
	/* What an event costs falls into the call and into its caller, half each. */
	sample->own_events += 1 + (double)inner.direct;
	sample->total_events += call->values.total > 0 ? 1 + 2 * (double)inner.all : 0;
	return true;
}

/* --- estimates --- */

/* A number and half of its interval. */
struct scaled {
	double value, width;
};

/* A burst, as far as it is known without what an event costs; and a number of the function at hand, with that. */
struct burst {
	double ns;		/* CPU time */
	double events;		/* of all functions */
	double missing_ns;	/* of the program's time in the missing stretches that are next to it */
	double weight;		/* see weigh_bursts() */
	struct thin_sample sum; /* of the function at hand */
	double number;
};

struct bursts {
	double tick_ns; /* 0: times are without what events cost */
	/* What an event costs in a burst, and the interval of that; below 0: see cost_by_ends(). */
	double event_ns, least_ns, most_ns;
	double variance; /* of the rate of all events in all bursts of the process, relative */
	/* The changes that name each key, in the order of time: those of a key begin at first[key]. */
	size_t *first;
	uint32_t *changes;
	uint32_t *numbers_of; /* by index of a change: 1 + index of the burst of the function at hand */
	/* Of the function at hand. */
	struct burst *at;
	uint32_t count;
	double missing_ns, missing_squares; /* of the program's time in the missing stretches, and its squares: sums */
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

/*
 * CPU time of the process in a tick, between the changes whose CPU time is that of their events: from the first one on,
 * or the second one.
 */
static double cpu_in_tick(const struct thinning *thinning, uint32_t first, double tick_ns)
{
	const struct thin_change *from = &thinning->changes[first],
				 *to = &thinning->changes[thinning->change_count - 1];

	return first + 1 < thinning->change_count && to->ticks > from->ticks
		   ? (double)(to->cpu_ns - from->cpu_ns) / (double)(to->ticks - from->ticks)
		   : tick_ns;
}

static bool is_thinned(const struct thin_change *change)
{
	return wire_head_kind(change->head) == WIRE_THIN;
}

static bool is_random(const struct thin_change *change)
{
	return !is_thinned(change) && wire_thin_why(change->head) == WIRE_BURST_RANDOM;
}

/* Of a stretch that a window cuts, so much counts as the window has of its ticks. */
static double share_inside(const struct thin_range *range, uint64_t begin, uint64_t end)
{
	if (!range->window)
		return 1;
	return (double)window_inside(range->window, begin, end > begin ? end : begin + 1) /
	       (double)(end > begin ? end - begin : 1);
}

/*
 * How long each change lasts, in the order of time. A process begins with a WIRE_THIN_END, so what begins otherwise is
 * a part of a trace: its first change was made before. A process that was killed, or still runs, has no last change.
 */
static void find_lengths(struct thinning *thinning, const struct thin_range *range)
{
	struct thin_change *changes = thinning->changes;
	uint32_t count = thinning->change_count;
	bool part = count && (is_thinned(changes) || is_random(changes));
	double rate;

	for (uint32_t i = 1; i < count; i++)
		if (changes[i].ticks < changes[i - 1].ticks)
			changes[i].ticks = changes[i - 1].ticks;
	rate = count ? cpu_in_tick(thinning, part, range->tick_ns) : 0;
	for (uint32_t i = 0; i < count; i++) {
		bool last = i + 1 == count;
		uint64_t begin = changes[i].ticks, end = last ? range->end_ticks : changes[i + 1].ticks;
		double by_ticks = end > begin ? rate * (double)(end - begin) : 0;
		double ns = last ? 0 : (double)(changes[i + 1].cpu_ns - changes[i].cpu_ns);

		if (last ? is_thinned(&changes[i]) : !i && part && by_ticks < ns)
			ns = by_ticks;
		changes[i].ns = ns * share_inside(range, begin, end);
	}
}

/* A burst at a random time, of some length. */
static bool is_burst(const struct thinning *thinning, uint32_t i)
{
	return is_random(&thinning->changes[i]) && thinning->changes[i].ns > 0;
}

/* How much longer a burst would be if all of it were as its events leave the program. */
static double slowdown(double ns, double events, double event_ns)
{
	double cost = events * event_ns;

	return ns / (ns - (cost < COST_SHARE * ns ? cost : COST_SHARE * ns));
}

static double slowdown_of(const struct thinning *thinning, uint32_t i, double event_ns)
{
	return slowdown(thinning->changes[i].ns, (double)thinning->changes[i].events, event_ns);
}

/* The events that a burst would have if it were no slower than the program. */
static double events_of(const struct thinning *thinning, uint32_t i, double event_ns)
{
	return (double)thinning->changes[i].events * slowdown_of(thinning, i, event_ns);
}

/* How much the bursts of a program differ: a function with few bursts may have had those of one phase. */
static double variance_of_bursts(const struct thinning *thinning, double event_ns)
{
	double events = 0, all = 0, residuals = 0, n = 0, off;

	for (uint32_t i = 0; i < thinning->change_count; i++) {
		if (!is_burst(thinning, i))
			continue;
		events += events_of(thinning, i, event_ns);
		all += thinning->changes[i].ns;
		n++;
	}
	for (uint32_t i = 0; i < thinning->change_count; i++) {
		if (!is_burst(thinning, i))
			continue;
		off = events_of(thinning, i, event_ns) - events / all * thinning->changes[i].ns;
		residuals += off * off;
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

/*
 * Bursts of many events cost more, so they come less often where the program has such: a burst weighs as much as is
 * missing around it. Of NEIGHBOURS bursts on each side, as the times between bursts are random.
 */
static void weigh_bursts(struct bursts *bursts)
{
	for (uint32_t i = 0; i < bursts->count; i++) {
		uint32_t first = i > NEIGHBOURS ? i - NEIGHBOURS : 0, last = i + NEIGHBOURS;
		double missing_ns = 0;

		last = last < bursts->count ? last : bursts->count - 1;
		for (uint32_t k = first; k <= last; k++)
			missing_ns += bursts->at[k].missing_ns;
		bursts->at[i].weight =
		    bursts->missing_ns > 0 ? missing_ns / (last - first + 1) * bursts->count / bursts->missing_ns : 1;
	}
}

/* What was missing since the last one is next to both. */
static void add_burst(struct bursts *bursts, double ns, double events, double since_ns)
{
	double half_ns = bursts->count ? since_ns / 2 : since_ns;

	if (bursts->count)
		bursts->at[bursts->count - 1].missing_ns += half_ns;
	bursts->at[bursts->count++] = (struct burst){.ns = ns, .events = events, .missing_ns = half_ns};
}

/* The stretches of a thinned function. */
static void find_stretches(const struct thinning *thinning, uint32_t by, struct bursts *bursts)
{
	double since_ns = 0;

	bursts->count = 0;
	bursts->missing_ns = bursts->missing_squares = 0;
	for (size_t k = bursts->first[by]; k < bursts->first[by + 1]; k++) {
		uint32_t i = bursts->changes[k];
		double ns = thinning->changes[i].ns;

		if (k > bursts->first[by] && bursts->changes[k - 1] == i)
			continue;
		bursts->numbers_of[i] = 0;
		if (ns <= 0)
			continue;
		if (wire_head_kind(thinning->changes[i].head) == WIRE_THIN) {
			ns /= slowdown_of(thinning, i, bursts->event_ns);
			bursts->missing_ns += ns;
			bursts->missing_squares += ns * ns;
			since_ns += ns;
		} else if (is_burst(thinning, i)) {
			add_burst(bursts, ns, (double)thinning->changes[i].events, since_ns);
			bursts->numbers_of[i] = bursts->count;
			since_ns = 0;
		}
	}
	if (bursts->count)
		bursts->at[bursts->count - 1].missing_ns += since_ns;
	weigh_bursts(bursts);
}

/*
 * How many bursts of one length tell as much as some do, from the sums of their lengths and of the squares: one that a
 * garbage collection or the like has made longer than all others together tells as much as one. At least two.
 */
static double weight_of(double ns, double squares)
{
	return ns * ns > 2 * squares ? ns * ns / squares : 2;
}

/* Student's t for an interval of 95 %, for so many numbers. */
static double quantile(uint32_t numbers)
{
	static const double small[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
	uint32_t freedom = numbers - 1;

	return freedom <= 10 ? small[freedom - 1] : 1.96 + 2.6 / freedom;
}

/* --- what an event costs --- */

/*
 * A burst with the stretches before and after it: the ends of calls that are always recorded. As many come in the
 * program's time in all, but for the phases of the program and for chance.
 */
struct compared {
	double ends, expected, noise; /* expected: as the stretches have in that time; noise: its variance */
	double ns, events;	      /* of the burst */
};

/* The stretch before a burst. Between the two may be the time until the burst is a sample. */
static uint32_t stretch_before(const struct thinning *thinning, uint32_t i)
{
	bool warms = i > 1 && wire_head_kind(thinning->changes[i - 1].head) != WIRE_THIN;

	return i - 1 - warms;
}

/* Expects what a stretch has. False: it is none. */
static bool expect_as(const struct thinning *thinning, uint32_t stretch, double event_ns, struct compared *compared)
{
	const struct thin_change *change = &thinning->changes[stretch];
	double scale, ns = stretch < thinning->change_count ? thinning->changes[stretch].ns : 0;

	if (ns <= 0 || wire_head_kind(change->head) != WIRE_THIN)
		return false;
	scale = compared->ns / ns * slowdown_of(thinning, stretch, event_ns);
	compared->expected += (double)change->ends * scale;
	compared->noise += (double)change->ends * scale * scale;
	return true;
}

/* event_ns: for the stretches. False: there are none, or no call has ended in them. */
static bool compare(const struct thinning *thinning, uint32_t i, double event_ns, struct compared *compared)
{
	const struct thin_change *change = &thinning->changes[i];
	double stretches = 0;

	if (!i || !is_burst(thinning, i))
		return false;
	*compared = (struct compared){
	    .ends = (double)change->ends, .ns = thinning->changes[i].ns, .events = (double)change->events};
	stretches += expect_as(thinning, stretch_before(thinning, i), event_ns, compared);
	stretches += expect_as(thinning, i + 1, event_ns, compared);
	if (stretches <= 0)
		return false;
	compared->expected /= stretches;
	compared->noise /= stretches * stretches;
	return compared->expected > 0;
}

/* With this cost: the ends that the bursts have too many, with their variance and their derivative by the cost. */
struct fit {
	double off, variance, slope;
	double ns, squares; /* of the bursts, and their squares */
};

/*
 * Bursts count alike whose stretches have many ends: a program's start may have thousands in a ms, and then a dozen.
 * The weight does not depend on the ends of the burst, which may come all at once or not at all.
 */
static struct fit fit_with(const struct thinning *thinning, double event_ns)
{
	struct compared compared;
	struct fit fit = {0};

	for (uint32_t i = 0; i < thinning->change_count; i++) {
		double slower, weight, off;

		if (!compare(thinning, i, event_ns, &compared))
			continue;
		slower = slowdown(compared.ns, compared.events, event_ns);
		weight = 1 / (compared.expected + ENDS_MANY);
		off = weight * (compared.ends * slower - compared.expected);
		fit.ns += compared.ns;
		fit.squares += compared.ns * compared.ns;
		fit.off += off < OFF_MOST ? off : OFF_MOST;
		fit.variance += off < OFF_MOST ? off * off : OFF_MOST * OFF_MOST;
		if (off >= OFF_MOST)
			continue;
		fit.variance += weight * weight * (compared.ends * slower * slower + compared.noise);
		fit.slope += weight * compared.ends * slower * slower * compared.events / compared.ns;
	}
	return fit;
}

/*
 * By the calls that are always recorded. Width 0: they do not say. Below 0: the stretches have pauses, and the bursts
 * none.
 */
static struct scaled cost_by_ends(const struct thinning *thinning, double most_ns)
{
	double low = -COST_LEAST * most_ns, high = most_ns, middle = 0;
	struct fit fit = {0};

	for (int i = 0; i < FIT_STEPS; i++) {
		middle = (low + high) / 2;
		fit = fit_with(thinning, middle);
		if (fit.off < 0)
			low = middle;
		else
			high = middle;
	}
	if (fit.slope <= 0)
		return (struct scaled){0};
	return (struct scaled){middle,
			       quantile((uint32_t)weight_of(fit.ns, fit.squares)) * sqrt(fit.variance) / fit.slope};
}

/* The cost with which events take the most of the burst that has the most of them. */
static double most_cost(const struct thinning *thinning)
{
	double most = 0;

	for (uint32_t i = 0; i < thinning->change_count; i++) {
		double one = is_burst(thinning, i) ? (double)thinning->changes[i].events / thinning->changes[i].ns : 0;

		most = one > most ? one : most;
	}
	return most > 0 ? COST_DENSEST / most : 0;
}

/* From both, each as far as it is known. */
static void find_cost(const struct thinning *thinning, struct bursts *bursts)
{
	double sum = 0, n = 0, most_ns = most_cost(thinning), by_measure, by_ends;
	struct scaled measured, fitted, cost;

	for (uint32_t i = 0; i < thinning->change_count; i++) {
		if (!is_burst(thinning, i))
			continue;
		sum += event_ns(&thinning->changes[i]);
		n++;
	}
	if (n <= 0)
		return;
	measured = (struct scaled){sum / n, COST_ERROR * sum / n};
	fitted = cost_by_ends(thinning, most_ns);
	cost = measured.width > 0 || fitted.width <= 0 ? measured : fitted;
	/* No program is faster in a burst: then the ends are of different phases. */
	if (fitted.width > 0 && fitted.value >= 0 && measured.width > 0) {
		by_measure = 1 / (measured.width * measured.width);
		by_ends = 1 / (fitted.width * fitted.width);
		cost.value = (by_measure * measured.value + by_ends * fitted.value) / (by_measure + by_ends);
		cost.width = 1 / sqrt(by_measure + by_ends);
	}
	bursts->event_ns = cost.value < most_ns ? cost.value : most_ns;
	bursts->least_ns = bursts->event_ns - cost.width;
	bursts->most_ns = cost.value + cost.width < most_ns ? cost.value + cost.width : most_ns;
}

/* --- one function --- */

/*
 * By how much the interval of a function that few of n bursts show is wider than that of one in all. `shown`: how many
 * such bursts tell as much. They came by chance, so their number has the interval of a Poisson distribution, whose
 * upper end is (sqrt(shown + 1) + 0.98)^2, and not shown + 1.96 sqrt(shown).
 */
static double rarity(double shown, double n)
{
	double upper;

	shown = shown > 1 ? shown : 1; /* times without the cost of events may be below 0 */
	upper = (sqrt(shown + 1) + 0.98) * (sqrt(shown + 1) + 0.98);
	return 1 + ((upper - shown) / (1.96 * sqrt(shown)) - 1) * (shown < n ? 1 - shown / n : 0);
}

/* Scales the numbers of the bursts to the missing stretches: a ratio estimate, with the interval of its residuals. */
static struct scaled scale(const struct bursts *bursts, double calls)
{
	double sum = 0, all = 0, missing = bursts->missing_ns, residuals = 0, squares = 0, numbers = 0, number, ns, n,
	       least;
	struct scaled scaled = {0};

	for (uint32_t i = 0; i < bursts->count; i++) {
		number = bursts->at[i].weight * bursts->at[i].number;
		ns = bursts->at[i].weight * bursts->at[i].ns;
		sum += number;
		all += ns;
		squares += ns * ns;
		numbers += number * number;
	}
	n = weight_of(all, squares);
	for (uint32_t i = 0; i < bursts->count; i++) {
		double off = bursts->at[i].weight * (bursts->at[i].number - sum / all * bursts->at[i].ns);

		residuals += off * off;
	}
	scaled.value = sum / all * missing;
	if (bursts->count < 2)
		return scaled;
	/* Few bursts may agree by chance, and calls that come one by one never do. */
	residuals = residuals * n / (n - 1) + sum * sum / (calls + 1);
	least = bursts->variance * sum * sum / n;
	residuals = residuals < least ? least : residuals;
	/* The rate in each of the missing stretches differs from the mean as those of the bursts do. */
	scaled.width =
	    quantile((uint32_t)n) * sqrt(residuals * (missing * missing + n * bursts->missing_squares)) / all;
	if (numbers > 0)
		scaled.width *= rarity(sum * sum / numbers, n);
	return scaled;
}

/* Without what its events cost. */
static double value_of(const struct thin_sample *sample, int which, double event_ticks)
{
	if (which == 0)
		return sample->values.calls;
	return which == 1 ? sample->values.own - event_ticks * sample->own_events
			  : sample->values.total - event_ticks * sample->total_events;
}

/* The burst of a sample, 1 + its index among those of the function; 0: it is none of them. */
static uint32_t burst_of(const struct thinning *thinning, const struct bursts *bursts, uint64_t burst_ns)
{
	struct thin_change wanted = {.cpu_ns = burst_ns};
	const struct thin_change *found =
	    bsearch(&wanted, thinning->changes, thinning->change_count, sizeof(wanted), by_time);

	return found ? bursts->numbers_of[found - thinning->changes] : 0;
}

/* Adds the samples of one function to their bursts. Returns how many calls they have. */
static double add_samples(const struct thinning *thinning, struct bursts *bursts, const struct thin_sample *samples,
			  size_t count)
{
	double calls = 0;

	for (size_t i = 0; i < count; i++) {
		const struct thin_sample *sample = &samples[i];
		uint32_t number = burst_of(thinning, bursts, sample->burst_ns);
		struct thin_sample *sum = number ? &bursts->at[number - 1].sum : NULL;

		calls += sample->values.calls;
		if (!sum)
			continue;
		sum->values.calls += sample->values.calls;
		sum->values.own += sample->values.own;
		sum->values.total += sample->values.total;
		sum->own_events += sample->own_events;
		sum->total_events += sample->total_events;
	}
	return calls;
}

/* A number of the missing stretches, if an event costs so much. */
static struct scaled estimate_number(struct bursts *bursts, double calls, int which, double event_ns)
{
	double event_ticks = event_ns > 0 && bursts->tick_ns > 0 ? event_ns / bursts->tick_ns : 0;
	struct scaled scaled;

	for (uint32_t i = 0; i < bursts->count; i++) {
		struct burst *burst = &bursts->at[i];

		burst->number =
		    value_of(&burst->sum, which, event_ticks) * slowdown(burst->ns, burst->events, event_ns);
	}
	scaled = scale(bursts, calls);
	scaled.value = scaled.value > 0 ? scaled.value : 0;
	return scaled;
}

static struct scaled estimate_with_cost(struct bursts *bursts, double calls, int which)
{
	struct scaled scaled = estimate_number(bursts, calls, which, bursts->event_ns);
	double less, more;

	if (bursts->count > 1) {
		less = scaled.value - estimate_number(bursts, calls, which, bursts->least_ns).value;
		more = estimate_number(bursts, calls, which, bursts->most_ns).value - scaled.value;
		scaled.width = hypot(scaled.width, fabs(less) > fabs(more) ? less : more);
	}
	return scaled;
}

/* samples: of one function, by one thinned function. */
static void estimate_one(const struct thinning *thinning, struct bursts *bursts, const struct thin_sample *samples,
			 size_t count, struct thin_estimate *estimate)
{
	struct scaled scaled[3];
	double calls;

	*estimate = (struct thin_estimate){.key = samples->key, .known = bursts->count > 1};
	if (!bursts->count)
		return;
	calls = add_samples(thinning, bursts, samples, count);
	for (int which = 0; which < 3; which++)
		scaled[which] = estimate_with_cost(bursts, calls, which);
	estimate->missing = (struct thin_values){scaled[0].value, scaled[1].value, scaled[2].value};
	estimate->width = (struct thin_values){scaled[0].width, scaled[1].width, scaled[2].width};
	/* The total holds more of what events cost, so without that it might be below the own time. */
	estimate->missing.total = fmax(estimate->missing.total, estimate->missing.own);
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
	if (thinning_was_exceptions(thinning) && !sampled[THINNED_EXCEPTIONS] && !error)
		error = estimate_unsampled(THINNED_EXCEPTIONS, take, owner);
	for (uint32_t i = 0; i < thinning->pair_count && !error; i++) {
		const struct thin_pair *pair = &thinning->pairs[i];
		uint32_t by = pair->caller;

		if (pair->sampled)
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

	bursts->at = calloc(changes, sizeof(*bursts->at));
	bursts->numbers_of = calloc(changes, sizeof(*bursts->numbers_of));
	return bursts->at && bursts->numbers_of ? 0 : -ENOMEM;
}

static void free_bursts(struct bursts *bursts)
{
	free(bursts->first);
	free(bursts->changes);
	free(bursts->at);
	free(bursts->numbers_of);
}

int thinning_estimate(struct thinning *thinning, const struct thin_range *range,
		      int (*take)(void *owner, const struct thin_estimate *estimate), void *owner)
{
	struct thin_change *unsorted = thinning->changes, *sorted;
	struct bursts bursts = {.tick_ns = range->calibrated ? 0 : range->tick_ns};
	bool *sampled = calloc(thinning->keys, sizeof(*sampled));
	int error = thinning->out_of_memory || !sampled ? -ENOMEM : find_room(thinning, &bursts);

	error = error ? error : sorted_changes(thinning, &sorted);
	if (!error) {
		thinning->changes = sorted;
		find_lengths(thinning, range);
		error = index_changes(thinning, &bursts);
		find_cost(thinning, &bursts);
		bursts.variance = variance_of_bursts(thinning, bursts.event_ns);
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
