/*
 * test_tools_check.c - evprof check: how functions are matched, counted and held against limits.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "two_traces.h"

TestSuite(check, .init = begin_trace, .fini = tear_down);

/* --- check --- */

/* A process of whose META object only these members matter. */
static void begin_process(const char *members)
{
	fixture_free(fixture);
	fixture = fixture_new();
	process = fixture_process_with(fixture, members);
	thread = fixture_thread(fixture, process, 10, 1000);
}

static void begin_memory(void)
{
	begin_process("\"events\":[\"call\",\"mem\"]");
}

/* outer(inner(inner)) twice, a C function, memory, and 3 lost events. */
static void something(void)
{
	code(1, "/src/mod.py", 10, "outer", "K.outer");
	code(2, "/src/mod.py", 20, "inner", "K.inner");
	fixture_function(fixture, process, 1, "str", "join", "");
	for (int i = 0; i < 2; i++) {
		event(WIRE_CALL, 1, 1000000);
		event(WIRE_CALL, 2, 2000000);
		event(WIRE_CALL, 2, 3000000);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, 0x1000 + (uint64_t)i * 0x100000, 1000, 0,
			       0);
		event(WIRE_RETURN, 2, 4000000);
		event(WIRE_RETURN, 2, 5000000);
		event(WIRE_C_CALL, 1, 0);
		event(WIRE_C_RETURN, 1, 1000000);
		event(WIRE_RETURN, 1, 1000000);
	}
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_MEM, 0x1000, 5000, 0x1000, 0);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_MEM, 0x1000, 0, 0, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, 0x9000, 10, 0, 0);
	save(0);
}

static void expect_check(const char *words, int status, const char *line)
{
	cr_expect(run(cmd_check, words) == status, "%s: status %d\n%s%s", words, ran.status, ran.out, ran.err);
	cr_expect(strstr(ran.out, line), "%s: no \"%s\" in\n%s%s", words, line, ran.out, ran.err);
}

Test(check, calls)
{
	something();
	expect_check("--max-calls pack.mod:inner=4 TRACE", 0,
		     "ok     --max-calls pack.mod:inner=4: 4 calls, at most 4\n");
	expect_check("--max-calls pack.mod:inner=3 TRACE", 1,
		     "FAILED --max-calls pack.mod:inner=3: 4 calls, at most 3\n");
	expect_check("--max-calls mod:K.inner=3 TRACE", 1, "4 calls");
	expect_check("--max-calls mod.py:K.*=5 TRACE", 1, "6 calls");
	expect_check("--max-calls /src/mod.py:outer=1 TRACE", 1, "2 calls");
	expect_check("--max-calls *:str.join=1 TRACE", 1, "2 calls");
	expect_check("--max-calls builtins:join=1 TRACE", 1, "2 calls");
	expect_check("--max-calls TOTAL=7 TRACE", 1, "8 calls");
	expect_check("--max-calls TOTAL=8 --thread 10 TRACE", 0, "8 calls");
}

Test(check, times_are_inclusive_and_count_recursion_once)
{
	something();
	expect_check("--max-time mod:inner=0.024 TRACE", 0, "0.024 s, at most 0.024 s");
	expect_check("--max-time mod:inner=23.9ms TRACE", 1, "0.024000 s, at most 0.023900 s");
	expect_check("--max-time mod:K.*=1us TRACE", 1, "0.032000 s");
	expect_check("--max-time TOTAL=0.03 TRACE", 1, "0.032 s, at most 0.030 s");
}

/* Times are rounded to what is written, at most to the ms of evprof report. */
Test(check, times_as_the_report_prints_them)
{
	code(1, "/src/mod.py", 10, "f", "");
	called(1, 1, 2000400400);
	save(0);
	expect_check("--max-time mod:f=2.000 TRACE", 0, "2.000 s, at most 2.000 s");
	expect_check("--max-time mod:f=2 TRACE", 0, "2.000 s, at most 2.000 s");
	expect_check("--max-time mod:f=2000ms TRACE", 0, "2.000 s");
	expect_check("--max-time mod:f=2.0004 TRACE", 0, "2.000400 s, at most 2.000400 s");
	expect_check("--max-time mod:f=2000400us TRACE", 0, "2.000400 s");
	expect_check("--max-time mod:f=2.0003 TRACE", 1, "2.000400 s, at most 2.000300 s");
	expect_check("--max-time mod:f=2000400400ns TRACE", 0, "2.000400400 s");
	expect_check("--max-time mod:f=2000400399ns TRACE", 1, "2.000400400 s, at most 2.000400399 s");
	expect_check("--max-time mod:f=1.999 TRACE", 1, "2.000 s, at most 1.999 s");
	expect_check("--max-time mod:f=0 TRACE", 1, "at most 0.000000000 s");
}

Test(check, peak_and_losses)
{
	begin_memory();
	something();
	expect_check("--max-alloc 6000 TRACE", 0, "6000 bytes in process 10, at most 6000");
	expect_check("--max-alloc 5K TRACE", 1, "6000 bytes in process 10, at most 5120");
	expect_check("--max-lost 0 TRACE", 0, "0 events lost");
}

/* A native realloc begins at the address where a block of Python's is later. */
Test(check, peak_of_python_s_blocks_only)
{
	const uint64_t address = 0x1000;

	begin_memory();
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, address, 500, 0, 1);
	fixture_extended(fixture, thread, WIRE_REALLOC_BEGIN, 0, &address, 1, 1);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_NATIVE, 0x9000, 60000, address, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, address, 1000, 0, 1);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_MEM, 0x2000, 3000, address, 1);
	save(0);
	expect_check("--max-alloc 1 TRACE", 1, "3000 bytes");
}

/* Where other threads free them. */
Test(check, peak_of_the_blocks_of_one_thread)
{
	uint32_t other;

	begin_memory();
	other = fixture_thread(fixture, process, 11, 1000);
	for (uint64_t address = 0x1000; address < 0x5000; address += 0x1000) {
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, address, 1000, 0, 10);
		fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_MEM, address + 8, 70000, 0, 9);
		fixture_memory(fixture, other, WIRE_FREE, WIRE_DOMAIN_MEM, address, 0, 0, 1);
	}
	save(0);
	expect_check("--max-alloc 1 --thread 10 TRACE", 1, "1000 bytes");
	expect_check("--max-alloc 1 --thread 11 TRACE", 1, "280000 bytes");
}

Test(check, lost_events)
{
	code(1, "a.py", 1, "f", "");
	called(1, 1, 1);
	event(WIRE_GAP, 0, 5);
	fixture_extra(fixture, thread, 3);
	fixture_flush(fixture, thread); /* no end: losses are counted by reading */
	paths[0] = fixture_save(fixture);
	expect_check("--max-lost 2 TRACE", 1, "3 events lost, at most 2");
	expect_check("--max-lost 3 TRACE", 2, "ok     --max-lost 3: 3 events lost");
	expect_check("--max-calls a:f=0 TRACE", 1, "1 calls, at most 0");
	expect_check("--max-calls a:f=1 TRACE", 2, "ERROR  --max-calls a:f=1: events were lost");
	expect_check("--max-calls a:f=1 --max-lost 2 TRACE", 2, "ERROR  --max-calls a:f=1: events were lost");
	expect_check("--max-calls a:f=1 --max-lost 3 TRACE", 2, "ok     --max-calls a:f=1");
	cr_expect(strstr(ran.err, "3 events were lost"));
}

Test(check, what_matches_nothing)
{
	something();
	expect_check("--max-calls mod:outr=5 TRACE", 2,
		     "ERROR  --max-calls mod:outr=5: no function of the trace matches");
	expect_check("--max-time other:outer=5 TRACE", 2, "ERROR ");
	expect_check("--max-calls mod:outr=0 TRACE", 0, "ok     --max-calls mod:outr=0: 0 calls");
	expect_check("--max-calls mod:outer=0 --max-calls mod:outr=5 TRACE", 2,
		     "FAILED --max-calls mod:outer=0: 2 calls");
}

Test(check, near_names)
{
	something();
	expect_check("--max-calls mod:outr=5 TRACE", 2, "; near: pack.mod:K.outer\n");
	expect_check("--max-calls mdo.py:outer=5 TRACE", 2, "; near: pack.mod:K.outer\n");
	expect_check("--max-calls elsewhere:outer=5 TRACE", 2, "; near: pack.mod:K.outer\n");
	expect_check("--max-calls mod:nothing_like_it=5 TRACE", 2, "none may\n");
}

Test(check, paths)
{
	code(1, "/srv/app/db.py", 10, "query", "");
	code(2, "/srv/other/db.py", 10, "query", "");
	called(1, 2, 1);
	called(2, 3, 1);
	save(0);
	expect_check("--max-calls app/db.py:query=1 TRACE", 1, "2 calls");
	expect_check("--max-calls app/db:query=1 TRACE", 1, "2 calls");
	expect_check("--max-calls srv/app/db.py:query=1 TRACE", 1, "2 calls");
	expect_check("--max-calls o*/db.py:query=1 TRACE", 1, "3 calls");
	expect_check("--max-calls db.py:query=1 TRACE", 1, "5 calls");
	expect_check("--max-calls pp/db.py:query=1 TRACE", 2, "no function of the trace matches");
}

Test(check, sampled)
{
	begin_process("\"events\":[\"call\",\"line\"],\"sample_rate\":100");
	code(1, "a.py", 1, "f", "");
	called(1, 2, 1);
	save(0);
	expect_check("--max-calls a:f=2 TRACE", 2, "ERROR  --max-calls a:f=2: stacks were sampled");
	expect_check("--max-time TOTAL=5 TRACE", 2, "ERROR  --max-time TOTAL=5: stacks were sampled");
	expect_check("--max-calls a:g=0 TRACE", 2, "stacks were sampled");
	expect_check("--max-calls a:f=1 TRACE", 1, "FAILED --max-calls a:f=1: 2 calls");
	expect_check("--max-lost 0 TRACE", 0, "ok ");
}

Test(check, c_functions_without_their_events)
{
	code(1, "/srv/app/db.py", 1, "f", "");
	called(1, 2, 1);
	save(0);
	expect_check("--max-calls builtins:len=0 TRACE", 2, "ERROR  --max-calls builtins:len=0: its calls were not");
	expect_check("--max-calls *:len=5 TRACE", 2, "its calls were not recorded");
	expect_check("--max-calls pack.mod:f=2 TRACE", 0, "ok ");
	expect_check("--max-calls pack.mod:g=0 TRACE", 0, "ok ");
	expect_check("--max-calls app/legacy.py:*=0 TRACE", 0, "ok ");
	expect_check("--max-calls TOTAL=2 TRACE", 0, "ok ");
}

Test(check, calls_without_their_events)
{
	begin_process("\"events\":[\"c_call\"]");
	fixture_function(fixture, process, 1, "", "len", "builtins");
	event(WIRE_C_CALL, 1, 0);
	event(WIRE_C_RETURN, 1, 10);
	save(0);
	expect_check("--max-calls a:f=0 TRACE", 2, "its calls were not recorded");
	expect_check("--max-time TOTAL=1 TRACE", 2, "its calls were not recorded");
	expect_check("--max-calls builtins:len=1 TRACE", 0, "ok ");
}

Test(check, functions_left_out)
{
	begin_process("\"events\":[\"call\",\"c_call\"],\"filtered\":true");
	code(1, "a.py", 1, "f", "");
	called(1, 2, 1);
	save(0);
	expect_check("--max-calls a:f=2 TRACE", 0, "ok ");
	expect_check("--max-calls a:f=1 TRACE", 1, "FAILED ");
	expect_check("--max-calls a:g=0 TRACE", 2, "ERROR  --max-calls a:g=0: functions were left out");
	expect_check("--max-calls a:*=2 TRACE", 2, "functions were left out");
	expect_check("--max-calls TOTAL=2 TRACE", 2, "functions were left out");
}

/* What a thinned function calls of C may not be in the trace at all. */
Test(check, c_functions_in_thinned_ones)
{
	const uint64_t thinned[] = {1000, 1};

	begin_process("\"events\":[\"call\",\"c_call\"],\"budget\":5");
	code(1, "/srv/app/db.py", 1, "f", "");
	code(2, "/srv/app/db.py", 2, "g", "");
	fixture_extended(fixture, thread, WIRE_THIN, 0, thinned, 2, 0);
	called(2, 2, 1);
	save(0);
	expect_check("--max-calls builtins:len=0 TRACE", 2,
		     "ERROR  --max-calls builtins:len=0: its calls are an estimate");
	expect_check("--max-calls *:len=0 TRACE", 2, "its calls are an estimate");
	expect_check("--max-calls pack.mod:f=2 TRACE", 2, "its calls are an estimate");
	expect_check("--max-calls pack.mod:g=2 TRACE", 0, "ok ");
	expect_check("--max-calls pack.mod:h=0 TRACE", 0, "ok ");
	expect_check("--max-calls app/legacy.py:*=0 TRACE", 0, "ok ");
}

Test(check, stopped_for_a_while)
{
	begin_memory();
	code(1, "/src/mod.py", 1, "f", "");
	called(1, 2, 1);
	event(WIRE_PAUSE, 1, 1);
	event(WIRE_PAUSE, 0, 1000000);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_MEM, 0x1000, 1000, 0, 0);
	save(0);
	expect_check("--max-calls mod:f=2 TRACE", 2, "ERROR  --max-calls mod:f=2: recording was stopped");
	expect_check("--max-time TOTAL=1 TRACE", 2, "recording was stopped");
	expect_check("--max-alloc 1000 TRACE", 2, "recording was stopped");
	expect_check("--max-alloc 999 TRACE", 1, "FAILED --max-alloc 999: 1000 bytes");
	expect_check("--max-lost 0 TRACE", 0, "ok ");
}

static void leave_room(void)
{
	const size_t bytes = 8192;

	fixture->bytes = realloc(fixture->bytes, fixture->size + bytes);
	cr_assert(fixture->bytes);
	memset(fixture->bytes + fixture->size, 0, bytes);
	fixture->size += bytes;
}

/* A trace that keeps its last stretch (EVPROF_KEEP) is whole while nothing has left it. */
Test(check, last_stretch)
{
	enum { WHOLE, NOT_KEPT, NOT_IN_INDEX, GIVEN_BACK, CUT, CASES };

	for (int i = 0; i < CASES; i++) {
		bool doubted = i > NOT_KEPT;

		begin_process(i == NOT_KEPT ? "\"events\":[\"call\",\"c_call\"]"
			      : i == CUT    ? "\"events\":[\"call\",\"c_call\"],\"keep_ns\":9,\"since_ns\":5"
					    : "\"events\":[\"call\",\"c_call\"],\"keep_bytes\":9");
		code(1, "/src/mod.py", 1, "f", "");
		called(1, 1, 1);
		fixture_flush(fixture, thread);
		fixture->entry_count -= i == NOT_IN_INDEX;
		if (i == GIVEN_BACK)
			leave_room();
		called(1, 2, 1);
		save(0);
		expect_check("--max-calls mod:f=1 TRACE", 1, "FAILED ");
		expect_check("--max-calls mod:f=3 TRACE", doubted ? 2 : 0,
			     doubted ? "ERROR  --max-calls mod:f=3: only the last stretch was kept" : "ok ");
		expect_check("--max-calls mod:f=3 --from 0 TRACE", 0, "ok ");
		expect_check("--max-alloc 1 --from 0 TRACE", 2, doubted ? "only the last" : "no memory events");
		expect_check("--max-lost 0 TRACE", 0, "ok ");
		tear_down();
		begin_trace();
	}
	fixture_free(fixture); /* all processes have left it */
	fixture = fixture_new();
	save(0);
	expect_check("--max-calls mod:f=0 TRACE", 2, "only the last stretch was kept");
}

Test(check, what_memory_it_covers)
{
	begin_memory();
	something();
	expect_check("--max-alloc 6000 TRACE", 0, "Python's allocators");
}

Test(check, no_memory_events)
{
	code(1, "a.py", 1, "f", "");
	called(1, 1, 1);
	save(0);
	expect_check("--max-alloc 1G TRACE", 2, "no memory events");
}

Test(check, mistakes)
{
	static const char *const wrong[] = {"",
					    "--max-calls a:b TRACE",
					    "--max-calls b=1 TRACE",
					    "--max-calls :b=1 TRACE",
					    "--max-calls a:b=x TRACE",
					    "--max-calls a:b=-1 TRACE",
					    "--max-time a:b=nan TRACE",
					    "--max-time a:b=1h TRACE",
					    "--max-alloc 5X TRACE",
					    "--max-lost TRACE",
					    "--max-lost 0",
					    "--max-lost 0 /nonexistent",
					    "--nonsense TRACE",
					    "TRACE",
					    "--max-lost 0 --junit TRACE TRACE",
					    "--max-lost 0 --process 5000 TRACE",
					    "--max-lost 0 --thread 5000 TRACE",
					    "--max-lost 0 --process 10 --thread 5000 TRACE",
					    "--max-lost 0 --from 2s --to 2s TRACE",
					    "--max-lost 0 --junit /nonexistent/file TRACE"};

	save(0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_expect(run(cmd_check, wrong[i]) == 2, "%s", wrong[i]);
		cr_expect(strncmp(ran.err, "evprof", 6) == 0 && strchr(ran.err, '\n') == strrchr(ran.err, '\n'),
			  "%s: one line, not %s", wrong[i], ran.err);
	}
	cr_expect(run(cmd_check, "--max-lost 0 --process 10 --thread 10 TRACE") == 0, "the trace was not touched");
}
