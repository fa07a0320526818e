/*
 * test_tools_redact.c - texts without what patterns match (tools/cut/redact.h).
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cut/redact.h"
#include "tools/cmd/verbs.h"
#include "trace/reader.h"
#include "one_trace.h"

/* The patterns are separated by blanks. */
static void expect(const char *patterns, const char *text, const char *wanted)
{
	struct redact redact = {0};
	char words[64], masked[64], why[64], *rest = words;

	strcpy(words, patterns);
	strcpy(masked, text);
	for (char *pattern; (pattern = strsep(&rest, " "));)
		cr_assert_null(redact_add(&redact, pattern, why, sizeof(why)));
	cr_expect_eq(redact_text(&redact, text, strlen(text), masked), strcmp(text, wanted) != 0);
	cr_expect_str_eq(masked, wanted, "%s in %s: %s", patterns, text, masked);
	redact_done(&redact);
}

Test(redact, each_match_is_masked)
{
	expect("b", "abcb", "a*c*");
	expect("x", "abcb", "abcb");
	expect("^a", "aab", "*ab");
	expect("b$", "bab", "ba*");
	expect("é", "aéb", "a**b");
	expect("\xa9", "aéb", "a**b");
	expect(".*", "abc", "***");
	expect("a", "", "");
}

/* A pattern sees what was there, not what another one has masked. */
Test(redact, patterns_may_overlap)
{
	expect("/home/alice /home/alice/secret", "/home/alice/secret/a.py", "******************/a.py");
	expect("/home/alice/secret /home/alice", "/home/alice/secret/a.py", "******************/a.py");
	expect("ab bc", "abc", "***");
	expect("a [*]b", "ab", "*b");
}

/* A match may begin inside the one before. */
Test(redact, matches_of_one_pattern_may_overlap)
{
	expect("aba", "xababax", "x*****x");
	expect("/[^/]*/s", "/r/s/s/t", "******/t");
	expect("ab|bcd", "abcd", "****");
}

/* The title is an object of its own, or in that of the process. */
Test(redact, words_of_command_line_and_title, .fini = end_trace)
{
	static const char *const titles[] = {"\"worker: --key=alice bob\"", "\"worker:\"", "null", "\"\""};

	fixture = fixture_new();
	for (int i = 0; i < 4; i++) {
		process = fixture_process(fixture, 10 + i, 1);
		fixture_meta(fixture, process, "{\"type\":\"title\",\"process\":%u,\"title\":%s}", process, titles[i]);
	}
	fixture_meta(fixture, fixture->processes,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":20,\"python\":\"3.11.2\",\"events\":[\"call\"],"
		     "\"argv\":[\"first\",\"alice\",\"bob\"],\"title\":\"parent alice\"}",
		     fixture->processes);
	cr_assert_eq(run(cmd_redact, "--argv --in-place TRACE"), 0, "%s", ran.err);
	cr_assert_eq(run(cmd_info, "--json TRACE"), 0, "%s", ran.err);
	cr_expect(!strstr(ran.out, "alice") && !strstr(ran.out, "bob"), "%s", ran.out);
	cr_expect(strstr(ran.out, "\"title\": \"worker: *\"") && strstr(ran.out, "\"title\": \"worker:\"") &&
		      strstr(ran.out, "\"title\": \"\"") && strstr(ran.out, "\"title\": \"parent *\""),
		  "%s", ran.out);
}

/* A title that was set before the process joined is its only argument, and has named the program. */
Test(redact, words_of_an_earlier_title, .fini = end_trace)
{
	static const struct {
		const char *argv, *program, *shown;
	} cases[] = {
	    {"[\"worker: --key=alice\"]", "worker__--key_alice", "worker: * worker_"},
	    {"[\"worker: a/alice\",\"\",\"\"]", "alice", "worker: * worker_"},
	    {"[\"python app.py alice\"]", "python_app.py_alice", "python * python"},
	    {"[\"/a b/python3\",\"x.py\"]", "x", "/a * x"},
	    {"[\"/b/python3\",\"x.py\"]", "x", "/b/python3 x"},
	    {"[\"worker\"]", "worker", "worker worker"},
	};
	json_t *info, *one;
	char shown[128];
	size_t i;

	fixture = fixture_new();
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		process = fixture_process(fixture, 10 + (int)i, 1);
		fixture_meta(fixture, process,
			     "{\"type\":\"process\",\"process\":%u,\"pid\":20,\"python\":\"3.11.2\","
			     "\"events\":[\"call\"],\"argv\":%s,\"program\":\"%s\"}",
			     process, cases[i].argv, cases[i].program);
	}
	cr_assert_eq(run(cmd_redact, "--argv --in-place TRACE"), 0, "%s", ran.err);
	cr_assert_eq(run(cmd_info, "--json TRACE"), 0, "%s", ran.err);
	cr_expect(!strstr(ran.out, "alice"), "%s", ran.out);
	info = json_loads(ran.out, 0, NULL);
	json_array_foreach(json_object_get(info, "processes"), i, one)
	{
		snprintf(shown, sizeof(shown), "%s %s",
			 json_string_value(json_array_get(json_object_get(one, "argv"), 0)),
			 json_string_value(json_object_get(one, "program")));
		cr_expect_str_eq(shown, cases[i].shown);
	}
	cr_expect_eq(json_array_size(json_object_get(info, "processes")), sizeof(cases) / sizeof(*cases));
	json_decref(info);
}

/* Whatever a newer evprof notes. */
Test(redact, texts_at_any_depth, .fini = end_trace)
{
	struct trace *trace = NULL;
	char error[200], *text;

	fixture = fixture_new();
	fixture_process_with(fixture, "\"newer\":[{\"of\":{\"in\":[[\"secret\"],2]}},\"secret\",1]");
	cr_assert_eq(run(cmd_redact, "-e secret --in-place TRACE"), 0, "%s", ran.err);
	cr_assert(trace_open(&trace, path, error, sizeof(error)) == 0, "%s", error);
	text = json_dumps(json_object_get(trace->processes[0]->meta, "newer"), JSON_COMPACT);
	cr_expect_str_eq(text, "[{\"of\":{\"in\":[[\"******\"],2]}},\"******\",1]");
	free(text);
	trace_close(trace);
}
