/*
 * test_tools_live.c - the blocks that are alive at the end and at the peak, by stack, as folded stacks show them; and a
 * model that counts all stacks again at each event.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "one_trace.h"

enum { MAIN = 1, F = 2, G = 3, MODULE = 4, SHUTDOWN = 5, GETPATH = 6, LEN = 1 };

static uint32_t add_process(int pid)
{
	uint32_t number = fixture_process(fixture, pid, 1);

	fixture_code(fixture, number, MAIN, "/x/app.py", 1, "main");
	fixture_code(fixture, number, F, "/x/app.py", 7, "f");
	fixture_code(fixture, number, G, "/x/app.py", 9, "g");
	fixture_code(fixture, number, MODULE, "/x/app.py", 1, "<module>");
	fixture_code(fixture, number, SHUTDOWN, "/x/threading.py", 5, "_shutdown");
	fixture_function(fixture, number, LEN, "", "len", "builtins");
	return number;
}

static void set_up(void)
{
	fixture = fixture_new();
	process = add_process(10);
	thread = fixture_thread(fixture, process, 10, 1000);
}

TestSuite(live, .init = set_up, .fini = end_trace);

static void on(uint32_t number, unsigned kind, uint32_t argument, uint32_t ticks)
{
	fixture_event(fixture, number, kind, argument, ticks);
}

static void made(uint32_t number, uint64_t address, uint64_t size)
{
	fixture_memory(fixture, number, WIRE_MALLOC, WIRE_DOMAIN_OBJ, address, size, 0, 1);
}

static void moved(uint32_t number, uint64_t old, uint64_t address, uint64_t size)
{
	fixture_memory(fixture, number, WIRE_REALLOC, WIRE_DOMAIN_RAW, address, size, old, 1);
}

static void freed(uint32_t number, uint64_t address)
{
	fixture_memory(fixture, number, WIRE_FREE, WIRE_DOMAIN_OBJ, address, 0, 0, 1);
}

static void expect_folded(const char *words, const char *lines)
{
	char line[256];

	snprintf(line, sizeof(line), "-f folded TRACE -o - --weight %s", words);
	run(cmd_export, line);
	cr_expect(ran.status == 0, "%s: %s", words, ran.err);
	cr_expect_str_eq(ran.out, lines, "%s: %s", words, ran.out);
}

#define P "a (10);thread (10)"
#define M P ";main (app.py:1)"

Test(live, what_is_not_freed_by_the_stack_that_made_it)
{
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10);
	on(thread, WIRE_CALL, F, 1);
	made(thread, 0x200, 100);
	made(thread, 0x300, 1000);
	on(thread, WIRE_RETURN, F, 1);
	freed(thread, 0x200);
	on(thread, WIRE_C_CALL, LEN, 1);
	fixture_memory(fixture, thread, WIRE_CALLOC, WIRE_DOMAIN_MEM, 0x200, 5, 0, 1);
	on(thread, WIRE_C_RETURN, LEN, 1);
	on(thread, WIRE_RETURN, MAIN, 1);
	made(thread, 0x400, 7);
	expect_folded("live", P " 7\n" M " 10\n" M ";f (app.py:7) 1000\n" M ";builtins.len 5\n");
	cr_expect_str_empty(ran.err, "nothing is missing: %s", ran.err);
	expect_folded("peak", M " 10\n" M ";f (app.py:7) 1100\n");
	expect_folded("bytes", P " 7\n" M " 10\n" M ";f (app.py:7) 1100\n" M ";builtins.len 5\n");
}

Test(live, a_realloc_is_the_last_one_s)
{
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10);
	made(thread, 0x200, 20);
	moved(thread, 0, 0x300, 3); /* of no block */
	on(thread, WIRE_CALL, F, 1);
	moved(thread, 0x100, 0x500, 40);
	moved(thread, 0x200, 0x200, 50);
	moved(thread, 0x200, 0, 1000);	/* failed */
	moved(thread, 0x999, 0x900, 6); /* of a block that was made before */
	made(thread, 0, 5000);
	freed(thread, 0);
	freed(thread, 0x888);
	on(thread, WIRE_RETURN, F, 1);
	on(thread, WIRE_RETURN, MAIN, 1);
	expect_folded("live", M " 3\n" M ";f (app.py:7) 96\n");
	expect_folded("peak", M " 3\n" M ";f (app.py:7) 96\n");
}

static void moves(uint32_t number, uint64_t address, uint32_t ticks)
{
	fixture_extended(fixture, number, WIRE_REALLOC_BEGIN, 0, &address, 1, ticks);
}

#define OTHER "a (10);thread (11)"

/* Another thread gets an address after the block there began to move; once it is even freed, and got again. */
Test(live, a_realloc_ends_the_block_that_it_began_with)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	made(thread, 0x100, 10);
	made(thread, 0x200, UINT64_C(7) << 30);
	moves(thread, 0x100, 10);
	moved(thread, 0x100, 0x300, 30);
	moves(thread, 0x200, 10); /* at 1023 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x100, 500, 0, 15);
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, UINT64_C(3) << 30, 0, 10);
	freed(other, 0x200);
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, 6000, 0, 1);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_NATIVE, 0x400, 70, 0x200, 20);
	expect_folded("live", P " 100\n" OTHER " 6500\n");
	expect_folded("peak", P " 7516192798\n" OTHER " 3221225972\n");
	expect_folded("live --to 40", P " 7516192798\n" OTHER " 6500\n"); /* it has not moved yet */
}

/* Where it failed, and where its event is missing: the block is back, unless another one is there by then. */
Test(live, a_block_that_did_not_move_is_back)
{
	made(thread, 0x100, 10);
	made(thread, 0x200, 200);
	made(thread, 0x300, 3000);
	moves(thread, 0x100, 1);
	moved(thread, 0x100, 0, 50000); /* failed */
	moves(thread, 0x200, 1);
	moves(thread, 0x300, 1); /* so 0x200 is back */
	made(thread, 0x300, 40000);
	on(thread, WIRE_GAP, 0, 1); /* 0x300 is another block's */
	fixture_extra(fixture, thread, 1);
	moves(thread, 0x900, 1); /* not known: ends nothing */
	made(thread, 0x900, 600000);
	moved(thread, 0x900, 0x500, 7000000);
	freed(thread, 0x100);
	moves(thread, 0x200, 1);
	moved(thread, 0x300, 0x600, 1); /* of another block than the one that began */
	freed(thread, 0x200);
	expect_folded("live", P " 7600001\n");
	cr_expect(strstr(ran.err, "events are missing"), "it is said: %s", ran.err);
}

/* The curve and the table follow blocks likewise. */
Test(live, other_readers_follow_moves)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0x100, 10, 0, 1);
	moves(thread, 0x100, 1);
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0x100, 500, 0, 10);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_RAW, 0x200, 20, 0x100, 20);
	fixture_memory(fixture, other, WIRE_FREE, WIRE_DOMAIN_RAW, 0x100, 0, 0, 20);
	run(cmd_export, "-f csv TRACE -o - --since-start");
	cr_expect(strstr(ran.out, ",256,-10,realloc_free,") && strstr(ran.out, ",256,-500,free,"), "%s", ran.out);
	run(cmd_export, "-f chrome TRACE -o -");
	cr_expect(strstr(ran.out, ":10}") && strstr(ran.out, ":520}") && strstr(ran.out, ":20}"), "%s", ran.out);
}

Test(live, sizes_above_four_gibibytes)
{
	const uint64_t large = UINT64_C(5) << 32;

	made(thread, 0x100, large);
	made(thread, 0x200, UINT32_MAX);
	made(thread, 0x300, large + 1);
	freed(thread, 0x300);
	moved(thread, 0x200, 0x200, UINT32_MAX - 1u);
	expect_folded("live", P " 25769803774\n"); /* 5 * 2^32 + 2^32 - 2 */
	expect_folded("peak", P " 47244640256\n"); /* 11 * 2^32 */
}

/* The first of two moments that are as large. */
Test(live, the_peak_is_the_first)
{
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10);
	on(thread, WIRE_CALL, F, 1);
	made(thread, 0x200, 90);
	freed(thread, 0x100);
	freed(thread, 0x200);
	on(thread, WIRE_CALL, G, 1);
	made(thread, 0x100, 100);
	freed(thread, 0x100);
	expect_folded("peak", M " 10\n" M ";f (app.py:7) 90\n");
	expect_folded("live", "");
}

/* Another thread frees them; its pieces and those of the first take turns. */
Test(live, threads_in_the_order_of_time)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	on(thread, WIRE_CALL, MAIN, 0);
	on(other, WIRE_CALL, G, 0);
	for (unsigned i = 1; i <= 50; i++) {
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x1000 * i, 100, 0, 20);
		/* In the middle between it and the next one: a block of its own, and that one is freed. */
		fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 8 + 0x1000 * i, 1, 0, i == 1 ? 30 : 15);
		fixture_memory(fixture, other, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x1000 * i, 0, 0, 5);
		if (i % 10 == 0)
			fixture_flush(fixture, other);
		if (i % 7 == 0)
			fixture_flush(fixture, thread);
	}
	expect_folded("live", "a (10);thread (11);g (app.py:9) 50\n");
	expect_folded("peak", M " 100\na (10);thread (11);g (app.py:9) 50\n");
	expect_folded("peak --thread 10", M " 100\n"); /* the moment is the process's */
	expect_folded("peak --thread 11", "a (10);thread (11);g (app.py:9) 50\n");
	expect_folded("live --thread 10", "");
}

Test(live, each_process_has_its_own_blocks_and_peak)
{
	uint32_t child = add_process(20), second = fixture_thread(fixture, child, 20, 5000);

	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10);
	made(thread, 0x200, 20);
	freed(thread, 0x200);
	freed(second, 0x100); /* its parent's */
	on(second, WIRE_CALL, F, 1);
	made(second, 0x100, 5);
	freed(second, 0x100);
	made(second, 0x300, 1);
	expect_folded("live", M " 10\na (20);thread (20);f (app.py:7) 1\n");
	expect_folded("peak", M " 30\na (20);thread (20);f (app.py:7) 5\n");
	expect_folded("peak --process 20", "a (20);thread (20);f (app.py:7) 5\n");
}

Test(live, filters)
{
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10); /* at 1001: the trace begins at 1000 */
	on(thread, WIRE_CALL, F, 99);
	on(thread, WIRE_CALL, G, 0);
	made(thread, 0x200, 200); /* 101 */
	on(thread, WIRE_RETURN, G, 0);
	freed(thread, 0x100);	   /* 102 */
	made(thread, 0x300, 3000); /* 103 */
	on(thread, WIRE_RETURN, F, 97);
	freed(thread, 0x200); /* 201 */
	freed(thread, 0x300);
	on(thread, WIRE_RETURN, MAIN, 0);
	expect_folded("live --to 101", M " 10\n");
	expect_folded("live --to 200", M ";f (app.py:7) 3000\n" M ";f (app.py:7);g (app.py:9) 200\n");
	expect_folded("live --from 50 --to 102", M ";f (app.py:7);g (app.py:9) 200\n");
	expect_folded("peak --from 102", M ";f (app.py:7) 3000\n");
	expect_folded("live --to 200 --exclude f", M " 3000\n" M ";g (app.py:9) 200\n");
	expect_folded("live --to 200 --max-depth 1", M " 3200\n");
	expect_folded("live --to 200 --include g", P " 3000\n" P ";g (app.py:9) 200\n");
}

#define X P ";<module> (app.py:1)"

/* Calls <module>, which makes a block and calls f, which makes another. */
static void run_program(unsigned end)
{
	on(thread, WIRE_CALL, MODULE, 0);
	made(thread, 0x100, 10);
	on(thread, WIRE_CALL, MODULE, 1); /* an import */
	made(thread, 0x200, 20);
	on(thread, WIRE_RETURN, MODULE, 1);
	if (end)
		on(thread, end, MODULE, 1);
}

/* What the interpreter gives back is no matter: it is freed at 4, and later, after what began at 0. */
Test(live, the_end_is_the_program_s)
{
	run_program(WIRE_UNWIND);
	on(thread, WIRE_CALL, F, 1); /* by atexit */
	freed(thread, 0x100);
	on(thread, WIRE_RETURN, F, 1);
	freed(thread, 0x200);
	made(thread, 0x400, 500);
	expect_folded("live", X " 10\n" X ";<module> (app.py:1) 20\n");
	expect_folded("live --exclude f", X " 10\n" X ";<module> (app.py:1) 20\n");
	expect_folded("live --to 1s", P " 500\n");
	expect_folded("live --from 6", P " 500\n");
	expect_folded("peak", P " 500\n");
}

/* Other threads may run until then. */
Test(live, the_end_is_that_of_the_last_thread)
{
	run_program(WIRE_RETURN);
	on(thread, WIRE_CALL, SHUTDOWN, 1);
	freed(thread, 0x100);
	on(thread, WIRE_RETURN, SHUTDOWN, 1);
	freed(thread, 0x200);
	expect_folded("live", X ";<module> (app.py:1) 20\n");
}

Test(live, the_end_is_the_trace_s_where_the_program_was_killed)
{
	run_program(WIRE_RETURN);
	on(thread, WIRE_CALL, SHUTDOWN, 1);
	freed(thread, 0x100);
	expect_folded("live", X ";<module> (app.py:1) 20\n");
}

Test(live, the_end_is_the_trace_s_where_the_program_did_not_end)
{
	run_program(0);
	freed(thread, 0x200);
	expect_folded("live", X " 10\n");
}

/* A frozen module that ran before is no program. */
Test(live, the_end_is_the_trace_s_where_that_of_the_program_is_lost)
{
	fixture_code(fixture, process, GETPATH, "<frozen getpath>", 1, "<module>");
	on(thread, WIRE_CALL, GETPATH, 0);
	made(thread, 0x300, 30);
	on(thread, WIRE_RETURN, GETPATH, 1);
	on(thread, WIRE_GAP, 0, 1);
	fixture_extra(fixture, thread, 5);
	on(thread, WIRE_CALL, F, 1);
	freed(thread, 0x300);
	made(thread, 0x200, 3);
	expect_folded("live", P ";f (app.py:7) 3\n");
	cr_expect(strstr(ran.err, "events are missing"), "it is said: %s", ran.err);
}

Test(live, native_functions_stand_on_top)
{
	fixture_module(fixture, process, 1, 0x7000, 4, "/lib/lib.so");
	fixture_native(fixture, process, 1, 0, 0x7100, 0);
	fixture_symbol(fixture, process, 1, 0x7100, 0, "outer", "o.c", 5, "lib.so");
	on(thread, WIRE_CALL, MAIN, 0);
	for (unsigned i = 0; i < 3; i++) {
		on(thread, WIRE_NATIVE_STACK, 1, 1);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x1000 * (i + 1), 100, 0, 0);
	}
	made(thread, 0x9000, 4);
	freed(thread, 0x2000);
	expect_folded("live", M " 4\n" M ";outer (lib.so) 200\n");
	expect_folded("peak", M " 4\n" M ";outer (lib.so) 300\n");
}

/* ---- stacks of their own, where calls are not recorded ---- */

static void change(uint32_t stay, uint64_t first, uint64_t second)
{
	const uint64_t places[] = {first, second};

	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, stay, places, !!first + !!second, 0);
}

/* Of a function whose instructions have lines: four bytes of the first line, four of the next one, and the rest. */
static uint64_t place(uint32_t code, int64_t offset)
{
	return wire_place(code, wire_instruction(offset));
}

static void stands_at(int64_t offset)
{
	on(thread, WIRE_AT_INSTRUCTION, wire_instruction(offset), 0);
}

static void have_lines(void)
{
	static const uint32_t codes[] = {MAIN, F, G};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		fixture_define(fixture, process, WIRE_DEFINE_LINES, codes[i], 0, "\x04\x01", "\x04\x01", "", "");
}

#define M2 P ";main (app.py:2)"

Test(live, stacks_of_their_own_have_lines)
{
	have_lines();
	change(0, place(MAIN, 0), 0);
	made(thread, 0x100, 10);
	stands_at(4);
	made(thread, 0x200, 20);
	change(1, place(F, -2), 0); /* before its first instruction */
	made(thread, 0x300, 100);
	stands_at(9);
	made(thread, 0x400, 200);
	stands_at(4);
	made(thread, 0x500, 400);
	change(2, place(F, 4), place(G, 100));
	made(thread, 0x600, 1000);
	change(2, 0, 0);
	made(thread, 0x700, 800);
	change(1, place(G, 0), 0);
	made(thread, 0x800, 2000);
	change(0, wire_place(F, 0), 0); /* its instruction is not known */
	made(thread, 0x900, 5);
	change(0, 0, 0);
	made(thread, 0xa00, 3);
	freed(thread, 0x200);
	expect_folded("live", P " 3\n" M " 10\n" M2 ";f (app.py:7) 100\n" M2 ";f (app.py:9) 200\n" M2
				";f (app.py:8) 1200\n" M2 ";f (app.py:8);f (app.py:8);g (app.py:11) 1000\n" M2
				";g (app.py:9) 2000\n" P ";f (app.py:7) 5\n");
	expect_folded("allocations", P " 1\n" M " 1\n" M2 " 1\n" M2 ";f (app.py:7) 1\n" M2 ";f (app.py:9) 1\n" M2
				       ";f (app.py:8) 2\n" M2 ";f (app.py:8);f (app.py:8);g (app.py:11) 1\n" M2
				       ";g (app.py:9) 1\n" P ";f (app.py:7) 1\n");
	expect_folded("time", "");
}

/* A hidden function is part of its caller, and counts among the frames that stay. */
Test(live, stacks_of_their_own_with_a_hidden_function)
{
	change(0, place(MAIN, 0), place(F, 0));
	made(thread, 0x100, 10);
	stands_at(8);
	made(thread, 0x200, 20);
	change(2, place(G, 0), 0);
	made(thread, 0x300, 40);
	change(1, place(G, 0), place(F, 0));
	made(thread, 0x400, 80);
	change(1, 0, 0);
	made(thread, 0x500, 160);
	expect_folded("live --exclude f", M " 190\n" M ";g (app.py:9) 120\n");
}

/* ---- lines where calls are recorded: the place is that of whichever function is innermost ---- */

#define M3 P ";main (app.py:3)"

Test(live, lines_with_calls)
{
	have_lines();
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10); /* nothing is known yet */
	stands_at(4);
	made(thread, 0x200, 20);
	on(thread, WIRE_CALL, F, 1);
	made(thread, 0x300, 40);
	stands_at(8);
	made(thread, 0x400, 80);
	on(thread, WIRE_C_CALL, LEN, 1);
	made(thread, 0x500, 160);
	on(thread, WIRE_C_RETURN, LEN, 1);
	on(thread, WIRE_RETURN, F, 1);
	made(thread, 0x600, 320);
	on(thread, WIRE_STACK, 1, 0); /* from here on it is not known again */
	on(thread, WIRE_FRAME, MAIN, 0);
	made(thread, 0x700, 640);
	expect_folded("live", M " 650\n" M2 " 20\n" M ";f (app.py:8) 40\n" M ";f (app.py:9) 80\n" M
				";f (app.py:9);builtins.len 160\n" M3 " 320\n");
}

Test(live, lines_with_calls_of_hidden_functions)
{
	have_lines();
	on(thread, WIRE_CALL, MAIN, 0);
	on(thread, WIRE_C_CALL, LEN, 1);
	stands_at(4);
	made(thread, 0x100, 10);
	on(thread, WIRE_CALL, F, 1);
	stands_at(8);
	made(thread, 0x200, 20); /* where F stands is not where its caller does */
	on(thread, WIRE_RETURN, F, 1);
	on(thread, WIRE_C_RETURN, LEN, 1);
	made(thread, 0x300, 40);
	expect_folded("live --exclude f --exclude len", M " 20\n" M2 " 10\n" M3 " 40\n");
}

/* Who begins in the middle finds the last whole stack. More frames stay than a hostile trace has. */
Test(live, stacks_of_their_own_from_the_middle)
{
	change(0, place(MAIN, 0), place(F, 0));
	made(thread, 0x100, 10);
	fixture_flush(fixture, thread);
	change(1, place(G, 0), 0);
	made(thread, 0x200, 20);
	fixture_flush(fixture, thread);
	on(thread, WIRE_MARK, 0, 1000000);
	made(thread, 0x300, 40);
	change(2, place(F, 0), 0);
	made(thread, 0x400, 80);
	change(100, place(G, 0), 0);
	made(thread, 0x500, 160);
	expect_folded("live --from 0.5ms", M ";g (app.py:9) 40\n" M ";g (app.py:9);f (app.py:7) 80\n" M
					     ";g (app.py:9);f (app.py:7);g (app.py:9) 160\n");
}

/* What was freed meanwhile looks alive until its address comes again; one line says so. */
Test(live, after_a_gap)
{
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x100, 10);
	made(thread, 0x200, 20);
	on(thread, WIRE_GAP, 0, 1);
	fixture_extra(fixture, thread, 5);
	on(thread, WIRE_CALL, F, 1);
	made(thread, 0x200, 3);
	expect_folded("live", M " 10\n" P ";f (app.py:7) 3\n");
	cr_expect(strstr(ran.err, "freed") && strchr(ran.err, '\n') == strrchr(ran.err, '\n'), "one line: %s", ran.err);
	expect_folded("live --process 10 --to 2", M " 10\n");
	cr_expect_str_empty(ran.err, "the gap is later: %s", ran.err);
	expect_folded("bytes", M " 30\n" P ";f (app.py:7) 3\n");
	cr_expect_str_empty(ran.err, "what was made is known: %s", ran.err);
}

Test(live, unknown_weights_name_the_known_ones)
{
	run(cmd_export, "-f folded --weight dead TRACE -o -");
	cr_expect_eq(ran.status, 2);
	cr_expect_str_eq(ran.err,
			 "evprof export: --weight wants time, bytes, allocations, live, peak or temporary, not "
			 "\"dead\"\n");
}

Test(live, needs_the_wall_s_clock)
{
	run(cmd_export, "-f folded --clock cpu --weight peak TRACE -o -");
	cr_expect(ran.status == 2 && strstr(ran.err, "wall clock"), "%d %s", ran.status, ran.err);
}

/* --- a model --- */

#define BLOCKS 40
#define STACKS 3

struct model {
	uint64_t size[BLOCKS]; /* 0: free */
	unsigned stack[BLOCKS];
	uint64_t peak;
	uint64_t at_peak[STACKS];
};

static void model_sums(const struct model *model, uint64_t *sums, uint64_t *all)
{
	memset(sums, 0, STACKS * sizeof(*sums));
	*all = 0;
	for (unsigned i = 0; i < BLOCKS; i++) {
		sums[model->stack[i]] += model->size[i];
		*all += model->size[i];
	}
}

static void model_made(struct model *model, unsigned block, unsigned stack, uint64_t size)
{
	uint64_t sums[STACKS], all;

	model->size[block] = size;
	model->stack[block] = stack;
	model_sums(model, sums, &all);
	if (all > model->peak) {
		model->peak = all;
		memcpy(model->at_peak, sums, sizeof(sums));
	}
}

static const char *model_lines(const uint64_t *sums)
{
	static const char *const names[STACKS] = {P, M, M ";f (app.py:7)"};
	static char lines[512];
	size_t used = 0;

	lines[0] = 0;
	for (unsigned i = 0; i < STACKS; i++)
		if (sums[i])
			used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s %llu\n", names[i],
						 (unsigned long long)sums[i]);
	return lines;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* The stacks are met outermost first, so that the lines are in the order of the model's. */
static void meet_stacks(struct model *model)
{
	made(thread, 0x1000, 1);
	on(thread, WIRE_CALL, MAIN, 0);
	made(thread, 0x2000, 1);
	on(thread, WIRE_CALL, F, 0);
	made(thread, 0x3000, 1);
	for (unsigned i = 0; i < STACKS; i++)
		model_made(model, i, i, 1);
}

Test(live, as_a_model_has_it)
{
	uint64_t state = 88172645463325252u, sums[STACKS], all;
	struct model model = {0};
	unsigned depth = 2;

	meet_stacks(&model);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned block = (unsigned)(next_random(&state) % BLOCKS), what = (unsigned)(next_random(&state) % 8);
		uint64_t address = 0x1000 * ((uint64_t)block + 1), size = 1 + next_random(&state) % (1 + i / 10);

		if (what == 0 && depth < 2) {
			on(thread, WIRE_CALL, depth++ ? F : MAIN, 1);
		} else if (what == 1 && depth) {
			on(thread, WIRE_RETURN, --depth ? F : MAIN, 1);
		} else if (model.size[block] && what & 1) {
			freed(thread, address);
			model.size[block] = 0;
		} else {
			if (model.size[block])
				moved(thread, address, address, size);
			else
				made(thread, address, size);
			model_made(&model, block, depth, size);
		}
		if (i % 1000 == 999)
			fixture_flush(fixture, thread);
	}
	model_sums(&model, sums, &all);
	expect_folded("live", model_lines(sums));
	expect_folded("peak", model_lines(model.at_peak));
	cr_expect(all < model.peak && memcmp(sums, model.at_peak, sizeof(sums)), "they are different moments");
}
