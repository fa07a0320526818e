/*
 * test_tools_profile.c - the call stack machine and cProfile's accounting, on traces written event by event.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/shared/util/u64_map.h"
#include "tools/analysis/profile.h"
#include "one_trace.h"

enum { F = 1, G = 2, H = 3, LEN = 1 };

static struct profile profile;
static struct profile_options options;
static struct filter filter;
static enum cpu_clock clock_choice;

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, F, "a.py", 1, "f");
	fixture_code(fixture, process, G, "a.py", 2, "g");
	fixture_code(fixture, process, H, "b.py", 3, "h");
	fixture_function(fixture, process, LEN, "", "len", "builtins");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "begin", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "end", "", "");
	thread = fixture_thread(fixture, process, 10, 1000);
	filter = (struct filter){0};
	clock_choice = CPU_CLOCK_WALL;
	options = (struct profile_options){.filter = &filter};
}

static void tear_down(void)
{
	profile_done(&profile);
	end_trace();
}

TestSuite(profile, .init = set_up, .fini = tear_down);

static void count(void)
{
	struct progress progress;
	struct trace *trace = NULL;
	char error[256];

	fixture_end(fixture);
	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", error, sizeof(error)) == 0);
	trace->clock = clock_choice;
	progress_begin(&progress, "", 0);
	cr_assert(profile_add(&profile, trace, &options, &progress) == 0);
	trace_close(trace);
}

static struct profile_times times_of(const char *name)
{
	for (uint32_t i = 0; i < profile.labels.count; i++)
		if (text_same(profile.labels.at[i].name, text_of(name)))
			return profile.times[i];
	return (struct profile_times){0};
}

static void expect(const char *name, uint64_t calls, uint64_t primitive, uint64_t own, uint64_t total)
{
	struct profile_times times = times_of(name);

	cr_expect(times.calls == calls && times.calls - times.recursive == primitive && times.own_ns == own &&
		      times.total_ns == total,
		  "%s: %d/%d calls, %d own, %d total; expected %d/%d, %d, %d", name, (int)times.calls,
		  (int)(times.calls - times.recursive), (int)times.own_ns, (int)times.total_ns, (int)calls,
		  (int)primitive, (int)own, (int)total);
}

Test(profile, nested_calls)
{
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, G, 5);
	event(WIRE_C_CALL, LEN, 3);
	event(WIRE_C_RETURN, LEN, 7);
	event(WIRE_RETURN, G, 2);
	event(WIRE_RETURN, F, 1);
	count();
	expect("f", 1, 1, 6, 18);
	expect("g", 1, 1, 5, 12);
	expect("<built-in method builtins.len>", 1, 1, 7, 7);
	cr_expect(profile.unmatched == 0 && profile.open == 0);
}

/* As _lsprof: total time of recursive calls counts once, from the outermost. */
Test(profile, recursion)
{
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_RETURN, F, 4);
	event(WIRE_RETURN, G, 1);
	event(WIRE_UNWIND, F, 1);
	event(WIRE_RETURN, F, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_RETURN, F, 100);
	count();
	expect("f", 4, 2, 1 + 1 + 1 + 1 + 4 + 100, 10 + 100);
	expect("g", 1, 1, 2, 6);
}

Test(profile, generators_resume)
{
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_YIELD, G, 1);
	event(WIRE_RESUME, G, 1);
	event(WIRE_YIELD, G, 1);
	event(WIRE_THROW, G, 1);
	event(WIRE_UNWIND, G, 1);
	event(WIRE_RETURN, F, 1);
	count();
	expect("g", 3, 3, 3, 3);
	expect("f", 1, 1, 4, 7);
}

/* An end that is not on top closes what is above it; one that is nowhere is ignored. */
Test(profile, ends_that_do_not_match)
{
	event(WIRE_RETURN, H, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_C_CALL, LEN, 1);
	event(WIRE_RETURN, H, 1);
	event(WIRE_RETURN, F, 5);
	event(WIRE_CALL, G, 1);
	count();
	expect("h", 0, 0, 0, 0);
	expect("f", 1, 1, 1, 8);
	expect("g", 2, 2, 1, 7);
	expect("<built-in method builtins.len>", 1, 1, 6, 6);
	cr_expect(profile.unmatched == 2 + 2, "%d", (int)profile.unmatched);
	cr_expect(profile.open == 1);
}

Test(profile, gap_and_stack)
{
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, G, 5);
	event(WIRE_GAP, 0, 5);
	fixture_extra(fixture, thread, 1234);
	event(WIRE_RETURN, H, 1); /* of a call in the gap: nobody's fault */
	event(WIRE_STACK, 2, 4);
	event(WIRE_FRAME, F, 0);
	event(WIRE_FRAME, H, 0);
	event(WIRE_RETURN, H, 3);
	event(WIRE_RETURN, F, 2);
	event(WIRE_RETURN, F, 1);
	count();
	expect("f", 1, 1, 5 + 2, 5 + 5); /* not the time that ends with the gap */
	expect("g", 1, 1, 0, 0);
	expect("h", 0, 0, 3, 3);
	cr_expect(profile.lost == 1234 && profile.unmatched == 1, "%d", (int)profile.unmatched);
}

Test(profile, long_pauses)
{
	event(WIRE_CALL, F, 10);
	event(WIRE_TIME, 0, 99);
	fixture_extra(fixture, thread, UINT64_C(1000000000000));
	event(WIRE_RETURN, F, 10);
	count();
	expect("f", 1, 1, UINT64_C(1000000000000) + 10 - 1010, UINT64_C(1000000000000) + 10 - 1010);
}

/* The thread has run for so long. */
static void cpu_time(uint64_t cpu_ns, uint64_t at)
{
	uint64_t word = wire_cpu_word(cpu_ns);

	event(WIRE_CPU, wire_head_arg((uint32_t)word), (uint32_t)(word >> 32));
	fixture_extra(fixture, thread, at);
}

/* f calls len, which runs 300 ns and waits for the rest of its 100000; the counter of CPU time passes 2^32 in it. */
static void record_a_wait(void)
{
	const uint64_t before = UINT64_C(7) << 32;

	cpu_time(before - 100, 1000);
	event(WIRE_CALL, F, 10);
	event(WIRE_C_CALL, LEN, 5);
	fixture_flush(fixture, thread);
	cpu_time(before - 100 + 15 + 300, 101015);
	event(WIRE_C_RETURN, LEN, 2);
	event(WIRE_RETURN, F, 5);
	event(WIRE_CALL, G, 1);
	event(WIRE_RETURN, G, 40);
}

Test(profile, by_cpu_time)
{
	clock_choice = CPU_CLOCK_RAN;
	record_a_wait();
	count();
	expect("<built-in method builtins.len>", 1, 1, 302, 302);
	expect("f", 1, 1, 10, 312);
	expect("g", 1, 1, 40, 40);
}

Test(profile, by_the_time_of_waiting)
{
	clock_choice = CPU_CLOCK_WAITED;
	record_a_wait();
	count();
	expect("<built-in method builtins.len>", 1, 1, 99700, 99700);
	expect("f", 1, 1, 0, 99700);
	expect("g", 1, 1, 0, 0);
}

Test(profile, cpu_times_do_not_change_those_of_the_wall)
{
	record_a_wait();
	count();
	expect("<built-in method builtins.len>", 1, 1, 100002, 100002);
	expect("f", 1, 1, 10, 100012);
}

/* What the thread did while events were lost is not known, nor is it what it ran in the pause after. */
Test(profile, cpu_time_after_a_gap_is_not_that_from_before)
{
	clock_choice = CPU_CLOCK_RAN;
	cpu_time(1000, 1000);
	event(WIRE_CALL, F, 10);
	event(WIRE_GAP, 0, 5000);
	fixture_extra(fixture, thread, 3);
	event(WIRE_CALL, G, 10);
	cpu_time(900000, 100000);
	event(WIRE_RETURN, G, 1);
	event(WIRE_CALL, G, 10);
	cpu_time(900000 + 11 + 700, 200000);
	event(WIRE_RETURN, G, 1);
	count();
	expect("g", 2, 2, 1 + 701, 1 + 701);
}

/* Chunks are joined; the stack goes on over the border. */
Test(profile, several_chunks)
{
	for (int i = 0; i < 100; i++) {
		event(WIRE_CALL, F, 1);
		fixture_flush(fixture, thread);
		event(WIRE_CALL, G, 1);
		event(WIRE_RETURN, G, 1);
		fixture_flush(fixture, thread);
		event(WIRE_RETURN, F, 1);
	}
	count();
	expect("f", 100, 100, 200, 300);
	expect("g", 100, 100, 100, 100);
	cr_expect(profile.unmatched == 0);
}

Test(profile, memory_events_keep_their_places)
{
	event(WIRE_CALL, F, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, 2, 0x10, 5, 0, 1);
	fixture_memory(fixture, thread, WIRE_REALLOC, 2, 0x20, 5, 0x10, 1);
	event(WIRE_TIME, 0, 0);
	fixture_extra(fixture, thread, 2000);
	fixture_memory(fixture, thread, WIRE_FREE, 2, 0x20, 0, 0, 1);
	event(WIRE_RETURN, F, 1);
	count();
	expect("f", 1, 1, 2002 - 1001, 2002 - 1001);
}

static struct profile_times edge_of(const char *caller, const char *callee)
{
	for (uint32_t i = 0; i < profile.edge_count; i++)
		if (text_same(profile.labels.at[profile.edges[i].caller].name, text_of(caller)) &&
		    text_same(profile.labels.at[profile.edges[i].callee].name, text_of(callee)))
			return profile.edges[i].times;
	return (struct profile_times){0};
}

/* Counting begins and ends at the marks in order of events, even at one and the same time. */
Test(profile, between_marks)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	options.mark_begin = "begin";
	options.mark_end = "end";
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, G, 0);
	event(WIRE_MARK, 1, 0);
	event(WIRE_CALL, F, 0);
	event(WIRE_RETURN, F, 5);
	event(WIRE_RETURN, G, 1); /* begun before */
	event(WIRE_CALL, H, 1);
	event(WIRE_C_CALL, LEN, 1);
	event(WIRE_MARK, 2, 2);
	event(WIRE_CALL, F, 0);
	event(WIRE_RETURN, F, 10);
	event(WIRE_C_RETURN, LEN, 1);
	event(WIRE_RETURN, H, 1);
	event(WIRE_RETURN, F, 1);
	fixture_event(fixture, other, WIRE_CALL, G, 5);	  /* at 1005: before */
	fixture_event(fixture, other, WIRE_CALL, H, 6);	  /* at 1011: inside */
	fixture_event(fixture, other, WIRE_RETURN, H, 2); /* at 1013 */
	fixture_event(fixture, other, WIRE_CALL, H, 5);	  /* at 1018 */
	fixture_event(fixture, other, WIRE_CALL, G, 10);  /* at 1028: behind */
	count();
	expect("f", 1, 1, 5, 5);
	expect("g", 0, 0, 0, 0);
	expect("h", 3, 3, 1 + 2 + 2, 3 + 2 + 2);
	expect("<built-in method builtins.len>", 1, 1, 2, 2);
	cr_expect(profile.unmatched == 0);
}

Test(profile, several_windows)
{
	options.mark_begin = "begin";
	options.mark_end = "end";
	for (int i = 0; i < 3; i++) {
		event(WIRE_CALL, G, 1);
		event(WIRE_RETURN, G, 1);
		event(WIRE_MARK, 1, 1);
		event(WIRE_MARK, 1, 1);
		event(WIRE_CALL, F, 1);
		event(WIRE_RETURN, F, 1);
		event(WIRE_MARK, 2, 1);
		event(WIRE_MARK, 2, 1);
	}
	count();
	expect("f", 3, 3, 3, 3);
	expect("g", 0, 0, 0, 0);
}

/* A process with a thread that calls the function of that id before, in, between and behind the next test's windows. */
static uint32_t calls_in_child(int pid, int ppid, uint32_t id)
{
	static const uint32_t pauses[] = {5, 15, 5, 40, 40, 100};
	static const char *const names[] = {"", "f", "g", "h"};
	uint32_t child = fixture_process(fixture, pid, ppid), to = fixture_thread(fixture, child, (uint32_t)pid, 1000);

	fixture_code(fixture, child, id, "a.py", id, names[id]);
	fixture_define(fixture, child, WIRE_DEFINE_MARK, 1, 0, "", "begin", "", "");
	fixture_define(fixture, child, WIRE_DEFINE_MARK, 2, 0, "", "end", "", "");
	for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		fixture_event(fixture, to, WIRE_CALL, id, pauses[i]); /* at 1005, 1022, 1029, 1071, 1113, 1215 */
		fixture_event(fixture, to, WIRE_RETURN, id, 2);
	}
	return to;
}

/* By time in processes that the marking one has started, and that have no windows of their own. */
Test(profile, between_marks_of_the_parent)
{
	uint32_t child = calls_in_child(20, 10, F), own;

	options.mark_begin = "begin";
	options.mark_end = "end";
	fixture_event(fixture, child, WIRE_MARK, 2, 0); /* an end alone is no window */
	calls_in_child(30, 20, F);
	calls_in_child(40, 1, G);
	own = calls_in_child(50, 10, H);
	fixture_event(fixture, own, WIRE_MARK, 1, 1);
	fixture_event(fixture, own, WIRE_CALL, H, 1);
	fixture_event(fixture, own, WIRE_RETURN, H, 7);
	event(WIRE_MARK, 1, 10);
	event(WIRE_MARK, 2, 40); /* at 1050 */
	event(WIRE_MARK, 1, 60);
	event(WIRE_MARK, 2, 10); /* at 1120 */
	count();
	expect("f", 6, 6, 12, 12);
	expect("g", 0, 0, 0, 0);
	expect("h", 1, 1, 7, 7);
}

/* The filter shows the child only, and the marks are the parent's. */
Test(profile, between_marks_of_a_parent_that_is_not_shown)
{
	options.mark_begin = "begin";
	options.mark_end = "end";
	filter.pid = 20;
	calls_in_child(20, 10, F);
	event(WIRE_MARK, 1, 10);
	event(WIRE_CALL, G, 1);
	event(WIRE_MARK, 2, 20);
	count();
	expect("f", 2, 2, 4, 4);
	expect("g", 0, 0, 0, 0);
}

static void switch_to(uint64_t target, uint64_t origin, uint32_t ticks)
{
	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

/* What a greenlet runs in one window may have ended when the next one begins. */
Test(profile, several_windows_with_greenlets)
{
	options.mark_begin = "begin";
	options.mark_end = "end";
	event(WIRE_MARK, 1, 0);
	switch_to(0x20, 0x10, 0);
	event(WIRE_CALL, F, 0);
	switch_to(0x10, 0x20, 5);
	event(WIRE_MARK, 2, 1);
	switch_to(0x20, 0x10, 1);
	event(WIRE_RETURN, F, 1);
	event(WIRE_CALL, G, 1);
	switch_to(0x10, 0x20, 1);
	event(WIRE_MARK, 1, 1);
	switch_to(0x20, 0x10, 0);
	event(WIRE_CALL, H, 0);
	event(WIRE_RETURN, H, 10);
	switch_to(0x10, 0x20, 10);
	event(WIRE_MARK, 2, 0);
	count();
	expect("f", 1, 1, 5, 5);
	expect("h", 1, 1, 10, 10);
	cr_expect(profile.unmatched == 0);
}

Test(profile, from_to)
{
	filter.from_given = filter.to_given = true;
	filter.from_ns = 10; /* since the first event, at 1010 */
	filter.to_ns = 30;
	event(WIRE_CALL, F, 10);  /* 0 */
	event(WIRE_CALL, G, 5);	  /* 5 */
	event(WIRE_RETURN, G, 5); /* 10 */
	event(WIRE_CALL, G, 0);	  /* 10 */
	event(WIRE_RETURN, G, 5); /* 15 */
	event(WIRE_CALL, H, 5);	  /* 20 */
	event(WIRE_CALL, G, 10);  /* 30 */
	event(WIRE_RETURN, G, 5);
	event(WIRE_RETURN, H, 5);
	event(WIRE_RETURN, F, 5);
	count();
	expect("f", 0, 0, 5, 20); /* called before */
	expect("g", 1, 1, 5, 5);
	expect("h", 1, 1, 10, 10);
}

/* It begins in the third chunk. The second one has the stack, so the first one is not read. */
Test(profile, from_a_recorded_stack_on)
{
	options.edges = true;
	filter.from_given = true;
	filter.from_ns = 30;
	event(WIRE_CALL, G, 10); /* 0; it has ended, and its end is missing */
	fixture_flush(fixture, thread);
	event(WIRE_CALL, H, 10);
	event(WIRE_OPEN, F, 0);
	event(WIRE_OPEN, H, 0);
	fixture_flush(fixture, thread);
	event(WIRE_RETURN, H, 15); /* 25 */
	event(WIRE_CALL, H, 0);
	event(WIRE_RETURN, H, 15); /* 40 */
	event(WIRE_RETURN, F, 10);
	count();
	expect("f", 0, 0, 10, 20);
	expect("g", 0, 0, 0, 0);
	expect("h", 0, 0, 10, 10);
	cr_expect(edge_of("f", "h").total_ns == 10 && !edge_of("f", "h").calls);
}

/* What runs at the edge has ended at the event before the gap. */
Test(profile, from_a_time_in_a_gap)
{
	filter.from_given = true;
	filter.from_ns = 15;
	event(WIRE_CALL, F, 10);   /* 0 */
	event(WIRE_RETURN, G, 10); /* 10 */
	event(WIRE_GAP, 0, 10);	   /* 20 */
	fixture_extra(fixture, thread, 3);
	event(WIRE_CALL, H, 10);
	event(WIRE_RETURN, H, 10);
	count();
	expect("f", 0, 0, 0, 0);
	expect("h", 1, 1, 10, 10);
}

Test(profile, processes_are_added_up)
{
	uint32_t second = fixture_process(fixture, 20, 10);
	uint32_t its;

	fixture_code(fixture, second, 9, "a.py", 1, "f"); /* another id */
	its = fixture_thread(fixture, second, 20, 5000);
	event(WIRE_CALL, F, 1);
	event(WIRE_RETURN, F, 2);
	fixture_event(fixture, its, WIRE_CALL, 9, 1);
	fixture_event(fixture, its, WIRE_RETURN, 9, 3);
	fixture_event(fixture, its, WIRE_CALL, 55, 1); /* has no definition */
	fixture_event(fixture, its, WIRE_RETURN, 55, 1);
	count();
	expect("f", 2, 2, 5, 5);
	expect("<unknown function>", 1, 1, 1, 1);
	profile_done(&profile);
	filter.pid = 20;
	end_trace();
	set_up();
	filter.pid = 11;
	event(WIRE_CALL, F, 1);
	count();
	cr_expect(times_of("f").calls == 0);
}

Test(profile, edges)
{
	struct profile_times times;

	options.edges = true;
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_RETURN, G, 4);
	event(WIRE_RETURN, F, 1);
	event(WIRE_RETURN, G, 1);
	event(WIRE_RETURN, F, 1);
	count();
	expect("f", 2, 1, 4, 10);
	expect("g", 2, 1, 6, 8);
	times = edge_of("f", "g");
	cr_expect(times.calls == 2 && times.recursive == 1 && times.own_ns == 6 && times.total_ns == 8);
	times = edge_of("g", "f");
	cr_expect(times.calls == 1 && times.recursive == 0 && times.own_ns == 2 && times.total_ns == 6);
	cr_expect(profile.edge_count == 2);
}

/* A call that is left out leaves no edge without calls. */
Test(profile, edges_of_filtered_calls)
{
	options.edges = true;
	filter.min_duration_ns = 5;
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_RETURN, G, 4);
	event(WIRE_CALL, H, 1);
	event(WIRE_RETURN, H, 5);
	event(WIRE_RETURN, F, 1);
	count();
	cr_expect(profile.edge_count == 1 && edge_of("f", "h").calls == 1);
	cr_expect(profile.labels.count == 2, "%u labels", profile.labels.count);
}

static struct profile_times module_of(const char *file, const char *name)
{
	for (uint32_t i = 0; i < profile.labels.count; i++)
		if (text_same(profile.labels.at[i].file, text_of(file)) &&
		    text_same(profile.labels.at[i].name, text_of(name)) && !profile.labels.at[i].line)
			return profile.times[i];
	return (struct profile_times){0};
}

/* As if all functions of a module were one: calls within it are recursive, and their time counts once. */
Test(profile, modules)
{
	struct profile_times times;

	options.edges = options.modules = true;
	fixture_function(fixture, process, 2, "str", "join", "");
	fixture_function(fixture, process, 3, "", "print", "builtins");
	event(WIRE_CALL, F, 1);
	event(WIRE_CALL, G, 1);
	event(WIRE_CALL, H, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_RETURN, F, 4);
	event(WIRE_C_CALL, 2, 1);
	event(WIRE_C_RETURN, 2, 2);
	event(WIRE_RETURN, H, 1);
	event(WIRE_RETURN, G, 1);
	event(WIRE_C_CALL, LEN, 1);
	event(WIRE_C_RETURN, LEN, 3);
	event(WIRE_C_CALL, 3, 1);
	event(WIRE_C_RETURN, 3, 3);
	event(WIRE_RETURN, F, 1);
	count();
	times = module_of("a.py", "");
	cr_expect(times.calls == 3 && times.recursive == 2 && times.own_ns == 2 + 4 + 4 && times.total_ns == 21);
	times = module_of("b.py", "");
	cr_expect(times.calls == 1 && times.recursive == 0 && times.own_ns == 3 && times.total_ns == 9);
	cr_expect(module_of("~", "<str>").calls == 1 && module_of("~", "<builtins>").calls == 2);
	cr_expect(profile.labels.count == 4 && profile.edge_count == 5, "%u edges", profile.edge_count);
}

struct parts {
	uint64_t calls[4]; /* of f in each */
	uint32_t process[4], thread[4];
	int count;
};

static int take_part(void *owner, const struct profile *part, const struct trace_process *its_process,
		     const struct trace_thread *its_thread)
{
	struct parts *parts = owner;

	cr_assert(parts->count < 4);
	for (uint32_t i = 0; i < part->labels.count; i++)
		if (text_same(part->labels.at[i].name, text_of("f")))
			parts->calls[parts->count] = part->times[i].calls;
	parts->process[parts->count] = its_process->number;
	parts->thread[parts->count++] = its_thread ? its_thread->tid : 0;
	return parts->count == 4 ? -1 : 0;
}

static struct parts split(bool by_thread)
{
	struct parts parts = {0};
	struct progress progress;
	struct trace *trace = NULL;
	char error[256];

	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", error, sizeof(error)) == 0);
	progress_begin(&progress, "", 0);
	cr_assert(profile_each(trace, &options, by_thread, &progress, take_part, &parts) == 0);
	trace_close(trace);
	return parts;
}

static void call_f(uint32_t its, uint32_t id, int times)
{
	while (times--) {
		fixture_event(fixture, its, WIRE_CALL, id, 1);
		fixture_event(fixture, its, WIRE_RETURN, id, 1);
	}
}

Test(profile, a_profile_for_each)
{
	uint32_t second = fixture_process(fixture, 20, 10);
	uint32_t other = fixture_thread(fixture, process, 11, 1000);
	uint32_t its = fixture_thread(fixture, second, 20, 1000);
	struct parts parts;

	options.edges = true; /* whose numbers begin anew too */
	fixture_code(fixture, second, 9, "a.py", 1, "f");
	call_f(thread, F, 3);
	call_f(other, F, 5);
	call_f(its, 9, 7);
	fixture_end(fixture);
	parts = split(true);
	cr_assert(parts.count == 3);
	cr_expect(parts.calls[0] == 3 && parts.calls[1] == 5 && parts.calls[2] == 7);
	cr_expect(parts.thread[0] == 10 && parts.thread[1] == 11 && parts.thread[2] == 20);
	parts = split(false);
	cr_assert(parts.count == 2);
	cr_expect(parts.calls[0] == 8 && parts.calls[1] == 7 && parts.process[1] == second && !parts.thread[1]);
	filter.tid = 11;
	parts = split(true);
	cr_expect(parts.count == 1 && parts.calls[0] == 5);
}

Test(labels, native_names)
{
	struct fixture *with = fixture_new();
	uint32_t its = fixture_process(with, 1, 0);
	struct trace *trace = NULL;
	char error[256];
	static const char *const expected[] = {"<method 'append' of 'list' objects>", "<built-in method builtins.len>",
					       "<built-in method alone>"};

	fixture_function(with, its, 1, "list", "append", "");
	fixture_function(with, its, 2, "", "len", "builtins");
	fixture_function(with, its, 3, "", "alone", "");
	fixture_end(with);
	cr_assert(trace_open_memory(&trace, with->bytes, with->size, "test", error, sizeof(error)) == 0);
	for (uint32_t id = 1; id <= 3; id++) {
		char *name = label_c_function(trace_name(&trace->processes[0]->functions, id));

		cr_expect_str_eq(name, expected[id - 1]);
		free(name);
	}
	trace_close(trace);
	fixture_free(with);
}

Test(map, like_a_simple_table)
{
	enum { KEYS = 5000 };
	static uint64_t known[KEYS + 1];
	struct u64_map map = {0};
	uint32_t seed = 7;
	size_t count_known = 0;

	for (int round = 0; round < 200000; round++) {
		uint64_t key, value = 0;

		seed = seed * 1664525 + 1013904223;
		key = (seed >> 8) % KEYS + 1;
		if (seed >> 31) {
			uint64_t *at = u64_map_make(&map, key * 4096);

			cr_assert(at && *at == known[key]);
			count_known += known[key] == 0;
			*at = known[key] = (uint64_t)round + 1;
		} else {
			bool there = u64_map_take(&map, key * 4096, &value);

			cr_assert(there == (known[key] != 0) && (!there || value == known[key]));
			count_known -= there;
			known[key] = 0;
		}
		cr_assert(map.count == count_known);
	}
	u64_map_done(&map);
}

static void calibrate(const char *costs)
{
	fixture_define(fixture, process, WIRE_DEFINE_CALIBRATION, 1, 0, "", costs, "", "");
	options.calibrate = true;
}

static void call_len_from_f(void)
{
	event(WIRE_CALL, F, 100);
	event(WIRE_C_CALL, LEN, 50);
	event(WIRE_C_RETURN, LEN, 30);
	event(WIRE_RETURN, F, 40);
}

/* Half of a call's cost lies between its stamps, as its three numbers say; half of that at each of them. */
Test(profile, costs_are_taken_out_on_both_sides_of_an_event)
{
	calibrate("call 20 10 0 c_call 8 4 0 malloc 3");
	call_len_from_f();
	count();
	expect("<built-in method builtins.len>", 1, 1, 30 - 2 - 2, 30 - 2 - 2);
	expect("f", 1, 1, (50 - 5 - 2) + (40 - 2 - 5), 102);
}

/* Of the time of the interpreter half is taken, of that of C functions nothing; what "later" is nobody knows. */
Test(profile, slowed_instructions_are_taken_out)
{
	calibrate("slow 0.5 call 20 10 0 later 1 2 3 4 c_call 8 4 0 malloc 4 free 2");
	call_len_from_f();
	event(WIRE_CALL, G, 50);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 16, 0, 20);
	event(WIRE_RETURN, G, 100);
	count();
	expect("<built-in method builtins.len>", 1, 1, 26, 26);
	expect("f", 1, 1, 62 - 26, 62);
	/* 10 - 2.5 - 1 before the allocation, 50 - 1 - 2.5 after it */
	expect("g", 1, 1, 53, 53);
}

Test(profile, calls_from_c_have_costs_of_their_own)
{
	calibrate("call 20 10 0 callback 40 20 0 c_call 0 0 0");
	event(WIRE_CALL, F, 100);
	event(WIRE_C_CALL, LEN, 50);
	event(WIRE_CALL, G, 50);
	event(WIRE_RETURN, G, 50);
	event(WIRE_C_RETURN, LEN, 50);
	event(WIRE_RETURN, F, 50);
	count();
	expect("g", 1, 1, 50 - 10 - 10, 30);
	expect("<built-in method builtins.len>", 1, 1, 2 * (50 - 10), 80 + 30);
	expect("f", 1, 1, 2 * (50 - 5), 90 + 110);
}

Test(profile, no_time_gets_below_nothing)
{
	calibrate("call 2000 1000 0 c_call 800 400 0 malloc 3");
	call_len_from_f();
	count();
	expect("<built-in method builtins.len>", 1, 1, 0, 0);
	expect("f", 1, 1, 0, 0);
}

Test(profile, costs_that_are_nonsense_are_none)
{
	calibrate("call x c_call -1 slow 7");
	call_len_from_f();
	count();
	expect("f", 1, 1, 90, 120);
}

enum { LONG = 4 };

/* Three quarters of the code are far, so 3 of 4 for each event, half of that on each side. */
Test(profile, events_in_long_codes_cost_more)
{
	fixture_code_of_size(fixture, process, LONG, "long", 1024);
	calibrate("call 0 0 0 c_call 0 0 0 far 256 4");
	event(WIRE_CALL, LONG, 100);
	event(WIRE_C_CALL, LEN, 50);
	event(WIRE_C_RETURN, LEN, 30);
	event(WIRE_CALL, F, 50);
	event(WIRE_RETURN, F, 50);
	event(WIRE_RETURN, LONG, 40);
	count();
	expect("<built-in method builtins.len>", 1, 1, 30 - 3, 30 - 3);
	/* The call of f costs in the caller, too, before it begins. */
	expect("f", 1, 1, 50, 50);
	cr_expect(times_of("long").own_ns == 50 + 50 + 40 - 6 - 1, "%d", (int)times_of("long").own_ns);
}

/* The way is walked once: as long as the code is the same, the next event is nearby. */
Test(profile, the_first_event_after_one_of_another_code_walks)
{
	fixture_code_of_size(fixture, process, LONG, "long", 100);
	calibrate("call 0 0 0 c_call 0 0 0 walk 0.1");
	event(WIRE_CALL, LONG, 100);
	event(WIRE_C_CALL, LEN, 50);
	event(WIRE_C_RETURN, LEN, 30);
	event(WIRE_CALL, F, 20);
	event(WIRE_RETURN, F, 20);
	event(WIRE_RETURN, LONG, 40);
	count();
	expect("<built-in method builtins.len>", 1, 1, 30, 30);
	expect("long", 1, 1, 50 - 5 + 20 + 40 - 5, 50 - 5 + 30 + 20 + 20 + 40 - 5);
}

/* at: the time of the previous event. */
static void mark(uint32_t argument, uint64_t at)
{
	event(WIRE_TIME, argument, 0);
	fixture_extra(fixture, thread, at);
}

/* Traces from before 2026-11-23 have words with the offset of the next event, and two more costs. */
Test(profile, costs_and_words_of_older_traces_are_ignored)
{
	enum { FAR = 6, PLACE = 10 };

	calibrate("call 20 10 0 c_call 8 4 0 far 256 8 walk 0.125 marked 1 mix 2");
	mark(0, 1000);
	event(WIRE_CALL, F, 0);
	mark(FAR, 1000);
	event(WIRE_C_CALL, LEN, 50);
	event(WIRE_C_RETURN, LEN, 30);
	mark(PLACE | 32 << 4, 1080);
	event(WIRE_RETURN, F, 40);
	count();
	expect("<built-in method builtins.len>", 1, 1, 30 - 2 - 2, 30 - 2 - 2);
	expect("f", 1, 1, (50 - 5 - 2) + (40 - 2 - 5), 102);
}

/* A call without an event, at a time. */
static void call_of_class(uint64_t at)
{
	event(WIRE_OTHER_CALL, 0, (uint32_t)(at - fixture->threads[thread].now));
}

enum { INIT = 4 };

static void calibrate_classes(const char *costs)
{
	fixture_code_of_size(fixture, process, INIT, "__init__", 100);
	calibrate(costs);
	event(WIRE_TIME, 0, 0);
	fixture_extra(fixture, thread, 1000);
}

/* Half of it is before the recorded time, half after it. */
Test(profile, calls_that_are_no_event_cost_something)
{
	calibrate_classes("call 0 0 0 c_call 0 0 0 other 20");
	event(WIRE_CALL, F, 0);
	call_of_class(1050);
	event(WIRE_RETURN, F, 50);
	count();
	expect("f", 1, 1, 100 - 20, 100 - 20);
}

/* The cost of __init__ for a new object has that of its class in it; called by its name, it is a call. */
Test(profile, a_new_object_costs_what_its_class_does)
{
	calibrate_classes("call 8 0 0 c_call 0 0 0 init 30 0 0 other 20");
	event(WIRE_CALL, F, 0);
	call_of_class(1050);
	event(WIRE_CALL, INIT, 50);
	event(WIRE_RETURN, INIT, 50);
	event(WIRE_CALL, INIT, 50);
	event(WIRE_RETURN, INIT, 50);
	event(WIRE_RETURN, F, 50);
	count();
	expect("__init__", 2, 2, 100, 100);
	cr_expect(times_of("f").own_ns == 200 - 30 - 8, "%d", (int)times_of("f").own_ns);
}

/* A property, say, by the flags of its definition. */
Test(profile, a_function_without_a_reported_call_costs_what_operators_do)
{
	enum { ABSCISSA = 4 };

	fixture_code_entered(fixture, process, ABSCISSA, "abscissa");
	calibrate("call 40 0 0 entry 20 0 0 c_call 0 0 0");
	event(WIRE_CALL, F, 100);
	event(WIRE_CALL, ABSCISSA, 50);
	event(WIRE_RETURN, ABSCISSA, 50);
	event(WIRE_RETURN, F, 50);
	count();
	expect("abscissa", 1, 1, 50, 50);
	cr_expect(times_of("f").own_ns == 100 - 20, "%d", (int)times_of("f").own_ns);
}

/* A quarter of what is left of 100 ns after the first ten, and of longer ones no more; of C functions nothing. */
Test(profile, what_hooks_disturb_is_taken_out)
{
	calibrate("call 0 0 0 c_call 0 0 0 work 0.25 10");
	event(WIRE_CALL, F, 100);
	event(WIRE_C_CALL, LEN, 50);
	event(WIRE_C_RETURN, LEN, 50);
	event(WIRE_RETURN, F, 5000);
	count();
	expect("<built-in method builtins.len>", 1, 1, 50, 50);
	cr_expect(times_of("f").own_ns == 50 - 10 + 5000 - 25, "%d", (int)times_of("f").own_ns);
}

Test(profile, passes_that_do_not_agree_are_no_measurement)
{
	calibrate("spread 0.5 call 20 10 0 c_call 8 4 0");
	call_len_from_f();
	count();
	expect("f", 1, 1, 90, 120);
}

Test(profile, leaving_by_an_exception_has_a_cost_of_its_own)
{
	calibrate("call 0 0 0 c_call 0 0 0 unwind 20");
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, G, 10);
	event(WIRE_UNWIND, G, 50);
	event(WIRE_RETURN, F, 50);
	count();
	expect("g", 1, 1, 50 - 10, 50 - 10);
	expect("f", 1, 1, 10 + 50 - 10, 10 + 40 + 40);
}

/* Of 100 ticks half are slowed instructions; 20 of those were not, as it turns out. */
Test(profile, what_was_taken_too_much_is_given_back)
{
	calibrate("slow 0.5 call 0 0 0 c_call 0 0 0 unwind -20");
	event(WIRE_CALL, F, 10);
	event(WIRE_CALL, G, 10);
	event(WIRE_UNWIND, G, 50);
	event(WIRE_RETURN, F, 50);
	count();
	expect("g", 1, 1, 25 + 10, 25 + 10);
	expect("f", 1, 1, 5 + 25 + 10, 5 + 35 + 35);
}

Test(profile, no_time_gets_longer)
{
	calibrate("call -2000 0 0 c_call -800 0 0 unwind -20");
	call_len_from_f();
	count();
	expect("<built-in method builtins.len>", 1, 1, 30, 30);
	expect("f", 1, 1, 90, 120);
}

/* f, and a pause after which the time is recorded: half of it were slowed instructions. */
static void pause_in_f(void)
{
	calibrate("slow 0.5 call 0 0 0 c_call 0 0 0");
	cpu_time(1000, 1000);
	event(WIRE_CALL, F, 10);
	cpu_time(1000 + 10 + 60000, 101010);
	event(WIRE_RETURN, F, 10);
	count();
}

Test(profile, slowed_instructions_are_taken_out_of_pauses)
{
	pause_in_f();
	expect("f", 1, 1, 50000 + 5, 50000 + 5);
}

Test(profile, slowed_instructions_are_taken_out_of_cpu_time)
{
	clock_choice = CPU_CLOCK_RAN;
	pause_in_f();
	expect("f", 1, 1, 30000 + 5, 30000 + 5);
}

Test(profile, nothing_is_slowed_while_it_waits)
{
	clock_choice = CPU_CLOCK_WAITED;
	pause_in_f();
	expect("f", 1, 1, 40000, 40000);
}
