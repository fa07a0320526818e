/*
 * test_preload_model.c - what the costs of single calls explain of a run, by events whose sum is known.
 */
#include <criterion/criterion.h>

#include "evprof/wire.h"
#include "preload/calibrate/calibrate_model.h"

enum { F = 1, G = 2, LEN = 1, GET = 2 };

static uint64_t words[64];
static struct model_events events = {.words = words, .tick_ns = 2};

static void event(unsigned kind, uint32_t id, uint32_t ticks)
{
	words[events.count++] = wire_word(wire_head(kind, id), ticks);
}

/* Of the time of the event before. */
static void mark(uint32_t head, uint64_t at)
{
	words[events.count++] = wire_word(head, 0);
	words[events.count++] = at;
}

static void expect(const struct model *model, double explained)
{
	double found = model_explained(model, &events, 1);

	cr_expect(found > explained - 0.01 && found < explained + 0.01, "%f, not %f", found, explained);
}

static struct model with_costs(double call, double c_call, double method)
{
	return (struct model){.cost = {[MODEL_CALL] = {call}, [MODEL_C_CALL] = {c_call}, [MODEL_METHOD] = {method}},
			      .slow = 1,
			      .functions = {LEN},
			      .function_count = 1};
}

/* The end of the last call costs nothing that is seen before it. */
static void call_both(void)
{
	event(WIRE_CALL, F, 100);
	event(WIRE_C_CALL, LEN, 100);
	event(WIRE_C_RETURN, LEN, 100);
	event(WIRE_C_CALL, GET, 100);
	event(WIRE_C_RETURN, GET, 100);
	event(WIRE_RETURN, F, 100);
}

Test(model, each_kind_of_call_has_its_cost)
{
	struct model model = with_costs(8, 20, 6);

	call_both();
	expect(&model, 4 + 20 + 6);
}

Test(model, no_more_is_explained_than_there_is)
{
	struct model model = with_costs(0, 2000, 0);

	call_both();
	/* All around the call of len: it has nothing between its stamps. */
	expect(&model, 200 + 200);
}

Test(model, the_number_of_times_is_the_one_that_explains)
{
	struct model model = with_costs(8, 20, 6);
	double times;

	call_both();
	times = model_times(&model, &events, 45);
	cr_expect(times > 1.49 && times < 1.51, "%f", times);
	cr_expect_eq(model_times(&model, &events, 1e6), 0, "nothing explains so much");
}

/* Twice for a function of C, which ends where it began. */
Test(model, far_events_cost_more)
{
	struct model model = with_costs(0, 0, 0);

	model.far = 10;
	event(WIRE_CALL, F, 100);
	mark(wire_head(WIRE_TIME, WIRE_TIME_OF_FAR), 100);
	event(WIRE_C_CALL, LEN, 100);
	event(WIRE_C_RETURN, LEN, 100);
	event(WIRE_RETURN, F, 100);
	expect(&model, 20);
}

Test(model, places_are_walked_to)
{
	struct model model = with_costs(0, 0, 0);

	model.walk = 0.5;
	event(WIRE_CALL, F, 100);
	mark(wire_place_head(40), 100);
	event(WIRE_C_CALL, LEN, 100);
	event(WIRE_C_RETURN, LEN, 100);
	mark(wire_place_head(10), 300);
	event(WIRE_RETURN, F, 100);
	expect(&model, 20 + 15);
}

/* __init__ for a new object has the cost of its class in it. */
Test(model, classes_are_not_counted_twice)
{
	struct model model = with_costs(0, 0, 0);

	model.other = 12;
	model.cost[MODEL_INIT][0] = 30;
	model.codes[model.code_count++] = (struct model_code){G, MODEL_INIT};
	event(WIRE_CALL, F, 100);
	mark(wire_head(WIRE_TIME, WIRE_TIME_OF_CALL), 200);
	event(WIRE_CALL, G, 100);
	event(WIRE_RETURN, G, 100);
	event(WIRE_RETURN, F, 100);
	expect(&model, 30);
}

Test(model, what_is_slowed_is_a_part_of_python_code)
{
	struct model model = with_costs(0, 0, 0);

	model.slow = 0.75;
	call_both();
	/* Four intervals of 200 ns; the functions of C have the other two. */
	expect(&model, 4 * 50);
}
