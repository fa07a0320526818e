/*
 * test_tools_old.c - traces that an older evprof recorded (tests/unit/old) are shown as it showed them, byte for byte.
 *
 * The expected outputs are those of the evprof that recorded the trace.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cmd/verbs.h"
#include "tools_verb.h"

#define OLD "tests/unit/old/version1"

static void is_shown_as(int (*verb)(int argc, char **argv), const char *words, const char *expected_path)
{
	struct tools_verb ran = tools_verb_run(verb, words, OLD ".evp", NULL);
	FILE *file = fopen(expected_path, "r");
	char *expected = calloc(1, ran.out_bytes + 2);
	size_t bytes;

	cr_assert(file && expected);
	bytes = fread(expected, 1, ran.out_bytes + 1, file);
	fclose(file);
	cr_expect_str_eq(ran.err, "");
	cr_expect_eq(ran.status, 0);
	cr_expect_eq(bytes, ran.out_bytes);
	cr_expect_str_eq(ran.out, expected, "%s differs from %s", words, expected_path);
	free(expected);
	tools_verb_done(&ran);
}

Test(old, version_1_is_dumped)
{
	is_shown_as(cmd_dump, "TRACE", OLD ".dump");
}

Test(old, version_1_is_reported)
{
	is_shown_as(cmd_report, "TRACE", OLD ".report");
	is_shown_as(cmd_report, "--clock cpu TRACE", OLD ".cpu");
}
