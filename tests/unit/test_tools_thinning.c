/* test_tools_thinning.c - estimates of thinned functions, against a simulated program whose calls are known. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "tools/replay/thinning.h"

#define KEYS 16
#define TINY 2 /* key: code id 1 */
#define LONG 4
#define TICK_NS 0.5

static const struct thin_range whole = {.tick_ns = TICK_NS};

/* A seeded generator: the test is the same in each run. */
static uint64_t state;

static double draw(void)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(state >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

/* What the program and its recording are like. */
struct shape {
	double event_ns; /* what an event costs */
	double cost_ns;	 /* the same, as the trace has it; 0: not known */
	bool phases;	 /* the function that is always recorded is called at any rate */
	bool start;	 /* in the first stretch it is called ten times as often */
	bool clumps;	 /* it is called 30 times at once */
	double pause;	 /* this share of the bursts have a pause of 20 ms, as long as 100 other bursts */
};
static struct shape shape;

/* The process uses one processor all the time. */
static void put_change(struct thinning *thinning, uint32_t head, const uint64_t *extra)
{
	thinning_change(thinning, (uint64_t)((double)extra[0] / TICK_NS), head, extra);
}

static void change(struct thinning *thinning, unsigned kind, unsigned why, double cpu_ns)
{
	const uint64_t extra[2] = {(uint64_t)cpu_ns, TINY / 2};

	put_change(thinning, wire_extended(kind, 2, wire_thin_value(why, (uint32_t)(shape.cost_ns * 10))), extra);
}

/* Calls of a function in a stretch: one after the other, at a rate that is not the same in each stretch. */
static unsigned calls_in(double ns, double mean_ns)
{
	return (unsigned)(ns / mean_ns * (0.9 + 0.2 * draw()));
}

#define OWN_NS 400 /* of a call */

/* Called by LONG. events_ns: what its events add to each call. */
static bool count_one(struct thinning *thinning, uint32_t key, uint32_t caller, double events_ns)
{
	const double ticks = (OWN_NS + events_ns) / TICK_NS;
	const struct thin_call call = {
	    .key = key, .caller = caller, .depth = 1, .values = {.calls = 1, .own = ticks, .total = ticks}};

	return thinning_count(thinning, &call);
}

static void count(struct thinning *thinning, uint32_t key, unsigned calls, double events_ns)
{
	for (unsigned i = 0; i < calls; i++)
		count_one(thinning, key, LONG, events_ns);
}

struct result {
	struct thin_estimate tiny;
	unsigned others;
};

static int take(void *owner, const struct thin_estimate *estimate)
{
	struct result *result = owner;

	if (estimate->key == TINY)
		result->tiny = *estimate;
	else
		result->others++;
	return 0;
}

#define BURST_NS 2e5
#define PAUSE_NS 2e7
#define CLUMP 30

/* Calls of the function that is always recorded. */
static unsigned others_in(double ns)
{
	if (shape.clumps)
		return CLUMP * (unsigned)(ns / (CLUMP * 2000.0) + draw());
	return calls_in(ns, shape.phases ? 500 + 50000 * draw() * draw() * draw() : 2000);
}

/*
 * Stretches without the events of a function, each followed by a burst with them. Returns the calls that were not
 * recorded.
 */
static double simulate(struct thinning *thinning, unsigned bursts)
{
	/* The program's part of a burst. */
	const double burst = BURST_NS / (1 + shape.event_ns * 2 * (1 / 500.0 + 1 / 2000.0));
	double now = 1e6, missing = 0, gap;
	unsigned others, tiny;

	for (unsigned i = 0; i < bursts; i++) {
		gap = -1e6 * log(draw());
		others = i || !shape.start ? others_in(gap) : 10 * others_in(gap);
		change(thinning, WIRE_THIN, 0, now);
		count(thinning, LONG, others, shape.event_ns);
		missing += calls_in(gap, 500);
		/* In a stretch there are as many pauses for its length as in the bursts. */
		now += gap + shape.pause * PAUSE_NS * gap / BURST_NS + 2 * others * shape.event_ns;
		/* The program is slower before it is a sample. */
		others = others_in(burst / 4);
		tiny = calls_in(burst / 4, 500);
		change(thinning, WIRE_THIN_END, WIRE_BURST_OTHER, now);
		count(thinning, LONG, others, shape.event_ns);
		count(thinning, TINY, tiny, shape.event_ns);
		now += burst / 2 + 4 * (others + tiny) * shape.event_ns;
		others = others_in(burst);
		tiny = calls_in(burst, 500);
		change(thinning, WIRE_THIN_END, WIRE_BURST_RANDOM, now);
		count(thinning, LONG, others, shape.event_ns);
		count(thinning, TINY, tiny, shape.event_ns);
		now += burst + (draw() < shape.pause ? PAUSE_NS : 0) + 2 * (others + tiny) * shape.event_ns;
	}
	change(thinning, WIRE_THIN_END, WIRE_BURST_OTHER, now);
	return missing;
}

static struct result estimate(struct shape as, unsigned bursts, double *missing)
{
	shape = as;
	struct thinning *thinning = thinning_new(KEYS);
	struct result result = {0};

	thinning_begin_thread(thinning);
	*missing = simulate(thinning, bursts);
	cr_assert_eq(thinning_estimate(thinning, &whole, take, &result), 0);
	thinning_free(thinning);
	return result;
}

/* fewest: bursts of a trial. */
static void hold(struct shape as, unsigned fewest, unsigned least_inside, double most_off)
{
	unsigned inside = 0, own_inside = 0, trials = 400;
	double missing, off = 0, own_off = 0, own;

	state = 7;
	for (unsigned i = 0; i < trials; i++) {
		struct result result = estimate(as, fewest + i % 20, &missing);

		cr_assert(result.tiny.known);
		cr_assert_eq(result.others, 0);
		inside += fabs(result.tiny.missing.calls - missing) <= result.tiny.width.calls;
		off += (result.tiny.missing.calls - missing) / missing;
		/* What the events of bursts add is no part of the times. */
		own = missing * OWN_NS / TICK_NS;
		own_inside += fabs(result.tiny.missing.own - own) <= result.tiny.width.own;
		own_off += (result.tiny.missing.own - own) / own;
		cr_assert_float_eq(result.tiny.missing.total, result.tiny.missing.own, 1e-3 * own);
	}
	cr_assert_geq(inside, trials * least_inside / 100, "%u of %u", inside, trials);
	cr_assert_lt(fabs(off / trials), most_off, "off by %f", off / trials);
	cr_assert_geq(own_inside, trials * least_inside / 100, "own: %u of %u", own_inside, trials);
	cr_assert_lt(fabs(own_off / trials), most_off, "own: off by %f", own_off / trials);
}

Test(thinning, the_interval_has_the_number)
{
	hold((struct shape){0}, 3, 94, 0.15);
}

/* The calls that are always recorded show how much slower the program is in a burst. */
Test(thinning, a_burst_is_slower)
{
	hold((struct shape){.event_ns = 300}, 3, 94, 0.15);
}

/* They do not if they come at another rate in each stretch. Then what an event costs does: half of a burst's time. */
Test(thinning, what_is_always_recorded_may_come_at_any_rate)
{
	hold((struct shape){.event_ns = 200, .cost_ns = 200, .phases = true}, 6, 94, 0.25);
}

/* Nor do they where a program begins with many of them. */
Test(thinning, what_is_always_recorded_may_come_at_the_start)
{
	hold((struct shape){.event_ns = 300, .cost_ns = 500, .start = true}, 12, 94, 0.1);
}

/* Some bursts have many at once, and some have none. */
Test(thinning, what_is_always_recorded_may_come_in_clumps)
{
	hold((struct shape){.event_ns = 300, .cost_ns = 300, .clumps = true}, 20, 94, 0.1);
}

/* A garbage collection that falls into a burst counts as one burst, however long. */
Test(thinning, a_burst_may_have_a_pause)
{
	hold((struct shape){.pause = 0.05}, 12, 80, 1);
}

/* Bursts of equal length, of which some have three calls of the function that is thinned. */
static struct thin_estimate estimate_shown(unsigned bursts, unsigned shown)
{
	struct thinning *thinning = thinning_new(KEYS);
	struct result result = {0};
	double now = 1e6;

	shape = (struct shape){0};
	thinning_begin_thread(thinning);
	for (unsigned i = 0; i < bursts; i++, now += 1e6) {
		change(thinning, WIRE_THIN, 0, now);
		count(thinning, LONG, 500, 0);
		change(thinning, WIRE_THIN_END, WIRE_BURST_RANDOM, now + 8e5);
		count(thinning, LONG, 125, 0);
		count(thinning, TINY, i >= (bursts - shown) / 2 && i < (bursts + shown) / 2 ? 3 : 0, 0);
	}
	change(thinning, WIRE_THIN_END, WIRE_BURST_OTHER, now);
	cr_assert_eq(thinning_estimate(thinning, &whole, take, &result), 0);
	thinning_free(thinning);
	return result.tiny;
}

/* Where two of the bursts show a function, seven might have: the 97.5 % of a Poisson distribution. */
Test(thinning, the_interval_of_a_rare_function_is_wide)
{
	struct thin_estimate rare = estimate_shown(30, 2), often = estimate_shown(30, 30);

	cr_assert_geq(rare.missing.calls + rare.width.calls, 7.22 / 2 * rare.missing.calls);
	cr_assert_lt(often.width.calls, 0.4 * often.missing.calls);
	cr_assert_float_eq(often.missing.calls, 15 * rare.missing.calls, 0.05 * often.missing.calls);
}

/* Bursts cost more where the program calls the function, and come less often there. */
Test(thinning, a_phase_has_the_weight_of_its_time)
{
	const unsigned stretches[] = {10, 40}, stretch_ms[] = {100, 25}, calls[] = {160, 0};
	struct thinning *thinning = thinning_new(KEYS);
	struct result result = {0};
	double now = 1e6, missing = 10 * 100 * 160 / 0.8;

	shape = (struct shape){0};
	thinning_begin_thread(thinning);
	for (int phase = 0; phase < 2; phase++)
		for (unsigned i = 0; i < stretches[phase]; i++, now += 8e5) {
			change(thinning, WIRE_THIN, 0, now);
			now += stretch_ms[phase] * 1e6;
			change(thinning, WIRE_THIN_END, WIRE_BURST_RANDOM, now);
			count(thinning, TINY, calls[phase], 0);
		}
	change(thinning, WIRE_THIN_END, WIRE_BURST_OTHER, now);
	cr_assert_eq(thinning_estimate(thinning, &whole, take, &result), 0);
	thinning_free(thinning);
	cr_expect_float_eq(result.tiny.missing.calls, missing, 0.15 * missing, "%f", result.tiny.missing.calls);
	cr_expect_lt(fabs(result.tiny.missing.calls - missing), result.tiny.width.calls);
}

/* A call holds what the events of twenty others cost; its own part holds half of that. */
Test(thinning, the_total_holds_the_own_time)
{
	const struct thin_call inner = {.key = LONG, .caller = TINY, .depth = 2, .values = {.calls = 1}},
			       tiny = {.key = TINY, .caller = LONG, .depth = 1, .values = {1, 5000, 5200}};
	struct thinning *thinning = thinning_new(KEYS);
	struct result result = {0};

	shape = (struct shape){.cost_ns = 50};
	thinning_begin_thread(thinning);
	for (unsigned i = 0; i < 10; i++) {
		change(thinning, WIRE_THIN, 0, 1e6 + i * 1e6);
		change(thinning, WIRE_THIN_END, WIRE_BURST_RANDOM, 1.8e6 + i * 1e6);
		for (int k = 0; k < 20; k++)
			thinning_count(thinning, &inner);
		thinning_count(thinning, &tiny);
	}
	change(thinning, WIRE_THIN_END, WIRE_BURST_OTHER, 11e6);
	cr_assert_eq(thinning_estimate(thinning, &whole, take, &result), 0);
	thinning_free(thinning);
	cr_assert_gt(result.tiny.missing.own, 0);
	cr_assert_geq(result.tiny.missing.total, result.tiny.missing.own);
}

Test(thinning, one_burst_gives_no_interval)
{
	double missing;

	state = 7;
	cr_assert(!estimate((struct shape){0}, 1, &missing).tiny.known);
}

Test(thinning, what_is_recorded_again_for_another_reason_is_no_sample)
{
	struct thinning *thinning = thinning_new(KEYS);
	struct result result = {0};

	change(thinning, WIRE_THIN, 0, 1e6);
	cr_assert(thinning_was(thinning, TINY) && !thinning_was(thinning, LONG));
	change(thinning, WIRE_THIN_END, WIRE_BURST_OTHER, 2e6);
	cr_assert(!thinning_samples(thinning, TINY));
	count(thinning, TINY, 100, 0);
	cr_assert_eq(thinning->sample_count, 0);
	cr_assert_eq(thinning_estimate(thinning, &whole, take, &result), 0);
	cr_assert(!result.tiny.known && result.tiny.missing.calls == 0);
	thinning_free(thinning);
}

/* A C function is in the sample where a thinned function calls it, and only there. */
Test(thinning, c_functions_count_with_their_callers)
{
	struct thinning *thinning = thinning_new(KEYS);

	change(thinning, WIRE_THIN_END, WIRE_BURST_RANDOM, 1e6);
	cr_assert(count_one(thinning, 7, TINY, 0));
	cr_assert(!count_one(thinning, 7, LONG, 0));
	cr_assert(!count_one(thinning, LONG, TINY, 0));
	cr_assert_eq(thinning->samples[0].by, TINY);
	thinning_free(thinning);
}

static int take_unknown(void *owner, const struct thin_estimate *estimate)
{
	*(unsigned *)owner += estimate->key == 7 && !estimate->known && estimate->missing.calls == 0;
	return 0;
}

/* It was seen below a thinned function, but in no burst: it may be called there all the time. */
Test(thinning, c_functions_that_no_burst_shows_are_not_known)
{
	struct thinning *thinning = thinning_new(KEYS);
	unsigned unknown = 0;

	thinning_begin_thread(thinning);
	count_one(thinning, 7, TINY, 0);
	for (unsigned i = 0; i < 3; i++) {
		change(thinning, WIRE_THIN, 0, 1e6 + 2e6 * i);
		change(thinning, WIRE_THIN_END, WIRE_BURST_RANDOM, 2e6 + 2e6 * i);
		count(thinning, TINY, 10, 0);
	}
	change(thinning, WIRE_THIN, 0, 8e6);
	cr_assert_eq(thinning_estimate(thinning, &whole, take_unknown, &unknown), 0);
	cr_assert_eq(unknown, 1);
	thinning_free(thinning);
}

/* Of such a function nothing but the calls of C functions is missing. */
Test(thinning, c_functions_alone_may_be_missing)
{
	struct thinning *thinning = thinning_new(KEYS);
	const uint64_t extra[2] = {1000000, TINY / 2 | WIRE_THIN_C_CALLS};

	put_change(thinning, wire_extended(WIRE_THIN_END, 2, wire_thin_value(WIRE_BURST_RANDOM, 0)), extra);
	cr_assert(!thinning_was(thinning, TINY));
	cr_assert(count_one(thinning, 7, TINY, 0));
	cr_assert(!count_one(thinning, 7, LONG, 0));
	cr_assert(!count_one(thinning, TINY, LONG, 0));
	cr_assert_eq(thinning->sample_count, 1);
	cr_assert_eq(thinning->samples[0].by, TINY + 1);
	thinning_free(thinning);
}

static int take_exceptions(void *owner, const struct thin_estimate *estimate)
{
	cr_assert_eq(estimate->key, THINNED_EXCEPTIONS);
	*(struct thin_estimate *)owner = *estimate;
	return 0;
}

/* 20 stretches of 1 ms without exceptions, which are raised each 0.1 ms; no function is missing. */
Test(thinning, exceptions_are_estimated)
{
	struct thinning *thinning = thinning_new(KEYS);
	struct thin_estimate exceptions = {0};

	for (uint64_t ms = 1; ms <= 41; ms++) {
		const uint64_t extra[2] = {ms * 1000000, WIRE_THIN_EXCEPTIONS};
		uint32_t kind = ms % 2 ? WIRE_THIN : WIRE_THIN_END;

		put_change(thinning, wire_extended(kind, 2, wire_thin_value(WIRE_BURST_RANDOM, 0)), extra);
		for (int i = 0; i < 10 && kind == WIRE_THIN_END; i++)
			thinning_count_exception(thinning);
	}
	cr_assert(thinning_was_exceptions(thinning) && !thinning_was(thinning, 7));
	cr_assert_eq(thinning_estimate(thinning, &whole, take_exceptions, &exceptions), 0);
	cr_assert(exceptions.known && fabs(exceptions.missing.calls - 200) < 1, "%f", exceptions.missing.calls);
	cr_assert(exceptions.width.calls > 0 && exceptions.width.calls < 100, "%f", exceptions.width.calls);
	thinning_free(thinning);
}

#define MS 1000000
#define CALLS 10 /* in each ms, of a function that is thinned in the odd ones */

/* From a ms on, until another one. The first change may say that it was made earlier. */
static struct thin_estimate estimate_in(struct thin_range range, uint64_t from, uint64_t first_ns, uint64_t to)
{
	struct thinning *thinning = thinning_new(KEYS);
	struct result result = {0};

	for (uint64_t ms = from; ms <= to; ms++) {
		const uint64_t extra[2] = {ms == from ? first_ns : ms * MS, TINY / 2};
		uint32_t kind = ms % 2 ? WIRE_THIN : WIRE_THIN_END;
		uint64_t ticks = (uint64_t)((double)(ms * MS) / TICK_NS);
		uint32_t head = wire_extended(kind, 2, wire_thin_value(WIRE_BURST_RANDOM, 0));

		thinning_change(thinning, ticks, head, extra);
		if (kind == WIRE_THIN_END && (!range.window || window_inside(range.window, ticks, ticks + 1)))
			count(thinning, TINY, CALLS, 0);
	}
	cr_assert_eq(thinning_estimate(thinning, &range, take, &result), 0);
	thinning_free(thinning);
	return result.tiny;
}

static void expect_calls(struct thin_estimate found, double calls)
{
	cr_expect(fabs(found.missing.calls - calls) < 0.1, "%f instead of %f", found.missing.calls, calls);
}

static uint64_t ticks_of(double ms)
{
	return (uint64_t)(ms * MS / TICK_NS);
}

/* Of the stretches at the edges of a window only a part is in it. */
Test(thinning, a_window_has_parts_of_stretches)
{
	struct window_edge edges[] = {{.ticks = ticks_of(11.25), .begins = true},
				      {.ticks = ticks_of(17.5)},
				      {.ticks = ticks_of(30), .begins = true},
				      {.ticks = ticks_of(33)}};
	struct window window = {.edges = edges, .count = 4};
	struct thin_range range = {.tick_ns = TICK_NS, .window = &window};

	expect_calls(estimate_in(range, 1, MS, 41), (0.75 + 1 + 1 + 0.5 + 1) * CALLS);
	window.count = 1; /* until the end, where nothing is thinned */
	expect_calls(estimate_in(range, 1, MS, 40), (0.75 + 14) * CALLS);
	window.count = 0;
	expect_calls(estimate_in(range, 1, MS, 41), 0);
}

/* A trace that was cut begins with what was thinned before. */
Test(thinning, a_part_of_a_trace_has_a_part_of_a_stretch)
{
	expect_calls(estimate_in(whole, 11, 11 * MS, 20), 5 * CALLS);
	expect_calls(estimate_in(whole, 11, 2 * MS, 20), 5 * CALLS);
}

/* A process that is killed, or runs on, has no last change. */
Test(thinning, what_follows_the_last_change_counts)
{
	struct thin_range killed = {.tick_ns = TICK_NS, .end_ticks = ticks_of(25)};

	expect_calls(estimate_in(whole, 1, MS, 21), 10 * CALLS);
	expect_calls(estimate_in(killed, 1, MS, 21), 14 * CALLS);
	killed.end_ticks = ticks_of(20);
	expect_calls(estimate_in(killed, 1, MS, 21), 10 * CALLS);
}

/* They are left out, and no burst shows one. */
Test(thinning, exceptions_may_not_be_known)
{
	struct thinning *thinning = thinning_new(KEYS);
	struct thin_estimate exceptions = {0};
	const uint64_t extra[2] = {1000000, WIRE_THIN_EXCEPTIONS};

	put_change(thinning, wire_extended(WIRE_THIN, 2, 0), extra);
	thinning_count_exception(thinning);
	cr_assert_eq(thinning->sample_count, 0);
	cr_assert_eq(thinning_estimate(thinning, &whole, take_exceptions, &exceptions), 0);
	cr_assert(exceptions.key == THINNED_EXCEPTIONS && !exceptions.known);
	thinning_free(thinning);
}

/* What a trace says is bounded by what it defines. */
Test(thinning, ids_without_a_function_change_nothing)
{
	struct thinning *thinning = thinning_new(4);
	const uint64_t extra[3] = {5, UINT64_C(0xffffffff7fffffff), 3};

	put_change(thinning, wire_extended(WIRE_THIN, 3, 0), extra);
	put_change(thinning, wire_extended(WIRE_THIN, 0, 0), extra);
	cr_assert_eq(thinning->change_count, 1);
	for (uint32_t key = 0; key < 4; key++)
		cr_assert(!thinning_was(thinning, key));
	thinning_free(thinning);
}

/* A damaged trace may name a function twice in a change: the stretch still counts once. */
Test(thinning, a_function_that_is_named_twice_counts_once)
{
	double missing[2];

	for (int twice = 0; twice < 2; twice++) {
		struct thinning *thinning = thinning_new(KEYS);
		struct result result = {0};

		for (uint64_t ms = 1; ms < 40; ms++) {
			uint64_t extra[2] = {ms * 1000000, TINY / 2 | (twice ? UINT64_C(TINY / 2) << 32 : 0)};
			uint32_t kind = ms % 2 ? WIRE_THIN : WIRE_THIN_END;

			put_change(thinning, wire_extended(kind, 2, wire_thin_value(WIRE_BURST_RANDOM, 0)), extra);
			for (int i = 0; i < 10 && kind == WIRE_THIN_END; i++)
				count_one(thinning, TINY, LONG, 0);
		}
		cr_assert_eq(thinning_estimate(thinning, &whole, take, &result), 0);
		missing[twice] = result.tiny.missing.calls;
		thinning_free(thinning);
	}
	cr_assert(missing[0] > 150 && missing[0] == missing[1], "%f and %f", missing[0], missing[1]);
}

/* Events with the same CPU time are one change, in whatever order threads write them, and however often. */
Test(thinning, a_change_of_many_functions_has_several_events)
{
	enum { COUNT = WIRE_THIN_MOST + 2, MORE = 2 * WIRE_THIN_SET_MOST };
	struct thinning *thinning = thinning_new(2 * MORE + 2);
	uint32_t ids[COUNT], at, later = COUNT + 1;
	uint64_t extra[WIRE_EXTRA_MAX];

	for (uint32_t i = 0; i < COUNT; i++)
		ids[i] = i + 1;
	for (int thread = 0; thread < 2; thread++) {
		thinning_begin_thread(thinning);
		for (at = 0; at < COUNT;) {
			uint32_t head = wire_thin_event(WIRE_THIN, 0, 1000, ids, COUNT, &at, extra);

			put_change(thinning, head, extra);
		}
		cr_assert_eq(thinning_last(thinning)->key_count, COUNT);
		cr_assert_eq(thinning->state[2], THIN_MISSING);
		cr_assert_eq(thinning->state[2 * COUNT], THIN_MISSING);
		at = 0;
		put_change(thinning, wire_thin_event(WIRE_THIN_END, 0, 2000, &later, 1, &at, extra), extra);
		cr_assert_eq(thinning->state[2], THIN_RECORDED);
		cr_assert_eq(thinning->state[2 * later], THIN_SAMPLED);
	}
	cr_assert_eq(thinning->change_count, 2);
	cr_assert_eq(thinning_last(thinning)->key_count, 1);
	for (uint32_t id = 1; id <= MORE; id++) { /* more than a library writes: the change has no room for the rest */
		at = 0;
		put_change(thinning, wire_thin_event(WIRE_THIN, 0, 3000, &id, 1, &at, extra), extra);
	}
	cr_assert_eq(thinning_last(thinning)->key_count, WIRE_THIN_SET_MOST);
	thinning_free(thinning);
}
