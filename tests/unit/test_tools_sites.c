/*
 * test_tools_sites.c - evprof memory: what was alive and who allocated it, on made traces; mapped ranges against a
 * model of single pages; and the limits of evprof check on memory.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analysis/mapped_ranges.h"
#include "tools/cmd/verbs.h"
#include "two_traces.h"

enum { MAIN = 1, F = 2, G = 3, FIND = 4, MODULE = 5, COMPILE = 6, LEN = 1, INTERN = 2 };

/* events: of its META object, as JSON. */
static void begin_process(const char *events)
{
	begin_trace();
	fixture_meta(
	    fixture, 0,
	    "{\"type\":\"process\",\"process\":0,\"pid\":10,\"ppid\":1,\"start\":\"exec\",\"python\":\"3.11.2\","
	    "\"argv\":[],\"exe\":\"\",\"cwd\":\"/\",\"host\":\"h\",\"program\":\"a\",\"clock_kind\":0,"
	    "\"clock_shift\":0,\"start_ticks\":0,\"events\":[%s]}",
	    events);
	code(MAIN, "/x/app.py", 1, "main", "");
	code(F, "/x/app.py", 7, "f", "K.f");
	code(G, "/x/lib.py", 9, "g", "");
	code(FIND, "<frozen importlib._bootstrap>", 3, "_find_and_load", "");
	code(MODULE, "/x/lib.py", 1, "<module>", "");
	code(COMPILE, "/usr/lib/python3.11/re/__init__.py", 5, "_compile", "");
	fixture_function(fixture, process, LEN, "", "len", "builtins");
	fixture_function(fixture, process, INTERN, "", "intern", "sys");
}

static void begin(void)
{
	begin_process("\"call\",\"c_call\",\"mem\",\"line\",\"malloc\"");
}

TestSuite(sites, .init = begin, .fini = tear_down);

static void made(uint64_t address, uint64_t size)
{
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, address, size, 0, 1);
}

static void freed(uint64_t address)
{
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, address, 0, 0, 1);
}

static void mapped(uint64_t address, uint64_t size, unsigned of_file)
{
	fixture_extended(fixture, thread, WIRE_MMAP, of_file, (uint64_t[]){address, size}, 2, 1);
}

static void unmapped(uint64_t address, uint64_t size)
{
	fixture_extended(fixture, thread, WIRE_MUNMAP, 0, (uint64_t[]){address, size}, 2, 1);
}

static void mark(uint32_t id)
{
	fixture_extended(fixture, thread, WIRE_MARK, id, NULL, 0, 1);
}

/* What evprof memory prints with these words and --format csv, below the line of titles. */
static void expect_rows(const char *words, const char *rows)
{
	char line[256];
	const char *found;

	if (!paths[0])
		save(0);
	snprintf(line, sizeof(line), "--format csv TRACE %s", words);
	cr_expect_eq(run(cmd_memory, line), 0, "%s: %s", words, ran.err);
	found = strchr(ran.out, '\n');
	cr_expect(found && strcmp(found + 1, rows) == 0, "%s: %s", words, ran.out);
}

static long long number_of(const char *words, const char *member)
{
	char line[256];
	json_t *root;
	long long number;

	if (!paths[0])
		save(0);
	snprintf(line, sizeof(line), "--json TRACE %s", words);
	run(cmd_memory, line);
	root = json_loads(ran.out, 0, NULL);
	cr_assert_not_null(root, "it is JSON: %s%s", ran.out, ran.err);
	number = json_integer_value(json_object_get(json_array_get(json_object_get(root, "processes"), 0), member));
	json_decref(root);
	return number;
}

/* The line is that of the innermost Python function, also below C functions; before the first it is not known. */
Test(sites, lines)
{
	event(WIRE_CALL, MAIN, 0);
	made(0x100, 1);
	event(WIRE_LINE, 3, 1);
	made(0x200, 10);
	event(WIRE_C_CALL, LEN, 1);
	made(0x300, 100);
	event(WIRE_C_RETURN, LEN, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_LINE, 8, 1);
	made(0x400, 1000);
	event(WIRE_RETURN, F, 1);
	made(0x500, 10000); /* the caller is still at its line */
	event(WIRE_LINE, 4, 1);
	made(0x600, 100000);
	freed(0x600);
	event(WIRE_RETURN, MAIN, 1);
	made(0x700, 5);
	expect_rows("", "10,\"main\",\"/x/app.py\",4,100000,0,100000,1,1\n"
			"10,\"main\",\"/x/app.py\",3,10110,10110,10110,3,0\n"
			"10,\"K.f\",\"/x/app.py\",8,1000,1000,1000,1,0\n"
			"10,\"main\",\"/x/app.py\",,1,1,1,1,0\n"
			"10,\"(no Python function)\",\"\",,0,5,5,1,0\n");
	expect_rows("--by function --sort end", "10,\"main\",\"/x/app.py\",,110111,10111,110111,5,1\n"
						"10,\"K.f\",\"/x/app.py\",,1000,1000,1000,1,0\n"
						"10,\"(no Python function)\",\"\",,0,5,5,1,0\n");
	expect_rows("--by module -n 1", "10,\"/x/app.py\",111111,11111,111111,6,1\n");
	expect_rows("--by thread", "10,\"thread (10)\",111111,11116,111116,7,1\n");
	expect_rows("--temporary", "10,\"main\",\"/x/app.py\",4,100000,0,100000,1,1\n");
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, "main  /x/app.py:4\n") && strstr(ran.out, "main  /x/app.py:?\n"), "%s", ran.out);
}

/* Freed, or moved, before the next allocation of the same thread. A failed one is none; other threads do not matter. */
Test(sites, temporary_is_what_its_thread_frees_before_it_allocates_again)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	event(WIRE_CALL, MAIN, 0);
	made(0x100, 1);
	freed(0x100); /* temporary */
	made(0x200, 1);
	made(0x300, 1);
	freed(0x200); /* not */
	freed(0x300); /* temporary, though another was freed meanwhile */
	made(0x400, 1);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_OBJ, 0, 9, 0x400, 1);	    /* failed */
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_OBJ, 0x500, 2, 0x400, 1); /* moves a temporary one */
	freed(0x500);									    /* temporary */
	made(0x600, 1);
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x700, 1, 0, 14);
	fixture_memory(fixture, other, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x600, 0, 0, 1);   /* not: of another thread */
	fixture_memory(fixture, other, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x700, 0, 0, 1);   /* temporary */
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x600, 0, 0, 50); /* freed already */
	expect_rows("--by thread", "10,\"thread (10)\",2,0,7,6,4\n10,\"thread (11)\",0,0,1,1,1\n");
	cr_expect_eq(run(cmd_export, "-f folded --weight temporary -o - TRACE"), 0);
	cr_expect_str_eq(ran.out, "a (10);thread (10);main (app.py:1) 4\na (10);thread (11) 1\n", "%s", ran.out);
}

Test(sites, sizes)
{
	made(0x100, 0);
	made(0x200, 1);
	made(0x300, 7);
	made(0x400, 4);
	freed(0x400);
	made(0x500, UINT64_C(1) << 32);
	expect_rows("--histogram", "10,0,0,1,0,0\n10,1,1,1,1,0\n10,4,7,2,11,1\n"
				   "10,4294967296,8589934591,1,4294967296,0\n");
	cr_expect_eq(number_of("--histogram", "peak_bytes"), 4294967304);
}

/* Below importlib, below what caches, by sys.intern, and while nothing runs. */
Test(sites, leaks_are_the_program_s)
{
	made(0x100, 1);
	event(WIRE_CALL, MAIN, 1);
	made(0x200, 10);
	event(WIRE_C_CALL, INTERN, 1);
	made(0x300, 100);
	event(WIRE_C_RETURN, INTERN, 1);
	event(WIRE_CALL, FIND, 1);
	event(WIRE_CALL, MODULE, 1);
	made(0x400, 1000);
	event(WIRE_CALL, COMPILE, 1); /* a part of the import */
	made(0x500, 1000);
	event(WIRE_RETURN, COMPILE, 1);
	event(WIRE_RETURN, MODULE, 1);
	event(WIRE_RETURN, FIND, 1);
	event(WIRE_CALL, COMPILE, 1);
	event(WIRE_CALL, G, 1);
	made(0x600, 10000);
	event(WIRE_RETURN, G, 1);
	event(WIRE_RETURN, COMPILE, 1);
	event(WIRE_CALL, F, 1);
	made(0x700, 7);
	freed(0x700);
	event(WIRE_RETURN, F, 1);
	expect_rows("--leaks", "10,\"main\",\"/x/app.py\",,10,10,10,1,0\n");
	expect_rows("--leaks=all --by function",
		    "10,\"g\",\"/x/lib.py\",,10000,10000,10000,1,0\n"
		    "10,\"_compile\",\"/usr/lib/python3.11/re/__init__.py\",,1000,1000,1000,1,0\n"
		    "10,\"<module>\",\"/x/lib.py\",,1000,1000,1000,1,0\n"
		    "10,\"main\",\"/x/app.py\",,110,110,110,2,0\n"
		    "10,\"(no Python function)\",\"\",,1,1,1,1,0\n");
	run(cmd_memory, "TRACE --leaks");
	cr_expect(strstr(ran.out, "program 10 B, imports 1.95 KiB, caches 9.77 KiB, interned 100 B, interpreter 1 B\n"),
		  "%s", ran.out);
}

Test(sites, at_a_time_and_between_marks)
{
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "begin", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "end", "", "");
	event(WIRE_CALL, MAIN, 0);
	made(0x100, 1); /* 1 */
	mark(1);	/* 2 */
	made(0x200, 10);
	made(0x300, 100);
	freed(0x100);
	freed(0x300); /* 6 */
	made(0x100, 1000);
	mark(2); /* 8 */
	made(0x400, 10000);
	freed(0x200);
	mark(1); /* 11 */
	made(0x500, 100000);
	event(WIRE_RETURN, MAIN, 1);
	expect_rows("--at 5 --by function", "10,\"main\",\"/x/app.py\",,111,111,111,3,0\n");
	expect_rows("--at 7 --by function", "10,\"main\",\"/x/app.py\",,111,10,111,3,1\n");
	expect_rows("--from 3 --by function", "10,\"main\",\"/x/app.py\",,111000,111000,111110,5,1\n");
	/* The second begin has no end. */
	expect_rows("--between begin,end --by function", "10,\"main\",\"/x/app.py\",,101000,1010,101110,4,1\n");
	cr_expect_eq(run(cmd_memory, "--between begin,nowhere TRACE"), 2);
	cr_expect_str_eq(ran.err, "evprof memory: no mark \"nowhere\" was set\n", "%s", ran.err);
}

/* Native frames distinguish sites, whatever Python's callers are. */
Test(sites, native_frames)
{
	fixture_module(fixture, process, 1, 0x7000, 4, "/lib/lib.so");
	fixture_native(fixture, process, 1, 0, 0x7100, 0);
	fixture_native(fixture, process, 2, 1, 0x7200, 0);
	fixture_symbol(fixture, process, 1, 0x7100, 0, "outer", "o.c", 5, "lib.so");
	fixture_symbol(fixture, process, 2, 0x7200, 0, "inner", "o.c", 9, "lib.so");
	event(WIRE_CALL, MAIN, 0);
	event(WIRE_CALL, F, 0);
	event(WIRE_NATIVE_STACK, 2, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x100, 1, 0, 0);
	event(WIRE_RETURN, F, 1);
	event(WIRE_RETURN, MAIN, 1);
	event(WIRE_CALL, F, 1);
	event(WIRE_NATIVE_STACK, 2, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, 10, 0, 0);
	event(WIRE_NATIVE_STACK, 1, 1);
	fixture_extended(fixture, thread, WIRE_MMAP, 0, (uint64_t[]){0x10000, 4096}, 2, 0);
	made(0x300, 100);
	save(0);
	cr_expect_eq(run(cmd_memory, "--json TRACE --sort allocated"), 0, "%s", ran.err);
	cr_expect(strstr(ran.out, "\"function\": \"K.f\", \"file\": \"/x/app.py\", \"line\": null, \"native\": "
				  "[\"outer\"], \"peak_bytes\": 4096") &&
		      strstr(ran.out, "\"native\": [\"outer\", \"inner\"], \"peak_bytes\": 11,") &&
		      strstr(ran.out, "\"native\": [], \"peak_bytes\": 100,"),
		  "%s", ran.out);
	expect_rows("--by library", "10,\"lib.so\",4107,4107,4107,3,0\n10,\"(no native stack)\",100,100,100,1,0\n");
	expect_rows("", "10,\"K.f\",\"/x/app.py\",,4207,4207,4207,4,0\n");
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, ": 100 B Python's, 11 B malloc's, 4.00 KiB mapped\n"), "%s", ran.out);
}

Test(sites, tasks)
{
	code(8, "/x/app.py", 3, "work", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "first", "", "");
	for (unsigned i = 0; i < 2; i++) {
		event(WIRE_TASK, 8, 1);
		fixture_extra(fixture, thread, wire_task_word(0x5000 + i * 0x100, i ? 0 : 1));
		event(WIRE_CALL, 8, 0);
		made(0x100 + i, 10 + i);
		event(WIRE_RETURN, 8, 1);
	}
	made(0x900, 1);
	expect_rows("--by task", "10,\"task work #2\",11,11,11,1,0\n10,\"task first (work) #1\",10,10,10,1,0\n"
				 "10,\"(no task)\",1,1,1,1,0\n");
}

Test(sites, missing_stacks_are_counted)
{
	event(WIRE_CALL, MAIN, 0);
	made(0x100, 1);
	event(WIRE_GAP, 0, 1);
	fixture_extra(fixture, thread, 3);
	made(0x200, 1);
	made(0x300, 1);
	cr_expect_eq(number_of("", "missing_stacks"), 2);
	cr_expect_eq(run(cmd_memory, "TRACE"), 0);
	cr_expect(strstr(ran.out, "missing   2 allocations have no stack\n"), "%s", ran.out);
	cr_expect_str_eq(ran.err, "evprof memory: events are missing; a block that was freed by one of them counts as "
				  "alive\n");
}

/* What is allocated after the peak has rows behind those of the peak. */
/* 30 blocks of 1000 bytes stand for 47.46 each. */
Test(sites, missing_stacks_are_estimates, .init = NULL)
{
	begin_process("\"mem\",\"malloc\"],\"memory_interval\":46956,\"rest\":[");
	for (uint64_t i = 1; i <= 30; i++)
		made(0x100 * i, 1000);
	cr_expect_eq(number_of("", "missing_stacks"), 1424);
	cr_expect_eq(run(cmd_memory, "TRACE --summary --format csv"), 0);
	cr_expect(strstr(ran.out, "allocated,all,,1423740,1424\n"), "of all: %s", ran.out);
}

Test(sites, rows_without_a_peak_come_last)
{
	event(WIRE_CALL, MAIN, 0);
	made(0x100, 100);
	freed(0x100);
	event(WIRE_CALL, F, 0);
	made(0x200, 70);
	event(WIRE_RETURN, F, 1);
	event(WIRE_RETURN, MAIN, 1);
	save(0);
	cr_expect_eq(run(cmd_memory, "--limit 1 TRACE"), 0, "%s", ran.err);
	cr_expect(strstr(ran.out, "1 more; --limit all shows them\n") && !strstr(ran.out, "K.f"), "%s", ran.out);
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, "    100 B   100 %       0 B     100 B           1           1  ") &&
		      strstr(ran.out, "      0 B   0.0 %      70 B      70 B           1           0  K.f"),
		  "%s", ran.out);
	run(cmd_memory, "--sort end TRACE");
	cr_expect(!strstr(ran.out, "    100 B   "), "nothing of it is left: %s", ran.out);
}

/* Calls show tasks. */
Test(sites, tasks_are_not_known_without_calls, .init = NULL)
{
	begin_process("\"malloc\"");
	made(0x100, 1);
	save(0);
	cr_expect_eq(run(cmd_memory, "--by task TRACE"), 0);
	cr_expect(strstr(ran.err, "tasks are known only where calls are recorded"), "%s", ran.err);
}

Test(sites, one_line_says_what_is_wrong)
{
	static const char *const wrong[] = {
	    "--by what TRACE",
	    "--sort what TRACE",
	    "--format what TRACE",
	    "--leaks=some TRACE",
	    "--between a TRACE",
	    "--at x TRACE",
	    "--at 1 --to 2 TRACE",
	    "--leaks --histogram TRACE",
	    "--histogram --by line TRACE",
	    "--summary --histogram TRACE",
	    "--summary --by line TRACE",
	    "--clock cpu TRACE",
	    "--limit -1 TRACE",
	    "TRACE TRACE",
	    "--between a,b --from 1 TRACE",
	    "--min-duration 1 TRACE",
	    "",
	};

	made(0x100, 1);
	save(0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(run(cmd_memory, wrong[i]), 2, "%s", wrong[i]);
		cr_expect(ran.err[0] && strchr(ran.err, '\n') == ran.err + strlen(ran.err) - 1, "%s: %s", wrong[i],
			  ran.err);
		cr_expect_str_empty(ran.out);
	}
}

Test(sites, a_trace_without_memory_events, .init = NULL)
{
	begin_process("\"call\"");
	called(MAIN, 1, 1);
	save(0);
	cr_expect_eq(run(cmd_memory, "TRACE"), 2);
	cr_expect(strstr(ran.err, "has no memory events; record them with --events") && !ran.out[0], "%s", ran.err);
}

/* --- mapped ranges --- */

#define A UINT64_C(0x10000)
#define PAGE UINT64_C(4096)

Test(sites, mappings_end_in_parts)
{
	event(WIRE_CALL, MAIN, 0);
	mapped(A, 10 * PAGE, 0);
	event(WIRE_CALL, F, 1);
	unmapped(A + 4 * PAGE, 2 * PAGE); /* 4 and 4 pages are left */
	mapped(A + PAGE, 100, 0);	  /* over a page of the first: whole pages count */
	mapped(A + 8 * PAGE, PAGE, 1);	  /* a file's, over another */
	mapped(0, PAGE, 0);
	fixture_extended(fixture, thread, WIRE_MMAP, 0, (uint64_t[]){A}, 1, 1);		    /* damaged */
	fixture_extended(fixture, thread, WIRE_MMAP, 0, (uint64_t[]){A, UINT64_MAX}, 2, 1); /* damaged */
	unmapped(A + 100 * PAGE, PAGE);							    /* never seen */
	expect_rows("--by function", "10,\"main\",\"/x/app.py\",,40960,24576,40960,1,0\n"
				     "10,\"K.f\",\"/x/app.py\",,0,4096,4096,1,0\n");
}

Test(sites, a_mapping_may_be_temporary)
{
	mapped(A, PAGE, 0);
	unmapped(A, PAGE);
	mapped(A, PAGE, 0);
	made(0x100, 1);
	unmapped(A, PAGE);
	expect_rows("--by thread", "10,\"thread (10)\",4097,1,8193,3,1\n");
}

static void moved(uint64_t old, uint64_t old_size, uint64_t address, uint64_t size)
{
	unmapped(old, old_size);
	mapped(address, size, WIRE_MMAP_MOVED);
}

/* By mremap(): a block goes on as a new one, a mapping of a file as what it was; a call that failed changes nothing. */
static void move_ranges(void)
{
	event(WIRE_LINE, 2, 1);
	mapped(A, PAGE, 0);
	mapped(2 * A, 2 * PAGE, 1);
	mapped(2 * A, PAGE, 0); /* over one of the file's pages */
	mapped(3 * A, 4 * PAGE, 1);
	event(WIRE_LINE, 3, 1);
	moved(A, PAGE, A, PAGE);
	moved(2 * A, 2 * PAGE, 2 * A, 2 * PAGE);
	moved(3 * A, 4 * PAGE, 4 * A, 8 * PAGE);
	event(WIRE_LINE, 4, 1);
	moved(A, PAGE, 5 * A, 16 * PAGE);
	moved(6 * A, 32 * PAGE, 7 * A, 32 * PAGE); /* from before the recording */
}

Test(sites, ranges_that_move)
{
	event(WIRE_CALL, MAIN, 0);
	move_ranges();
	expect_rows("", "10,\"main\",\"/x/app.py\",4,65536,65536,65536,1,0\n"
			"10,\"main\",\"/x/app.py\",2,4096,4096,8192,2,0\n");
}

/* Three pages are left of shared ranges, one of which has moved, and one page of another. */
static void share_ranges(void)
{
	mapped(A, 3 * PAGE, WIRE_MMAP_SHARED);
	mapped(3 * A, PAGE, 0);
	moved(A, PAGE, 2 * A, PAGE);
	moved(A + PAGE, 2 * PAGE, A + PAGE, 2 * PAGE);
	mapped(4 * A, 2 * PAGE, WIRE_MMAP_SHARED);
	unmapped(4 * A, PAGE);
	unmapped(4 * A + PAGE, PAGE);
}

#define PAGES 64

struct page_model {
	uint32_t owner[PAGES];
	uint64_t gone_bytes; /* as reported */
	long ranges;
};

static void note_gone(void *user, const struct mapped_range *gone, int more)
{
	struct page_model *model = user;

	model->gone_bytes += gone->end - gone->begin;
	model->ranges += more;
	for (uint64_t page = gone->begin; page < gone->end; page++) {
		cr_assert_eq(model->owner[page], gone->owner);
		model->owner[page] = 0;
	}
}

/* All pages are those of the ranges, which are sorted and do not overlap. */
static void expect_pages(const struct mapped_ranges *ranges, const struct page_model *model)
{
	uint32_t found[PAGES] = {0};
	uint64_t end = 0;

	cr_assert_eq((long)ranges->count, model->ranges);
	for (size_t i = 0; i < ranges->count; i++) {
		cr_assert(ranges->at[i].begin >= end && ranges->at[i].begin < ranges->at[i].end);
		end = ranges->at[i].end;
		for (uint64_t page = ranges->at[i].begin; page < end; page++)
			found[page] = ranges->at[i].owner;
	}
	cr_assert_arr_eq(found, model->owner, sizeof(found));
}

Test(sites, ranges_are_those_of_a_model_of_pages, .init = NULL)
{
	struct mapped_ranges ranges = {0};
	struct page_model model = {0};
	uint64_t state = 88172645463325252u;

	for (uint32_t i = 1; i <= 20000; i++) {
		struct mapped_range range = {.owner = i};
		uint64_t length;

		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		range.begin = state % PAGES;
		length = (state >> 20) % 9;
		range.end = range.begin + length < PAGES ? range.begin + length : PAGES;
		cr_assert_eq(mapped_ranges_remove(&ranges, range.begin, range.end, note_gone, &model), 0);
		if (state >> 40 & 1 && range.begin < range.end) {
			cr_assert_eq(mapped_ranges_add(&ranges, &range), 0);
			model.ranges++;
			for (uint64_t page = range.begin; page < range.end; page++)
				model.owner[page] = i;
		}
		expect_pages(&ranges, &model);
	}
	cr_expect(model.gone_bytes > PAGES);
	mapped_ranges_done(&ranges);
}

/* --- without calls, where the stack of an allocation is recorded before it --- */

static void stack(uint64_t outermost)
{
	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 0, &outermost, outermost != 0, 0);
}

/* What the trace has by thread, and another one, which keeps what is alive. */
static void expect_threads(const char *rows, const char *alive)
{
	expect_rows("--by thread --sort end", rows);
	paths[1] = strdup(paths[0]);
	strcpy(strrchr(paths[1], '/'), "/aliveXXXXXX");
	close(mkstemp(paths[1]));
	cr_expect_eq(run(cmd_cut, "--alive -o OTHER TRACE"), 0, "%s", ran.err);
	cr_expect_eq(run(cmd_memory, "OTHER --summary --format csv"), 0, "%s", ran.err);
	cr_expect(strstr(ran.out, alive), "%s", ran.out);
}

Test(sites, ranges_that_move_in_what_is_alive, .init = NULL)
{
	begin_process("\"mem\",\"malloc\"");
	stack(MAIN);
	move_ranges();
	expect_threads("10,\"thread (10)\",69632,69632,73728,3,0\n", "10,end,all,,69632,2\n");
	cr_expect(strstr(ran.out, "10,allocated,all,,73728,3\n"), "%s", ran.out);
}

Test(sites, shared_ranges_in_what_is_alive, .init = NULL)
{
	const char *first;

	begin_process("\"mem\",\"malloc\"");
	stack(MAIN);
	share_ranges();
	expect_threads("10,\"thread (10)\",24576,16384,28672,4,0\n", "10,end,all,,16384,3\n");
	run(cmd_dump, "OTHER");
	first = strstr(ran.out, "\tshared\n");
	cr_expect(first && strstr(first + 1, "\tshared\n") && strstr(ran.out, "\tanonymous\n"), "%s", ran.out);
}

/* No event shows when it ended: that is right before the next one. The times of other threads lie between. */
Test(sites, the_program_ends_after_its_main_thread_has_waited, .init = NULL)
{
	uint32_t other;

	begin_process("\"mem\"],\"exe\":\"/bin/python3\",\"rest\":[");
	other = fixture_thread(fixture, process, 11, 1000);
	stack(MODULE);
	made(0x100, 1);									  /* 1001 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x200, 10, 0, 11);	  /* 1011 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 100, 0, 10);  /* 1021 */
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x400, 1000, 0, 20); /* 1041 */
	stack(0);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x200, 0, 0, 30); /* 1031 */
	freed(0x300);
	freed(0x100);
	expect_threads("10,\"thread (11)\",1000,110,1110,3,0\n10,\"thread (10)\",0,1,1,1,1\n", "10,end,all,30,111,3\n");
}

/* It goes on afterwards. */
Test(sites, the_program_is_off_the_stack_for_a_while, .init = NULL)
{
	uint32_t other;

	begin_process("\"mem\"],\"exe\":\"/bin/python3\",\"rest\":[");
	other = fixture_thread(fixture, process, 11, 1000);
	stack(MODULE);
	made(0x100, 1);
	stack(0);
	made(0x200, 10);
	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x400, 1000, 0, 50);
	stack(MODULE);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 100, 0, 100);
	stack(0);
	freed(0x100); /* right after it */
	freed(0x200);
	expect_threads("10,\"thread (11)\",1000,1000,1000,1,0\n10,\"thread (10)\",111,111,111,3,0\n", "10,end,all,");
}

/* --- limits --- */

static void expect_check(const char *words, int status, const char *line)
{
	cr_expect(run(cmd_check, words) == status, "%s: status %d\n%s%s", words, ran.status, ran.out, ran.err);
	cr_expect(strstr(ran.out, line), "%s: no \"%s\" in\n%s%s", words, line, ran.out, ran.err);
}

static void make_some(void)
{
	made(0x100, 1000);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, 500, 0, 1);
	mapped(A, PAGE, 0);
	unmapped(A, PAGE);
	freed(0x100);
}

Test(sites, limits)
{
	make_some();
	fixture_meta(fixture, 0,
		     "{\"type\":\"process_end\",\"process\":0,\"how\":\"exit\",\"peak_rss_bytes\":9000000}");
	save(0);
	expect_check("--max-heap 5596 TRACE", 0, "ok     --max-heap 5596: 5596 bytes in process 10, at most 5596");
	expect_check("--max-heap 5K TRACE", 1, "FAILED --max-heap 5K: 5596 bytes");
	expect_check("--max-leak 500 TRACE", 0, "ok     --max-leak 500: 500 bytes in process 10, at most 500, alive");
	expect_check("--max-leak 0 TRACE", 1, "FAILED --max-leak 0: 500 bytes");
	expect_check("--max-allocations 3 TRACE", 0, "ok     --max-allocations 3: 3 allocations, at most 3");
	expect_check("--max-allocations 2 TRACE", 1, "FAILED ");
	expect_check("--max-rss 9000000 TRACE", 0, "ok     --max-rss 9000000: 9000000 bytes in process 10");
	expect_check("--max-rss 8M TRACE", 1, "FAILED --max-rss 8M: 9000000 bytes");
	expect_check("--max-leak 0 TRACE", 1, "alive at the end; most by (no Python function): 500\n");
	/* Python's alone. */
	expect_check("--max-alloc 1000 TRACE", 0, "--max-heap limits native memory");
}

/* A limit that fails names the line with most of what it is about. */
Test(sites, limits_name_a_line)
{
	event(WIRE_CALL, F, 0);
	event(WIRE_LINE, 8, 0);
	made(0x100, 1000);
	made(0x200, 10);
	event(WIRE_LINE, 9, 0);
	made(0x300, 300);
	freed(0x100);
	save(0);
	expect_check("--max-heap 1 TRACE", 1,
		     "1310 bytes in process 10, at most 1, alive at the peak; most by K.f "
		     "(/x/app.py:8): 1010\n");
	expect_check("--max-leak 1 TRACE", 1, "; most by K.f (/x/app.py:9): 300\n");
	expect_check("--max-allocations 1 TRACE", 1, "3 allocations, at most 1; most by K.f (/x/app.py:8): 2\n");
}

/* A process without an end, of which the collector has samples: they show that a limit is broken, and no more. */
Test(sites, resident_samples)
{
	make_some();
	fixture_meta(fixture, 0,
		     "{\"type\":\"resident\",\"process\":0,\"peak_bytes\":7000000,\"samples\":[[1500,1,2,3]]}");
	fixture_meta(fixture, 0,
		     "{\"type\":\"resident\",\"process\":0,\"peak_bytes\":-1,\"samples\":"
		     "[7,[],[1,2,3],[1400,1,2,3],[1600,-1,2,3],[1700,5,6,\"x\"],[1800,5,6,7]]}");
	fixture_meta(fixture, 0, "{\"type\":\"resident\",\"process\":77,\"samples\":null}");
	fixture_meta(fixture, 0, "{\"type\":\"resident\",\"process\":0,\"samples\":{\"a\":1}}");
	save(0);
	expect_check("--max-rss 8M TRACE", 2,
		     "ERROR  --max-rss 8M: the resident size of a process is not in the trace");
	expect_check("--max-rss 6M TRACE", 1, "FAILED --max-rss 6M: 7000000 bytes");
	run(cmd_export, "-f chrome TRACE -o -");
	cr_expect(strstr(ran.out, "\"name\":\"resident size\",\"args\":{\"bytes\":6}") &&
		      strstr(ran.out, "\"bytes\":18}") && !strstr(ran.out, "\"bytes\":11}"),
		  "%s", ran.out);
	cr_expect(run(cmd_memory, "--json TRACE") != 2 && strstr(ran.out, "\"peak_rss_bytes\": 7000000"), "%s",
		  ran.out);
}

/* heap: bytes that are resident of the kernel's [heap]. */
static void save_resident(int heap)
{
	made(0x100, 1000);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, 500, 0, 1);
	mapped(A, PAGE, 0);
	fixture_meta(fixture, 0,
		     "{\"type\":\"resident\",\"process\":0,\"peak_bytes\":24000,\"samples\":"
		     "[[1002,20000,3000,400],[2000,10000,3000,0]]}");
	fixture_meta(fixture, 0,
		     "{\"type\":\"process_end\",\"process\":0,\"how\":\"exit\",\"resident\":{\"ticks\":2000,"
		     "\"files\":3000,\"stacks\":800,\"heap\":%d,\"anonymous\":1000,\"shared\":-7,\"evprof\":64}}",
		     heap);
	save(0);
}

/* The rest makes the parts add up, at the peak and at the end, where less was touched than allocated. */
Test(sites, parts_of_the_resident_size)
{
	save_resident(4000);
	run(cmd_memory, "--json TRACE");
	cr_expect(strstr(ran.out, "\"bytes\": 23400, \"python_bytes\": 1000, \"malloc_bytes\": 500, "
				  "\"files_bytes\": 3000, \"shared_bytes\": 400, \"rest_bytes\": 18500}"),
		  "%s", ran.out);
	cr_expect(strstr(ran.out, "\"bytes\": 8864, \"python_bytes\": 1000, \"malloc_bytes\": 500, "
				  "\"mapped_bytes\": 4096, \"stacks_bytes\": 800, \"files_bytes\": 3000, "
				  "\"evprof_bytes\": 64, \"rest_bytes\": -596}"),
		  "%s", ran.out);
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, ", 596 B less, not touched\n") && strstr(ran.out, " of them anonymous\n"), "%s",
		  ran.out);
	run(cmd_memory, "--json TRACE --to 1s");
	cr_expect(!strstr(ran.out, "resident_at_"), "a part of the time has none: %s", ran.out);
}

/* The parts of the peak and of the end are those of its blocks; the resident size is that of the process. */
Test(sites, parts_of_a_thread)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);

	fixture_memory(fixture, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x300, 70, 0, 10);
	save_resident(4000);
	run(cmd_memory, "TRACE --summary --format csv --thread 11");
	cr_expect(strstr(ran.out, "peak,all,9,70,1\n10,peak,python,9,70,\n10,peak,malloc,9,0,\n10,peak,mapped,9,0,\n"),
		  "%s", ran.out);
	cr_expect(strstr(ran.out, "end,all,,70,1\n10,end,python,,70,\n10,end,malloc,,0,\n10,end,mapped,,0,\n"), "%s",
		  ran.out);
	cr_expect(strstr(ran.out, ",resident_at_end,python,"), "%s", ran.out);
	run(cmd_memory, "TRACE --thread 11");
	cr_expect(strstr(ran.out, "  end       70 B in 1 block: 70 B Python's, 0 B malloc's, 0 B mapped\n"), "%s",
		  ran.out);
	run(cmd_memory, "TRACE --thread 11 --json");
	cr_expect(strstr(ran.out, "\"python_bytes\": 1070, \"malloc_bytes\": 500, \"mapped_bytes\": 4096"), "%s",
		  ran.out);
}

/* The numbers of the text, one a row; nothing of sites. */
Test(sites, summary)
{
	json_t *root;

	save_resident(4000);
	cr_expect_eq(run(cmd_memory, "--summary --format csv TRACE"), 0);
	cr_expect_str_eq(ran.out,
			 "pid,what,part,time_ns,bytes,blocks\n10,peak,all,2,5596,3\n10,peak,python,2,1000,\n"
			 "10,peak,malloc,2,500,\n10,peak,mapped,2,4096,\n10,end,all,,5596,3\n10,end,python,,1000,\n"
			 "10,end,malloc,,500,\n10,end,mapped,,4096,\n10,end,program,,0,\n10,end,imports,,0,\n"
			 "10,end,caches,,0,\n10,end,interned,,0,\n10,end,interpreter,,5596,\n10,allocated,all,,5596,3\n"
			 "10,temporary,all,,,0\n10,peak_rss,all,,24000,\n10,resident_at_peak,all,1,23400,\n"
			 "10,resident_at_peak,python,1,1000,\n10,resident_at_peak,malloc,1,500,\n"
			 "10,resident_at_peak,files,1,3000,\n10,resident_at_peak,shared,1,400,\n"
			 "10,resident_at_peak,rest,1,18500,\n10,resident_at_end,all,999,8864,\n"
			 "10,resident_at_end,python,999,1000,\n10,resident_at_end,malloc,999,500,\n"
			 "10,resident_at_end,mapped,999,4096,\n10,resident_at_end,stacks,999,800,\n"
			 "10,resident_at_end,files,999,3000,\n10,resident_at_end,evprof,999,64,\n"
			 "10,resident_at_end,rest,999,-596,\n10,missing_stacks,all,,,0\n",
			 "%s", ran.out);
	cr_expect_eq(run(cmd_memory, "--summary TRACE"), 0);
	cr_expect(strstr(ran.out, "  in use ") && !strstr(ran.out, "function"), "%s", ran.out);
	cr_expect_eq(run(cmd_memory, "--summary --json TRACE"), 0);
	root = json_loads(ran.out, 0, NULL);
	cr_expect(root && !strstr(ran.out, "sites") && strstr(ran.out, "\"rest_bytes\": -596}}"), "%s", ran.out);
	json_decref(root);
}

/* The native block is in malloc's heap, the small one of Python's is not; nor are those that malloc() maps. */
Test(sites, slack_of_malloc)
{
	made(0x900, 100);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, 500, 0, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x7f0000001010, 200000, 0, 1);
	fixture_meta(fixture, 0,
		     "{\"type\":\"process_end\",\"process\":0,\"how\":\"exit\",\"resident\":{\"ticks\":2000,"
		     "\"files\":0,\"stacks\":0,\"heap\":10000,\"anonymous\":300000,\"shared\":0,\"evprof\":0}}");
	save(0);
	run(cmd_memory, "--json TRACE");
	cr_expect(strstr(ran.out, "\"malloc_slack_bytes\": 9500, \"rest_bytes\": 99900}"), "%s", ran.out);
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, ", 9.28 KiB free in malloc, 97.6 KiB free, or not known\n"), "%s", ran.out);
}

/* The slack is at most what remains: here less was touched than allocated. */
Test(sites, slack_of_malloc_is_a_part_of_the_rest)
{
	save_resident(5000);
	run(cmd_memory, "--json TRACE");
	cr_expect(strstr(ran.out, "\"malloc_slack_bytes\": 404}"), "%s", ran.out);
}

/* The kernel has shared ranges in the shared memory: six pages at the peak; at the end two, as one is not touched. */
static void save_shared(void)
{
	made(0x100, 1000);
	share_ranges();
	fixture_meta(fixture, 0,
		     "{\"type\":\"resident\",\"process\":0,\"peak_bytes\":24000,\"samples\":"
		     "[[1900,20000,3000,24576]]}");
	fixture_meta(fixture, 0,
		     "{\"type\":\"process_end\",\"process\":0,\"how\":\"exit\",\"resident\":{\"ticks\":2000,"
		     "\"files\":0,\"stacks\":0,\"heap\":0,\"anonymous\":10000,\"shared\":8192,\"evprof\":0}}");
	save(0);
}

Test(sites, shared_ranges_are_of_the_shared_memory)
{
	save_shared();
	run(cmd_memory, "--json TRACE");
	cr_expect(strstr(ran.out, "\"python_bytes\": 1000, \"mapped_bytes\": 16384, \"files_bytes\": 3000, "
				  "\"shared_bytes\": 12288, \"rest_bytes\": 14904}"),
		  "%s", ran.out);
	cr_expect(strstr(ran.out, "\"python_bytes\": 1000, \"mapped_bytes\": 16384, \"rest_bytes\": 808}"), "%s",
		  ran.out);
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, "in use    heap 4.98 KiB in 17.8 KiB resident, 9.77 KiB of them anonymous: 51 %\n"),
		  "%s", ran.out);
	run(cmd_dump, "TRACE");
	cr_expect(strstr(ran.out, "\tshared\n"), "%s", ran.out);
}

Test(sites, share_of_the_resident_size)
{
	save_resident(10000);
	run(cmd_memory, "TRACE");
	cr_expect(strstr(ran.out, " of them anonymous: 51 %\n"), "%s", ran.out);
}

Test(sites, limits_on_what_was_not_recorded, .init = NULL)
{
	begin_process("\"call\",\"mem\"");
	made(0x100, 1000);
	save(0);
	expect_check("--max-heap 1M TRACE", 2, "ERROR  --max-heap 1M: memory that libraries take from malloc was not");
	expect_check("--max-heap 10 TRACE", 1, "FAILED --max-heap 10: 1000 bytes");
	expect_check("--max-leak 1M TRACE", 2, "ERROR  --max-leak 1M: memory that libraries take from malloc was not");
	expect_check("--max-alloc 1000 TRACE", 0, "native memory (malloc, mmap: numpy's) was not recorded");
	expect_check(
	    "--max-allocations 9 TRACE", 0,
	    "ok     --max-allocations 9: 1 allocations, at most 9, by Python's allocators; native ones (malloc, "
	    "mmap) were not");
	expect_check("--max-rss 1G TRACE", 2, "ERROR  --max-rss 1G: the resident size");
}

/* Without Python's allocators the heap is not whole, either. */
Test(sites, limits_on_malloc_alone, .init = NULL)
{
	static const char *const limits[] = {"heap", "leak", "allocations"};
	char words[64], line[64];

	begin_process("\"call\",\"malloc\"");
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_NATIVE, 0x200, 500, 0, 1);
	save(0);
	for (size_t i = 0; i < 3; i++) {
		snprintf(words, sizeof(words), "--max-%s 1000 TRACE", limits[i]);
		snprintf(line, sizeof(line), "ERROR  --max-%s 1000: a process did not record what Python's", limits[i]);
		expect_check(words, 2, line);
	}
	expect_check("--max-alloc 1000 TRACE", 2, "ERROR  --max-alloc 1000: the trace holds no memory events");
	expect_check("--max-heap 499 TRACE", 1, "FAILED --max-heap 499: 500 bytes");
}

/* As where the program was linked with an allocator. */
Test(sites, limits_on_an_unseen_malloc, .init = NULL)
{
	begin_process("\"call\",\"mem\",\"malloc\"],\"malloc_unseen\":true,\"rest\":[");
	made(0x100, 1000);
	save(0);
	expect_check("--max-heap 1000 TRACE", 2, "ERROR  --max-heap 1000: memory that libraries take from malloc was");
	expect_check("--max-leak 1000 TRACE", 2, "ERROR  --max-leak 1000: memory that libraries take from malloc was");
	expect_check("--max-alloc 1000 TRACE", 0, "native memory (malloc, mmap: numpy's) was not recorded");
}

Test(sites, limits_without_memory_events, .init = NULL)
{
	begin_process("\"call\"");
	called(MAIN, 1, 1);
	save(0);
	expect_check("--max-heap 1G TRACE", 2, "ERROR  --max-heap 1G: the trace holds no memory events");
	expect_check("--max-leak 1G TRACE", 2, "the trace holds no memory events");
	expect_check("--max-allocations 9 TRACE", 2, "the trace holds no memory events");
}
