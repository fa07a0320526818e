/*
 * test_tools_callgrind.c - the callgrind file of small traces, line by line, and what goes into its zip.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/export/export.h"
#include "one_trace.h"

static struct filter filter;
static char *written;
static size_t written_bytes;

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_define(fixture, process, WIRE_DEFINE_CODE, 1, 7, "a.py", "f", "A.f", "mod");
	fixture_define(fixture, process, WIRE_DEFINE_CODE, 2, 9, "a.py", "g", "", "mod");
	fixture_define(fixture, process, WIRE_DEFINE_CODE, 3, 9, "/b\n.py", "g", "", "mod");
	fixture_function(fixture, process, 1, "", "len", "builtins");
	thread = fixture_thread(fixture, process, 11, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 11, 0, "", "Main", "", "");
}

static void tear_down(void)
{
	free(written);
	end_trace();
	filter_done(&filter);
}

TestSuite(callgrind, .init = set_up, .fini = tear_down);

/* Exports what the fixture holds; the bytes are in `written`. */
static void export(bool zip)
{
	char to[] = "callgrind.XXXXXX", error[200];
	struct export request = {.filter = &filter, .zip = zip};
	struct progress progress;
	struct output output;
	FILE *file;

	fixture_end(fixture);
	cr_assert(trace_open_memory(&request.trace, fixture->bytes, fixture->size, "fixture", error, sizeof(error)) ==
		      0,
		  "%s", error);
	close(mkstemp(to));
	progress_begin(&progress, "exporting", 0);
	cr_assert(output_open(&output, to) == 0);
	cr_expect(export_callgrind(&request, &output, &progress) == 0);
	cr_assert(output_close(&output) == 0);
	progress_end(&progress);
	trace_close(request.trace);
	file = fopen(to, "rb");
	written = calloc(1, 1 << 16);
	written_bytes = fread(written, 1, (1 << 16) - 1, file);
	fclose(file);
	unlink(to);
}

#define HEADER                                                                                                         \
	"version: 1\ncreator: evprof 0.2\npid: 10\ncmd: python 'a b.py'\nevent: ns : Nanoseconds\n"                    \
	"event: Calls : Calls of functions\npositions: line\nevents: ns Calls\n"

/* From the first `from` on, the bytes are these. */
static void expect_text(const char *from, const char *text)
{
	const char *at = strstr(written, from);

	cr_assert(at, "%s is in\n%s", from, written);
	cr_expect(strncmp(at, text, strlen(text)) == 0, "expected\n%s\nin\n%s", text, at);
}

static void lines_were_recorded(void)
{
	fixture_meta(fixture, process,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":10,\"ppid\":1,\"clock_kind\":0,\"clock_shift\":0,"
		     "\"start_ticks\":0,\"argv\":[\"python\",\"a b.py\"],\"events\":[\"call\",\"line\"]}",
		     process);
}

Test(callgrind, calls_and_lines)
{
	event(WIRE_CALL, 1, 5);
	event(WIRE_C_CALL, 1, 10);
	event(WIRE_C_RETURN, 1, 20);
	event(WIRE_CALL, 2, 1);
	event(WIRE_RETURN, 2, 100);
	event(WIRE_RETURN, 1, 4);
	export(false);
	cr_expect(strncmp(written, "# callgrind format\nversion: 1\n", 30) == 0);
	expect_text("\nevents:",
		    "\nevents: ns Calls\n"
		    "\nob=process 10\nfl=~\nfn=thread 11 of process 10, Main\n"
		    "cob=(1) mod\ncfl=(2) a.py\ncfn=(1) A.f:7\ncalls=1 7\n0 135 3\n"
		    "\nob=(1)\nfl=(2)\nfn=(1)\n7 15 1\n"
		    "cob=(3) builtins\ncfl=(4) ~\ncfn=(2) <built-in method builtins.len>\ncalls=1 0\n7 20 1\n"
		    "cob=(1)\ncfl=(2)\ncfn=(3) g:9\ncalls=1 9\n7 100 1\n"
		    "\nob=(3)\nfl=(4)\nfn=(2)\n0 20 1\n"
		    "\nob=(1)\nfl=(2)\nfn=(3)\n9 100 1\n");
}

/* f calls g calls f calls g: only the outer two have inclusive costs, so that sums over callers are right. */
Test(callgrind, recursion)
{
	event(WIRE_CALL, 1, 1);
	event(WIRE_CALL, 2, 1);
	event(WIRE_CALL, 1, 1);
	event(WIRE_CALL, 2, 1);
	event(WIRE_RETURN, 2, 1);
	event(WIRE_RETURN, 1, 1);
	event(WIRE_RETURN, 2, 1);
	event(WIRE_RETURN, 1, 1);
	export(false);
	expect_text("\nob=process", "\nob=process 10\nfl=~\nfn=thread 11 of process 10, Main\n"
				    "cob=(1) mod\ncfl=(2) a.py\ncfn=(1) A.f:7\ncalls=1 7\n0 7 4\n"
				    "\nob=(1)\nfl=(2)\nfn=(1)\n7 4 2\ncob=(1)\ncfl=(2)\ncfn=(2) g:9\ncalls=2 9\n7 5 3\n"
				    "\nob=(1)\nfl=(2)\nfn=(2)\n9 3 2\ncob=(1)\ncfl=(2)\ncfn=(1)\ncalls=1 7\n9 0 0\n");
}

/* One header, and each name once, for all threads: callgrind_annotate complains of the headers of another part. */
Test(callgrind, threads_are_in_one_part)
{
	event(WIRE_CALL, 1, 5);
	event(WIRE_RETURN, 1, 10);
	thread = fixture_thread(fixture, process, 12, 1000);
	event(WIRE_CALL, 1, 5);
	event(WIRE_RETURN, 1, 30);
	export(false);
	expect_text("\nob=(1)\n", "\nob=(1)\nfl=(2)\nfn=(1)\n7 10 1\n"
				  "\nob=process 10\nfl=~\nfn=thread 12 of process 10\n"
				  "cob=(1)\ncfl=(2)\ncfn=(1)\ncalls=1 7\n0 30 1\n"
				  "\nob=(1)\nfl=(2)\nfn=(1)\n7 30 1\n");
	cr_expect(!strstr(strstr(written, "\npid:") + 1, "\npid:") && !strstr(written, "\npart:"), "%s", written);
}

/* What goes on after its stack was taken anew is the call that was counted before, whatever line its caller is at. */
Test(callgrind, frames_that_come_back)
{
	lines_were_recorded();
	event(WIRE_CALL, 1, 5);
	event(WIRE_LINE, 8, 1);
	event(WIRE_CALL, 2, 2);
	event(WIRE_STACK, 2, 30);
	event(WIRE_FRAME, 1, 0);
	event(WIRE_FRAME, 2, 0);
	event(WIRE_RETURN, 2, 10);
	event(WIRE_RETURN, 1, 1);
	export(false);
	expect_text("calls=1 9", "calls=1 9\n8 40 1\n\n");
}

/* Two functions that a reader would take for one get names that differ; no name breaks its line. */
Test(callgrind, same_names)
{
	event(WIRE_CALL, 2, 5);
	event(WIRE_RETURN, 2, 10);
	event(WIRE_CALL, 3, 5);
	event(WIRE_RETURN, 3, 10);
	event(WIRE_CALL, 99, 5);
	event(WIRE_RETURN, 99, 10);
	export(false);
	cr_expect(strstr(written, " g:9\n") && strstr(written, " g:9_2\n"));
	cr_expect(strstr(written, " /b\\n.py\n"));
	cr_expect(strstr(written, "<unknown function>:0\n"), "%s", written);
}

Test(callgrind, a_file_without_a_name)
{
	fixture_code(fixture, process, 9, "", 3, "f");
	event(WIRE_CALL, 9, 0);
	event(WIRE_RETURN, 9, 10);
	export(false);
	cr_expect(strstr(written, ") ???\n") && !strstr(written, ") \n"), "%s", written);
}

Test(callgrind, nothing)
{
	export(false);
	cr_expect_str_eq(written,
			 "# callgrind format\nversion: 1\ncreator: evprof 0.2\npositions: line\nevents: ns Calls\n");
}

Test(callgrind, short_and_deep_calls)
{
	event(WIRE_CALL, 1, 1);
	event(WIRE_CALL, 2, 1);
	event(WIRE_RETURN, 2, 1);
	event(WIRE_CALL, 2, 1);
	event(WIRE_C_CALL, 1, 1);
	event(WIRE_C_RETURN, 1, 40);
	event(WIRE_RETURN, 2, 9);
	event(WIRE_RETURN, 1, 1);
	filter.min_duration_ns = 45;
	filter.max_depth = 2;
	export(false);
	expect_text("\nob=(1)", "\nob=(1)\nfl=(2)\nfn=(1)\n7 4 1\ncob=(1)\ncfl=(2)\ncfn=(2) g:9\ncalls=1 9\n7 50 1\n");
	cr_expect(!strstr(written, "len"), "%s", written);
}

/* Time goes to the line that runs, calls to the line they are made at. */
Test(callgrind, lines)
{
	lines_were_recorded();
	event(WIRE_CALL, 1, 5);
	event(WIRE_LINE, 8, 1);
	event(WIRE_CALL, 2, 2);
	event(WIRE_LINE, 10, 100);
	event(WIRE_RETURN, 2, 10);
	event(WIRE_LINE, 9, 3);
	event(WIRE_LINE, 8, 4);
	event(WIRE_RETURN, 1, 5);
	export(false);
	expect_text("event: Hits", "event: Hits : Line events\npositions: line\nevents: ns Calls Hits\n"
				   "\nob=process 10\nfl=~\nfn=thread 11 of process 10, Main\n"
				   "cob=(1) mod\ncfl=(2) a.py\ncfn=(1) A.f:7\ncalls=1 7\n0 125 2 4\n"
				   "\nob=(1)\nfl=(2)\nfn=(1)\n7 1 1\n8 10 0 2\n"
				   "cob=(1)\ncfl=(2)\ncfn=(2) g:9\ncalls=1 9\n8 110 1 1\n9 4 0 1\n"
				   "\nob=(1)\nfl=(2)\nfn=(2)\n9 100 1\n10 10 0 1\n");
}

/* The lines of a function that is left out are not those of its caller. */
Test(callgrind, lines_of_hidden_functions)
{
	lines_were_recorded();
	cr_assert(filter_take(&filter, "export", FILTER_EXCLUDE, "A.f"));
	event(WIRE_CALL, 2, 5);
	event(WIRE_LINE, 10, 1);
	event(WIRE_CALL, 1, 1);
	event(WIRE_LINE, 8, 1);
	event(WIRE_CALL, 3, 1);
	event(WIRE_LINE, 11, 1);
	event(WIRE_RETURN, 3, 1);
	event(WIRE_LINE, 9, 1);
	event(WIRE_RETURN, 1, 1);
	event(WIRE_LINE, 11, 1);
	event(WIRE_RETURN, 2, 20);
	export(false);
	expect_text("\nob=(1)", "\nob=(1)\nfl=(2)\nfn=(1)\n9 1 1\n10 6 0 1\ncob=(1)\ncfl=(3)");
	expect_text("\n11 20 0 1\n", "\n11 20 0 1\n\nob=(1)\nfl=(3)\nfn=(2)\n9 1 1\n11 1 0 1\n");
}

/* The frame that the event before put on the stack stands at that line. */
static void stands(uint32_t line)
{
	event(WIRE_AT_LINE, line, 0);
}

/*
 * A generator goes on where it yielded, each where it did itself; a line without a function on the stack belongs to
 * nobody.
 */
Test(callgrind, lines_of_generators)
{
	lines_were_recorded();
	event(WIRE_LINE, 3, 1);
	event(WIRE_CALL, 1, 5);
	event(WIRE_LINE, 8, 1);
	event(WIRE_YIELD, 1, 10);
	event(WIRE_CALL, 1, 1); /* another one of the same function */
	event(WIRE_LINE, 9, 2);
	event(WIRE_YIELD, 1, 3);
	event(WIRE_RESUME, 1, 5);
	stands(8);
	event(WIRE_CALL, 2, 30);
	event(WIRE_RETURN, 2, 4);
	event(WIRE_YIELD, 1, 1);
	event(WIRE_RESUME, 1, 5);
	stands(9);
	event(WIRE_RETURN, 1, 7);
	export(false);
	expect_text("\nob=(1)", "\nob=(1)\nfl=(2)\nfn=(1)\n7 3 4\n8 41 0 1\ncob=(1)\ncfl=(2)\ncfn=(2) g:9\ncalls=1 9\n"
				"8 4 1\n9 10 0 1\n");
}

/* Where the trace does not say where a frame stands, it stands at no line that is known. */
Test(callgrind, lines_that_are_not_known)
{
	lines_were_recorded();
	event(WIRE_STACK, 1, 1);
	event(WIRE_FRAME, 1, 0);
	event(WIRE_CALL, 2, 5);
	event(WIRE_RETURN, 2, 4);
	event(WIRE_LINE, 9, 2);
	event(WIRE_RETURN, 1, 3);
	export(false);
	expect_text("\nob=(1)", "\nob=(1)\nfl=(2)\nfn=(1)\n0 7 0\ncob=(1)\ncfl=(2)\ncfn=(2) g:9\ncalls=1 9\n0 4 1\n"
				"7 0 0\n9 3 0 1\n");
}

static void greenlets_switch(uint64_t to, uint64_t from)
{
	event(WIRE_SWITCH, 0, 10);
	fixture_extra(fixture, thread, to);
	fixture_extra(fixture, thread, from);
}

/* A greenlet that goes on stands where it was, in each of its frames. */
Test(callgrind, lines_of_greenlets)
{
	lines_were_recorded();
	event(WIRE_CALL, 1, 5);
	event(WIRE_LINE, 8, 1);
	event(WIRE_CALL, 2, 5);
	event(WIRE_LINE, 10, 1);
	greenlets_switch(0x20, 0x10);
	greenlets_switch(0x10, 0x20);
	event(WIRE_RETURN, 2, 3);
	event(WIRE_RETURN, 1, 4);
	export(false);
	expect_text("\nob=(1)", "\nob=(1)\nfl=(2)\nfn=(1)\n7 1 1\n8 9 0 1\n");
	expect_text("\nfn=(2)\n", "\nfn=(2)\n9 1 1\n10 13 0 1\n");
}

/* Calls that are too short to be shown take their lines with them: time is by function then. */
Test(callgrind, lines_and_short_calls)
{
	lines_were_recorded();
	filter.min_duration_ns = 5;
	event(WIRE_CALL, 1, 5);
	event(WIRE_LINE, 8, 1);
	event(WIRE_CALL, 2, 2);
	event(WIRE_LINE, 10, 1);
	event(WIRE_RETURN, 2, 1);
	event(WIRE_RETURN, 1, 5);
	export(false);
	expect_text("\nob=(1)", "\nob=(1)\nfl=(2)\nfn=(1)\n7 10 1\n");
}

/* A source that is missing costs a line, the zip is made. A name in <> is not looked for. */
Test(callgrind, zip_names_missing_sources)
{
	char said[4096] = {0};

	cr_redirect_stderr();
	fixture_code(fixture, process, 4, "/nonexistent/../x.py", 1, "x");
	fixture_code(fixture, process, 5, "<string>", 1, "x");
	event(WIRE_CALL, 4, 5);
	event(WIRE_CALL, 5, 5);
	export(true);
	fflush(stderr);
	cr_assert(written_bytes > 100 && memcmp(written, "PK\3\4", 4) == 0);
	cr_expect(memcmp(written + written_bytes - 22, "PK\5\6", 4) == 0);
	cr_expect(written[written_bytes - 12] == 1, "one file is in it");
	cr_expect(fread(said, 1, sizeof(said) - 1, cr_get_redirected_stderr()) > 0);
	cr_expect_str_eq(said,
			 "evprof export: the source nonexistent/x.py is not in the zip: No such file or directory\n");
}
