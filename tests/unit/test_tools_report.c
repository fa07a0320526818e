/*
 * test_tools_report.c - what evprof report prints with its options, and the bytes of a pstats file, over traces of the
 * fixture. That the tables are those of pstats is tested against pstats itself in tests/e2e/test_pstats.c.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "one_trace.h"

enum { MAIN = 1, WORK = 2, OTHER = 3, SPIN = 4, JOIN = 1, LEN = 2 };

/* The fixture's ticks are ns. */
#define TICKS(Milliseconds) ((Milliseconds)*1000000)

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, MAIN, "/app/main.py", 10, "main");
	fixture_code(fixture, process, WORK, "/app/work.py", 2, "work");
	fixture_code(fixture, process, OTHER, "/lib/work.py", 2, "work");
	fixture_code(fixture, process, SPIN, "/app/\"q\",\n.py", 7, "sp\\in");
	fixture_function(fixture, process, JOIN, "str", "join", "");
	fixture_function(fixture, process, LEN, "", "len", "builtins");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "begin", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "end", "", "");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 10, 0, "", "Main \"Thread\"", "", "");
}

TestSuite(report, .init = set_up, .fini = end_trace);

static void event_ms(unsigned kind, uint32_t argument, uint32_t milliseconds)
{
	event(kind, argument, TICKS(milliseconds));
}

/*
 * main calls work twice, and the other work once; each work calls len, and the other one join too.
 *
 *   main 30 (own 5): work 8 (own 6: len 2) twice, other 9 (own 3: len 1, join 5)
 */
static void calls(void)
{
	event_ms(WIRE_CALL, MAIN, 1);
	for (int i = 0; i < 2; i++) {
		event_ms(WIRE_CALL, WORK, 1);
		event_ms(WIRE_C_CALL, LEN, 3);
		event_ms(WIRE_C_RETURN, LEN, 2);
		event_ms(WIRE_RETURN, WORK, 3);
	}
	event_ms(WIRE_CALL, OTHER, 1);
	event_ms(WIRE_C_CALL, LEN, 1);
	event_ms(WIRE_C_RETURN, LEN, 1);
	event_ms(WIRE_C_CALL, JOIN, 1);
	event_ms(WIRE_C_RETURN, JOIN, 5);
	event_ms(WIRE_RETURN, OTHER, 1);
	event_ms(WIRE_RETURN, MAIN, 2);
}

static int report(const char *arguments)
{
	return run(cmd_report, arguments);
}

static void expect_table(const char *arguments, const char *expected)
{
	cr_expect(report(arguments) == 0, "report %s: %s", arguments, ran.err);
	cr_expect_str_eq(ran.out, expected, "report %s printed\n%s", arguments, ran.out);
}

#define TITLE "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"

Test(report, several_keys_and_restrictions)
{
	calls();
	expect_table("--sort name,cumulative --restrict work --restrict 0.6 TRACE",
		     "         8 function calls in 0.030 seconds\n\n"
		     "   Ordered by: function name, cumulative time\n"
		     "   List reduced from 5 to 2 due to restriction <'work'>\n"
		     "   List reduced from 2 to 1 due to restriction <0.6>\n\n" TITLE
		     "        2    0.012    0.006    0.016    0.008 /app/work.py:2(work)\n\n");
	expect_table("--sort tot --reverse -n 1 --restrict (?i)WORK TRACE",
		     "         8 function calls in 0.030 seconds\n\n"
		     "   Ordered by: internal time\n"
		     "   List reduced from 5 to 2 due to restriction <'(?i)WORK'>\n"
		     "   List reduced from 2 to 1 due to restriction <1>\n\n" TITLE
		     "        1    0.003    0.003    0.009    0.009 /lib/work.py:2(work)\n\n");
	expect_table("--restrict nothing TRACE", "         8 function calls in 0.030 seconds\n\n");
}

Test(report, callers_and_callees)
{
	calls();
	expect_table("--callers --sort stdname --restrict [.:]2|len --strip-dirs TRACE",
		     "   Ordered by: standard name\n"
		     "   List reduced from 4 to 2 due to restriction <'[.:]2|len'>\n\n"
		     "Function                        was called by...\n"
		     "                                    ncalls  tottime  cumtime\n"
		     "work.py:2(work)                 <-       3    0.015    0.025  main.py:10(main)\n"
		     "{built-in method builtins.len}  <-       3    0.005    0.005  work.py:2(work)\n\n");
	expect_table("--callees --sort time --restrict main|join TRACE",
		     "   Ordered by: internal time\n"
		     "   List reduced from 5 to 2 due to restriction <'main|join'>\n\n"
		     "Function                          called...\n"
		     "                                      ncalls  tottime  cumtime\n"
		     "/app/main.py:10(main)             ->       2    0.012    0.016  /app/work.py:2(work)\n"
		     "                                           1    0.003    0.009  /lib/work.py:2(work)\n"
		     "{method 'join' of 'str' objects}  -> \n\n");
}

Test(report, strip_dirs_adds_up)
{
	calls();
	expect_table("--strip-dirs --restrict work TRACE",
		     "         8 function calls in 0.030 seconds\n\n"
		     "   Ordered by: internal time\n"
		     "   List reduced from 4 to 1 due to restriction <'work'>\n\n" TITLE
		     "        3    0.015    0.005    0.025    0.008 work.py:2(work)\n\n");
}

Test(report, by_module)
{
	calls();
	expect_table("--by module --sort stdname TRACE", "         8 function calls in 0.030 seconds\n\n"
							 "   Ordered by: standard name\n\n"
							 "   ncalls  tottime  percall  cumtime  percall module\n"
							 "        1    0.005    0.005    0.030    0.030 /app/main.py\n"
							 "        2    0.012    0.006    0.016    0.008 /app/work.py\n"
							 "        1    0.003    0.003    0.009    0.009 /lib/work.py\n"
							 "        3    0.005    0.002    0.005    0.002 {builtins}\n"
							 "        1    0.005    0.005    0.005    0.005 {str}\n\n");
	cr_expect(report("--by module --json --callers --restrict str TRACE") == 0);
	cr_expect(strstr(ran.out, "\"modules\": [\n  {\"module\": \"str\", \"ncalls\": 1, "));
	cr_expect(strstr(ran.out, "\"callers\": [\n      {\"module\": \"/lib/work.py\", \"ncalls\": 1, "));
}

Test(report, by_thread_and_process)
{
	uint32_t second = fixture_process(fixture, 20, 10);
	uint32_t other = fixture_thread(fixture, process, 11, 1000), its = fixture_thread(fixture, second, 20, 1000);
	json_t *root, *tables;

	fixture_code(fixture, second, 1, "/app/main.py", 10, "main");
	event_ms(WIRE_CALL, MAIN, 1);
	event_ms(WIRE_RETURN, MAIN, 1);
	fixture_event(fixture, other, WIRE_CALL, MAIN, 1);
	fixture_event(fixture, other, WIRE_RETURN, MAIN, TICKS(2));
	fixture_event(fixture, its, WIRE_CALL, 1, 1);
	fixture_event(fixture, its, WIRE_RETURN, 1, TICKS(4));
	fixture_thread(fixture, second, 21, 1000); /* nothing happens there: no table */
#define ONE(Time)                                                                                                      \
	"         1 function calls in " Time " seconds\n\n   Ordered by: internal time\n\n" TITLE "        1    " Time \
	"    " Time "    " Time "    " Time " /app/main.py:10(main)\n\n"
	cr_expect(report("--by thread TRACE") == 0);
	cr_expect(strstr(ran.out, "thread 10 \"Main \"Thread\"\" of process 10: "));
	cr_expect(strstr(ran.out, ONE("0.001")) && strstr(ran.out, ONE("0.002")) && strstr(ran.out, ONE("0.004")), "%s",
		  ran.out);
	cr_expect(report("--by process TRACE") == 0);
	cr_expect(strncmp(ran.out, "process 10: ", 12) == 0 &&
		  strstr(ran.out, "         2 function calls in 0.003 seconds"));
	cr_expect(strstr(ran.out, "process 20: ") && strstr(ran.out, ONE("0.004")));
	cr_expect(report("--by process TRACE TRACE") == 0 && strstr(ran.out, path), "several traces are distinguished");
	cr_expect(report("--by thread --format json TRACE") == 0);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	tables = json_object_get(root, "threads");
	cr_assert(json_array_size(tables) == 3);
	cr_expect(json_integer_value(json_object_get(json_array_get(tables, 1), "tid")) == 11);
	cr_expect(json_integer_value(json_object_get(json_array_get(tables, 2), "pid")) == 20);
	cr_expect(json_is_null(json_object_get(json_array_get(tables, 1), "thread")));
	cr_expect(json_array_size(json_object_get(json_array_get(tables, 2), "functions")) == 1);
	json_decref(root);
}

Test(report, marks_by_thread)
{
	event_ms(WIRE_CALL, MAIN, 1);
	event_ms(WIRE_MARK, 1, 1);
	event_ms(WIRE_CALL, WORK, 1);
	event_ms(WIRE_RETURN, WORK, 1);
	event_ms(WIRE_MARK, 2, 1);
	event_ms(WIRE_RETURN, MAIN, 1);
	cr_expect(report("--by thread --between begin,end TRACE") == 0);
	cr_expect(strstr(ran.out, "work.py") && !strstr(ran.out, "main.py"));
	cr_expect(report("--by thread --json --between nonsense,end TRACE") == 2 && !*ran.out);
	cr_expect(strstr(ran.err, "no mark \"nonsense\" was set"), "%s", ran.err);
}

Test(report, csv)
{
	event_ms(WIRE_CALL, SPIN, 1);
	event_ms(WIRE_C_CALL, JOIN, 1);
	event_ms(WIRE_C_RETURN, JOIN, 1);
	event_ms(WIRE_RETURN, SPIN, 1);
	expect_table("--format csv --sort stdname TRACE",
		     "file,line,function,ncalls,primitive_calls,tottime,cumtime\n"
		     "\"/app/\"\"q\"\",\\n.py\",7,\"sp\\\\in\",1,1,0.002000000,0.003000000\n"
		     "\"~\",0,\"<method 'join' of 'str' objects>\",1,1,0.001000000,0.001000000\n");
	expect_table(
	    "--format csv --callers TRACE",
	    "file,line,function,caller_file,caller_line,caller_function,ncalls,primitive_calls,tottime,cumtime\n"
	    "\"~\",0,\"<method 'join' of 'str' objects>\",\"/app/\"\"q\"\",\\n.py\",7,\"sp\\\\in\",1,1,"
	    "0.001000000,0.001000000\n");
	cr_expect(report("--format csv --callees --by thread TRACE") == 0);
	cr_expect(strncmp(ran.out, "trace,pid,tid,thread,file,line,function,callee_file,", 52) == 0);
	cr_expect(strstr(ran.out, ",10,10,\"Main \"\"Thread\"\"\",\"/app/"));
}

Test(report, json_callers)
{
	json_t *root, *row, *callers;

	calls();
	cr_expect(report("--format json --callers --callees --restrict len TRACE") == 0);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	row = json_array_get(json_object_get(root, "functions"), 0);
	callers = json_object_get(row, "callers");
	cr_assert(json_array_size(callers) == 2 && json_array_size(json_object_get(row, "callees")) == 0);
	cr_expect_str_eq(json_string_value(json_object_get(json_array_get(callers, 1), "file")), "/lib/work.py");
	cr_expect(json_integer_value(json_object_get(json_array_get(callers, 0), "ncalls")) == 2);
	cr_expect(json_integer_value(json_object_get(json_array_get(callers, 0), "tottime_ns")) == TICKS(4));
	json_decref(root);
}

Test(report, mistakes_are_named)
{
	static const char *const wrong[][2] = {
	    {"--sort nonsense", "\"nonsense\" is not known; the orders are allocations, bytes, calls, cumtime, "},
	    {"--sort n", "\"n\" is ambiguous; the orders are "},
	    {"--sort time,", "\"\" is not known"},
	    {"--sort 0,1", "\"0\" is not known"},
	    {"--restrict -1", "--restrict wants a whole number from 0"},
	    {"--restrict 1.5", "--restrict wants a fraction from 0.0 to 1.0"},
	    {"--restrict (", "\"(\" is not a regular expression"},
	    {"--restrict [\\]]", "is not a regular expression"},
	    {"--by nonsense", "--by wants function, module, process, thread or span"},
	    {"--format nonsense", "--format wants text, json or csv"},
	    {"--format csv --callers --callees", "--callers or --callees"},
	    {"--sort bytes", "no allocations were recorded"},
	    {"--sort time,alloc --min-duration 1", "--sort bytes or allocations and --min-duration exclude each other"},
	    {"--clock cpu --between a,b", "evprof cut --between makes a trace of that part first"},
	    {"--calibrate --from 1", "evprof cut makes one of that part first"},
	    {"--calibrate --between a,b", "evprof cut makes one of that part first"},
	    {"--by span --callers", "--by span has no --between, --callers or --callees"},
	    {"--by span --clock cpu", "--by span needs the wall clock"},
	    {"--by span --clock off-cpu", "leave --clock out"},
	    {"--nonsense", "--nonsense"},
	};

	calls();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char arguments[128];

		snprintf(arguments, sizeof(arguments), "%s TRACE", wrong[i][0]);
		cr_expect(report(arguments) == 2 && !*ran.out, "report %s", arguments);
		cr_expect(strstr(ran.err, wrong[i][1]) && strchr(ran.err, '\n') == ran.err + strlen(ran.err) - 1,
			  "report %s: %s", arguments, ran.err);
	}
}

static void allocate(unsigned kind, uint64_t address, uint64_t size, uint64_t old)
{
	fixture_memory(fixture, thread, kind, WIRE_DOMAIN_OBJ, address, size, old, 0);
}

/* A second process, with allocations: main 10 + 5000 bytes in 2, and 100 in a len that it calls; work 700. */
static void allocations(void)
{
	uint32_t number = fixture->processes++;

	fixture_meta(fixture, number,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":30,\"ppid\":1,\"start\":\"exec\",\"argv\":[\"a\"],"
		     "\"program\":\"a\",\"clock_kind\":0,\"clock_shift\":0,\"start_ticks\":0,"
		     "\"events\":[\"call\",\"mem\"]}",
		     number);
	fixture_code(fixture, number, MAIN, "/app/main.py", 10, "main");
	fixture_code(fixture, number, WORK, "/app/work.py", 2, "work");
	fixture_function(fixture, number, LEN, "", "len", "builtins");
	thread = fixture_thread(fixture, number, 30, 1000);
	allocate(WIRE_MALLOC, 0x10, 33, 0); /* outside of any function */
	event_ms(WIRE_CALL, MAIN, 1);
	allocate(WIRE_MALLOC, 0x1000, 10, 0);
	event_ms(WIRE_C_CALL, LEN, 1);
	allocate(WIRE_CALLOC, 0x2000, 100, 0);
	event_ms(WIRE_C_RETURN, LEN, 1);
	allocate(WIRE_REALLOC, 0x3000, 5000, 0x1000);
	allocate(WIRE_FREE, 0x3000, 0, 0);
	allocate(WIRE_MALLOC, 0, 9999, 0); /* failed */
	event_ms(WIRE_CALL, WORK, 1);
	allocate(WIRE_MALLOC, 0x4000, 700, 0);
	event_ms(WIRE_RETURN, WORK, 1);
	event_ms(WIRE_RETURN, MAIN, 1);
}

Test(report, by_bytes)
{
	allocations();
	expect_table(
	    "--sort bytes TRACE",
	    "         3 function calls in 0.005 seconds\n\n"
	    "   Ordered by: allocated bytes\n\n"
	    "   ncalls  tottime  percall  cumtime  percall    allocs        bytes filename:lineno(function)\n"
	    "        1    0.003    0.003    0.005    0.005         2         5010 /app/main.py:10(main)\n"
	    "        1    0.001    0.001    0.001    0.001         1          700 /app/work.py:2(work)\n"
	    "        1    0.001    0.001    0.001    0.001         1          100 {built-in method builtins.len}\n"
	    "\n");
	expect_table("--format csv --sort allocations,bytes --reverse -n 1 TRACE",
		     "file,line,function,ncalls,primitive_calls,tottime,cumtime,allocations,allocated_bytes\n"
		     "\"~\",0,\"<built-in method builtins.len>\",1,1,0.001000000,0.001000000,1,100\n");
	cr_expect(report("--json --sort bytes --restrict main TRACE") == 0);
	cr_expect(strstr(ran.out, ", \"allocations\": 2, \"allocated_bytes\": 5010}"), "%s", ran.out);
	cr_expect(report("--json TRACE") == 0 && !strstr(ran.out, "allocat"), "machine formats are as without the key");
	cr_expect(report("--csv --sort bytes TRACE") == 2);
}

/* Functions that are not shown leave their allocations to their callers. */
Test(report, bytes_of_hidden_functions)
{
	allocations();
	cr_expect(report("--format csv --sort bytes --exclude work --exclude *len TRACE") == 0);
	cr_expect(strstr(ran.out, "\"main\",1,1,0.005000000,0.005000000,4,5810\n"), "%s", ran.out);
	cr_expect(report("--format csv --sort bytes --max-depth 1 TRACE") == 0);
	cr_expect(strstr(ran.out, ",4,5810\n"), "%s", ran.out);
	cr_expect(report("--format csv --sort bytes --by module TRACE") == 0);
	cr_expect(strstr(ran.out, "\"/app/work.py\",1,1,0.001000000,0.001000000,1,700\n"), "%s", ran.out);
}

/* CSV has no room for notes: of calls that are samples, and of numbers that are estimates. */
Test(report, csv_of_what_is_not_exact)
{
	calls();
	cr_expect(report("--format csv TRACE") == 0 && !*ran.err, "%s", ran.err);
	fixture_meta(fixture, process,
		     "{\"type\":\"process\",\"process\":0,\"pid\":10,\"sample_rate\":100,\"budget\":5}");
	save();
	cr_expect(report("--format csv TRACE") == 0);
	cr_expect_str_eq(ran.err,
			 "evprof: Sampled 100 times a second: calls are those that were seen, times are estimates\n"
			 "evprof: recorded within a budget of 5%: numbers of short functions are estimates; the tables "
			 "and the JSON of evprof report mark them\n");
	cr_expect(report("TRACE") == 0 && !*ran.err, "%s", ran.err);
	cr_expect(report("--by span --format csv TRACE") == 0 && !*ran.err, "%s", ran.err);
}

#define BURSTS 4
#define BURST_NS 1000000

/* A change of what is thinned, ns after the event before; every ms of the clock is one of CPU time. */
static void thin(uint32_t of, unsigned kind, unsigned why, uint64_t cpu_ns, uint32_t ns)
{
	const uint64_t words[] = {cpu_ns, WORK};

	fixture_extended(fixture, of, kind, wire_thin_value(why, 5000), words, 2, ns);
}

static void spin(uint32_t of, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		fixture_event(fixture, of, WIRE_CALL, SPIN, 1000);
		fixture_event(fixture, of, WIRE_RETURN, SPIN, 1000);
	}
}

/* main calls work, which is thinned, and work calls what is not; in a burst it is called ten times. */
static void thinned_calls(void)
{
	uint32_t second = fixture_thread(fixture, process, 11, 1000);

	fixture_meta(fixture, process, "{\"type\":\"process\",\"process\":0,\"pid\":10,\"budget\":5}");
	for (unsigned t = 0; t < 2; t++) {
		uint32_t of = t ? second : thread;

		fixture_event(fixture, of, WIRE_CALL, MAIN, 1000);
		thin(of, WIRE_THIN_END, WIRE_BURST_OTHER, 1, 0);
		for (unsigned i = 0; i < BURSTS; i++) {
			thin(of, WIRE_THIN, 0, (uint64_t)(2 * i + 1) * BURST_NS, BURST_NS);
			thin(of, WIRE_THIN_END, WIRE_BURST_RANDOM, (uint64_t)(2 * i + 2) * BURST_NS, BURST_NS);
			for (unsigned k = 0; k < 10 && !t; k++) {
				fixture_event(fixture, of, WIRE_CALL, WORK, 1000);
				spin(of, 10);
				fixture_event(fixture, of, WIRE_RETURN, WORK, 1000);
			}
			if (t)
				spin(of, 100 + i);
		}
		thin(of, WIRE_THIN, 0, (2 * BURSTS + 1) * (uint64_t)BURST_NS, BURST_NS);
		thin(of, WIRE_THIN_END, WIRE_BURST_OTHER, (2 * BURSTS + 2) * (uint64_t)BURST_NS, BURST_NS);
		fixture_event(fixture, of, WIRE_RETURN, MAIN, 1000);
	}
}

static json_int_t calls_of_work(const char *arguments)
{
	json_int_t calls = -1;
	json_t *root, *row;
	size_t i;

	cr_assert(report(arguments) == 0, "%s", ran.err);
	root = json_loads(ran.out, 0, NULL);
	json_array_foreach(json_object_get(root, "functions"), i,
			   row) if (!strcmp(json_string_value(json_object_get(row, "file")), "/app/work.py")) calls =
	    json_integer_value(json_object_get(row, "ncalls"));
	json_decref(root);
	return calls;
}

/* How dense events are in a burst does not depend on which of them are shown. */
Test(report, estimates_are_those_of_all_events)
{
	static const char *const parts[] = {
	    "--include *work*",		 "--exclude sp*",     "--max-depth 2", "--thread 10",
	    "--thread 10 --max-depth 2", "--min-duration 3us"};
	json_int_t calls;

	thinned_calls();
	calls = calls_of_work("--json TRACE");
	cr_expect_gt(calls, 80, "%lld", (long long)calls);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		char words[100];

		snprintf(words, sizeof(words), "--json %s TRACE", parts[i]);
		cr_expect_eq(calls_of_work(words), calls, "%s: %lld for %lld", parts[i],
			     (long long)calls_of_work(words), (long long)calls);
	}
}

/* Where the times cannot be those of a program without hooks, none are printed. */
Test(report, calibrates_with_what_can_be_relied_on)
{
	calls();
	cr_expect(report("--calibrate TRACE") == 2 && !*ran.out && strstr(ran.err, "record with EVPROF_CALIBRATE=1"),
		  "%s", ran.err);
	fixture_define(fixture, process, WIRE_DEFINE_CALIBRATION, 1, 0, "", "spread 0.9 call 2 1 0 c_call 2 1 0", "",
		       "");
	save();
	cr_expect(report("--calibrate TRACE") == 2 && !*ran.out && strstr(ran.err, "too busy"), "%s", ran.err);
	fixture_define(fixture, process, WIRE_DEFINE_CALIBRATION, 1, 0, "", "spread 0.1 call 2 1 0 c_call 2 1 0", "",
		       "");
	save();
	cr_expect(report("--calibrate TRACE") == 0 && *ran.out && !*ran.err, "%s", ran.err);
}

/* Texts that are none, numbers beyond 31 bits, no callers: byte for byte. Read by pstats in the end-to-end tests. */
Test(report, pstats_file)
{
	static const char expected[] = "{"
				       "(\3\0\0\0"
				       "u\5\0\0\0b\xef\xbf\xbdy"
				       "l\3\0\0\0\x00\x28\xd6\x5c\x03\x00"
				       "u\4\0\0\0\xed\xa0\x80g"
				       "(\5\0\0\0i\1\0\0\0i\1\0\0\0g\0\0\0\0\0\0\0\x40g\0\0\0\0\0\0\0\x40"
				       "{0"
				       "0";

	fixture_code(fixture, process, 9, "b\xffy", 4000000000u, "\xed\xa0\x80g");
	event_ms(WIRE_CALL, 9, 1);
	event_ms(WIRE_RETURN, 9, 2000);
	cr_assert(run(cmd_export, "--format pstats TRACE -o -") == 0);
	cr_expect(ran.out_bytes == sizeof(expected) - 1 && memcmp(ran.out, expected, ran.out_bytes) == 0);
}

Test(report, pstats_callers)
{
	static const char callers[] = "(\4\0\0\0i\2\0\0\0i\1\0\0\0g";

	event_ms(WIRE_CALL, WORK, 1);
	event_ms(WIRE_CALL, WORK, 1);
	event_ms(WIRE_CALL, WORK, 1);
	event_ms(WIRE_RETURN, WORK, 1);
	event_ms(WIRE_RETURN, WORK, 1);
	event_ms(WIRE_RETURN, WORK, 1);
	cr_assert(run(cmd_export, "--format pstats TRACE -o -") == 0);
	cr_expect(memmem(ran.out, ran.out_bytes, "(\5\0\0\0i\1\0\0\0i\3\0\0\0g", 16),
		  "of the function: primitive, all");
	cr_expect(memmem(ran.out, ran.out_bytes, callers, sizeof(callers) - 1), "of the caller: all, primitive");
}
