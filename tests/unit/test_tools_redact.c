/*
 * test_tools_redact.c - texts without what patterns match (tools/cut/redact.h).
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cut/redact.h"

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
