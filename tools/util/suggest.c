/*
 * suggest.c - see suggest.h. Computes the Damerau-Levenshtein distance row by row.
 */
#include "util/suggest.h"

#include <string.h>

#define WORD_MAX 32

static unsigned min_unsigned(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned suggest_distance(const char *word, const char *known)
{
	size_t rows = strlen(word), columns = strlen(known);
	unsigned cost[WORD_MAX + 1][WORD_MAX + 1];

	if (rows > WORD_MAX || columns > WORD_MAX)
		return SUGGEST_FAR;
	for (size_t i = 0; i <= rows; i++)
		cost[i][0] = (unsigned)i;
	for (size_t j = 0; j <= columns; j++)
		cost[0][j] = (unsigned)j;
	for (size_t i = 1; i <= rows; i++)
		for (size_t j = 1; j <= columns; j++) {
			unsigned here = cost[i - 1][j - 1] + (word[i - 1] != known[j - 1]);

			here = min_unsigned(here, min_unsigned(cost[i - 1][j], cost[i][j - 1]) + 1);
			if (i > 1 && j > 1 && word[i - 1] == known[j - 2] && word[i - 2] == known[j - 1])
				here = min_unsigned(here, cost[i - 2][j - 2] + 1);
			cost[i][j] = here;
		}
	/* A short word would be near every other one. */
	return cost[rows][columns] * 2 > columns ? SUGGEST_FAR : min_unsigned(cost[rows][columns], SUGGEST_FAR);
}
