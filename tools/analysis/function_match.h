/*
 * function_match.h - MODULE:FUNCTION as evprof check writes it: which functions of a trace it names, and which ones its
 * writer may have meant where it names none.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FUNCTION_MATCH_H
#define EVPROF_TOOLS_ANALYSIS_FUNCTION_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "evprof/wire.h"

/* Two globs; module may be a path or the end of one. */
struct function_match {
	char *module;
	char *function;
	bool out_of_memory; /* of a function it is not known whether it matches */
};

/* Splits length bytes of text at their last colon. Returns 0, -EINVAL where there is none, or -ENOMEM. */
int function_match_parse(struct function_match *match, const char *text, size_t length);
void function_match_done(struct function_match *match);

/* native: a C function. */
bool function_match_module(struct function_match *match, const struct wire_definition *definition, bool native);
bool function_match_takes(struct function_match *match, const struct wire_definition *definition, bool native);
/* Does its module, a file.py, rule C functions out? */
bool function_match_only_python(const struct function_match *match);

#define FUNCTION_NEAR_MOST 3

/* The nearest names so far, the nearest first. All zeros: none. */
struct function_near {
	char *names[FUNCTION_NEAR_MOST];
	unsigned distances[FUNCTION_NEAR_MOST];
};

/* Out of memory costs a suggestion. */
void function_near_add(struct function_near *near, struct function_match *match,
		       const struct wire_definition *definition, bool native);
void function_near_done(struct function_near *near);

#endif
