/*
 * test_tools_slow.c - the calls of a trace that took longer than a bound (tools/slow), over traces of the fixture,
 * whose ticks are ns.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "slow/slow_calls.h"
#include "one_trace.h"

enum { VIEW = 1, HELPER = 2, GENERATOR = 3, X = 1, TASK = 7 };

#define START UINT64_C(1000)
#define FOUND_MAX 16

static struct slow_call found[FOUND_MAX];
static unsigned count;
static uint32_t tid; /* of the last one */

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, VIEW, "/app/views.py", 1, "view");
	fixture_code(fixture, process, HELPER, "/app/views.py", 9, "helper");
	fixture_code(fixture, process, GENERATOR, "/app/views.py", 20, "generator");
	fixture_function(fixture, process, X, "", "x", "m");
	thread = fixture_thread(fixture, process, 11, START);
	count = 0;
}

TestSuite(slow, .init = set_up, .fini = end_trace, .timeout = 60);

static void take(void *owner, const struct slow_call *call)
{
	(void)owner;
	cr_assert(count < FOUND_MAX);
	found[count++] = *call;
	tid = call->thread->tid;
}

/* Looks for the triggers in what the fixture has. */
static void look(const char *list)
{
	struct triggers triggers;
	struct slow_calls watch = {.triggers = &triggers, .found = take};
	char text[512];

	cr_assert_null(setting_triggers(list, &triggers), "%s", list);
	save();
	cr_assert(trace_open(&watch.trace, path, text, sizeof(text)) == 0, "%s", text);
	cr_assert(slow_calls_begin(&watch) == 0);
	cr_assert(slow_calls_next(&watch) == 0);
	slow_calls_done(&watch);
	trace_close(watch.trace);
}

static void expect(unsigned i, unsigned trigger, uint32_t key, uint64_t begin, uint64_t ns)
{
	cr_assert(i < count, "only %u calls", count);
	cr_expect(found[i].trigger == trigger && found[i].key == key && found[i].ns == ns &&
		      (uint64_t)found[i].begin_ns == begin,
		  "%u: trigger %u, key %u, from %lld on, %llu ns", i, found[i].trigger, found[i].key,
		  (long long)found[i].begin_ns, (unsigned long long)found[i].ns);
}

/* In the order of their ends; the bound itself is not too long. */
Test(slow, longer_than_the_bound)
{
	event(WIRE_CALL, VIEW, 0);
	event(WIRE_CALL, HELPER, 5000);
	event(WIRE_RETURN, HELPER, 10000);
	event(WIRE_RETURN, VIEW, 1);
	event(WIRE_CALL, VIEW, 1);
	event(WIRE_RETURN, VIEW, 10000);
	event(WIRE_CALL, VIEW, 1);
	event(WIRE_RETURN, VIEW, 10001);
	look("*:view>10us,*:helper>9us");
	cr_expect_eq(count, 3);
	expect(0, 1, 2 * HELPER, START + 5000, 10000);
	expect(1, 0, 2 * VIEW, START, 15001);
	expect(2, 0, 2 * VIEW, START + 25003, 10001);
}

/* A call of each depth of a recursion is one; two triggers may take the same call; others are left alone. */
Test(slow, recursion_and_two_triggers)
{
	event(WIRE_CALL, VIEW, 0);
	event(WIRE_CALL, VIEW, 3000);
	event(WIRE_C_CALL, X, 0);
	event(WIRE_C_RETURN, X, 50000);
	event(WIRE_RETURN, VIEW, 0);
	event(WIRE_RETURN, VIEW, 0);
	look("*:view>51us,*:v*>1us");
	cr_expect_eq(count, 3);
	expect(0, 1, 2 * VIEW, START + 3000, 50000);
	expect(1, 0, 2 * VIEW, START, 53000);
	expect(2, 1, 2 * VIEW, START, 53000);
}

Test(slow, c_functions)
{
	event(WIRE_CALL, VIEW, 0);
	event(WIRE_C_CALL, X, 0);
	event(WIRE_C_RETURN, X, 50000);
	event(WIRE_RETURN, VIEW, 0);
	look("m:x>1us");
	cr_expect_eq(count, 1);
	expect(0, 0, 2 * X + 1, START, 50000);
}

/* A call that ends by an exception has ended; one whose end is not in the trace has not. */
Test(slow, how_it_ends)
{
	event(WIRE_CALL, VIEW, 0);
	event(WIRE_UNWIND, VIEW, 20000);
	event(WIRE_CALL, VIEW, 0);
	event(WIRE_CALL, HELPER, 30000);
	look("*:view>1us");
	cr_expect_eq(count, 1);
	expect(0, 0, 2 * VIEW, START, 20000);
}

/* Each step of a generator is a call of its own: what passes between them is not its. */
Test(slow, steps_of_a_generator)
{
	event(WIRE_CALL, GENERATOR, 0);
	event(WIRE_YIELD, GENERATOR, 2000);
	event(WIRE_RESUME, GENERATOR, 90000);
	event(WIRE_YIELD, GENERATOR, 20000);
	look("*:generator>10us");
	cr_expect_eq(count, 1);
	expect(0, 0, 2 * GENERATOR, START + 92000, 20000);
}

/* An event loop is blocked by the step of a task, whatever its function, and by no other call. */
Test(slow, blocked_loop)
{
	event(WIRE_CALL, HELPER, 0);
	event(WIRE_RETURN, HELPER, 70000);
	event(WIRE_TASK, TASK, 0);
	fixture_extra(fixture, thread, 1);
	event(WIRE_CALL, VIEW, 0);
	event(WIRE_CALL, HELPER, 100);
	event(WIRE_RETURN, HELPER, 60000);
	event(WIRE_RETURN, VIEW, 100);
	look("loop>50us");
	cr_expect_eq(count, 1);
	expect(0, 0, 2 * VIEW, START + 70000, 60200);
}

static void switch_to(uint64_t target, uint64_t origin, uint32_t ticks)
{
	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

/* A call that greenlets interrupt goes on with its own, and is one call, which ends once. So is the step of a task. */
Test(slow, greenlets)
{
	event(WIRE_CALL, HELPER, 0);
	switch_to(2, 1, 0);
	event(WIRE_TASK, TASK, 0);
	fixture_extra(fixture, thread, 1);
	event(WIRE_CALL, VIEW, 0);
	for (int i = 0; i < 4; i++) {
		switch_to(1, 2, 20000);
		switch_to(2, 1, 1000);
	}
	event(WIRE_RETURN, VIEW, 500);
	switch_to(1, 2, 0);
	event(WIRE_RETURN, HELPER, 0);
	look("*:view>50us,loop>60us,*:helper>84us");
	cr_expect_eq(count, 3);
	expect(0, 0, 2 * VIEW, START, 84500);
	expect(1, 1, 2 * VIEW, START, 84500);
	expect(2, 2, 2 * HELPER, START, 84500);
}

/* In a thread with greenlets the step of a generator ends, too, and what is recorded at its place later is another. */
Test(slow, a_yield_is_no_switch)
{
	switch_to(2, 1, 0);
	event(WIRE_CALL, GENERATOR, 0);
	event(WIRE_YIELD, GENERATOR, 20000);
	event(WIRE_STACK, 1, 30000);
	event(WIRE_FRAME, GENERATOR, 0);
	event(WIRE_RETURN, GENERATOR, 5000);
	look("*:generator>10us");
	cr_expect_eq(count, 1);
	expect(0, 0, 2 * GENERATOR, START, 20000);
}

/* Threads have stacks of their own, which chunks do not cut. */
Test(slow, threads_and_chunks)
{
	uint32_t other = fixture_thread(fixture, process, 12, START + 500);

	event(WIRE_CALL, VIEW, 0);
	fixture_event(fixture, other, WIRE_CALL, VIEW, 0);
	fixture_flush(fixture, thread);
	fixture_event(fixture, other, WIRE_RETURN, VIEW, 300);
	event(WIRE_RETURN, VIEW, 40000);
	look("*:view>1us");
	cr_expect_eq(count, 1);
	expect(0, 0, 2 * VIEW, START, 40000);
	cr_expect_eq(tid, 11);
}
