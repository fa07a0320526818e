/*
 * test_tools_replay.c - the stacks of greenlets, which take turns in one thread, and threads that begin in the middle.
 */
#include <criterion/criterion.h>

#include "tools/analysis/profile.h"
#include "tools/replay/call_walk.h"
#include "one_trace.h"

enum { MAIN = 1, A = 2, B = 3, LEAF = 4, HUB = 0x1000, ONE = 0x2000, TWO = 0x3000 };

static struct profile profile;

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, MAIN, "a.py", 1, "main");
	fixture_code(fixture, process, A, "a.py", 2, "a");
	fixture_code(fixture, process, B, "a.py", 3, "b");
	fixture_code(fixture, process, LEAF, "a.py", 4, "leaf");
	thread = fixture_thread(fixture, process, 10, 1000);
}

static void tear_down(void)
{
	profile_done(&profile);
	end_trace();
}

TestSuite(replay, .init = set_up, .fini = tear_down);

static void switch_to(uint64_t target, uint64_t origin, uint32_t ticks)
{
	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

static void count(void)
{
	struct filter all = {0};
	struct profile_options options = {.filter = &all, .edges = true};
	struct progress progress;
	struct trace *trace = NULL;
	char error[256];

	fixture_end(fixture);
	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", error, sizeof(error)) == 0);
	progress_begin(&progress, "", 0);
	cr_assert(profile_add(&profile, trace, &options, &progress) == 0);
	trace_close(trace);
}

static uint32_t number_of(const char *name)
{
	uint32_t i;

	for (i = 0; i < profile.labels.count; i++)
		if (text_same(profile.labels.at[i].name, text_of(name)))
			return i;
	cr_assert_fail("%s is not in the profile", name);
	return 0;
}

static uint64_t edge_calls(const char *caller, const char *callee)
{
	uint64_t calls = 0;
	uint32_t i;

	for (i = 0; i < profile.edge_count; i++)
		if (profile.edges[i].caller == number_of(caller) && profile.edges[i].callee == number_of(callee))
			calls += profile.edges[i].times.calls;
	return calls;
}

Test(replay, greenlets_have_stacks_of_their_own)
{
	event(WIRE_CALL, MAIN, 10);
	switch_to(ONE, HUB, 10); /* main has run 10 */
	event(WIRE_CALL, A, 0);
	switch_to(TWO, ONE, 5); /* a has run 5 */
	event(WIRE_CALL, B, 0);
	event(WIRE_CALL, LEAF, 100);
	switch_to(ONE, TWO, 1); /* b 100, leaf 1 */
	event(WIRE_CALL, LEAF, 5);
	event(WIRE_RETURN, LEAF, 2);
	event(WIRE_RETURN, A, 3); /* a 13, leaf 3 */
	switch_to(TWO, ONE, 0);
	event(WIRE_RETURN, LEAF, 4); /* leaf 7 */
	event(WIRE_RETURN, B, 50);   /* b 150 */
	switch_to(HUB, TWO, 0);
	event(WIRE_RETURN, MAIN, 30); /* main 40 */
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.open, 0);
	cr_assert_eq(profile.times[number_of("main")].calls, 1);
	cr_assert_eq(profile.times[number_of("main")].total_ns, 40, "%llu",
		     (unsigned long long)profile.times[number_of("main")].total_ns);
	cr_assert_eq(profile.times[number_of("a")].own_ns, 13);
	cr_assert_eq(profile.times[number_of("b")].own_ns, 150);
	cr_assert_eq(profile.times[number_of("leaf")].calls, 2);
	cr_assert_eq(profile.times[number_of("leaf")].own_ns, 7);
	cr_assert_eq(edge_calls("a", "leaf"), 1);
	cr_assert_eq(edge_calls("b", "leaf"), 1);
	cr_assert_eq(edge_calls("b", "a"), 0);
}

/* An address comes again for another greenlet once the first has ended: its stack is empty then. */
Test(replay, a_greenlet_may_have_the_address_of_one_before)
{
	event(WIRE_CALL, MAIN, 10);
	for (int i = 0; i < 100; i++) {
		switch_to(ONE, HUB, 1);
		event(WIRE_CALL, A, 1);
		event(WIRE_RETURN, A, 1);
		switch_to(HUB, ONE, 1);
	}
	event(WIRE_RETURN, MAIN, 10);
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.times[number_of("a")].calls, 100);
	cr_assert_eq(profile.times[number_of("main")].calls, 1);
}

/* After a loss nothing is known of any stack; ends that fit none are no mistake of the trace. */
Test(replay, a_gap_makes_the_stacks_of_all_greenlets_unknown)
{
	event(WIRE_CALL, MAIN, 10);
	switch_to(ONE, HUB, 1);
	event(WIRE_CALL, A, 1);
	switch_to(HUB, ONE, 1);
	event(WIRE_GAP, 0, 1);
	fixture_extra(fixture, thread, 7);
	switch_to(ONE, TWO, 1);
	event(WIRE_RETURN, A, 1);
	switch_to(HUB, ONE, 1);
	event(WIRE_RETURN, MAIN, 1);
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.lost, 7);
}

static void greenlet_stack(uint32_t a, uint32_t b)
{
	fixture_extended(fixture, thread, WIRE_GREENLET_STACK, 2, NULL, 0, 0);
	event(WIRE_OPEN, a, 0);
	event(WIRE_OPEN, b, 0);
}

/* One that was suspended before the trace, or before what was lost. */
Test(replay, a_greenlet_that_is_not_known_has_the_stack_that_follows)
{
	event(WIRE_PAUSE, 0, 1);
	switch_to(ONE, HUB, 1);
	greenlet_stack(MAIN, A);
	event(WIRE_CALL, LEAF, 10);
	event(WIRE_RETURN, LEAF, 5);
	switch_to(TWO, ONE, 1);
	switch_to(ONE, TWO, 100);
	event(WIRE_RETURN, A, 3);
	event(WIRE_OPEN, B, 0); /* of the thread: no more of the greenlet's */
	event(WIRE_RETURN, MAIN, 2);
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.times[number_of("main")].calls, 0);
	cr_assert_eq(profile.times[number_of("main")].total_ns, 21);
	cr_assert_eq(profile.times[number_of("a")].own_ns, 14);
	cr_assert_eq(edge_calls("a", "leaf"), 1);
}

/* The process ended while it was written. */
Test(replay, the_stack_of_a_greenlet_ends_with_its_thread)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	switch_to(ONE, HUB, 1);
	fixture_extended(fixture, thread, WIRE_GREENLET_STACK, 2, NULL, 0, 0);
	event(WIRE_OPEN, A, 0);
	fixture_event(fixture, other, WIRE_CALL, MAIN, 10);
	fixture_event(fixture, other, WIRE_OPEN, MAIN, 0);
	fixture_event(fixture, other, WIRE_RETURN, MAIN, 5);
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.times[number_of("main")].own_ns, 5);
	cr_assert_eq(profile.open, 1, "a, and no main");
}

Test(replay, a_greenlet_that_is_known_keeps_its_stack)
{
	event(WIRE_CALL, MAIN, 10);
	switch_to(ONE, HUB, 1);
	event(WIRE_CALL, A, 1);
	switch_to(HUB, ONE, 1);
	greenlet_stack(B, B);
	switch_to(ONE, HUB, 1);
	greenlet_stack(B, B);
	event(WIRE_CALL, LEAF, 1);
	event(WIRE_RETURN, LEAF, 1);
	event(WIRE_RETURN, A, 1);
	switch_to(HUB, ONE, 1);
	event(WIRE_RETURN, MAIN, 1);
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.labels.count, 3, "b ran nowhere");
	cr_assert_eq(edge_calls("a", "leaf"), 1);
}

/* The stacks of greenlets end with their thread. What a damaged trace has behind that end begins anew. */
Test(replay, the_end_of_a_thread_ends_its_greenlets)
{
	switch_to(ONE, HUB, 1);
	event(WIRE_CALL, A, 1);
	switch_to(HUB, ONE, 1);
	event(WIRE_THREAD_END, 0, 1);
	switch_to(ONE, HUB, 1);
	event(WIRE_RETURN, A, 1);
	count();
	cr_assert_eq(profile.unmatched, 1);
}

/* A switch from a greenlet to which no switch was recorded: the stack that was there belongs to another one. */
Test(replay, a_switch_that_contradicts_the_one_before_mixes_nothing_up)
{
	event(WIRE_CALL, MAIN, 10);
	switch_to(ONE, HUB, 1);
	event(WIRE_CALL, A, 1);
	switch_to(HUB, TWO, 1); /* from TWO, to which nobody has switched */
	event(WIRE_RETURN, MAIN, 1);
	count();
	cr_assert_eq(profile.unmatched, 0);
	cr_assert_eq(profile.times[number_of("main")].calls, 1);
}

/* Nobody knows what ran while events were lost: that time is nobody's. */
Test(replay, lost_time_is_nobodys)
{
	event(WIRE_CALL, MAIN, 10);
	event(WIRE_CALL, A, 5);
	event(WIRE_CALL, LEAF, 7);
	event(WIRE_GAP, 0, 1000);
	fixture_extra(fixture, thread, 3);
	event(WIRE_STACK, 1, 0);
	event(WIRE_FRAME, MAIN, 0);
	event(WIRE_RETURN, MAIN, 20);
	count();
	cr_assert_eq(profile.times[number_of("leaf")].own_ns, 0);
	cr_assert_eq(profile.times[number_of("a")].total_ns, 7);
	cr_assert_eq(profile.times[number_of("main")].total_ns, 12 + 20);
	cr_assert_eq(profile.times[number_of("main")].calls, 1);
}
