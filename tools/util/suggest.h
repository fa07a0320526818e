/*
 * suggest.h - which known word somebody meant who has misspelt it: a verb or an option. Used by cmd/evprof.c and cli.c.
 */
#ifndef EVPROF_TOOLS_UTIL_SUGGEST_H
#define EVPROF_TOOLS_UTIL_SUGGEST_H

#include <stddef.h>

/* How many letters are to be changed, put in or left out, or swapped with their neighbour; SUGGEST_FAR: too many. */
unsigned suggest_distance(const char *word, const char *known);

/* More differ than a slip of the pen explains. */
#define SUGGEST_FAR 3u

#endif
