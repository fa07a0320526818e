/*
 * test_tools_csv.c - evprof export --format csv over traces of the fixture: each column, order, filters, quoting.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "one_trace.h"

#define HEADER "time,value1,value2,event,name,mod,lineno,from_name,from_mod,from_line,pid,tid,value\n"

/* Functions: 1 main of a.py:1, 2 f of lib/b.py:20, 3 g of lib/b.py:30; C functions: 1 deque.append, 2 len. */
static uint32_t new_process(int pid)
{
	uint32_t number = fixture_process(fixture, pid, 1);

	fixture_code(fixture, number, 1, "a.py", 1, "main");
	fixture_code(fixture, number, 2, "lib/b.py", 20, "f");
	fixture_code(fixture, number, 3, "lib/b.py", 30, "g");
	fixture_function(fixture, number, 1, "collections.deque", "append", "");
	fixture_function(fixture, number, 2, "", "len", "builtins");
	return number;
}

static void set_up(void)
{
	fixture = fixture_new();
	process = new_process(10);
	thread = fixture_thread(fixture, process, 11, 1000);
}

TestSuite(csv, .init = set_up, .fini = end_trace);

static void memory(unsigned kind, uint64_t address, uint64_t size, uint64_t old)
{
	fixture_memory(fixture, thread, kind, WIRE_DOMAIN_OBJ, address, size, old, 1);
}

/* Runs export with these options. Returns its status. */
static int export(const char *options)
{
	char words[256];

	snprintf(words, sizeof(words), "-fcsv -o- TRACE %s", options);
	return run(cmd_export, words);
}

/* The whole table with these options; rows without the header. */
static void expect_rows(const char *options, const char *rows)
{
	cr_expect(export(options) == 0, "status of export %s", options);
	cr_assert(strncmp(ran.out, HEADER, strlen(HEADER)) == 0, "%s", ran.out);
	cr_expect_str_eq(ran.out + strlen(HEADER), rows);
}

Test(csv, calls_of_both_kinds)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_C_CALL, 1, 10);
	event(WIRE_C_RETURN, 1, 10);
	event(WIRE_CALL, 2, 10);
	event(WIRE_C_CALL, 2, 10);
	event(WIRE_CALL, 3, 10); /* called by a C function: its caller is the Python function below */
	event(WIRE_UNWIND, 3, 10);
	event(WIRE_C_EXCEPTION, 2, 10);
	event(WIRE_EXCEPTION, 0, 10);
	event(WIRE_YIELD, 2, 10);
	event(WIRE_RESUME, 2, 10);
	event(WIRE_YIELD, 2, 10);
	event(WIRE_THROW, 2, 10);
	event(WIRE_RETURN, 2, 10);
	event(WIRE_MARK, 1, 10);
	event(WIRE_RETURN, 1, 10);
	expect_rows("--since-start", "0,0,0,call,main,a.py,1,,,-1,10,11,0\n"
				     "10,0,0,c_call,deque.append,,1,main,a.py,1,10,11,0\n"
				     "20,0,0,c_return,deque.append,,1,main,a.py,1,10,11,0\n"
				     "30,0,0,call,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "40,0,0,c_call,len,builtins,20,f,lib/b.py,20,10,11,0\n"
				     "50,0,0,call,g,lib/b.py,30,f,lib/b.py,20,10,11,0\n"
				     "60,0,0,return,g,lib/b.py,30,f,lib/b.py,20,10,11,0\n"
				     "70,0,0,c_exception,len,builtins,20,f,lib/b.py,20,10,11,0\n"
				     "80,0,0,exception,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "90,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "100,0,0,call,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "110,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "120,0,0,call,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "130,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "140,0,0,mark,,,1,main,a.py,1,10,11,0\n"
				     "150,0,0,return,main,a.py,1,,,-1,10,11,0\n");
}

/* Spans, marks and counters: by whom, the name of an end by its number, values, and what does not match. */
Test(csv, named_by_the_program)
{
	static const double values[] = {3, 0.1, -1e300, INFINITY, NAN, 1.0 / 3};
	uint64_t words[2] = {2};

	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "say \"a\"", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "b", "", "");
	fixture_extended(fixture, thread, WIRE_SPAN_BEGIN, 0, (const uint64_t[]){1, 7}, 2, 0);
	event(WIRE_CALL, 1, 10);
	fixture_extended(fixture, thread, WIRE_SPAN_BEGIN, 0, (const uint64_t[]){2, 8}, 2, 10);
	event(WIRE_CALL, 2, 10);
	event(WIRE_C_CALL, 2, 10);
	event(WIRE_SPAN_END, 8, 10); /* in a C function: its caller is Python's */
	event(WIRE_C_RETURN, 2, 10);
	event(WIRE_MARK, 2, 10);
	event(WIRE_RETURN, 2, 10);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		memcpy(&words[1], &values[i], sizeof(words[1]));
		fixture_extended(fixture, thread, WIRE_COUNTER, 0, words, 2, 1);
	}
	event(WIRE_SPAN_END, 8, 4); /* again */
	event(WIRE_RETURN, 1, 10);
	event(WIRE_SPAN_END, 7, 10);
	expect_rows("--since-start --include f --from 20", "20,8,0,span_begin,b,,-1,,,-1,10,11,0\n"
							   "30,0,0,call,f,lib/b.py,20,,,-1,10,11,0\n"
							   "50,8,0,span_end,b,,20,f,lib/b.py,20,10,11,0\n"
							   "70,0,0,mark,b,,20,f,lib/b.py,20,10,11,0\n"
							   "80,0,0,return,f,lib/b.py,20,,,-1,10,11,0\n"
							   "81,0,0,counter,b,,-1,,,-1,10,11,3\n"
							   "82,0,0,counter,b,,-1,,,-1,10,11,0.1\n"
							   "83,0,0,counter,b,,-1,,,-1,10,11,-1e+300\n"
							   "84,0,0,counter,b,,-1,,,-1,10,11,inf\n"
							   "85,0,0,counter,b,,-1,,,-1,10,11,nan\n"
							   "86,0,0,counter,b,,-1,,,-1,10,11,0.3333333333333333\n"
							   "90,8,0,span_end,,,-1,,,-1,10,11,0\n"
							   "110,7,0,span_end,,,-1,,,-1,10,11,0\n");
	expect_rows("--since-start --to 30", "0,7,0,span_begin,\"say \"\"a\"\"\",,-1,,,-1,10,11,0\n"
					     "10,0,0,call,main,a.py,1,,,-1,10,11,0\n"
					     "20,8,0,span_begin,b,,1,main,a.py,1,10,11,0\n");
}

Test(csv, memory_has_address_and_size)
{
	memory(WIRE_MALLOC, 0xabc0, 100, 0);
	event(WIRE_CALL, 1, 1);
	memory(WIRE_REALLOC, 0xdef0, UINT64_C(0x1ffffffffff), 0xabc0);
	event(WIRE_C_CALL, 2, 1);
	memory(WIRE_CALLOC, 0x10, 7, 0);
	memory(WIRE_REALLOC, 0, 50, 0x10); /* failed: the old block stays */
	memory(WIRE_REALLOC, 0x20, 5, 0);  /* of NULL */
	memory(WIRE_MALLOC, 0, 9, 0);	   /* failed */
	memory(WIRE_FREE, 0x10, 0, 0);
	memory(WIRE_FREE, 0x10, 0, 0); /* not known any more */
	memory(WIRE_FREE, 0xdef0, 0, 0);
	expect_rows("--since-start", "0,43968,100,malloc,,,-1,,,-1,10,11,0\n"
				     "1,0,0,call,main,a.py,1,,,-1,10,11,0\n"
				     "2,43968,-100,realloc_free,main,a.py,1,,,-1,10,11,0\n"
				     "2,57072,2199023255551,realloc,main,a.py,1,,,-1,10,11,0\n"
				     "3,0,0,c_call,len,builtins,1,main,a.py,1,10,11,0\n"
				     "4,16,7,calloc,len,builtins,1,main,a.py,1,10,11,0\n"
				     "5,16,0,realloc_free,len,builtins,1,main,a.py,1,10,11,0\n"
				     "5,0,50,realloc,len,builtins,1,main,a.py,1,10,11,0\n"
				     "6,0,0,realloc_free,len,builtins,1,main,a.py,1,10,11,0\n"
				     "6,32,5,realloc,len,builtins,1,main,a.py,1,10,11,0\n"
				     "7,0,9,malloc,len,builtins,1,main,a.py,1,10,11,0\n"
				     "8,16,-7,free,len,builtins,1,main,a.py,1,10,11,0\n"
				     "9,16,0,free,len,builtins,1,main,a.py,1,10,11,0\n"
				     "10,57072,-2199023255551,free,len,builtins,1,main,a.py,1,10,11,0\n");
	cr_expect(export("--no-freed-sizes --since-start") == 0);
	cr_expect(strstr(ran.out, "\n2,43968,0,realloc_free,") && strstr(ran.out, "\n8,16,0,free,"));
	cr_expect(strstr(ran.out, "\n2,57072,2199023255551,realloc,"), "only sizes of what goes are left out");
}

/* Threads and processes in one order of time, each with a stack and blocks of its own. */
Test(csv, all_threads_in_one_order)
{
	uint32_t second = fixture_thread(fixture, process, 12, 1000), other = new_process(20),
		 third = fixture_thread(fixture, other, 21, 1000);

	event(WIRE_CALL, 1, 10);						       /* 1010 */
	fixture_event(fixture, second, WIRE_CALL, 2, 15);			       /* 1015 */
	fixture_event(fixture, third, WIRE_CALL, 3, 12);			       /* 1012 */
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0x10, 5, 0, 10); /* 1020 */
	fixture_memory(fixture, third, WIRE_FREE, WIRE_DOMAIN_RAW, 0x10, 0, 0, 10);    /* 1022: not its block */
	fixture_memory(fixture, second, WIRE_FREE, WIRE_DOMAIN_RAW, 0x10, 0, 0, 10);   /* 1025: of another thread */
	event(WIRE_RETURN, 1, 20);						       /* 1040 */
	expect_rows("--since-start", "0,0,0,call,main,a.py,1,,,-1,10,11,0\n"
				     "2,0,0,call,g,lib/b.py,30,,,-1,20,21,0\n"
				     "5,0,0,call,f,lib/b.py,20,,,-1,10,12,0\n"
				     "10,16,5,malloc,main,a.py,1,,,-1,10,11,0\n"
				     "12,16,0,free,g,lib/b.py,30,,,-1,20,21,0\n"
				     "15,16,-5,free,f,lib/b.py,20,,,-1,10,12,0\n"
				     "30,0,0,return,main,a.py,1,,,-1,10,11,0\n");
	expect_rows("--since-start --process 20", "2,0,0,call,g,lib/b.py,30,,,-1,20,21,0\n"
						  "12,16,0,free,g,lib/b.py,30,,,-1,20,21,0\n");
	expect_rows("--since-start --thread 12", "5,0,0,call,f,lib/b.py,20,,,-1,10,12,0\n"
						 "15,16,0,free,f,lib/b.py,20,,,-1,10,12,0\n");
}

/* A process that records memory, as the others do not. */
static void begin_memory(void)
{
	fixture_free(fixture);
	fixture = fixture_new();
	process = fixture_process_with(fixture, "\"events\":[\"mem\"]");
	thread = fixture_thread(fixture, process, 11, 1000);
}

/* The sizes of blocks are known whoever allocated them, and whoever has freed one at that address before. */
Test(csv, blocks_of_hidden_threads)
{
	const uint64_t moved = 0x30;
	uint32_t other;

	begin_memory();
	other = fixture_thread(fixture, process, 12, 1000);
	memory(WIRE_MALLOC, 0x10, 100, 0);						    /* 1001 */
	fixture_memory(fixture, other, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x10, 0, 0, 2);	    /* 1002 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x10, 7, 0, 0);	    /* 1002 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x20, 9, 0, 0);	    /* 1002 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, moved, 500, 0, 0);	    /* 1002 */
	fixture_extended(fixture, other, WIRE_REALLOC_BEGIN, 0, &moved, 1, 0);		    /* 1002 */
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x10, 0, 0, 2);	    /* 1003 */
	memory(WIRE_REALLOC, 0x40, 11, 0x20);						    /* 1004 */
	memory(WIRE_MALLOC, moved, 3, 0);						    /* 1005 */
	fixture_memory(fixture, other, WIRE_REALLOC, WIRE_DOMAIN_OBJ, 0x50, 600, moved, 4); /* 1006 */
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, moved, 0, 0, 2);	    /* 1007 */
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x50, 0, 0, 1);	    /* 1008 */
#define END ",,,-1,,,-1,10,11,0\n"
	expect_rows("--since-start --thread 11",
		    "0,16,100,malloc" END "2,16,-7,free" END "3,32,-9,realloc_free" END "3,64,11,realloc" END
		    "4,48,3,malloc" END "6,48,-3,free" END "7,80,-600,free" END);
	cr_expect(export("--since-start --thread 11 --no-freed-sizes") == 0 && strstr(ran.out, "\n2,16,0,free"));
}

/* main 0-100: f 10-50: g 20-25; deque.append 60-90: g 65-85. A malloc in each. */
static void nested(void)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_CALL, 2, 10);
	event(WIRE_CALL, 3, 10);
	memory(WIRE_MALLOC, 0x30, 3, 0); /* 21 */
	event(WIRE_RETURN, 3, 4);
	memory(WIRE_MALLOC, 0x20, 2, 0); /* 26 */
	event(WIRE_RETURN, 2, 24);
	event(WIRE_C_CALL, 1, 10);
	event(WIRE_CALL, 3, 5);
	memory(WIRE_MALLOC, 0x40, 4, 0); /* 66 */
	event(WIRE_RETURN, 3, 19);
	event(WIRE_C_RETURN, 1, 5);
	event(WIRE_RETURN, 1, 10);
}

Test(csv, functions_left_out)
{
	nested();
	expect_rows("--since-start --exclude f --exclude *deque*", "0,0,0,call,main,a.py,1,,,-1,10,11,0\n"
								   "20,0,0,call,g,lib/b.py,30,main,a.py,1,10,11,0\n"
								   "21,48,3,malloc,g,lib/b.py,30,main,a.py,1,10,11,0\n"
								   "25,0,0,return,g,lib/b.py,30,main,a.py,1,10,11,0\n"
								   "26,32,2,malloc,main,a.py,1,,,-1,10,11,0\n"
								   "65,0,0,call,g,lib/b.py,30,main,a.py,1,10,11,0\n"
								   "66,64,4,malloc,g,lib/b.py,30,main,a.py,1,10,11,0\n"
								   "85,0,0,return,g,lib/b.py,30,main,a.py,1,10,11,0\n"
								   "100,0,0,return,main,a.py,1,,,-1,10,11,0\n");
	expect_rows("--since-start --include nothing", "21,48,3,malloc,,,-1,,,-1,10,11,0\n"
						       "26,32,2,malloc,,,-1,,,-1,10,11,0\n"
						       "66,64,4,malloc,,,-1,,,-1,10,11,0\n");
}

Test(csv, short_and_deep_calls_left_out)
{
	nested();
	expect_rows("--since-start --min-duration 20", "0,0,0,call,main,a.py,1,,,-1,10,11,0\n"
						       "10,0,0,call,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "21,48,3,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "26,32,2,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "50,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "60,0,0,c_call,deque.append,,1,main,a.py,1,10,11,0\n"
						       "65,0,0,call,g,lib/b.py,30,main,a.py,1,10,11,0\n"
						       "66,64,4,malloc,g,lib/b.py,30,main,a.py,1,10,11,0\n"
						       "85,0,0,return,g,lib/b.py,30,main,a.py,1,10,11,0\n"
						       "90,0,0,c_return,deque.append,,1,main,a.py,1,10,11,0\n"
						       "100,0,0,return,main,a.py,1,,,-1,10,11,0\n");
	expect_rows("--since-start --max-depth 1", "0,0,0,call,main,a.py,1,,,-1,10,11,0\n"
						   "21,48,3,malloc,main,a.py,1,,,-1,10,11,0\n"
						   "26,32,2,malloc,main,a.py,1,,,-1,10,11,0\n"
						   "66,64,4,malloc,main,a.py,1,,,-1,10,11,0\n"
						   "100,0,0,return,main,a.py,1,,,-1,10,11,0\n");
}

/* What runs at the beginning of the stretch is known by what was before, though it does not end in it. */
Test(csv, stretch_of_time)
{
	nested();
	expect_rows("--since-start --from 22 --to 66", "25,0,0,return,g,lib/b.py,30,f,lib/b.py,20,10,11,0\n"
						       "26,32,2,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "50,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "60,0,0,c_call,deque.append,,1,main,a.py,1,10,11,0\n"
						       "65,0,0,call,g,lib/b.py,30,main,a.py,1,10,11,0\n");
	expect_rows("--since-start --from 26 --to 51", "26,32,2,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "50,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n");
	expect_rows("--since-start --from 67", "85,0,0,return,g,lib/b.py,30,main,a.py,1,10,11,0\n"
					       "90,0,0,c_return,deque.append,,1,main,a.py,1,10,11,0\n"
					       "100,0,0,return,main,a.py,1,,,-1,10,11,0\n");
	expect_rows("--since-start --from 67 --min-duration 20", "90,0,0,c_return,deque.append,,1,main,a.py,1,10,11,0\n"
								 "100,0,0,return,main,a.py,1,,,-1,10,11,0\n");
	expect_rows("--since-start --from 5s", "");
}

Test(csv, stretch_over_chunks)
{
	event(WIRE_CALL, 1, 0);
	for (int i = 0; i < 5; i++) {
		event(WIRE_CALL, 2, 10);
		fixture_flush(fixture, thread);
		event(WIRE_RETURN, 2, 10);
		fixture_flush(fixture, thread);
	}
	event(WIRE_RETURN, 1, 10);
	expect_rows("--since-start --from 75 --to 95", "80,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
						       "90,0,0,call,f,lib/b.py,20,main,a.py,1,10,11,0\n");
	expect_rows("--since-start --from 75", "80,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
					       "90,0,0,call,f,lib/b.py,20,main,a.py,1,10,11,0\n"
					       "100,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
					       "110,0,0,return,main,a.py,1,,,-1,10,11,0\n");
}

/* An `open` event is believed: nothing before it is read, and what it does not name is not known. */
Test(csv, stretch_after_open)
{
	event(WIRE_CALL, 1, 0);
	fixture_flush(fixture, thread);
	event(WIRE_CALL, 3, 10);
	event(WIRE_OPEN, 1, 0); /* 10; without g */
	event(WIRE_OPEN, 2, 0);
	fixture_flush(fixture, thread);
	memory(WIRE_MALLOC, 0x10, 1, 0); /* 11 */
	event(WIRE_RETURN, 2, 9);
	memory(WIRE_MALLOC, 0x20, 2, 0); /* 21 */
	expect_rows("--since-start --from 11", "11,16,1,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
					       "20,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
					       "21,32,2,malloc,main,a.py,1,,,-1,10,11,0\n");
	expect_rows("--since-start --from 11 --min-duration 5", "11,16,1,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
								"20,0,0,return,f,lib/b.py,20,main,a.py,1,10,11,0\n"
								"21,32,2,malloc,main,a.py,1,,,-1,10,11,0\n");
}

/* After a gap only what began since is known, and beneath it what ends in the stretch. */
Test(csv, stretch_after_a_gap)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_GAP, 0, 10);
	fixture_extra(fixture, thread, 77);
	event(WIRE_CALL, 3, 10);
	fixture_flush(fixture, thread);
	memory(WIRE_MALLOC, 0x10, 1, 9); /* 21 */
	event(WIRE_RETURN, 3, 9);
	event(WIRE_RETURN, 2, 10); /* 40 */
	expect_rows("--since-start --from 21", "21,16,1,malloc,g,lib/b.py,30,f,lib/b.py,20,10,11,0\n"
					       "30,0,0,return,g,lib/b.py,30,f,lib/b.py,20,10,11,0\n"
					       "40,0,0,return,f,lib/b.py,20,,,-1,10,11,0\n");
	expect_rows("--since-start --from 21 --to 35", "21,16,1,malloc,g,lib/b.py,30,,,-1,10,11,0\n"
						       "30,0,0,return,g,lib/b.py,30,,,-1,10,11,0\n");
}

Test(csv, gaps_and_stacks)
{
	event(WIRE_CALL, 1, 0);
	event(WIRE_GAP, 0, 10);
	fixture_extra(fixture, thread, 77);
	memory(WIRE_MALLOC, 0x10, 1, 0); /* 11: nobody knows where */
	event(WIRE_RETURN, 3, 9);	 /* 20: its call is missing */
	event(WIRE_STACK, 2, 10);
	event(WIRE_FRAME, 1, 0);
	event(WIRE_FRAME, 2, 0);
	event(WIRE_C_RETURN, 2, 10); /* 40: it ran when the stack was taken */
	memory(WIRE_MALLOC, 0x20, 2, 0);
	event(WIRE_RETURN, 1, 9); /* 50: takes f off with it */
	expect_rows("--since-start", "0,0,0,call,main,a.py,1,,,-1,10,11,0\n"
				     "11,16,1,malloc,,,-1,,,-1,10,11,0\n"
				     "20,0,0,return,g,lib/b.py,30,,,-1,10,11,0\n"
				     "40,0,0,c_return,len,builtins,20,f,lib/b.py,20,10,11,0\n"
				     "41,32,2,malloc,f,lib/b.py,20,main,a.py,1,10,11,0\n"
				     "50,0,0,return,main,a.py,1,,,-1,10,11,0\n");
}

Test(csv, names_are_quoted)
{
	fixture_code(fixture, process, 4, "a,b.py", 1, "say \"x\"");
	fixture_code(fixture, process, 5, "new\nline.py", 2, "\xed\xa0\x80g\xff");
	fixture_code(fixture, process, 6, "\xc3\xa4.py", 3, "<lambda>");
	event(WIRE_CALL, 4, 0);
	event(WIRE_CALL, 5, 1);
	event(WIRE_CALL, 6, 1);
	event(WIRE_C_CALL, 77, 1);
	event(WIRE_CALL, 78, 1);
	expect_rows("--since-start",
		    "0,0,0,call,\"say \"\"x\"\"\",\"a,b.py\",1,,,-1,10,11,0\n"
		    "1,0,0,call,\xef\xbf\xbdg\xef\xbf\xbd,\"new\nline.py\",2,\"say \"\"x\"\"\",\"a,b.py\",1,10,11,0\n"
		    "2,0,0,call,<lambda>,\xc3\xa4.py,3,\xef\xbf\xbdg\xef\xbf\xbd,\"new\nline.py\",2,10,11,0\n"
		    "3,0,0,c_call,<unknown C function 0>,,3,<lambda>,\xc3\xa4.py,3,10,11,0\n"
		    "4,0,0,call,<unknown function 0>,?,0,<lambda>,\xc3\xa4.py,3,10,11,0\n");
}

Test(csv, file_names_are_cleaned)
{
	fixture_code(fixture, process, 4, "/usr/lib/python3.11/json/__init__.py", 9, "/usr/lib");
	event(WIRE_CALL, 4, 0);
	event(WIRE_CALL, 2, 1);
	expect_rows("--since-start --clean-file-name /usr/",
		    "0,0,0,call,/usr/lib,lib/python3.11/json/__init__.py,9,,,-1,10,11,0\n"
		    "1,0,0,call,f,lib/b.py,20,/usr/lib,lib/python3.11/json/__init__.py,9,10,11,0\n");
	expect_rows("--since-start --clean-file-name /usr/ --clean-file-name re:^lib/(python3[^/]*/)?",
		    "0,0,0,call,/usr/lib,json/__init__.py,9,,,-1,10,11,0\n"
		    "1,0,0,call,f,b.py,20,/usr/lib,json/__init__.py,9,10,11,0\n");
	expect_rows("--since-start --clean-file-name re:/python[^/]*",
		    "0,0,0,call,/usr/lib,/usr/lib/json/__init__.py,9,,,-1,10,11,0\n"
		    "1,0,0,call,f,lib/b.py,20,/usr/lib,/usr/lib/json/__init__.py,9,10,11,0\n");
}

/* Times are those of the wall, as EventProfiler has them. */
Test(csv, times_since_1970)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_CLOCK, .process = TRACE_NOBODY, .thread = TRACE_NOBODY};
	struct trace_clock clock = {.monotonic_ns = 900, .realtime_ns = UINT64_C(1700000000000000900), .ticks = 900};

	fixture_chunk(fixture, chunk, &clock, sizeof(clock));
	event(WIRE_CALL, 1, 5);
	expect_rows("", "1700000000000001005,0,0,call,main,a.py,1,,,-1,10,11,0\n");
}

Test(csv, incomplete_traces_end_with_1)
{
	event(WIRE_CALL, 1, 0);
	fixture_flush(fixture, thread);
	path = fixture_save(fixture);
	cr_expect(export("--since-start") == 1);
	cr_expect_str_eq(ran.out, HEADER "0,0,0,call,main,a.py,1,,,-1,10,11,0\n");
}

Test(csv, mistakes_end_with_2)
{
	cr_expect(export("--clean-file-name re:(") == 2 && !*ran.out);
	cr_expect(export("--clean-file-name") == 2 && !*ran.out);
	cr_expect(export("--since-start -fchrome") == 2 && !*ran.out, "an option of another format");
	cr_expect(export("--since-start=1") == 2 && !*ran.out);
	expect_rows("--clean-file-name x", "");
}
