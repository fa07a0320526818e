/*
 * tools_verb.h - runs a verb of evprof in the test's own process and keeps what it prints. Used by the unit tests of
 * the verbs; out of memory ends the test.
 */
#ifndef EVPROF_TESTS_TOOLS_VERB_H
#define EVPROF_TESTS_TOOLS_VERB_H

#include <stddef.h>

struct tools_verb {
	int status;
	char *out; /* stdout, with a NUL behind it; to be freed */
	size_t out_bytes;
	char *err; /* the same of stderr */
};

/* words: separated by blanks; the word TRACE stands for trace, OTHER for other (may be NULL). */
struct tools_verb tools_verb_run(int (*verb)(int argc, char **argv), const char *words, const char *trace,
				 const char *other);
void tools_verb_done(struct tools_verb *ran);

#endif
