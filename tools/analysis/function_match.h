/*
 * function_match.h - the MODULE:FUNCTION pattern of evprof check: which functions of a trace it matches, and the
 * nearest names to suggest if it matches none.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FUNCTION_MATCH_H
#define EVPROF_TOOLS_ANALYSIS_FUNCTION_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "evprof/wire.h"

/* Two globs. module may match a path or the end of one. */
struct function_match {
	char *module;
	char *function;
	bool out_of_memory; /* memory ran out during a match: its result is not valid */
};

/* Splits `length` bytes of text at the last colon. Returns 0, -EINVAL if there is no colon, or -ENOMEM. */
int function_match_parse(struct function_match *match, const char *text, size_t length);
void function_match_done(struct function_match *match);

/* c_function: the definition is of a C function. */
bool function_match_module(struct function_match *match, const struct wire_definition *definition, bool c_function);
bool function_match_takes(struct function_match *match, const struct wire_definition *definition, bool c_function);
/* Whether the module, a file.py, excludes C functions. */
bool function_match_only_python(const struct function_match *match);

#define FUNCTION_NEAR_MOST 3

/* The nearest names so far, nearest first. All zeros: none. */
struct function_near {
	char *names[FUNCTION_NEAR_MOST];
	unsigned distances[FUNCTION_NEAR_MOST];
};

/* If memory runs out, a suggestion is missing. */
void function_near_add(struct function_near *near, struct function_match *match,
		       const struct wire_definition *definition, bool c_function);
void function_near_done(struct function_near *near);

#endif
