/*
 * suggest.h - spelling suggestions for verbs and options. Used by cmd/evprof.c, cli.c and function_match.c.
 */
#ifndef EVPROF_TOOLS_UTIL_SUGGEST_H
#define EVPROF_TOOLS_UTIL_SUGGEST_H

#include <stddef.h>

/* The number of letters to change, insert, delete, or swap with the next one; SUGGEST_FAR: too many. */
unsigned suggest_distance(const char *word, const char *known);

/* A distance too large for a typing error. */
#define SUGGEST_FAR 3u

#endif
