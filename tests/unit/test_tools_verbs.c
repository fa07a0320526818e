/*
 * test_tools_verbs.c - info, report, dump and export over traces of the fixture: what they print, and how they end.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/control.h"
#include "tools/export/export.h"
#include "tools/cmd/verbs.h"
#include "tools/run/settings.h"
#include "one_trace.h"

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, 1, "a \"b\".py", 7, "f\n\x01");
	fixture_code(fixture, process, 2, "b.py", 8, "\xed\xa0\x80g\xff");
	fixture_function(fixture, process, 1, "str", "join", "");
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, "", "KeyError", "KeyError", "builtins");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "a\tmark", "", "");
	thread = fixture_thread(fixture, process, 11, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 11, 0, "", "Main \"Thread\"", "", "");
}

TestSuite(verbs, .init = set_up, .fini = end_trace);

/* A trace that an earlier evprof recorded, with other kinds of events. */
Test(verbs, traces_of_an_earlier_version_get_one_line)
{
	static const struct {
		int (*verb)(int argc, char **argv);
		const char *words;
	} readers[] = {{cmd_info, "TRACE"},
		       {cmd_dump, "TRACE"},
		       {cmd_report, "TRACE"},
		       {cmd_annotate, "TRACE"},
		       {cmd_export, "--format chrome -o - TRACE"},
		       {cmd_check, "--max-lost 0 TRACE"},
		       {cmd_diff, "TRACE TRACE"}};

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		tools_verb_done(&ran);
		ran = tools_verb_run(readers[i].verb, readers[i].words, "tests/unit/old/version1.evp", NULL);
		cr_expect_eq(ran.status, 2, "verb %zu", i);
		cr_expect_str_eq(ran.out, "");
		cr_expect_str_eq(
		    ran.err,
		    "evprof: tests/unit/old/version1.evp: the trace was written by an earlier evprof (version 1, "
		    "not 3): record again, or read it with that one\n");
	}
}

/* What a later evprof recorded is named by the trace itself, counted, and not shown. */
Test(verbs, unknown_kinds_are_named_by_the_trace)
{
	fixture_meta(
	    fixture, process,
	    "{\"type\":\"kinds\",\"kinds\":[{\"kind\":47,\"name\":\"gc_begin\"},{\"kind\":48,\"name\":\"\\u001b\"},"
	    "{\"kind\":1,\"name\":\"no_call\"},{\"kind\":640,\"name\":\"far\"},7]}");
	fixture_event(fixture, thread, WIRE_CALL, 1, 10);
	fixture_event(fixture, thread, 47, 2, 10);
	fixture_event(fixture, thread, 48, 1u << 20, 10);
	fixture_event(fixture, thread, 47, 2, 10);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 10);
	fixture_flush(fixture, thread);
	path = fixture_save(fixture);
	cr_expect(run(cmd_dump, "TRACE") == 1, "the trace has no end");
	cr_expect(strstr(ran.err, ": unknown kind 47 (gc_begin): 2 events are not shown"), "%s", ran.err);
	cr_expect(strstr(ran.err, ": unknown kind 48 (kind 48): 1 events are not shown"), "%s", ran.err);
	cr_expect(strstr(ran.out, "30\t10\t11\treturn") || strstr(ran.out, "40\t10\t11\treturn"), "%s", ran.out);
	cr_expect(!strstr(ran.out, "gc_begin"), "%s", ran.out);
	run(cmd_info, "TRACE");
	cr_expect(strstr(ran.out, "call 1, return 1, gc_begin 2, kind 48 1"), "%s", ran.out);
	run(cmd_info, "--json TRACE");
	cr_expect(strstr(ran.out, "\"gc_begin\": 2") || strstr(ran.out, "\"gc_begin\":2"), "%s", ran.out);
}

static void every_kind(void)
{
	event(WIRE_PROCESS_START, WIRE_START_EXEC, 5);
	event(WIRE_CALL, 1, 5);
	event(WIRE_C_CALL, 1, 5);
	event(WIRE_C_EXCEPTION, 1, 5);
	event(WIRE_EXCEPTION, 1, 5);
	event(WIRE_MARK, 1, 5);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0xabc0, 100, 0, 5);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_MEM, 0xdef0, UINT64_C(0x1ffffffffff), 0xabc0, 5);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0xdef0, 0, 0, 5);
	event(WIRE_CALL, 2, 5);
	event(WIRE_GAP, 0, 5);
	fixture_extra(fixture, thread, 77);
	event(WIRE_TIME, 0, 0);
	fixture_extra(fixture, thread, 5000);
	event(WIRE_STACK, 1, 5);
	event(WIRE_FRAME, 1, 0);
	event(WIRE_FORK, 4711, 5);
	event(WIRE_UNWIND, 1, 5);
	event(WIRE_EXIT, 3, 5);
}

static bool is_empty(const char *directory)
{
	return rmdir(directory) == 0 && mkdir(directory, 0700) == 0;
}

/* A limit of file sizes below the output: whichever thread meets it, it is reported, and nothing is left behind. */
Test(verbs, a_failed_write_is_reported_and_leaves_nothing)
{
	char directory[] = "/tmp/test-verbs-XXXXXX", arguments[128];
	size_t i;

	cr_assert(mkdtemp(directory));
	for (i = 0; i < 30000; i++) {
		event(WIRE_CALL, 1 + i % 2, 5);
		event(WIRE_RETURN, 1 + i % 2, 7 + (uint32_t)i % 1000);
	}
	signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < export_format_count; i++) {
		struct rlimit before;

		if (export_formats[i].any_clock)
			continue; /* sums are smaller */
		snprintf(arguments, sizeof(arguments), "-f %s -o %s/out TRACE", export_formats[i].name, directory);
		cr_assert(getrlimit(RLIMIT_FSIZE, &before) == 0);
		cr_assert(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, before.rlim_max}) == 0);
		cr_assert_eq(run(cmd_export, arguments), 2, "%s", export_formats[i].name);
		setrlimit(RLIMIT_FSIZE, &before);
		cr_assert(is_empty(directory), "%s left something behind", export_formats[i].name);
	}
	fflush(stderr);
	rmdir(directory);
}

/* EVPROF_FORMAT may name what evprof export can write, and nothing else. */
Test(verbs, formats_of_the_library_are_those_of_export)
{
	static const char *const names[] = CONTROL_FORMAT_NAMES, *const suffixes[] = CONTROL_FORMAT_SUFFIXES;
	size_t count = sizeof(names) / sizeof(names[0]), i, k;

	cr_assert_eq(count, export_format_count);
	cr_assert_eq(count, sizeof(suffixes) / sizeof(suffixes[0]));
	for (i = 0; i < count; i++) {
		for (k = 0; k < count && strcmp(names[i], export_formats[k].name) != 0; k++)
			;
		cr_assert_lt(k, count, "%s", names[i]);
		cr_assert_str_eq(suffixes[i], export_formats[k].suffix);
		for (k = 0; k < i; k++)
			cr_assert_str_neq(export_formats[i].suffix, export_formats[k].suffix);
	}
}

Test(verbs, dump)
{
	every_kind();
	cr_expect(run(cmd_dump, "TRACE") == 0);
	cr_expect_str_eq(ran.out, "0\t10\t11\tprocess_start\texec\n"
				  "5\t10\t11\tcall\tf\\n\\u0001\ta \"b\".py:7\n"
				  "10\t10\t11\tc_call\t{method 'join' of 'str' objects}\n"
				  "15\t10\t11\tc_exception\t{method 'join' of 'str' objects}\n"
				  "20\t10\t11\texception\tbuiltins.KeyError\n"
				  "25\t10\t11\tmark\ta\\tmark\n"
				  "30\t10\t11\tmalloc\t0xabc0\t100\traw\n"
				  "35\t10\t11\trealloc\t0xdef0\t2199023255551\tmem\t0xabc0\n"
				  "40\t10\t11\tfree\t0xdef0\t-\tobj\n"
				  "45\t10\t11\tcall\t\\ud800g\\xff\tb.py:8\n"
				  "50\t10\t11\tgap\t77\n"
				  "4000\t10\t11\tstack\t1\n"
				  "4000\t10\t11\tframe\tf\\n\\u0001\ta \"b\".py:7\n"
				  "4005\t10\t11\tfork\t4711\n"
				  "4010\t10\t11\tunwind\tf\\n\\u0001\ta \"b\".py:7\n"
				  "4015\t10\t11\texit\t3\n");
	cr_expect(run(cmd_dump, "--thread 12 TRACE") == 2 && !*ran.out, "there is no such thread");
}

/* All that are shown: the others are parts of an event, or of its time. */
Test(verbs, dump_help_has_all_kinds)
{
	static const char *const names[WIRE_KINDS] = WIRE_KIND_NAMES;
	static const char hidden[] = " none time extended cpu native_stack at_line other_call at_instruction "
				     "realloc_begin stack_change ";
	char name[64];

	cr_expect(run(cmd_dump, "--help") == 0);
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++) {
		snprintf(name, sizeof(name), " %s ", names[kind] ? names[kind] : "none");
		if (strstr(hidden, name))
			continue;
		name[strlen(name) - 1] = 0;
		cr_expect(strstr(ran.out, name), "%s", name);
	}
}

/* As the verbs end that read a trace which grows. */
Test(verbs, help_has_the_status_of_growing_traces)
{
	int (*const readers[])(int, char **) = {cmd_report,   cmd_tree,	  cmd_memory, cmd_info,	  cmd_dump,
						cmd_annotate, cmd_export, cmd_cut,    cmd_redact, cmd_diff};

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		cr_expect(run(readers[i], "--help") == 0);
		cr_expect(strstr(ran.out, "; 3 if "), "%s", ran.out);
	}
}

Test(verbs, info_json)
{
	json_t *root, *its;

	every_kind();
	fixture_flush(fixture, thread);
	fixture_meta(
	    fixture, process,
	    "{\"type\":\"process_end\",\"process\":0,\"how\":\"exit\",\"status\":3,\"signal\":null,\"end_ticks\":1}");
	cr_expect(run(cmd_info, "--json TRACE") == 0);
	root = json_loads(ran.out, 0, NULL);
	cr_assert(root);
	cr_expect_str_eq(json_string_value(json_object_get(root, "trace")), path);
	cr_expect(json_is_true(json_object_get(root, "complete")));
	cr_expect(json_integer_value(json_object_get(root, "events")) == 13);
	cr_expect(json_integer_value(json_object_get(root, "duration_ns")) == 4015);
	its = json_array_get(json_object_get(root, "processes"), 0);
	cr_expect(json_integer_value(json_object_get(its, "pid")) == 10);
	cr_expect(json_integer_value(json_object_get(its, "status")) == 3);
	cr_expect_str_eq(json_string_value(json_array_get(json_object_get(its, "argv"), 1)), "a b.py");
	its = json_array_get(json_object_get(its, "threads"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(its, "name")), "Main \"Thread\"");
	cr_expect(json_integer_value(json_object_get(json_object_get(its, "events"), "call")) == 2);
	cr_expect(!json_object_get(json_object_get(its, "events"), "gap"), "bookkeeping is no event");
	cr_expect(json_integer_value(json_object_get(json_object_get(its, "lost"), "unknown")) == 77);
	json_decref(root);
}

Test(verbs, info_for_people)
{
	event(WIRE_CALL, 1, 5);
	cr_expect(run(cmd_info, "TRACE") == 0);
	cr_expect(strstr(ran.out, "state     complete\n"));
	cr_expect(strstr(ran.out, "thread 11 \"Main \"Thread\"\" 1 event\n      call 1\n"));
	cr_expect(strstr(ran.out, "process 10, child of 1: Python 3.11.2"));
}

Test(verbs, report_table)
{
	for (int i = 0; i < 2; i++) {
		event(WIRE_CALL, 1, 1000000);
		event(WIRE_CALL, 1, 2000000);
		event(WIRE_C_CALL, 1, 1000000);
		event(WIRE_C_RETURN, 1, 4000000);
		event(WIRE_RETURN, 1, 1000000);
		event(WIRE_RETURN, 1, 2000000);
	}
	cr_expect(run(cmd_report, "TRACE") == 0);
	cr_expect_str_eq(ran.out, "         6 function calls (4 primitive calls) in 0.020 seconds\n\n"
				  "   Ordered by: internal time\n\n"
				  "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
				  "      4/2    0.012    0.003    0.020    0.010 a \"b\".py:7(f\\n\\u0001)\n"
				  "        2    0.008    0.004    0.008    0.004 {method 'join' of 'str' objects}\n\n");
	cr_expect(run(cmd_report, "--limit 1 -s name TRACE") == 0);
	cr_expect(strstr(ran.out, "List reduced from 2 to 1 due to restriction <1>"));
	cr_expect(strstr(ran.out, "{method 'join'") && !strstr(ran.out, "a \"b\".py"), "< comes before f");
}

Test(verbs, report_json)
{
	json_t *root, *row;

	event(WIRE_CALL, 2, 1);
	event(WIRE_RETURN, 2, 7);
	event(WIRE_RETURN, 1, 1);
	cr_expect(run(cmd_report, "--json TRACE TRACE") == 0);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(root);
	cr_expect(json_integer_value(json_object_get(root, "unmatched")) == 2);
	row = json_array_get(json_object_get(root, "functions"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(row, "function")), "\xef\xbf\xbdg\xef\xbf\xbd");
	cr_expect(json_integer_value(json_object_get(row, "ncalls")) == 2);
	cr_expect(json_integer_value(json_object_get(row, "tottime_ns")) == 14);
	json_decref(root);
}

/* Events of the export with that phase. */
static size_t phases(const json_t *root, const char *phase)
{
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach(json_object_get(root, "traceEvents"), i, one) count +=
	    strcmp(json_string_value(json_object_get(one, "ph")), phase) == 0;
	return count;
}

static const json_t *first_phase(const json_t *root, const char *phase)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(root, "traceEvents"), i,
			   one) if (strcmp(json_string_value(json_object_get(one, "ph")), phase) == 0) return one;
	return NULL;
}

Test(verbs, export_chrome)
{
	const json_t *one;
	json_t *root;

	every_kind();
	event(WIRE_CALL, 1, 5);
	cr_expect(run(cmd_export, "--format chrome TRACE -o -") == 0);
	root = json_loads(ran.out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(root);
	cr_expect(phases(root, "B") == 5 && phases(root, "E") == 5, "two calls open at the gap, one at the end");
	cr_expect(phases(root, "i") == 5, "exception, mark, gap, fork, exit: %zu", phases(root, "i"));
	cr_expect(phases(root, "M") == 5);
	cr_expect(phases(root, "C") == 2, "two samples: %zu", phases(root, "C"));
	one = first_phase(root, "B");
	cr_expect_str_eq(json_string_value(json_object_get(one, "name")), "f\n\x01");
	cr_expect(json_number_value(json_object_get(one, "ts")) == 0.005);
	one = first_phase(root, "C");
	cr_expect(json_integer_value(json_object_get(json_object_get(one, "args"), "bytes")) == 0x1ffffffffff,
		  "the highest of the step, before the last");
	json_decref(root);
}

Test(verbs, incomplete_traces_end_with_1)
{
	every_kind();
	fixture_flush(fixture, thread);
	path = fixture_save(fixture);
	cr_expect(run(cmd_info, "TRACE") == 1);
	cr_expect(run(cmd_dump, "TRACE") == 1 && strstr(ran.out, "mark"));
	cr_expect(run(cmd_report, "TRACE") == 1);
	cr_expect(run(cmd_export, "--format chrome TRACE -o /dev/null") == 1);
	cr_expect(run(cmd_info, "--json TRACE") == 1 && strstr(ran.out, "\"complete\": false"));
}

Test(verbs, marks_that_are_not_there)
{
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "here", "", "");
	every_kind();
	event(WIRE_MARK, 2, 5);
	cr_expect(run(cmd_report, "--between here,nosuch TRACE") == 2);
	cr_expect(strstr(ran.err, "no mark \"nosuch\" was set; there are \"a\\tmark\", \"here\"\n"), "%s", ran.err);
	cr_expect(run(cmd_report, "--between nosuch,here TRACE") == 2);
	cr_expect(strstr(ran.err, "no mark \"nosuch\" was set"), "%s", ran.err);
	cr_expect(run(cmd_report, "--between here,here TRACE") == 0, "%s", ran.err);
}

/* Of a child the parent's marks count. */
Test(verbs, marks_of_another_process)
{
	uint32_t child = fixture_process(fixture, 77, 10);

	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "here", "", "");
	event(WIRE_MARK, 2, 5);
	fixture_event(fixture, fixture_thread(fixture, child, 77, 1000), WIRE_CALL, 1, 5);
	cr_expect(run(cmd_report, "--between here,here --process 77 TRACE") == 0, "%s", ran.err);
}

/* Tables are a folder, which another program writes. */
Test(verbs, export_of_tables_is_refused_without_folder)
{
	cr_expect(run(cmd_export, "--help") == 0 && strstr(ran.out, "--tables LIST"));
	cr_expect(run(cmd_export, "--format parquet TRACE") == 2);
	cr_expect(strstr(ran.err, "--format parquet needs -o FOLDER"), "%s", ran.err);
	cr_expect(run(cmd_export, "--format parquet,csv --beside TRACE") == 2);
	cr_expect(strstr(ran.err, "there is no format \"parquet\"") && strstr(ran.err, "parquet, arrow\n"), "%s",
		  ran.err);
}

/* Of the first bytes of a file that export wrote without --format. */
static bool wrote(const char *name, const char *begin, size_t bytes)
{
	char folder[] = "/tmp/evprof-named-XXXXXX", file[128], words[192], found[64] = "";
	FILE *stream;
	size_t count;

	cr_assert(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/%s", folder, name);
	snprintf(words, sizeof(words), "TRACE -o %s", file);
	cr_expect(run(cmd_export, words) == 0, "%s: %s", name, ran.err);
	stream = fopen(file, "r");
	cr_assert(stream);
	count = fread(found, 1, bytes, stream);
	fclose(stream);
	unlink(file);
	rmdir(folder);
	return count == bytes && memcmp(found, begin, bytes) == 0;
}

Test(verbs, export_by_name)
{
	every_kind();
	cr_expect(wrote("x.html", "<!doctype html>", 15) || wrote("x.html", "<!DOCTYPE html>", 15));
	cr_expect(wrote("x.pstats", "{", 1));
	cr_expect(wrote("x.prof", "{", 1));
	cr_expect(wrote("x.csv", "time,", 5));
	cr_expect(wrote("x.pb.gz", "\x1f\x8b", 2));
	cr_expect(wrote("x.pftrace", "\x0a", 1));
	cr_expect(wrote("x.perfetto-trace", "\x0a", 1));
	cr_expect(wrote("x.speedscope.json", "{\"$schema\"", 10));
	cr_expect(wrote("callgrind.out.4711", "# callgrind format", 18));
	cr_expect(run(cmd_export, "TRACE -o x.folded") == 0 && unlink("x.folded") == 0);
	cr_expect(run(cmd_export, "TRACE -o x.json") == 2 && strstr(ran.err, "the formats are chrome, perfetto"));
	cr_expect(run(cmd_export, "TRACE -o -") == 2 && strstr(ran.err, "the formats are chrome"));
	cr_expect(run(cmd_export, "TRACE -o x.csv/y") == 2 && strstr(ran.err, "the formats are chrome"));
}

/* The verb reads the trace from its standard input: the file itself, or a pipe that a child writes it to. */
static int from_stdin(int (*verb)(int argc, char **argv), const char *arguments, bool piped)
{
	int before = dup(STDIN_FILENO), status;
	char command[256];
	FILE *stream;

	snprintf(command, sizeof(command), "cat %s", path);
	stream = piped ? popen(command, "r") : fopen(path, "r");
	cr_assert(stream);
	dup2(fileno(stream), STDIN_FILENO);
	status = run(verb, arguments);
	dup2(before, STDIN_FILENO);
	if (piped)
		pclose(stream);
	else
		fclose(stream);
	close(before);
	return status;
}

Test(verbs, trace_from_stdin)
{
	char *expected;

	every_kind();
	cr_assert(run(cmd_dump, "TRACE") == 0);
	expected = strdup(ran.out);
	for (int piped = 0; piped < 2; piped++) {
		cr_expect(from_stdin(cmd_dump, "-", piped) == 0 && strcmp(ran.out, expected) == 0, "%s", ran.err);
		cr_expect(from_stdin(cmd_info, "-", piped) == 0 && strstr(ran.out, "complete"), "%s", ran.err);
		cr_expect(from_stdin(cmd_report, "-", piped) == 0, "%s", ran.err);
		cr_expect(from_stdin(cmd_export, "--format csv --beside -", piped) == 2, "it has no name");
	}
	free(expected);
}

Test(verbs, mistakes_end_with_2)
{
	static const char *const wrong[] = {"", "--nonsense TRACE", "/nonexistent"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_expect(run(cmd_info, wrong[i]) == 2, "info %s", wrong[i]);
		cr_expect(run(cmd_dump, wrong[i]) == 2, "dump %s", wrong[i]);
		cr_expect(run(cmd_report, wrong[i]) == 2, "report %s", wrong[i]);
		cr_expect(run(cmd_export, wrong[i]) == 2, "export %s", wrong[i]);
	}
	cr_expect(run(cmd_report, "--sort nonsense TRACE") == 2);
	cr_expect(run(cmd_report, "--limit x TRACE") == 2);
	cr_expect(run(cmd_report, "--between one TRACE") == 2);
	cr_expect(run(cmd_report, "--between a,b --from 1 TRACE") == 2);
	cr_expect(run(cmd_export, "--format nonsense TRACE -o /dev/null") == 2);
	cr_expect(run(cmd_export, "TRACE") == 2);
	cr_expect(run(cmd_export, "TRACE -o /dev/null") == 2, "there is no default format");
	cr_expect(run(cmd_export, "--format chrome TRACE -o /nonexistent/file") == 2);
	cr_expect(run(cmd_export, "--format csv TRACE -o TRACE") == 2);
	cr_expect(run(cmd_report, "--process 9 TRACE") == 2);
	cr_expect(run(cmd_dump, "--thread 9 TRACE") == 2);
	cr_expect(run(cmd_info, "TRACE") == 0, "the trace was not touched");
	cr_expect(run(cmd_run, "") == 125);
	cr_expect(run(cmd_run, "--nonsense -- true") == 125);
}

/* The program does not run: it would have left the file. */
Test(verbs, run_refuses_bad_values)
{
	static const char *const wrong[] = {"--events calls",
					    "--events sample,call",
					    "--sample=0",
					    "--sample=10001",
					    "--ring-size 12",
					    "--on-full panic",
					    "--log loud",
					    "--format pstats,nonsense",
					    "--include re:(",
					    "--exclude a,re:[",
					    "--output x-%q.evp",
					    "--sample --events call",
					    "--events call --sample",
					    "--trigger quiet=1s",
					    "--trigger quiet=1s --trigger most=2",
					    "--trigger exception --trigger soon"};
	char file[] = "/tmp/evprof-refused-XXXXXX", words[128];

	close(mkstemp(file));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(words, sizeof(words), "%s -- rm %s", wrong[i], file);
		cr_expect(run(cmd_run, words) == 125, "%s", wrong[i]);
		cr_expect(access(file, F_OK) == 0, "%s", wrong[i]);
	}
	unlink(file);
}

/* An item that is no list of its own is one with the others. */
Test(verbs, run_joins_lists)
{
	struct run_settings settings = {0};

	cr_expect(run_settings_take(&settings, RUN_TRIGGER, "quiet=1s"));
	cr_expect(run_settings_take(&settings, RUN_TRIGGER, "exception"));
	cr_expect(run_settings_take(&settings, RUN_EVENTS, "cpu"));
	cr_expect(run_settings_take(&settings, RUN_EVENTS, "call"));
	cr_expect(run_settings_finish(&settings));
	cr_expect_str_eq(getenv("EVPROF_TRIGGER"), "quiet=1s,exception");
	cr_expect_str_eq(getenv("EVPROF_EVENTS"), "cpu,call");
}

static void expect_misused(int (*verb)(int argc, char **argv), const char *words, const char *line)
{
	cr_expect(run(verb, words) == 2 && strstr(ran.err, line), "%s: %s", words, ran.err);
}

/* An empty value is not the default. */
Test(verbs, values_that_are_nothing)
{
	expect_misused(cmd_start, "--events= 1", "--events wants a value");
	expect_misused(cmd_record, "--events= 1", "--events wants a value");
	expect_misused(cmd_attach, "--events= 1", "--events wants a value");
	expect_misused(cmd_snapshot, "--last 0s 1", "--last is more than 0s, not 0s");
}

/* As /dev/stdout is one. */
Test(verbs, a_link_stays_when_it_is_written_through)
{
	char folder[] = "/tmp/evprof-links-XXXXXX", link[64], target[64], words[160];
	struct stat status;

	every_kind();
	cr_assert(mkdtemp(folder));
	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(target, sizeof(target), "%s/target", folder);
	cr_assert_eq(symlink("/proc/self/fd/1", link), 0);
	snprintf(words, sizeof(words), "--format folded TRACE -o %s", link);
	cr_expect_eq(run(cmd_export, words), 0);
	cr_expect(strstr(ran.out, ";str.join 5\n"), "%s", ran.out);
	cr_expect(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
	unlink(link);
	fclose(fopen(target, "w"));
	cr_assert_eq(symlink("target", link), 0);
	cr_expect_eq(run(cmd_export, words), 0);
	cr_expect(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
	cr_expect(stat(target, &status) == 0 && status.st_size > 0);
	unlink(link);
	unlink(target);
	rmdir(folder);
}

Test(verbs, dump_shows_what_the_filter_leaves)
{
	event(WIRE_CALL, 1, 10);
	event(WIRE_CALL, 2, 10);
	event(WIRE_C_CALL, 1, 10);
	event(WIRE_C_RETURN, 1, 10);
	event(WIRE_RETURN, 2, 10);
	event(WIRE_RETURN, 1, 10);
	cr_expect_eq(run(cmd_dump, "--include b.py TRACE"), 0);
	cr_expect(strstr(ran.out, "b.py:8") && !strstr(ran.out, "a \"b\".py") && !strstr(ran.out, "join"), "%s",
		  ran.out);
	cr_expect_eq(run(cmd_dump, "--exclude str.join --from 5 --to 45 TRACE"), 0);
	cr_expect(strstr(ran.out, "\treturn\t") && strstr(ran.out, "b.py:8") && !strstr(ran.out, "join"), "%s",
		  ran.out);
	cr_expect(!strstr(ran.out, "a \"b\".py"), "it began before and ends after: %s", ran.out);
	cr_expect_eq(run(cmd_dump, "--max-depth 3 TRACE"), 2);
}

/* A word of several letters is not left by getopt() until the last of them. */
Test(verbs, a_wrong_option_is_named_as_it_was_written)
{
	static int (*const runs[])(int, char **) = {cmd_report,	  cmd_info, cmd_dump, cmd_export,
						    cmd_annotate, cmd_diff, cmd_check};
	static const char *const words[] = {"-!", "-!?x", "--nonsense", "--nonsense=3"};

	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		for (size_t j = 0; j < sizeof(words) / sizeof(*words); j++) {
			char arguments[64], said_of_it[64];
			struct tools_verb refused;

			snprintf(arguments, sizeof(arguments), "%s TRACE TRACE", words[j]);
			snprintf(said_of_it, sizeof(said_of_it), "the option %s is not known", words[j]);
			refused = tools_verb_run(runs[i], arguments, "/nonexistent", NULL);
			cr_expect(refused.status == 2 && strstr(refused.err, said_of_it), "verb %zu: %s", i,
				  refused.err);
			tools_verb_done(&refused);
		}
	}
}
