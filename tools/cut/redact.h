/*
 * redact.h - a trace without texts that are nobody else's business: each byte that a pattern matches becomes '*'. For
 * evprof redact.
 *
 * Texts are names and files of functions, of exceptions, threads, marks, spans, their text arguments, native modules
 * and symbols, and of processes the command line, paths, host and title. Nothing else changes, and no length does:
 * events, times and ids are those of the trace. Chunks that cannot be read are left out.
 */
#ifndef EVPROF_TOOLS_CUT_REDACT_H
#define EVPROF_TOOLS_CUT_REDACT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "trace/reader.h"

struct redact {
	regex_t *patterns; /* POSIX extended regular expressions */
	size_t count;
	/* Also all words of command line and title after the first, and in the name of the program. */
	bool arguments;
};

/* Adds a pattern. Returns NULL, or what is wrong with it, in why. */
const char *redact_add(struct redact *redact, const char *pattern, char *why, size_t why_bytes);
void redact_done(struct redact *redact);

/*
 * Masks what matches in a text of UTF-8, whole characters at a time, in a copy of it: each pattern is matched with the
 * text as it was. The text may have zeros; text[length] is one. Returns whether anything changed.
 */
bool redact_text(const struct redact *redact, const char *text, size_t length, char *masked);

/* Whether the name, of a file, has the name of a program whose words are dropped: it may have been made of them. */
bool redact_cuts_program(const struct redact *redact, const struct trace *trace, const char *name);

/*
 * Writes the trace to a file, which appears when it is complete. in_place: it takes the place of the trace. Returns 0
 * or -errno, of an end of memory or of writing.
 */
int redact_write_file(const struct redact *redact, struct trace *trace, const char *path, bool in_place);

#endif
